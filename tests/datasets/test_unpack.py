"""Archives of every kind, honest, damaged and hostile."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import subprocess
import sys
import zipfile

import pytest
from toy_archives import FILES, MODES, NOISE, archive_of, content, entry, tar, zipped

from shiftcal.datasets.unpack import unpack
from shiftcal.errors import FileError


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("end", [*MODES, ".zip"])
def test_archives_come_out_as_they_went_in(tmp_path, out, end):
    steps = []
    archive = archive_of(tmp_path, end)
    assert unpack(archive, out, step=lambda *step: steps.append(step)) == ["set"]
    assert content(out) == FILES
    assert steps == sorted(steps)
    assert all(done <= archive.stat().st_size == size for done, size in steps)


@pytest.mark.parametrize(("end", "opener"), [("gz", gzip), ("bz2", bz2), ("xz", lzma)])
def test_a_compressed_file_comes_out_under_its_name_without_the_end(tmp_path, out, end, opener):
    archive = tmp_path / f"train-images-idx3-ubyte.{end}"
    archive.write_bytes(opener.compress(NOISE))
    assert unpack(archive, out) == ["train-images-idx3-ubyte"]
    assert content(out) == {"train-images-idx3-ubyte": NOISE}


def test_an_archive_that_another_program_made(tmp_path, out):
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    subprocess.run(["tar", "czf", "data.tar.gz", "./set"], cwd=tmp_path, check=True)
    assert unpack(tmp_path / "data.tar.gz", out) == ["set"]
    assert content(out) == FILES


@pytest.mark.parametrize(("made", "called"), [(".tar", ".tar.gz"), (".tar.gz", ".tar")])
def test_a_tar_is_known_by_its_content_and_not_by_its_name(tmp_path, out, made, called):
    archive = archive_of(tmp_path, made).rename(tmp_path / f"called{called}")
    assert unpack(archive, out) == ["set"]
    assert content(out) == FILES


@pytest.mark.parametrize("end", ["gz", "bz2", "xz"])
def test_a_file_that_is_not_compressed_at_all_is_refused(tmp_path, out, end):
    (tmp_path / f"data.{end}").write_bytes(b"plain")
    with pytest.raises(FileError, match="it is damaged or not what its name says"):
        unpack(tmp_path / f"data.{end}", out)
    assert list(out.iterdir()) == []


def test_other_files_stay_and_files_of_the_same_name_are_replaced(tmp_path, out):
    (out / "set" / "a").mkdir(parents=True)
    (out / "set" / "a" / "1.bin").write_bytes(b"old")
    (out / "set" / "a" / "mine").write_bytes(b"mine")
    (out / "other").write_bytes(b"other")
    unpack(archive_of(tmp_path, ".tar"), out)
    assert content(out) == {**FILES, "set/a/mine": b"mine", "other": b"other"}


def test_what_a_killed_run_left_is_not_in_the_way(tmp_path, out):
    (out / ".data.tar.unpacking" / "set").mkdir(parents=True)
    (out / ".data.tar.unpacking" / "half").write_bytes(b"half")
    unpack(archive_of(tmp_path, ".tar"), out)
    assert content(out) == FILES


def test_owners_and_permissions_are_not_taken_over(tmp_path, out):
    unpack(tar(tmp_path / "x.tar", [(entry("run", mode=0o6777), b"#!")]), out)
    assert stat.S_IMODE((out / "run").stat().st_mode) & ~0o666 == 0


@pytest.mark.parametrize("end", [*MODES, ".zip"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9])
def test_a_truncated_archive_is_refused(tmp_path, out, end, keep):
    # Incompressible and large, so that half of any kind of it ends within a member.
    archive = archive_of(tmp_path, end, {"a": NOISE, "b": NOISE, "c": NOISE})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(FileError, match="could not be unpacked: it is damaged or not what"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("end", [".tar.gz", ".tar.bz2", ".tar.xz", ".zip", ".gz"])
def test_a_flipped_bit_is_found_by_the_archives_own_checksum(tmp_path, out, end):
    archive = tmp_path / f"data{end}"
    if end == ".gz":
        archive.write_bytes(gzip.compress(NOISE))
    else:
        archive_of(tmp_path, end, {"a": NOISE})
    whole = bytearray(archive.read_bytes())
    whole[len(whole) // 2] ^= 1
    archive.write_bytes(whole)
    with pytest.raises(FileError, match="Remove it and fetch it again"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


def test_a_wrong_checksum_at_the_end_of_a_tar_gz_is_found(tmp_path, out):
    archive = archive_of(tmp_path, ".tar.gz")
    whole = bytearray(archive.read_bytes())
    whole[-6] ^= 1
    archive.write_bytes(whole)
    with pytest.raises(FileError, match="CRC"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


def test_an_encrypted_zip_is_refused(tmp_path, out):
    archive = zipped(tmp_path / "x.zip", [("a", b"secret")], zipfile.ZIP_STORED)
    whole = bytearray(archive.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(mark) + at] |= 1
    archive.write_bytes(whole)
    with pytest.raises(FileError, match=r"could not be unpacked: .*(encrypted|password)"):
        unpack(archive, out)


def test_a_file_that_is_no_archive_by_its_name_is_refused(tmp_path, out):
    (tmp_path / "x.rar").write_bytes(b"Rar!")
    with pytest.raises(FileError, match=r"its name must end in \.tar, \.tar\.gz"):
        unpack(tmp_path / "x.rar", out)


def test_a_name_twice_means_the_later_one_as_for_tar(tmp_path, out):
    unpack(tar(tmp_path / "x.tar", [(entry("a"), b"1"), (entry("a"), b"2")]), out)
    assert content(out) == {"a": b"2"}


def test_a_full_disk_leaves_the_archive_and_nothing_else(tmp_path, out):
    code = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from shiftcal.datasets.unpack import unpack\nfrom shiftcal.errors import FileError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, -1))\n"
        "try:\n    unpack(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except FileError as error:\n    print(error)"
    )
    archive = archive_of(tmp_path, ".tar.gz")
    command = [sys.executable, "-c", code, archive, out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "File too large. It is kept. Make room, and the same command goes on" in done.stdout
    assert list(out.iterdir()) == []
    assert archive.exists()


def test_ctrl_c_leaves_nothing_unpacked(tmp_path, out):
    def interrupt(done, size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(archive_of(tmp_path, ".tar"), out, step=interrupt)
    assert list(out.iterdir()) == []


def test_many_members_do_not_pile_up(tmp_path, out):
    from shiftcal.datasets import _archive_members

    archive = tar(tmp_path / "x.tar", [(entry(f"{i}"), b"") for i in range(200)])
    with _archive_members.members(archive) as (found, _):
        held = [len(member.open.args[0].members) for member in found]
    assert max(held) <= 1

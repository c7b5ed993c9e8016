"""Archives that would write outside their folder, or fill the disk."""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from toy_archives import NOISE, archive_of, content, entry, tar, zipped

from shiftcal.datasets.unpack import Limits, unpack
from shiftcal.errors import FileError


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


OUTSIDE = [
    "/tmp/evil",
    "../evil",
    "set/../../evil",
    "C:/evil",
    "..\\evil",
    "set\\..\\evil",
    "//evil",
]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("end", [".tar", ".tar.gz", ".zip"])
def test_a_path_that_leads_outside_is_refused(tmp_path, out, name, end):
    archive = archive_of(tmp_path, end, {"good": b"1", name: b"2"})
    with pytest.raises(FileError, match=r"was not unpacked: .* leads outside.*Do not trust it"):
        unpack(archive, out)
    assert list(out.iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_a_name_with_nul_in_it_is_refused(tmp_path, out):
    archive = zipped(tmp_path / "x.zip", [("evilXname", b"1")])
    archive.write_bytes(archive.read_bytes().replace(b"evilXname", b"evil\0name"))
    with pytest.raises(FileError, match="leads outside"):
        unpack(archive, out)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("to", ["/etc/passwd", "../../etc/passwd", "set/../../x", "a\\b", ""])
def test_a_link_that_leads_outside_is_refused(tmp_path, out, kind, to):
    archive = tar(tmp_path / "x.tar", [(entry("link", kind, link=to), b"")])
    with pytest.raises(FileError, match="the link 'link' in it leads outside"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


def test_a_link_in_a_zip_is_refused_the_same_way(tmp_path, out):
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(FileError, match=r"the link 'link' in it leads outside, to '../../secret'"):
        unpack(zipped(tmp_path / "x.zip", [(link, "../../secret")]), out)
    unpack(zipped(tmp_path / "y.zip", [("set/a", b"1"), (link, "set/a")]), out)
    assert content(out) == {"link": b"1", "set/a": b"1"}


def test_links_to_files_of_the_archive_become_copies(tmp_path, out):
    entries = [
        (entry("set/b/soft", tarfile.SYMTYPE, link="../a/1"), b""),
        (entry("set/hard", tarfile.LNKTYPE, link="set/a/1"), b""),
        (entry("set/a/1"), b"one"),
    ]
    unpack(tar(tmp_path / "x.tar", entries), out)
    assert content(out) == {"set/a/1": b"one", "set/b/soft": b"one", "set/hard": b"one"}
    assert not any(path.is_symlink() for path in out.rglob("*"))


@pytest.mark.parametrize("link", [".", "folder", "nowhere", "self", "other"])
def test_other_links_inside_are_refused(tmp_path, out, link):
    entries = [
        (entry("folder/x"), b"1"),
        (entry("self", tarfile.SYMTYPE, link=link), b""),
        (entry("self/x"), b"through the link"),
    ]
    with pytest.raises(FileError, match=r"does not lead to a file of it|could not be unpacked"):
        unpack(tar(tmp_path / "x.tar", entries), out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(tmp_path, out, kind):
    with pytest.raises(FileError, match="'dev' in it is a device, a pipe or the like"):
        unpack(tar(tmp_path / "x.tar", [(entry("dev", kind), b"")]), out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("end", [".tar.gz", ".tar.xz", ".zip"])
def test_an_archive_that_grows_too_much_is_refused(tmp_path, out, end):
    archive = archive_of(tmp_path, end, {"zeros": bytes(3_000_000)})
    most = 10 * archive.stat().st_size + 1000
    with pytest.raises(FileError, match=f"would become more than {most:,}"):
        unpack(archive, out, limits=Limits(ratio=10, allowance=1000))
    assert list(out.iterdir()) == []


def test_a_compressed_file_that_grows_too_much_is_refused_while_it_does(tmp_path, out):
    archive = tmp_path / "zeros.gz"
    archive.write_bytes(gzip.compress(bytes(30_000_000)))
    with pytest.raises(FileError, match="would become more than"):
        unpack(archive, out, limits=Limits(ratio=10, allowance=1000))
    assert list(out.iterdir()) == []


def test_a_header_that_promises_too_much_is_refused_unread(tmp_path, out):
    header = entry("huge", size=1 << 50).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "x.tar").write_bytes(header + bytes(1024))
    with pytest.raises(FileError, match="would become more than"):
        unpack(tmp_path / "x.tar", out)


def test_copies_of_links_count_as_well(tmp_path, out):
    links = [(entry(f"l{i}", tarfile.LNKTYPE, link="a"), b"") for i in range(100)]
    archive = tar(tmp_path / "x.tar", [(entry("a"), NOISE), *links])
    with pytest.raises(FileError, match="would become more than"):
        unpack(archive, out, limits=Limits(ratio=2, allowance=0))


def test_too_many_members_are_refused(tmp_path, out):
    archive = archive_of(tmp_path, ".tar")
    with pytest.raises(FileError, match="holds more than 2 files and folders"):
        unpack(archive, out, limits=Limits(members=2))
    assert len(content(out)) == 0


def test_nothing_is_written_outside_by_the_names_tried_above():
    assert not Path("/tmp/evil").exists()
    assert not Path(os.sep, "evil").exists()

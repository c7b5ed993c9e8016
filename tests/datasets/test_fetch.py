"""Data sets downloaded from a server that fails, unpacked from archives that lie."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import stat
import subprocess
import tarfile
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_archives import FILES, MODES, NOISE, archive_of, content, entry, tar, zipped
from toy_server import Turn, serving, unused_port
from toy_sets import about_toys, source_of, toy_archive, use_toys, write_toys

from shiftcal import datasets
from shiftcal.datasets.catalog import Download
from shiftcal.datasets.fetch import _Redirects, check_data_set, download, get_data_set, unpack
from shiftcal.errors import FileError, InputError
from shiftcal.registry import DATA_SETS

BODY = np.random.default_rng(3).bytes(300_000)
OTHER = np.random.default_rng(4).bytes(300_000)
MD5 = f"md5:{hashlib.md5(BODY).hexdigest()}"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    use_toys(monkeypatch)
    with serving() as toy:
        yield toy


@pytest.fixture
def fetch(tmp_path):
    """``fetch(url)``: the content of the file; ``fetch.told`` is what progress was told."""

    def fetch(url, *, digest=MD5, size=0, tries=3, timeout=5.0):
        source = Download(url, "data.bin", digest, size=size)
        told = fetch.told = []
        return download(
            source,
            tmp_path,
            tries=tries,
            timeout=timeout,
            progress=lambda *step: told.append(step),
            wait=lambda _: None,
        ).read_bytes()

    return fetch


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def seen(folder):
    return [name for name in names(folder) if not name.startswith(".")]


# One file.


def test_a_file_arrives_whole_and_alone(server, fetch, tmp_path):
    assert fetch(server.offer("/data", Turn(BODY))) == BODY
    assert names(tmp_path) == ["data.bin"]
    assert fetch.told[0] == ("data.bin", 0, 300_000)
    assert ("data.bin", 300_000, 300_000) in fetch.told
    (_, headers) = server.asked[0]
    assert headers["User-Agent"].startswith("shiftcal/")
    assert "Range" not in headers


@pytest.mark.parametrize("mark", [{}, {"etag": "", "modified": "Mon, 01 Jan 2024 00:00:00 GMT"}])
def test_a_broken_connection_resumes_where_it_broke(server, fetch, mark):
    url = server.offer("/data", Turn(BODY, cut_after=100_000, **mark), Turn(BODY, **mark))
    assert fetch(url) == BODY
    assert server.ranges() == [None, "bytes=100000-"]
    assert server.asked[1][1]["If-Range"] == (mark.get("modified") or '"one"')
    assert any("trying again in 1 s" in doing for doing, _, _ in fetch.told)


def test_what_arrived_is_kept_when_it_gives_up_and_another_run_resumes(server, fetch, tmp_path):
    url = server.offer("/data", Turn(BODY, cut_after=1000))
    with pytest.raises(FileError, match=r"gave up after 4 tries\. 4,000 bytes are kept"):
        fetch(url, tries=4)
    assert (tmp_path / "data.bin.partial").read_bytes() == BODY[:4000]
    server.offer("/data", Turn(BODY))
    assert fetch(url) == BODY
    assert names(tmp_path) == ["data.bin"]


def test_a_try_that_brings_much_starts_the_count_again(server, tmp_path):
    body = np.random.default_rng(5).bytes(4 << 20)
    short = Turn(body, cut_after=5)
    turns = [short, short, Turn(body, cut_after=2 << 20), short, Turn(body)]
    waits = []
    source = source_of(server.offer("/data", *turns), body, file="data.bin")
    assert download(source, tmp_path, tries=3, wait=waits.append).read_bytes() == body
    assert waits == [1.0, 2.0, 1.0, 2.0]


def test_a_server_that_ignores_range_or_has_another_file_starts_over(server, fetch, tmp_path):
    ignoring = Turn(BODY, cut_after=100_000, ranges=False), Turn(BODY, ranges=False)
    assert fetch(server.offer("/data", *ignoring)) == BODY
    (tmp_path / "data.bin").unlink()
    changed = Turn(OTHER, cut_after=100_000), Turn(BODY, etag='"two"')
    assert fetch(server.offer("/data", *changed)) == BODY


@pytest.mark.parametrize(
    "liar",
    [Turn(OTHER, shifted=7), Turn(OTHER[:50_000]), Turn(b"", status=206)],
    ids=["start", "shorter", "no range"],
)
def test_an_answer_that_is_not_the_rest_starts_over(server, fetch, liar):
    url = server.offer("/data", Turn(BODY, cut_after=100_000), liar, Turn(BODY))
    assert fetch(url) == BODY
    assert server.ranges() == [None, "bytes=100000-", None]


@pytest.mark.parametrize("etag", ["", 'W/"one"'])
def test_without_a_tag_the_checksum_finds_a_changed_file(server, fetch, tmp_path, etag):
    url = server.offer("/data", Turn(OTHER, cut_after=100_000, etag=etag), Turn(BODY, etag=etag))
    with pytest.raises(FileError, match="is not the published file"):
        fetch(url)
    assert "If-Range" not in server.asked[1][1]
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "turns",
    [
        [Turn(BODY, length=300_500), Turn(BODY)],
        [Turn(BODY, length=None)],
        [Turn(BODY, chunked=True)],
        [Turn(BODY, chunked=True, cut_after=1000), Turn(BODY)],
        [Turn(b"no", status=503), Turn(BODY)],
        [Turn(BODY, length=None, cut_after=1000), Turn(BODY)],
    ],
    ids=["too long", "no length", "chunked", "cut chunk", "busy", "published size"],
)
def test_other_servers_that_bring_the_file_in_the_end(server, fetch, turns):
    assert fetch(server.offer("/data", *turns), size=len(BODY)) == BODY


def test_what_is_there_is_verified_and_not_downloaded(server, fetch, tmp_path):
    url = server.offer("/data", Turn(BODY))
    (tmp_path / "data.bin").write_bytes(BODY)
    assert fetch(url) == BODY
    (tmp_path / "data.bin").write_bytes(OTHER)
    with pytest.raises(FileError, match="Remove it, and the same command downloads it"):
        fetch(url)
    assert (tmp_path / "data.bin").read_bytes() == OTHER
    assert server.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirections_are_followed_with_the_range(server, fetch, status):
    server.offer("/there", Turn(BODY, cut_after=1000), Turn(BODY))
    url = server.offer("/data", Turn(b"", status=status, headers=(("Location", "/there"),)))
    assert fetch(url) == BODY
    assert server.ranges() == [None, None, "bytes=1000-", "bytes=1000-"]


def to(place):
    return Turn(b"", status=302, headers=(("Location", place),))


@pytest.mark.parametrize(
    ("turn", "digest", "words"),
    [
        (Turn(OTHER), MD5, f"md5 {MD5[4:]}, got .* It was removed"),
        (Turn(BODY, length=299_000), MD5, "is not the published file"),
        (Turn(b"no", status=404), MD5, "answers 404 .*It may have moved"),
        (Turn(b"no", status=500), MD5, "answers 500 .*gave up after 3 tries"),
        (Turn(b"<html>", headers=(("Content-Type", "text/html"),)), MD5, "gave a web page"),
        (Turn(BODY), "", "plain http can be tampered with"),
        (to("file:///etc/passwd"), MD5, "must begin with https: or http:|could not be downloaded"),
        (to("ftp://127.0.0.1/data"), MD5, "must begin with https: or http:"),
        (to("/data"), MD5, "could not be downloaded"),
    ],
)
def test_what_is_not_the_file_leaves_nothing(server, fetch, tmp_path, turn, digest, words):
    with pytest.raises(FileError, match=words):
        fetch(server.offer("/data", turn), digest=digest)
    assert not any((tmp_path / f"data.bin{end}").exists() for end in ("", ".partial"))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/file", "data.bin", ""])
def test_only_the_web_is_downloaded_from(fetch, url):
    with pytest.raises(FileError, match="an address must begin with https: or http:"):
        fetch(url)


def test_a_redirection_to_plain_http_needs_a_checksum():
    from urllib.request import Request

    given = (Request("https://host/a"), None, 302, "Found", {}, "http://host/b")
    assert _Redirects(checked=True).redirect_request(*given).full_url == "http://host/b"
    with pytest.raises(FileError, match="http://host/b is not downloaded: plain http"):
        _Redirects(checked=False).redirect_request(*given)


def test_nobody_listening_and_a_stalled_connection_count_as_broken(server, fetch):
    with pytest.raises(FileError, match="Connection refused; gave up after 3 tries"):
        fetch(f"http://127.0.0.1:{unused_port()}/data")
    release = threading.Event()
    url = server.offer("/data", Turn(BODY, cut_after=1000, stall=release), Turn(BODY))
    assert fetch(url, timeout=0.2) == BODY
    release.set()
    assert server.ranges() == [None, "bytes=1000-"]


# A data set.


@pytest.fixture
def toys(server, tmp_path, monkeypatch):
    """The toys at an address: an archive, and a file to leave as it is."""
    (tmp_path / "made").mkdir()
    archive = toy_archive(tmp_path / "made")
    one = source_of(server.offer("/toys", Turn(archive)), archive)
    two = source_of(server.offer("/notes", Turn(BODY)), BODY, file="notes.bin", unpack=False)
    about_toys(monkeypatch, downloads=(one, two))
    return one, two


def new(folder, **options):
    return [file.new for file in get_data_set("toys", folder, wait=lambda _: None, **options)]


def test_a_set_is_downloaded_once(toys, server, tmp_path):
    folder = tmp_path / "new" / "toys"
    fetched = get_data_set("toys", folder)
    assert [(f.file, f.new, f.verified) for f in fetched] == [
        ("toys.tar.gz", True, True),
        ("notes.bin", True, True),
    ]
    assert seen(folder) == ["notes.bin", "toys"]
    assert check_data_set("toys", folder).complete
    assert new(folder) == [False, False]
    (folder / "notes.bin").write_bytes(b"changed")
    with pytest.raises(FileError, match="Remove it"):
        new(folder)
    (folder / "notes.bin").unlink()
    assert new(folder) == [False, True]
    assert [path for path, _ in server.asked] == ["/toys", "/notes", "/notes"]
    assert new(folder, again=True, keep_archives=True) == [True, True]
    assert seen(folder) == ["notes.bin", "toys", "toys.tar.gz"]


def test_a_complete_copy_of_other_origin_is_left_alone(toys, server, tmp_path):
    folder = write_toys(tmp_path / "mine")
    assert get_data_set("toys", folder) == []
    assert server.asked == []
    (folder / "toys" / "test" / "car" / "1.png").unlink()
    assert new(folder) == [True, True]
    assert check_data_set("toys", folder).complete


def test_a_new_version_is_downloaded(toys, server, monkeypatch, tmp_path):
    get_data_set("toys", tmp_path / "to")
    one, two = toys
    about_toys(monkeypatch, downloads=(replace(one, url=f"{one.url}?2"), two))
    server.offer("/toys?2", *server.turns["/toys"])
    assert new(tmp_path / "to") == [True, False]


def test_a_broken_second_file_costs_only_that(toys, server, tmp_path):
    server.offer("/notes", Turn(b"no", status=404))
    with pytest.raises(FileError, match="404"):
        get_data_set("toys", tmp_path / "to")
    server.offer("/notes", Turn(BODY))
    assert new(tmp_path / "to") == [False, True]


def test_what_cannot_be_downloaded_says_so(toys, tmp_path):
    with pytest.raises(InputError, match=r"Other Toys cannot be downloaded by a program\. Ask the"):
        get_data_set("toys-by-hand", tmp_path / "to")
    assert not (tmp_path / "to").exists()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match="file could not be made"):
        get_data_set("toys", tmp_path / "file")


def test_two_at_once_do_not_mix(toys, server, tmp_path):
    release, folder = threading.Event(), tmp_path / "to"
    (archive,) = server.turns["/toys"]
    server.offer("/toys", replace(archive, cut_after=100, stall=release), archive)
    first = threading.Thread(target=new, args=(folder,))
    first.start()
    try:
        while not server.asked:
            time.sleep(0.01)
        with pytest.raises(FileError, match="another process is downloading into"):
            get_data_set("toys", folder)
    finally:
        release.set()
        first.join()
    assert check_data_set("toys", folder).complete


@pytest.mark.parametrize("name", datasets.names())
def test_every_published_set_says_how_to_get_it(name):
    about = DATA_SETS.get(name)
    assert about.downloads or about.by_hand.endswith(".")
    for source in about.downloads:
        assert source.url.startswith("https://")
        assert "/" not in source.file
        algorithm, _, digits = source.digest.partition(":")
        assert len(digits) == {"md5": 32, "sha256": 64, "": 0}[algorithm]
        assert set(digits) <= set("0123456789abcdef")


# Archives.


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("end", [*MODES, ".zip"])
def test_archives_come_out_as_they_went_in(tmp_path, out, end):
    unpack(archive_of(tmp_path, end), out)
    assert content(out) == FILES


def test_an_archive_that_another_program_made_under_another_name(tmp_path, out):
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    subprocess.run(["tar", "czf", "data.tar", "./set"], cwd=tmp_path, check=True)
    unpack(tmp_path / "data.tar", out)
    assert content(out) == FILES


def test_other_files_stay_and_what_a_killed_run_left_is_removed(tmp_path, out):
    (out / "set" / "a").mkdir(parents=True)
    (out / "set" / "a" / "1.bin").write_bytes(b"old")
    (out / "set" / "a" / "mine").write_bytes(b"mine")
    (out / ".data.tar.unpacking" / "set").mkdir(parents=True)
    (out / ".data.tar.unpacking" / "half").write_bytes(b"half")
    unpack(archive_of(tmp_path, ".tar"), out)
    assert content(out) == {**FILES, "set/a/mine": b"mine"}


@pytest.mark.parametrize("end", [*MODES, ".zip"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9])
def test_a_truncated_archive_is_rejected(tmp_path, out, end, keep):
    # Incompressible and large, so that half of any kind of it ends within a member.
    archive = archive_of(tmp_path, end, {"a": NOISE, "b": NOISE, "c": NOISE})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(FileError, match=r"could not be read as an archive: it is damaged"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("name", ["/tmp/evil", "../evil", "set/../../evil", "C:/evil", "//evil"])
@pytest.mark.parametrize("end", [".tar", ".tar.gz", ".zip"])
def test_no_path_leads_outside(tmp_path, out, name, end):
    archive = archive_of(tmp_path, end, {"good": b"1", name: b"2"})
    with contextlib.suppress(FileError):
        unpack(archive, out)
    for place in (tmp_path / "evil", Path("/tmp/evil"), Path("/evil")):
        assert not place.exists()


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "../../etc/passwd"),
        (tarfile.LNKTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "../../etc/passwd"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_links_that_lead_outside_and_devices_are_rejected(tmp_path, out, kind, link):
    archive = tar(tmp_path / "x.tar", [(entry("link", kind, link=link), b"")])
    with pytest.raises(FileError, match=r"x\.tar could not"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


def test_a_link_in_a_zip_is_no_link(tmp_path, out):
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    unpack(zipped(tmp_path / "x.zip", [(link, "../../secret")]), out)
    assert not (out / "link").is_symlink()


@pytest.mark.parametrize("end", [".tar.gz", ".tar.xz", ".zip"])
def test_an_archive_that_grows_too_much_is_rejected(tmp_path, out, end):
    archive = archive_of(tmp_path, end, {"zeros": bytes(3_000_000)})
    with pytest.raises(FileError, match="would become more than 100,000"):
        unpack(archive, out, most=100_000)
    huge = tmp_path / "huge.tar"
    huge.write_bytes(entry("huge", size=1 << 50).tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(FileError, match="would become more than"):
        unpack(huge, out)
    assert list(out.iterdir()) == []


# A copy of a data set.


@pytest.fixture
def root(tmp_path, monkeypatch):
    use_toys(monkeypatch)
    return write_toys(tmp_path / "copy")


def problems(root, part, **options):
    (found,) = check_data_set("toys", root, parts=[part], **options).parts
    return found.problems


def test_a_complete_copy_is_complete(root):
    steps = []
    for folder in (root, root / "toys"):
        found = check_data_set("toys", folder, progress=lambda *step: steps.append(step))
        assert (found.complete, found.checksums) == (True, "none known")
        assert [(p.expected, p.found, p.decoded) for p in found.parts] == [(12, 12, 12), (6, 6, 6)]
    assert steps[:2] == [("train", 12, 12), ("test", 6, 6)]
    assert check_data_set("toys", root, digests=False).checksums == "not compared"


def test_what_is_missing_or_wrong_is_named(root, tmp_path, monkeypatch):
    test = root / "toys" / "test"
    assert problems(tmp_path / "none", "test") == (f"there is no {tmp_path / 'none'}.",)
    (test / "car" / "1.png").write_bytes(b"no image")
    (reason,) = problems(root, "test")
    assert reason.startswith("1 of 6 images cannot be read: ")
    assert "car/1.png cannot be read as an image" in reason
    assert problems(root, "test", sample=3) == ()
    (test / "car" / "1.png").unlink()
    assert problems(root, "test") == (
        "there must be 6 images; there are 5.",
        "every class must have 2 images; not so: car (1).",
    )
    about_toys(monkeypatch, n_classes=8)
    assert problems(root, "train")[1:] == (
        "every class must have 4 images; not so: 3 (0), 4 (0), 5 (0), and 2 more.",
    )
    (test / "list.txt").write_text("ball/0.png car/1.png")
    assert "missing files: car/1.png." in problems(root, "test", sample=0)
    (test / "list.txt").write_text("")
    found = check_data_set("toys", root, parts=["test"]).parts[0]
    assert (found.state, found.found) == ("wrong", 0)


@pytest.mark.parametrize("name", datasets.names())
def test_every_part_of_an_empty_folder_is_missing(name, tmp_path):
    about = DATA_SETS.get(name.upper().replace("-", "_"))
    found = check_data_set(name, tmp_path)
    assert {part.state for part in found.parts} == {"missing"}
    assert len(found.parts) == len(about.parts) > 0
    assert found.absent == tuple(about.checksums())
    assert {file for part in about.parts for file in part.files} == set(about.checksums())


def test_checksums_of_files_are_verified(root, monkeypatch):
    image = (root / "toys" / "test" / "car" / "1.png").read_bytes()
    digests = {
        "toys/test/car/0.png": f"md5:{hashlib.md5(image).hexdigest().upper()}",
        "toys/test/car/1.png": f"sha256:{hashlib.sha256(image).hexdigest()}",
        "toys/binary/car": "md5:00",
    }
    about_toys(monkeypatch, digests=digests)
    for folder in (root, root / "toys"):
        found = check_data_set("toys", folder)
        assert (found.complete, found.checksums) == (True, "verified")
        assert found.verified == ("toys/test/car/0.png", "toys/test/car/1.png")
        assert found.absent == ("toys/binary/car",)
    (root / "toys" / "test" / "car" / "1.png").write_bytes(image + b"x")
    found = check_data_set("toys", root)
    assert (found.complete, found.checksums) == (False, "altered")
    assert found.altered[0].startswith("toys/test/car/1.png: sha256 ")


def test_what_a_compressed_file_unpacks_to_counts(root, monkeypatch):
    digest = f"md5:{hashlib.md5(b'content').hexdigest()}"
    about_toys(monkeypatch, paths=lambda _: ["list", "list.gz"], digests={"list": digest})
    for packed, state in (
        (gzip.compress(b"content"), "verified"),
        (gzip.compress(b"other"), "altered"),
        (gzip.compress(b"content" * 1000)[:-9], "altered"),
        (b"no archive", "altered"),
    ):
        (root / "list.gz").write_bytes(packed)
        assert check_data_set("toys", root).checksums == state


def test_a_copy_of_the_right_shape_is_not_the_published_one(tmp_path):
    noise = np.random.default_rng(3).integers(0, 256, (2000, 32, 32, 3), dtype=np.uint8)
    np.save(tmp_path / "cifar10.1_v6_data.npy", noise)
    np.save(tmp_path / "cifar10.1_v6_labels.npy", np.arange(2000) % 10)
    found = check_data_set("cifar10-1", tmp_path, parts=["v6"], sample=1)
    assert found.parts[0].state == "complete"
    assert (found.complete, len(found.altered)) == (False, 2)


def test_real_copies(shared_data, tmp_path):
    assert check_data_set("office-caltech10", shared_data / "office-caltech10").complete
    found = check_data_set("pacs", shared_data / "pacs-2800", sample=5)
    assert found.parts[0].problems == ("there must be 2,048 images; there are 700.",)
    # Compressed again, so that only what the files unpack to is as published.
    found = check_data_set("mnist", shared_data / "digits", sample=3)
    assert (found.complete, len(found.verified)) == (True, 4)
    found = check_data_set("usps", shared_data / "digits", sample=3)
    assert (found.complete, found.checksums) == (True, "absent")
    with np.load(shared_data / "cifar10" / "labels.npz") as held:
        np.save(tmp_path / "labels.npy", np.tile(held["test"].astype(np.uint8), 5))
    found = check_data_set("cifar10-c", tmp_path, parts=["fog"])
    assert found.verified == ("CIFAR-10-C/labels.npy",)

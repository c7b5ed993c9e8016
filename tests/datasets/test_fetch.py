"""Data sets downloaded from a server that fails, unpacked from archives that lie, and checked."""

from __future__ import annotations

import contextlib
import hashlib
import tarfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from toy_sets import (
    FILES,
    MODES,
    NOISE,
    Turn,
    about_toys,
    archive_of,
    content,
    entry,
    serving,
    source_of,
    tar,
    toy_archive,
    unused_port,
    use_toys,
    write_toys,
)

from shiftcal import datasets
from shiftcal.datasets.catalog import Download
from shiftcal.datasets.fetch import check_data_set, download, get_data_set, unpack
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
    """``fetch(url)``: the content of the file; ``fetch.steps`` are the calls of progress."""

    def fetch(url, *, timeout=5.0):
        steps = fetch.steps = []
        return download(
            Download(url, MD5, size=len(BODY)),
            tmp_path,
            timeout=timeout,
            progress=lambda *step: steps.append(step),
            wait=lambda _: None,
        ).read_bytes()

    return fetch


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_complete_and_alone(server, fetch, tmp_path):
    assert fetch(server.offer("/data.bin", Turn(BODY))) == BODY
    assert names(tmp_path) == ["data.bin"]
    assert fetch.steps[-1] == (300_000, 300_000)


def test_what_arrived_is_kept_and_another_run_resumes(server, fetch, tmp_path):
    url = server.offer("/data.bin", Turn(BODY, cut_after=1000), Turn(b"no", status=503))
    with pytest.raises(FileError, match=r"503.*1,000 bytes are kept; the same command resumes"):
        fetch(url)
    assert (tmp_path / "data.bin.partial").read_bytes() == BODY[:1000]
    server.offer("/data.bin", Turn(BODY))
    assert fetch(url) == BODY
    assert names(tmp_path) == ["data.bin"]
    assert server.ranges() == [None] + ["bytes=1000-"] * 7


@pytest.mark.parametrize(
    "turns",
    [
        [Turn(BODY, cut_after=100_000), Turn(BODY)],
        [Turn(BODY, cut_after=100_000, ranges=False), Turn(BODY, ranges=False)],
        [Turn(BODY, length=None)],
        [Turn(BODY, chunked=True, cut_after=1000), Turn(BODY)],
        [Turn(b"no", status=503), Turn(BODY)],
        [Turn(BODY, length=None, cut_after=1000), Turn(BODY)],
    ],
    ids=["cut", "no ranges", "no length", "cut chunk", "busy", "size known"],
)
def test_servers_that_bring_the_file_in_the_end(server, fetch, turns):
    assert fetch(server.offer("/data.bin", *turns)) == BODY


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn(OTHER), f"md5 {MD5[4:]}, got .* It was removed"),
        (Turn(b"no", status=404), "404"),
        (Turn(b"no", status=500), "500"),
        (Turn(b"", status=302, headers=(("Location", "file:///etc/passwd"),)), "could not be"),
    ],
)
def test_what_is_not_the_file_leaves_nothing(server, fetch, tmp_path, turn, words):
    with pytest.raises(FileError, match=words):
        fetch(server.offer("/data.bin", turn))
    assert names(tmp_path) == []


def test_nobody_listening_and_a_stalled_connection_count_as_broken(server, fetch):
    with pytest.raises(FileError, match="Connection refused"):
        fetch(f"http://127.0.0.1:{unused_port()}/data.bin")
    release = threading.Event()
    url = server.offer("/data.bin", Turn(BODY, cut_after=1000, stall=release), Turn(BODY))
    assert fetch(url, timeout=0.2) == BODY
    release.set()
    assert server.ranges() == [None, "bytes=1000-"]


@pytest.fixture
def toys(server, tmp_path, monkeypatch):
    """The toys at an address: an archive, and a file to leave as it is."""
    (tmp_path / "made").mkdir()
    archive = toy_archive(tmp_path / "made")
    one = source_of(server.offer("/toys.tar.gz", Turn(archive)), archive)
    two = source_of(server.offer("/notes.bin", Turn(BODY)), BODY)
    about_toys(monkeypatch, downloads=(one, two))
    return one, two


def new(folder, **options):
    return [file.new for file in get_data_set("toys", folder, wait=lambda _: None, **options)]


def visible(folder):
    return [name for name in names(folder) if not name.startswith(".")]


def test_a_set_is_downloaded_once(toys, server, tmp_path):
    folder = tmp_path / "new" / "toys"
    fetched = get_data_set("toys", folder)
    assert [(f.file, f.new, f.verified) for f in fetched] == [
        ("toys.tar.gz", True, True),
        ("notes.bin", True, True),
    ]
    assert visible(folder) == ["notes.bin", "toys"]
    assert check_data_set("toys", folder).complete
    assert new(folder) == [False, False]
    (folder / "notes.bin").unlink()
    assert new(folder) == [False, True]
    assert [path for path, _ in server.asked] == ["/toys.tar.gz", "/notes.bin", "/notes.bin"]
    (folder / "notes.bin").write_bytes(OTHER)
    assert check_data_set("toys", folder).altered[0].startswith("notes.bin: md5 ")
    assert new(folder) == [False, True]
    assert new(folder, again=True) == [True, True]
    assert visible(folder) == ["notes.bin", "toys"]


def test_what_cannot_be_downloaded_says_so(toys, tmp_path):
    with pytest.raises(InputError, match=r"Other Toys cannot be downloaded by a program\. Ask the"):
        get_data_set("toys-by-hand", tmp_path / "to")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match="file could not be made"):
        get_data_set("toys", tmp_path / "file")


def test_two_at_once_do_not_mix(toys, server, tmp_path):
    release, folder = threading.Event(), tmp_path / "to"
    (archive,) = server.turns["/toys.tar.gz"]
    server.offer("/toys.tar.gz", Turn(archive.body, cut_after=100, stall=release), archive)
    first = threading.Thread(target=new, args=(folder,))
    first.start()
    try:
        while not server.asked:
            time.sleep(0.01)
        with pytest.raises(FileError, match="in use by another"):
            get_data_set("toys", folder)
    finally:
        release.set()
        first.join()
    assert check_data_set("toys", folder).complete


@pytest.mark.parametrize("name", datasets.names())
def test_every_published_set_says_how_to_get_it_and_what_is_missing(name, tmp_path):
    about = DATA_SETS.get(name)
    assert about.downloads or about.by_hand.endswith(".")
    for source in about.downloads:
        assert source.url.startswith("https://")
        algorithm, _, digits = source.digest.partition(":")
        assert len(digits) == {"md5": 32, "sha256": 64, "": 0}[algorithm]
    for folder in (tmp_path, tmp_path / "none"):
        found = check_data_set(name, folder)
        assert {part.state for part in found.parts} == {"missing"}
        assert str(folder) in found.parts[0].problems[0]


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("end", [*MODES, ".zip"])
def test_archives_come_out_as_they_went_in_and_truncated_ones_are_rejected(tmp_path, out, end):
    (out / "set" / "a").mkdir(parents=True)
    (out / "set" / "a" / "1.bin").write_bytes(b"old")
    unpack(archive_of(tmp_path, end), out)
    assert content(out) == FILES
    # Incompressible and large, so that half of any kind of it ends within a member.
    archive = archive_of(tmp_path, end, {"a": NOISE, "b": NOISE, "c": NOISE})
    whole = archive.read_bytes()
    for keep in (0, 10, len(whole) // 2):
        archive.write_bytes(whole[:keep])
        with pytest.raises(FileError, match=r"could not be read as an archive: it is damaged"):
            unpack(archive, out)


@pytest.mark.parametrize("name", ["/tmp/evil", "../evil", "set/../../evil", "C:/evil", "//evil"])
@pytest.mark.parametrize("end", [".tar.gz", ".zip"])
def test_no_path_leads_outside(tmp_path, out, name, end):
    archive = archive_of(tmp_path, end, {"good": b"1", name: b"2"})
    with contextlib.suppress(FileError):
        unpack(archive, out)
    for place in (tmp_path / "evil", Path("/tmp/evil"), Path("/evil")):
        assert not place.exists()


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "../../etc/passwd"),
        (tarfile.LNKTYPE, "/etc/passwd"),
        (tarfile.CHRTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_links_that_lead_outside_and_devices_are_rejected(tmp_path, out, kind, link):
    archive = tar(tmp_path / "x.tar", [(entry("link", kind, link=link), b"")])
    with pytest.raises(FileError, match=r"x\.tar could not"):
        unpack(archive, out)
    assert list(out.iterdir()) == []


@pytest.fixture
def root(tmp_path, monkeypatch):
    use_toys(monkeypatch)
    return write_toys(tmp_path / "copy")


def problems(root, part, **options):
    (found,) = check_data_set("toys", root, parts=[part], **options).parts
    return found.problems


def test_what_is_missing_or_wrong_is_named(root):
    test = root / "toys" / "test"
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


def test_real_copies(shared_data):
    found = check_data_set("pacs", shared_data / "pacs-2800", sample=5)
    assert found.parts[0].problems == ("there must be 2,048 images; there are 700.",)
    assert check_data_set("mnist", shared_data / "digits", sample=3).complete

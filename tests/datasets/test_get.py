"""A whole data set fetched: unpacked, remembered, not fetched twice, resumed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from toy_fetch import BODY, Seen, names
from toy_server import Turn, serving
from toy_sets import about_toys, source_of, toy_archive, use_toys, write_toys

from shiftcal import datasets
from shiftcal.datasets import _room
from shiftcal.datasets.check import check_data_set
from shiftcal.datasets.download import Line
from shiftcal.datasets.get import RECEIPT, get_data_set
from shiftcal.datasets.known import known
from shiftcal.errors import FileError, InputError

PATIENT = Line(timeout=5, tries=3, wait=lambda _: None)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    use_toys(monkeypatch)
    with serving() as toy:
        yield toy


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "made").mkdir()
    return toy_archive(tmp_path / "made")


@pytest.fixture
def toys(server, archive, monkeypatch):
    """The toys at an address: an archive, and a file to be left as it is."""
    one = source_of(server.offer("/toys", Turn(archive)), archive)
    two = source_of(server.offer("/notes", Turn(BODY)), BODY, file="notes.bin", unpack=False)
    about_toys(monkeypatch, downloads=(one, two))
    return one, two


def seen(folder):
    return [name for name in names(folder) if not name.startswith(".")]


def test_a_set_is_fetched_unpacked_and_complete(toys, tmp_path):
    watch, folder = Seen(), tmp_path / "new" / "toys"
    fetched = get_data_set("toys", folder, watch=watch, line=PATIENT)
    assert seen(folder) == ["notes.bin", "toys"]
    assert (folder / "notes.bin").read_bytes() == BODY
    assert check_data_set("toys", folder).complete
    assert [(file.file, file.new, file.verified) for file in fetched] == [
        ("toys.tar.gz", True, True),
        ("notes.bin", True, True),
    ]
    assert [file.holds for file in fetched] == [("toys",), ("notes.bin",)]
    assert {doing for doing, _, _ in watch.steps} == {
        "toys.tar.gz",
        "verifying toys.tar.gz",
        "unpacking toys.tar.gz",
        "notes.bin",
        "verifying notes.bin",
    }


def test_a_second_time_nothing_is_done(toys, server, tmp_path):
    get_data_set("toys", tmp_path / "to")
    asked = len(server.asked)
    fetched = get_data_set("toys", tmp_path / "to")
    assert [file.new for file in fetched] == [False, False]
    assert len(server.asked) == asked


def test_what_was_removed_meanwhile_is_fetched_again_and_nothing_else(toys, server, tmp_path):
    get_data_set("toys", tmp_path / "to")
    (tmp_path / "to" / "notes.bin").unlink()
    server.asked.clear()
    assert [file.new for file in get_data_set("toys", tmp_path / "to")] == [False, True]
    assert [path for path, _ in server.asked] == ["/notes"]


def test_a_copy_of_other_origin_that_is_complete_is_left_alone(toys, server, tmp_path):
    folder = write_toys(tmp_path / "mine")
    assert get_data_set("toys", folder) == []
    assert server.asked == []
    (folder / "toys" / "test" / "car" / "1.png").unlink()
    assert len(get_data_set("toys", folder)) == 2
    assert check_data_set("toys", folder).complete


def test_again_mends_a_bad_copy(toys, server, tmp_path):
    get_data_set("toys", tmp_path / "to")
    bad = tmp_path / "to" / "toys" / "test" / "car" / "1.png"
    bad.write_bytes(b"no image")
    (tmp_path / "to" / "notes.bin").write_bytes(b"changed")
    get_data_set("toys", tmp_path / "to")
    assert not check_data_set("toys", tmp_path / "to").complete
    assert [file.new for file in get_data_set("toys", tmp_path / "to", again=True)] == [True] * 2
    assert (tmp_path / "to" / "notes.bin").read_bytes() == BODY
    assert check_data_set("toys", tmp_path / "to").complete


def test_a_set_published_anew_is_fetched_anew(toys, server, monkeypatch, tmp_path):
    get_data_set("toys", tmp_path / "to")
    one, two = toys
    changed = source_of(server.offer("/toys-2", Turn(server.turns["/toys"][0].body)), b"")
    about_toys(monkeypatch, downloads=(replace(changed, digest=one.digest), two))
    assert [file.new for file in get_data_set("toys", tmp_path / "to")] == [True, False]


def test_archives_are_kept_if_asked_for(toys, tmp_path):
    get_data_set("toys", tmp_path / "to", keep_archives=True)
    assert seen(tmp_path / "to") == ["notes.bin", "toys", "toys.tar.gz"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"toys.tar.gz": 3}', '{"toys.tar.gz": {}}'])
def test_a_damaged_receipt_counts_as_none(toys, tmp_path, text):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / RECEIPT).write_text(text)
    assert len(get_data_set("toys", tmp_path / "to")) == 2
    assert set(json.loads((tmp_path / "to" / RECEIPT).read_text())) == {"toys.tar.gz", "notes.bin"}


def test_a_broken_connection_to_the_second_file_costs_only_that(
    toys, server, archive, monkeypatch, tmp_path
):
    server.offer("/notes", Turn(BODY, cut_after=1000))
    with pytest.raises(FileError, match="given up after 1 tries"):
        get_data_set("toys", tmp_path / "to", line=replace(PATIENT, tries=1))
    server.asked.clear()
    server.offer("/notes", Turn(BODY))
    assert [file.new for file in get_data_set("toys", tmp_path / "to")] == [False, True]
    assert [(path, headers.get("Range")) for path, headers in server.asked] == [
        ("/notes", "bytes=1000-")
    ]


def test_a_wrong_checksum_leaves_no_file_under_its_name(toys, server, archive, tmp_path):
    server.offer("/toys", Turn(archive[:-1] + b"x"))
    with pytest.raises(FileError, match=r"toys\.tar\.gz as http.* is not the published file"):
        get_data_set("toys", tmp_path / "to")
    assert seen(tmp_path / "to") == []


def test_a_set_that_is_fetched_by_hand_says_how(server, tmp_path):
    with pytest.raises(InputError, match=r"Other Toys cannot be fetched by a program\. Ask the"):
        get_data_set("toys-by-hand", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_too_little_room_is_said_before_anything_is_asked_for(toys, server, monkeypatch, tmp_path):
    one, two = toys
    about_toys(monkeypatch, downloads=(replace(one, size=1000), replace(two, size=100)))
    monkeypatch.setattr(_room.shutil, "disk_usage", lambda _: SimpleNamespace(free=2099))
    # The archive and what it holds stand side by side for a while.
    with pytest.raises(FileError, match=r"Toys needs 2,100 bytes in .* room for 2,099"):
        get_data_set("toys", tmp_path / "to")
    # Several do so one after the other, unless they are kept.
    archives = replace(one, size=1000), replace(one, file="more.tar.gz", size=500)
    about_toys(monkeypatch, downloads=archives)
    for keep, needed in ((False, "2,500"), (True, "3,000")):
        with pytest.raises(FileError, match=f"Toys needs {needed} bytes"):
            get_data_set("toys", tmp_path / "to", keep_archives=keep)
    assert server.asked == []


def test_a_file_in_the_place_of_the_folder_is_refused(toys, tmp_path):
    (tmp_path / "to").write_bytes(b"")
    with pytest.raises(FileError, match=r"is a file\. Name a folder"):
        get_data_set("toys", tmp_path / "to")


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_at_once_do_not_mix(toys, server, archive, tmp_path):
    release, folder = threading.Event(), tmp_path / "to"
    server.offer("/toys", Turn(archive, cut_after=100, stall=release), Turn(archive))
    first = threading.Thread(target=get_data_set, args=("toys", folder), kwargs={"line": PATIENT})
    first.start()
    try:
        while not server.asked:
            time.sleep(0.01)
        with pytest.raises(FileError, match="another process is fetching into"):
            get_data_set("toys", folder)
    finally:
        release.set()
        first.join()
    assert check_data_set("toys", folder).complete


KILLED = """
import os, signal, sys
from pathlib import Path
from dataclasses import replace
import toy_catalog.toys as toys
from shiftcal import datasets
from shiftcal.datasets import get
from shiftcal.datasets.about import Download

datasets._CATALOG.package = "toy_catalog"
source = Download(sys.argv[1], "toys.tar.gz", sys.argv[2])
toys.ABOUT = replace(toys.ABOUT, downloads=(source,))

class Watch:
    def moved(self, doing, done, total):
        if doing.startswith("unpacking"):
            os.kill(os.getpid(), signal.SIGKILL)
    def note(self, text):
        pass

get.get_data_set("toys", Path(sys.argv[3]), watch=Watch())
"""


def test_kill_9_while_unpacking_costs_only_the_unpacking(
    toys, server, monkeypatch, tmp_path, request
):
    one, _ = toys
    about_toys(monkeypatch, downloads=(one,))
    support = request.config.rootpath / "tests" / "support"
    words = [sys.executable, "-c", KILLED, one.url, one.digest, tmp_path / "to"]
    environment = {"PYTHONPATH": str(support), "no_proxy": "*"}
    done = subprocess.run(words, env=environment, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert seen(tmp_path / "to") == ["toys.tar.gz"]
    server.asked.clear()
    get_data_set("toys", tmp_path / "to")
    assert server.asked == []
    assert seen(tmp_path / "to") == ["toys"]
    assert names(tmp_path / "to") == [RECEIPT, ".shiftcal-fetching.lock", "toys"]
    assert check_data_set("toys", tmp_path / "to").complete


def test_real_images_come_through_as_they_are(shared_data, monkeypatch, tmp_path):
    from shiftcal.datasets.catalog import mnist

    monkeypatch.setenv("no_proxy", "*")
    downloads = []
    with serving() as server:
        for source in mnist.ABOUT.downloads:
            body = (shared_data / "digits" / f"mnist_{source.file}").read_bytes()
            url = server.offer(f"/{source.file}", Turn(body, cut_after=len(body) // 2), Turn(body))
            downloads.append(source_of(url, body, file=source.file, unpack=False))
        monkeypatch.setattr(mnist, "ABOUT", replace(mnist.ABOUT, downloads=tuple(downloads)))
        get_data_set("mnist", tmp_path / "to", line=PATIENT)
        assert sum(wanted is not None for wanted in server.ranges()) == 4
    assert check_data_set("mnist", tmp_path / "to").complete


@pytest.mark.parametrize("name", datasets.names())
def test_every_published_set_says_truly_how_it_can_be_had(name):
    _, _, about = known(name)
    assert about.downloads or about.by_hand.endswith(".")
    for source in about.downloads:
        assert source.url.startswith("https://") or (
            source.url.startswith("http://") and source.digest
        )
        assert "/" not in source.file
        assert len(source.digest) in (0, {"md5": 32, "sha256": 64}[source.algorithm])
        assert set(source.digest) <= set("0123456789abcdef")
        assert source.size >= 0

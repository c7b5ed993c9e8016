"""Folders that several real processes use: who is the last, and who is alone."""

from __future__ import annotations

import shutil
import threading
import time

import pytest
from holder import begun, gone, holder, tell

from shiftcal._files import make_folder
from shiftcal.errors import FileError
from shiftcal.scoring import sharing
from shiftcal.scoring.sharing import alone_in, guest_of

pytest.importorskip("fcntl")


def test_a_guest_alone_is_the_last(tmp_path):
    with guest_of(tmp_path / "a" / "b") as guest:
        assert (tmp_path / "a" / "b").is_dir()
        assert guest.is_last()


def test_the_last_of_two_processes_is_known(tmp_path):
    with guest_of(tmp_path) as guest, holder("guest", tmp_path) as other:
        assert tell(other, "last") == "False"
        other.kill()
        other.wait(20)
        assert guest.is_last()


def test_a_guest_is_not_the_last_while_another_is_there(tmp_path):
    with holder("guest", tmp_path), guest_of(tmp_path) as guest:
        assert not guest.is_last()


def test_two_that_leave_at_once_agree_on_one_last(tmp_path):
    with holder("guest", tmp_path) as one, holder("guest", tmp_path) as two:
        assert [tell(one, "last"), tell(two, "last")] == ["False", "True"]


def test_who_comes_while_the_last_clears_up_gets_a_new_folder(tmp_path):
    folder = tmp_path / "work"
    with guest_of(folder) as guest:
        assert guest.is_last()
        (folder / "old").write_text("")
        other = begun("guest", folder)
        time.sleep(0.1)
        shutil.rmtree(folder)
    try:
        assert other.stdout.readline().strip() == "ready"
        assert folder.is_dir()
        assert not (folder / "old").exists()
        assert tell(other, "last") == "True"
    finally:
        gone(other)


def test_a_folder_that_vanishes_between_making_and_opening_is_made_again(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    made = []

    def make(path):
        make_folder(path)
        made.append(path)
        if len(made) == 1:
            path.rmdir()

    monkeypatch.setattr(sharing, "make_folder", make)
    with guest_of(folder) as guest:
        assert folder.is_dir()
        assert guest.is_last()
    assert len(made) == 2


def test_nobody_else_is_alone_in_the_same_folder(tmp_path):
    order = []
    with holder("alone", tmp_path) as other:

        def enter():
            with alone_in(tmp_path):
                order.append("in")

        waiting = threading.Thread(target=enter)
        waiting.start()
        waiting.join(0.2)
        assert order == []
        order.append("killed")
        other.kill()
        waiting.join(20)
    assert order == ["killed", "in"]


def test_guests_do_not_keep_one_from_being_alone_elsewhere(tmp_path):
    with guest_of(tmp_path / "work"), alone_in(tmp_path), guest_of(tmp_path / "work"):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"file.below could not be made: Not a directory"):
        make_folder(tmp_path / "file" / "below")


def test_a_drive_without_locks_has_no_last(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with guest_of(tmp_path) as guest:
        assert not guest.is_last()
    with alone_in(tmp_path):
        pass

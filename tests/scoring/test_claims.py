"""Claims on shards, held by real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from holder import begun, gone, holder, tell

from shiftcal.scoring.claims import Claims

fcntl = pytest.importorskip("fcntl")


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


def test_what_another_process_has_is_not_to_be_had_until_it_lets_go(tmp_path):
    claims = Claims(tmp_path)
    with holder("claim", tmp_path, "a") as other:
        assert not claims.take("a")
        assert claims.take("b")
        tell(other, "leave")
        other.wait(20)
        assert claims.take("a")
    claims.release_all()


def test_what_a_killed_process_had_is_free(tmp_path):
    claims = Claims(tmp_path)
    with holder("claim", tmp_path, "a") as other:
        assert not claims.take("a")
        other.kill()
        other.wait(20)
        assert claims.take("a")
    claims.release("a")


def test_another_process_cannot_have_what_we_have(tmp_path):
    claims = Claims(tmp_path)
    assert claims.take("a")
    other = begun("claim", tmp_path, "a")
    assert other.stdout.readline().strip() == "taken"
    gone(other)
    claims.release("a")


def test_letting_go_leaves_neither_files_nor_descriptors(tmp_path):
    claims = Claims(tmp_path)
    before = open_files()
    for key in "abcdef":
        assert claims.take(key)
    claims.release("a")
    claims.release("a")  # it is not ours any more: nothing happens
    claims.release("never had")
    claims.release_all()
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


def test_two_in_one_process_exclude_one_another_too(tmp_path):
    one, two = Claims(tmp_path), Claims(tmp_path)
    assert one.take("a")
    assert not two.take("a")
    one.release("a")
    assert two.take("a")
    two.release_all()


def test_where_no_lock_can_be_made_work_goes_on(tmp_path):
    (tmp_path / "file").write_text("no folder")
    claims = Claims(tmp_path / "file")
    assert claims.take("a")
    claims.release("a")


def test_a_drive_without_locks_does_not_stop_the_work(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = open_files()
    assert Claims(tmp_path).take("a")
    assert open_files() == before

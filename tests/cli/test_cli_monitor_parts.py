"""The parts of ``shiftcal monitor`` that touch files: folder, state, confidences, signals."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from shiftcal.cli._monitor_batches import Batch, Broken
from shiftcal.cli._monitor_confidences import ConfidencesFile, row_lines
from shiftcal.cli._monitor_follow import Follower, file_item, is_scores
from shiftcal.cli._monitor_halt import Halt, Halted
from shiftcal.cli._monitor_state import Progress, StateFile, _checksum
from shiftcal.errors import FileError

Z = np.random.default_rng(3).standard_normal((7, 3))


def follower(folder, done=(), *, settle=0.0, idle=lambda: None):
    return Follower(folder, done, halt=Halt(), idle=idle, settle=settle)


@pytest.mark.parametrize(
    "name", [".x.npz", "~x.npz", "x.npz.part", "x.npz.tmp", "x.txt", "x_labels.npy", "ids.npy"]
)
def test_names_that_are_passed_over(name):
    assert not is_scores(name)


@pytest.mark.parametrize("name", ["x.npz", "x.NPZ", "x.csv", "x_logits.npy", "x.npy", "a.parquet"])
def test_names_that_are_read(name):
    assert is_scores(name)


def test_files_come_in_the_order_of_their_names_each_once(tmp_path):
    for name in ("b.npz", "a.npz", "c.npz", ".d.npz", "e.txt"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "gone.npz").symlink_to(tmp_path / "nowhere")
    done = {"b.npz"}
    given = []
    for path in follower(tmp_path, done).files(once=True):
        done.add(path.name)
        given.append(path.name)
    assert given == ["a.npz", "c.npz"]


def test_a_file_that_grows_is_left_until_it_does_not_and_those_after_it_wait(tmp_path):
    grows = tmp_path / "a.npz"
    grows.write_bytes(b"x")
    (tmp_path / "b.npz").write_bytes(b"x")
    looks = 0

    def grow():
        nonlocal looks
        looks += 1
        if looks < 5:
            with grows.open("ab") as file:
                file.write(b"more")

    done = set()
    given = follower(tmp_path, done, settle=0.05, idle=grow).files(once=True)
    first = next(given)
    assert first == grows
    assert looks >= 5
    assert grows.stat().st_size == 17
    done.add(first.name)
    assert next(given).name == "b.npz"


def test_many_files_settle_together(tmp_path):
    for i in range(40):
        (tmp_path / f"{i:02}.npz").write_bytes(b"x")
    looks, done, given = [], set(), []
    for path in follower(tmp_path, done, settle=0.3, idle=lambda: looks.append(1)).files(once=True):
        done.add(path.name)
        given.append(path.name)
    assert given == [f"{i:02}.npz" for i in range(40)]
    assert len(looks) < 10  # each on its own would take eighty


def test_a_folder_that_goes_away_is_told(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    watched = follower(folder, idle=folder.rmdir).files(once=False)
    with pytest.raises(FileError, match="in cannot be followed: No such file"):
        next(watched)


def test_a_file_is_one_batch_with_its_ids(tmp_path):
    np.savez(tmp_path / "x.npz", logits=Z, ids=np.array(list("abcdefg")))
    batch = file_item(tmp_path / "x.npz", n_classes=3, classes=None)
    assert isinstance(batch, Batch)
    assert (batch.file, batch.ids) == ("x.npz", tuple("abcdefg"))
    np.testing.assert_array_equal(batch.values, Z)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": Z[:, :2]}, "they have 3, and this one has 2"),
        ({"logits": np.where(Z > 1, np.nan, Z)}, "must be finite"),
        ({"labels": Z[:, 0]}, "logits"),
        ({"logits": Z, "classes": np.array(["b", "a", "c"])}, "in another order"),
        ({"logits": np.abs(Z) / np.abs(Z).sum(axis=1, keepdims=True)}, "probabilities"),
    ],
)
def test_a_file_that_cannot_be_used_is_broken_and_named(tmp_path, arrays, words):
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    broken = file_item(path, n_classes=3, classes=("a", "b", "c"))
    assert isinstance(broken, Broken)
    assert words in str(broken)
    assert str(broken).count(str(path)) == 1
    path.write_bytes(path.read_bytes()[:100])
    assert str(path) in str(file_item(path, n_classes=3, classes=None))


def test_a_state_is_read_as_it_was_written(tmp_path):
    state = StateFile(tmp_path / "s.json")
    assert state.read() is None
    progress = Progress(items=3, files=["a"], confidences="c", acknowledged=17, sums={"rows": 2})
    state.write({"x": [0.1, 1e-300]}, progress)
    assert state.read() == ({"x": [0.1, 1e-300]}, progress)
    assert [file.name for file in tmp_path.iterdir()] == ["s.json"]


def signed(content, **progress):
    """A state whose checksum fits, whatever it says."""
    changed = {**content, "progress": {**content["progress"], **progress}}
    del changed["checksum"]
    return json.dumps({**changed, "checksum": _checksum(changed)})


def test_a_state_that_is_damaged_or_something_else_is_refused(tmp_path):
    path = tmp_path / "s.json"
    state = StateFile(path)
    state.write({"x": 1}, Progress())
    good = path.read_text()
    content = json.loads(good)
    for text, words in [
        (good[:-9], "is damaged: it is no JSON"),
        ("[" * 100_000, "is damaged: it is no JSON"),
        (good.replace('"x": 1', '"x": 2'), "its checksum does not fit its content"),
        ("[]", "is not the state of a monitor"),
        (json.dumps({**content, "format": "shiftcal-estimator"}), "is not the state of a monitor"),
        (json.dumps({**content, "version": 99}), "Upgrade shiftcal to go on with it"),
        (json.dumps({**content, "version": None}), "has format version None"),
        (signed(content, items=-1), "a part of it is missing or odd"),
        (signed(content, files=[1]), "a part of it is missing or odd"),
        (signed(content, lines=["x"]), "a part of it is missing or odd"),
        (signed(content, sums={"rows": 0.5}), "a part of it is missing or odd"),
        (signed(content, acknowledged=None), "a part of it is missing or odd"),
        (signed(content, surplus=1), "a part of it is missing or odd"),
    ]:
        path.write_text(text)
        with pytest.raises(FileError, match=words):
            state.read()


def test_one_state_belongs_to_one_process_at_a_time(tmp_path):
    state, other = StateFile(tmp_path / "s.json"), StateFile(tmp_path / "s.json")
    with state.locked(), pytest.raises(FileError, match="in use by another"), other.locked():
        pytest.fail("both hold it")
    with other.locked():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_row_has_all_digits_its_number_and_its_id():
    lines = row_lines(5, np.array([0.1, 1 / 3]), np.array([2, 0]), ['a"é', 7])
    assert [json.loads(line) for line in lines] == [
        {"type": "confidence", "row": 5, "confidence": 0.1, "predicted": 2, "id": 'a"é'},
        {"type": "confidence", "row": 6, "confidence": 1 / 3, "predicted": 0, "id": 7},
    ]
    assert "id" not in json.loads(row_lines(0, np.array([0.5]), np.array([1]), None)[0])


def test_what_is_not_acknowledged_is_cut_off(tmp_path):
    path = tmp_path / "c.jsonl"
    file = ConfidencesFile(path, None)
    file.write(["one"])
    assert file.commit() == 4
    file.write(["two"])
    mark = file.mark()
    file.write(["three"])
    file.rewind(mark)
    file.close()
    assert path.read_text() == "one\n"
    path.write_text("one\ntwo\nthr")  # as a killed process leaves it
    again = ConfidencesFile(path, 4)
    again.write(["2"])
    again.commit()
    again.close()
    assert path.read_text() == "one\n2\n"


def test_confidences_are_not_mixed_with_others(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text("one\n")
    with pytest.raises(FileError, match="is there already, and confidences of another run"):
        ConfidencesFile(path, None)
    with pytest.raises(FileError, match="must have the 9 bytes that the state knows of; it has 4"):
        ConfidencesFile(path, 9)
    path.unlink()
    with pytest.raises(FileError, match="it is not there"):
        ConfidencesFile(path, 9)
    assert not path.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(tmp_path):
    path = tmp_path / "c.jsonl"
    file = ConfidencesFile(path, None)
    os.dup2(os.open("/dev/full", os.O_WRONLY), file._file.fileno())
    file.write(["one"])
    with pytest.raises(FileError, match="could not be written: No space left"):
        file.commit()
    file.close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_and_the_second_is_obeyed_at_once(number):
    before = signal.getsignal(number)
    halt = Halt()
    with halt.listening():
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        with pytest.raises(Halted):
            halt.wait(None, 60)
        assert halt.number == number
        assert signal.getsignal(number) == before
        with pytest.raises(Halted):
            halt.check()
    assert signal.getsignal(number) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_signals_that_are_ignored_stay_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Halt().listening():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_wait_ends_when_something_can_be_read():
    reader, writer = os.pipe()
    halt = Halt()
    assert not halt.wait(reader, 0)
    os.write(writer, b"x")
    assert halt.wait(reader, 60)
    os.close(reader)
    os.close(writer)

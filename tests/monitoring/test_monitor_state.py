"""Saved and restored, killed and started again: the stream goes on to the same bits."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import monitor_process
import numpy as np
import pytest
from monitored import bank, monitor, rows
from sklearn.base import clone

from shiftcal import load
from shiftcal._persistence.document import _checksum
from shiftcal.errors import FileError, InputError, NotFittedError
from shiftcal.monitoring import Exponential, Monitor, Sliding
from shiftcal.monitoring._live import Live

STREAM = np.concatenate([rows(1310, seed=1), rows(1200, 0.6, seed=2)])
REST = np.concatenate([rows(333, 0.6, seed=3), rows(2200, seed=4)])


def told(update):
    return (
        update.confidence.tobytes(),
        update.events,
        update.rows,
        update.state,
        update.statistic,
        update.outside,
        update.temperature,
        update.selection,
        update.estimate,
    )


@pytest.mark.parametrize("method", ["rehearsal", "sac"])
def test_a_loaded_monitor_goes_on_to_the_same_bits(method, tmp_path):
    watch = monitor(method)
    watch.feed(STREAM)
    watch.save(tmp_path / "monitor.json")
    loaded = load(tmp_path / "monitor.json")
    assert isinstance(loaded, Monitor)
    assert loaded.get_params(deep=False).keys() == watch.get_params(deep=False).keys()
    assert loaded.window.rows == watch.window.rows
    assert told(loaded.feed(REST)) == told(watch.feed(REST))


def test_the_choice_of_the_last_look_is_there_after_loading(tmp_path):
    watch = monitor()
    update = watch.feed(STREAM)
    watch.save(tmp_path / "monitor.json")
    nothing_new = load(tmp_path / "monitor.json").feed(STREAM[:1])
    assert nothing_new.selection == update.selection
    assert nothing_new.estimate == update.estimate


@pytest.mark.parametrize(
    "window", [Sliding(rows=200, blocks=4), Exponential(half_life=200, blocks=2)], ids=str
)
def test_a_state_is_plain_json_and_goes_on_to_the_same_bits(window):
    watch = Monitor("sac", estimator=None, window=window, false_alarms=10.0).fit(bank())
    other = copy.deepcopy(watch)
    watch.feed(STREAM)
    text = json.dumps(watch.state_dict(), allow_nan=False)
    other.load_state_dict(json.loads(text))
    assert told(other.feed(REST)) == told(watch.feed(REST))
    assert other.state_dict() == watch.state_dict()
    assert len(text) < 10_000


def test_a_state_taken_at_any_look_goes_on_to_the_same_bits():
    """Also between the looks of a return, or of the way out of the bank."""
    beyond = np.random.default_rng(0).standard_normal((900, 6)) * 0.01
    stream = np.concatenate([rows(510, seed=1), beyond, rows(900, seed=2)])
    whole, counts = monitor("sac", rows=200, blocks=4), set()
    other = copy.deepcopy(whole)
    for start in range(0, len(stream), 50):
        state = json.loads(json.dumps(whole.state_dict()))
        counts |= {(name, state["running"][name]) for name in ("calm", "crossed")}
        other.reset()
        other.load_state_dict(state)
        for row in (start, start + 1):  # before a look and after it
            part = stream[row : row + 1] if row == start else stream[row : start + 50]
            assert told(other.feed(part)) == told(whole.feed(part))
    assert counts == {(name, n) for name in ("calm", "crossed") for n in range(3)}


def test_a_state_stays_as_it_was_taken():
    watch = monitor("sac")
    watch.feed(STREAM)
    state = watch.state_dict()
    text = json.dumps(state)
    watch.feed(REST)
    assert json.dumps(state) == text
    watch.load_state_dict(state)
    watch.feed(REST)
    assert json.dumps(state) == text


def test_a_state_of_another_monitor_is_refused():
    state = monitor("sac").state_dict()
    with pytest.raises(InputError, match=r"that of another monitor.*as save\(\) keeps it"):
        monitor("ts").load_state_dict(state)
    with pytest.raises(InputError, match="another monitor"):
        monitor("sac", rows=500).load_state_dict(state)


def damage(change):
    watch = monitor("sac")
    watch.feed(STREAM)
    before = watch.state_dict()
    state = json.loads(json.dumps(before))
    change(state)
    with pytest.raises(InputError) as error:
        watch.load_state_dict(state)
    assert watch.state_dict() == before
    return str(error.value)


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("rows", -1, "rows .* whole number"),
        ("rows", 2.5, "rows .* whole number"),
        ("rows", 2511, "rows .* those of 10 blocks"),
        ("head", 10, "head .* 0 to 9"),
        ("head", 3, "head .* that of 2510 rows"),
        ("filled", 4, "rows .* those of 4 blocks"),
        ("pending", 100, "pending .* 0 to 99"),
        ("state", "fine", "state .* one of filling"),
        ("statistic", float("nan"), "statistic .* at least 0"),
        ("statistic", None, "statistic .* at least 0"),
        ("temperature", 0.0, "temperature .* above 0"),
        ("temperature", None, "temperature .* what its method gives"),
        ("which", 7, "which .* one of 7 maps"),
        ("which", None, "which .* one of 7 maps"),
        ("ring", [[1, 2], [3]], "ring .* one length"),
        ("ring", [[0.5] * 16] * 10, "ring .* whole numbers"),
        ("ring", [[1] * 15] * 10, r"ring .* shape \(10, 16\)"),
        ("ring", [[-1] * 16] * 10, "ring .* not negative"),
        ("partial", "abc", "partial .* whole numbers"),
        ("calm", True, "calm .* whole number"),
    ],
)
def test_a_damaged_state_is_refused_with_the_part_that_is(part, value, words):
    import re

    message = damage(lambda state: state["running"].update({part: value}))
    assert re.search(words, message), message


def test_what_is_no_state_is_refused():
    assert "of format" in damage(lambda state: state.update(format="other"))
    assert "version 2" in damage(lambda state: state.update(version=2))
    assert "parts that state_dict gives" in damage(lambda state: state["running"].pop("head"))
    assert "parts that state_dict gives" in damage(lambda state: state.update(running=[1]))
    with pytest.raises(InputError, match=r"what state_dict gave.*'list'"):
        monitor("sac").load_state_dict([])


def rewrite(path, change):
    """Change the document and put a fitting checksum, as a hostile writer would."""
    document = json.loads(path.read_text())
    document.pop("checksum")
    change(document["object"]["fitted"])
    document["checksum"] = _checksum(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["running_"].update(head=11), "head of a monitor's state"),
        (lambda f: f["running_"].update(rows="7"), "'7' where"),
        (lambda f: f.update(patience_=9), "digest"),
        (lambda f: f.update(n_classes_=5), "shape"),
        (lambda f: f.pop("detector_"), "lacks its attribute"),
        (lambda f: f["window_"].update(name="tumbling"), "no window is called"),
        (lambda f: f["window_"]["settings"].update(rows=0), "rows must be"),
        (lambda f: f["method_"].update(kind="map", name="temperature"), "cannot be used|damaged"),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(change, words, tmp_path):
    path = tmp_path / "monitor.json"
    monitor("sac").save(path)
    rewrite(path, change)
    with pytest.raises(FileError, match=words):
        load(path)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "monitor.json"
    monitor("sac").save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="damaged"):
        load(path)


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "monitor.json"
    watch = monitor("sac")
    watch.save(path)
    before = path.read_bytes()
    watch.feed(STREAM)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(FileError, match="No space left on device"):
        watch.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert watch.feed(REST).rows == len(STREAM) + len(REST)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_batch_that_is_broken_off_changes_nothing(error, monkeypatch):
    watch, other = monitor("sac"), monitor("sac")
    for one in (watch, other):
        one.feed(STREAM)
    before = watch.state_dict()
    real, looks = Live._look, []

    def breaks(self, at):
        looks.append(at)
        if len(looks) == 3:
            raise error
        return real(self, at)

    monkeypatch.setattr(Live, "_look", breaks)
    with pytest.raises(error):
        watch.feed(REST)
    monkeypatch.undo()
    assert watch.state_dict() == before
    assert told(watch.feed(REST)) == told(other.feed(REST))


def test_copies_go_their_own_ways():
    watch = monitor("sac")
    watch.feed(STREAM)
    for other in (copy.copy(watch), copy.deepcopy(watch), pickle.loads(pickle.dumps(watch))):
        rows_before = watch.rows
        other.feed(REST)
        assert watch.rows == rows_before
    assert told(other.feed(STREAM))[1:] != ()
    fresh = clone(watch)
    assert fresh.get_params()["method"] == "sac"
    with pytest.raises(NotFittedError, match="not fitted"):
        fresh.feed(REST)


def test_before_fit_there_is_nothing_to_ask():
    for ask in ("state_dict", "reset"):
        with pytest.raises(NotFittedError, match="call fit"):
            getattr(Monitor(), ask)()
    with pytest.raises(NotFittedError, match="call fit"):
        _ = Monitor().rows
    with pytest.raises(NotFittedError, match="call fit"):
        Monitor().save("nowhere.json")


def test_a_process_killed_between_two_writes_goes_on_to_the_same_bits(tmp_path):
    monitor("sac").save(tmp_path / "monitor.json")
    (tmp_path / "slow").touch()
    command = [sys.executable, monitor_process.__file__, str(tmp_path), "40"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= 14:
                process.kill()
                break
    (tmp_path / "slow").unlink()
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    watch = monitor("sac")
    wanted = []
    for number in range(40):
        update = watch.feed(monitor_process.batch(number))
        events = [e.to_dict() for e in update.events]
        found = (update.confidence.tolist(), events, update.statistic)
        wanted.append(
            {"number": number, "confidence": found[0], "events": events, "statistic": found[2]}
        )
    # a batch whose state was not kept yet is fed again, to the same numbers
    assert {line["number"] for line in lines} == set(range(40))
    assert all(line == wanted[line["number"]] for line in lines)
    assert any(line["events"] for line in wanted)

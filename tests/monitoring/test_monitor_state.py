"""Saved and restored, killed and started again: the stream goes on to the same bits."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from monitored import bank, monitor, rows
from sklearn.base import clone

from shiftcal import load
from shiftcal.errors import FileError, InputError, NotFittedError
from shiftcal.files import checksum_of
from shiftcal.monitoring import Exponential, Monitor, Sliding

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


def rewrite(path, change):
    """Change the document and put a fitting checksum, as a hostile writer would."""
    document = json.loads(path.read_text())
    document.pop("checksum")
    change(document["object"]["fitted"])
    document["checksum"] = checksum_of(document)
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

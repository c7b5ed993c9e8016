"""Late labels: what is kept, what is compared, and when an alarm is due."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from ladder_data import draw
from monitored import CLEAN, OFTEN, bank, monitor

from shiftcal import load
from shiftcal.errors import InputError
from shiftcal.monitoring import Monitor, Sliding

Z, Y = draw(2600, CLEAN, seed=41)
WINDOW = {"rows": 500, "blocks": 5}
LABEL_KINDS = ("labels-disagree", "labels-agree")


def play(watch, z, y, *, delay=0, size=100, start=0):
    """Feed, with labels so many rows later; the events of both."""
    events = []
    for i in range(0, len(z) + delay, size):
        if i < len(z):
            events += watch.feed(z[i : i + size], ids=range(start + i, start + i + size)).events
        if (due := i - delay) >= 0:
            ids = range(start + due, start + min(due + size, len(y)))
            events += watch.add_labels(ids, y[due : due + size])
    return events


def test_the_numbers_are_those_of_the_last_labelled_rows():
    watch = monitor(**WINDOW)
    confidence = np.concatenate(
        [watch.feed(Z[i : i + 130], ids=range(i, i + 130)).confidence for i in range(0, 2600, 130)]
    )
    order = np.random.default_rng(0).permutation(2600)
    watch.add_labels(order, Y[order])
    last = order[-500:]
    found, correct = watch.realised, (Z.argmax(axis=1) == Y)[last]
    assert (found.n, found.labelled, found.unknown, found.waiting) == (500, 2600, 0, 0)
    assert found.accuracy == correct.mean()
    assert found.mean_confidence == pytest.approx(confidence[last].mean(), abs=1e-9)
    bins = np.minimum((confidence[last] * 15).astype(int), 14)
    ece = np.abs(np.bincount(bins, correct - confidence[last])).sum() / 500
    assert found.ece == pytest.approx(ece, abs=1e-9)
    assert found.delay == (2600 - last).mean()
    assert found.low < found.accuracy < found.high
    ask = monitor(**WINDOW)
    estimates = [ask.feed(part).estimate for part in np.split(Z[:2500], 5)]
    of_rows = [estimates[min(row // 500, 4)] for row in last]
    for name, mine in (
        ("value", "estimated"),
        ("low", "estimated_low"),
        ("high", "estimated_high"),
    ):
        wanted = np.mean([getattr(estimate, name) for estimate in of_rows])
        assert getattr(found, mine) == pytest.approx(wanted, abs=1e-9)


def test_without_estimator_the_confidence_is_the_estimate_and_chance_is_expected():
    watch = monitor("ts", **WINDOW)
    confidence = watch.feed(Z, ids=range(2600)).confidence
    rng = np.random.default_rng(3)
    # labels drawn from the confidences: as calibrated as can be
    predicted = Z.argmax(axis=1)
    drawn = np.where(rng.random(2600) < confidence, predicted, (predicted + 1) % 6)
    errors = []
    for part in np.split(np.arange(2500), 5):
        watch.add_labels(part, drawn[part])
        found = watch.realised
        errors.append((found.ece, found.expected_ece))
        assert found.estimated == found.estimated_low == pytest.approx(found.mean_confidence)
    realised, expected = np.mean(errors, axis=0)
    assert realised == pytest.approx(expected, rel=0.25)


def test_calibrated_labels_raise_few_alarms_and_wrong_ones_a_single_one():
    watch = monitor("ts", **WINDOW)  # ten false alarms per 100,000
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2600, 100_000)
    confidence = watch.feed(Z, ids=range(2600)).confidence
    predicted, alarms = Z.argmax(axis=1), 0
    for part in np.split(rows, 200):
        watch.feed(Z[part], ids=range(500))
        drawn = np.where(
            rng.random(500) < confidence[part], predicted[part], (predicted[part] + 1) % 6
        )
        alarms += sum(e.kind == "labels-disagree" for e in watch.add_labels(range(500), drawn))
    assert alarms <= OFTEN
    events = play(watch, Z, (predicted + 1) % 6, start=10_000)
    assert [e.kind for e in events if e.kind in LABEL_KINDS] == ["labels-disagree"]
    (event,) = [e for e in events if e.kind in LABEL_KINDS]
    assert event.statistic < event.threshold
    assert "do not rely on the estimate" in event.message
    assert not watch.realised.agree


def test_the_alarm_ends_when_labels_fit_again():
    watch = monitor(**WINDOW)
    wrong = (Y + 1) % 6
    events = play(watch, Z[:1000], Y[:1000])
    events += play(watch, Z[:800], wrong[:800], start=2000)
    state = watch.state
    events += play(watch, Z[1000:], Y[1000:], start=4000)
    kinds = [e.kind for e in events if e.kind in LABEL_KINDS]
    assert kinds == list(LABEL_KINDS)
    assert watch.realised.agree
    assert all(e.state in (state, "normal", "filling") for e in events)


def test_labels_come_in_any_pieces_to_the_same_bits():
    states = []
    for size in (1, 77, 2600):
        watch = monitor(**WINDOW)
        watch.feed(Z, ids=range(2600))
        events = [
            event
            for i in range(0, 2600, size)
            for event in watch.add_labels(range(i, min(i + size, 2600)), Y[i : i + size])
        ]
        states.append((watch.state_dict(), events))
    assert states[0] == states[1] == states[2]


def test_the_oldest_predictions_are_forgotten_and_memory_is_bounded():
    watch = Monitor("ts", estimator=None, waiting=300, false_alarms=OFTEN).fit(bank())
    for i in range(0, 2600, 100):
        watch.feed(Z[i : i + 100], ids=[f"row {j}" for j in range(i, i + 100)])
    assert watch.realised.waiting == 300
    assert watch.add_labels(["row 2299", "row 2300", "nobody"], [0, 1, 2]) == ()
    found = watch.realised
    assert (found.labelled, found.unknown, found.waiting) == (1, 2, 299)
    watch.add_labels(["row 2300"], [1])  # a label is used once
    assert watch.realised.unknown == 3
    watch.feed(Z[:1], ids=["row 2301"])
    assert watch.realised.waiting == 299  # the id is that of the newer row
    watch.feed(Z[:5])
    assert watch.realised.waiting == 299


@pytest.mark.parametrize("way", ["save", "state", "deepcopy"])
def test_a_restored_monitor_knows_its_waiting_rows(way, tmp_path):
    watch = monitor(**WINDOW)
    watch.feed(Z[:1700], ids=[str(i) for i in range(1700)])
    watch.add_labels(range(900), Y[:900])
    if way == "save":
        watch.save(tmp_path / "monitor.json")
        other = load(tmp_path / "monitor.json")
    elif way == "state":
        other = monitor(**WINDOW)
        other.load_state_dict(json.loads(json.dumps(watch.state_dict(), allow_nan=False)))
    else:
        other = copy.deepcopy(watch)
    events = [m.add_labels(range(900, 1700), Y[900:1700]) for m in (watch, other)]
    assert events[0] == events[1]
    assert watch.state_dict() == other.state_dict()
    assert watch.realised == other.realised


def test_a_state_from_before_labels_is_still_read():
    watch = monitor("sac", **WINDOW)
    watch.feed(Z)
    state = watch.state_dict()
    empty = state["running"].pop("ledger")
    other = monitor("sac", **WINDOW)
    other.load_state_dict(state)
    assert other.state_dict()["running"]["ledger"] == empty


@pytest.mark.parametrize(
    ("ids", "labels", "words"),
    [
        ([1], [6], "must lie in 0..5"),
        ([1, 2], [1], "one entry per row: 2 rows, 1 labels"),
        ([1], ["cat"], "class indices"),
        ([1], [[1]], "shape"),
    ],
)
def test_labels_that_cannot_be_used_change_nothing(ids, labels, words):
    watch = monitor("sac")
    watch.feed(Z[:100], ids=range(100))
    before = watch.state_dict()
    with pytest.raises(InputError, match=words):
        watch.add_labels(ids, labels)
    with pytest.raises(InputError, match="one entry per row: 100 rows, 3 ids"):
        watch.feed(Z[:100], ids=[1, 2, 3])
    assert watch.state_dict() == before
    assert watch.add_labels([], []) == ()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("ring", [[1]]),
        ("ring", [[-1] * 49] * 5),
        ("labelled", -1),
        ("agree", 1),
        ("waiting", {"a": [1, 9, 0.5]}),
        ("waiting", {"a": [1, 2]}),
        ("waiting", {"a": [1, 2, 1.5]}),
        ("waiting", 5),
        ("estimates", {"0": [2, 0, 1]}),
        ("else", 1),
    ],
)
def test_a_damaged_ledger_is_rejected(part, value):
    watch = monitor("sac", **WINDOW)
    watch.feed(Z[:100], ids=range(100))
    before = watch.state_dict()
    state = json.loads(json.dumps(before))
    state["running"]["ledger"][part] = value
    with pytest.raises(InputError, match="damaged"):
        watch.load_state_dict(state)
    assert watch.state_dict() == before


@pytest.mark.parametrize("waiting", [0, -1, 2.5])
def test_the_cap_is_checked(waiting):
    with pytest.raises(InputError, match="waiting must be"):
        Monitor("ts", estimator=None, waiting=waiting, window=Sliding(rows=1000)).fit(bank())

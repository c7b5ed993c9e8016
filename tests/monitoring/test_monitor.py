"""A monitor: its choices, events, states on disk, inputs and threads."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitored import bank, fed, method, monitor, rows
from sklearn.base import clone

from shiftcal import (
    CPCS,
    SAC,
    STS,
    TS,
    PseudoCal,
    Realign,
    Rehearsal,
    SurrogateBank,
    estimates,
    load,
)
from shiftcal.errors import FileError, InputError, InputWarning, NotFittedError
from shiftcal.estimates import Rehearsed
from shiftcal.files import checksum_of
from shiftcal.monitoring import KINDS, STATES, Exponential, Monitor, Sliding
from shiftcal.scores import Scores

METHODS = ("rehearsal", "sac", "ace", "sts", "ts", "vanilla")


@pytest.mark.parametrize("name", METHODS)
def test_a_full_window_gets_what_adapt_chooses_for_the_same_rows(name):
    watch = monitor(name)
    stream = np.concatenate([rows(1370, seed=3), rows(1830, 0.8, seed=4)])
    update = watch.feed(stream)
    known = method(name)
    chosen = known.adapt(stream[-1000:])
    assert update.temperature == pytest.approx(chosen.temperature, rel=1e-9)
    found = update.selection
    assert found.temperature == pytest.approx(chosen.temperature, rel=1e-9)
    assert (found.index, found.n_target) == (chosen.index, chosen.n_target)
    assert [flag.code for flag in found.flags] == [flag.code for flag in chosen.flags]
    later = rows(90, 0.8, seed=5)
    after = watch.feed(later, probabilities=True)
    # the compiled exponential is right to a digit or two of the last
    np.testing.assert_allclose(after.confidence, known.confidence(later), rtol=1e-12)
    np.testing.assert_allclose(after.probs, known.predict_proba(later), rtol=1e-11, atol=1e-15)
    np.testing.assert_array_equal(after.predicted, later.argmax(axis=1))


def test_the_estimate_is_that_of_the_same_rows():
    stream = rows(2000, 0.8, seed=4)
    update = monitor().feed(stream)
    found = update.estimate
    wanted = Rehearsed.of(method("rehearsal")).estimate(stream[-1000:])
    assert found.value == pytest.approx(wanted.value, rel=1e-9)
    assert found.n_target == 1000
    # the interval is of draws of ten blocks, not of a thousand rows
    assert found.low == pytest.approx(wanted.low, abs=0.03)
    assert found.high == pytest.approx(wanted.high, abs=0.03)


@pytest.mark.parametrize(
    "chosen", [SAC(map="isotonic"), STS(map="histogram"), STS(map="vector")], ids=str
)
def test_maps_that_are_no_temperature_are_applied_as_they_are(chosen):
    watch = Monitor(chosen, estimator=None, window=Sliding(rows=1000), false_alarms=10.0)
    watch.fit(bank())
    stream = rows(1000, 0.7, seed=8)
    first = watch.feed(stream)
    assert first.temperature is None
    chosen.fit(bank()).adapt(stream)
    later = rows(77, 0.7, seed=9)
    update = watch.feed(later, probabilities=True)
    probs = chosen.predict_proba(later)
    np.testing.assert_array_equal(update.probs, probs)
    np.testing.assert_array_equal(update.confidence, probs.max(axis=1))
    np.testing.assert_array_equal(update.predicted, probs.argmax(axis=1))
    assert update.selection.index == chosen.selection_.index


def test_an_adapted_realign_keeps_its_correction(tmp_path):
    chosen = Realign().fit(bank())
    with pytest.raises(InputError, match="Adapt it to rows of the stream first"):
        Monitor(chosen).fit(bank())
    selection = chosen.adapt(rows(1000, 0.7, seed=8))
    with pytest.raises(InputError, match="has 6 classes and the bank 2"):
        Monitor(chosen).fit(np.eye(2)[[0, 1] * 50] * 3, [0, 1] * 50)
    watch = Monitor(chosen, estimator=None, window=Sliding(rows=1000), false_alarms=10.0)
    watch.fit(bank()).save(tmp_path / "monitor.json")
    stream = rows(1500, 0.6, seed=9)
    for one in (watch, load(tmp_path / "monitor.json")):
        update = one.feed(stream, probabilities=True)
        np.testing.assert_array_equal(update.confidence, chosen.confidence(stream))
        np.testing.assert_array_equal(update.probs, chosen.predict_proba(stream))
        np.testing.assert_array_equal(update.predicted, stream.argmax(axis=1))
        assert (update.state, update.temperature) == ("shifted", None)
        assert update.selection == selection


def test_rows_before_the_first_look_are_calibrated_as_the_clean_set():
    watch = monitor()
    early = rows(99, 0.5, seed=2)
    update = watch.feed(early)
    clean = method("ts").confidence(early)
    np.testing.assert_allclose(update.confidence, clean, rtol=1e-12)
    assert (update.selection, update.estimate, update.state) == (None, None, "filling")
    assert (update.statistic, update.outside, update.events) == (0.0, 0.0, ())
    assert watch.feed(rows(1, 0.5, seed=3)).selection.n_target == 100


def test_a_change_in_the_middle_of_a_batch_counts_from_its_row_on():
    watch = monitor("sac")
    watch.feed(rows(1000, seed=1))
    batch = rows(1500, 0.45, seed=2)
    update = watch.feed(batch)
    known = method("sac")
    seen = np.concatenate([rows(1000, seed=1), batch])
    for start in range(0, 1500, 100):
        known.adapt(seen[start : start + 1000])
        piece = slice(start, start + 100)
        np.testing.assert_allclose(
            update.confidence[piece], known.confidence(batch[piece]), rtol=1e-12
        )


def test_a_stream_goes_from_normal_to_shifted_and_back():
    watch = monitor()
    assert watch.feed(rows(900, seed=1)).state == "filling"
    assert watch.feed(rows(2100, seed=2)).state == "normal"
    shifted = watch.feed(rows(3000, 0.7, seed=3), at=17.5)
    (began,) = shifted.events
    assert (began.kind, began.state, began.at) == ("shift-began", "shifted", 17.5)
    assert 3000 < began.row <= 3200
    assert began.row % 100 == 0
    assert began.statistic >= began.threshold == 1
    assert shifted.state == watch.state == "shifted"
    back = watch.feed(rows(3000, seed=4))
    (normal,) = back.events
    assert (normal.kind, normal.state, normal.at) == ("back-to-normal", "normal", None)
    # the window has to be rid of the shifted rows, and then to stay near for three looks
    assert 6900 <= normal.row <= 8000
    assert normal.statistic <= normal.threshold < 1
    assert watch.rows == back.rows == 9000


def test_what_no_set_is_like_is_outside_the_bank_and_may_come_back_inside():
    watch = monitor("sac")
    watch.feed(rows(1000, seed=1))
    hard = np.random.default_rng(0).standard_normal((2500, 6)) * 0.01
    streams = (hard, rows(3000, 0.5, seed=2), rows(3000, seed=3))
    updates = [watch.feed(stream) for stream in streams]
    assert [update.state for update in updates] == ["outside-bank", "shifted", "normal"]
    assert updates[1].outside < 1
    events = [event for update in updates for event in update.events]
    assert [event.kind for event in events] == list(KINDS[:4])
    for event in events:
        assert event.state in STATES
        assert f"{event.statistic:.2f}" in event.message
        assert str(event) == f"row {event.row:,}: {event.kind}: {event.message}"
        assert event.to_dict()["kind"] == event.kind


def test_an_exponential_window_weighs_the_newest_most():
    window = Exponential(half_life=400, blocks=4)
    watch = Monitor("sac", estimator=None, window=window, false_alarms=10.0).fit(bank())
    stream = np.concatenate([rows(1500, seed=1), rows(700, 0.6, seed=2)])
    update = watch.feed(stream)
    confidence = method("vanilla").confidence(stream[-2000:])
    weights = np.repeat(0.5 ** (np.arange(19, -1, -1) / 4), 100)
    assert update.selection.mean_confidence == pytest.approx(
        np.average(confidence, weights=weights), rel=1e-9
    )
    noisy = np.add.reduceat(weights, range(0, 2000, 100)) / 100
    assert update.selection.n_target == round(100 * noisy.sum() ** 2 / (noisy**2).sum())
    nearest = min(
        bank().summaries(), key=lambda s: abs(s.mean_confidence - update.selection.mean_confidence)
    )
    assert update.selection.set_name == nearest.name


def test_a_window_larger_than_all_that_was_rehearsed_is_asked_in_parts():
    small = bank(300)
    watch = Monitor(estimator=None, window=Sliding(rows=2000), false_alarms=10.0).fit(small)
    stream = rows(2000, 0.8, seed=6)
    update = watch.feed(stream)
    # parts are of blocks here and of random groups there
    wanted = Rehearsal().fit(small).adapt(stream).temperature
    assert update.temperature == pytest.approx(wanted, rel=0.02)
    assert update.selection.temperature == pytest.approx(update.temperature, rel=1e-9)


STREAM = np.concatenate([rows(330, seed=1), rows(400, 0.6, seed=2), rows(470, seed=3)])
WINDOW = {"rows": 200, "blocks": 5}


def outcome(updates):
    """All results, to the bit."""
    last = updates[-1]
    return (
        np.concatenate([u.confidence for u in updates]).tobytes(),
        np.concatenate([u.predicted for u in updates]).tobytes(),
        np.concatenate([u.probs for u in updates]).tobytes(),
        [e for u in updates for e in u.events],
        (last.state, last.statistic, last.temperature, last.outside),
        (last.selection, last.estimate),
    )


@pytest.fixture(scope="module", params=["rehearsal", "sac"])
def at_once(request):
    watch = monitor(request.param, **WINDOW)
    return request.param, outcome([watch.feed(STREAM, probabilities=True)]), watch.state_dict()


@settings(max_examples=15)
@given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=12))
def test_any_cut_into_batches_gives_the_same_bits(at_once, cuts):
    method, wanted, state = at_once
    watch = monitor(method, **WINDOW)
    assert outcome(fed(watch, STREAM, *sorted(cuts), probabilities=True)) == wanted
    assert watch.state_dict() == state


@pytest.mark.parametrize("size", [1, 7, 256])
def test_row_by_row_and_in_batches_are_the_same(at_once, size):
    method, wanted, state = at_once
    watch = monitor(method, **WINDOW)
    cuts = range(size, len(STREAM), size)
    assert outcome(fed(watch, STREAM, *cuts, probabilities=True)) == wanted
    assert watch.state_dict() == state
    assert wanted[3], "no event: nothing was asked"


@pytest.mark.parametrize("method", ["rehearsal", "sac"])
@pytest.mark.parametrize("way", ["save", "state", "deepcopy", "pickle"])
def test_a_restored_monitor_resumes_to_the_same_bits(method, way, tmp_path):
    watch = monitor(method, **WINDOW)
    watch.feed(STREAM[:777])
    if way == "save":
        watch.save(tmp_path / "monitor.json")
        other = load(tmp_path / "monitor.json")
        assert other.get_params(deep=False).keys() == watch.get_params(deep=False).keys()
    elif way == "state":
        text = json.dumps(watch.state_dict(), allow_nan=False)
        assert len(text) < 10_000
        other = monitor(method, **WINDOW)
        other.load_state_dict(json.loads(text))
    else:
        other = copy.deepcopy(watch) if way == "deepcopy" else pickle.loads(pickle.dumps(watch))
    taken = watch.state_dict()
    rest = [m.feed(STREAM[777:], probabilities=True) for m in (watch, other)]
    assert outcome(rest[:1]) == outcome(rest[1:])
    assert other.state_dict() == watch.state_dict() != taken
    watch.reset()
    assert watch.state_dict() == monitor(method, **WINDOW).state_dict()


def test_a_state_of_another_monitor_is_rejected():
    state = monitor("sac").state_dict()
    for other in (monitor("ts"), monitor("sac", rows=500)):
        with pytest.raises(InputError, match="another monitor"):
            other.load_state_dict(state)
    with pytest.raises(InputError, match="must be what state_dict gave"):
        monitor("sac").load_state_dict({"format": "else"})


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("rows", -1),
        ("rows", 2.5),
        ("state", "fine"),
        ("statistic", float("nan")),
        ("temperature", 0.0),
        ("temperature", None),
        ("which", 7),
        ("which", None),
        ("ring", [[1, 2], [3]]),
        ("ring", [[0.5] * 16] * 10),
        ("ring", [[1] * 15] * 10),
        ("ring", [[-1] * 16] * 10),
        ("partial", "abc"),
        ("calm", True),
        ("else", 1),
    ],
)
def test_a_damaged_state_is_rejected_and_changes_nothing(part, value):
    watch = monitor("sac")
    watch.feed(STREAM)
    before = watch.state_dict()
    state = json.loads(json.dumps(before))
    state["running"][part] = value
    with pytest.raises(InputError, match="damaged"):
        watch.load_state_dict(state)
    assert watch.state_dict() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["running_"].update(calm=-1), "calm cannot be -1"),
        (lambda f: f["running_"].update(rows="7"), "'7' where"),
        (lambda f: f.update(patience_=9), "digest"),
        (lambda f: f.update(n_classes_=5), "ring cannot be"),
        (lambda f: f.pop("detector_"), "lacks its attribute"),
        (lambda f: f["window_"].update(name="tumbling"), "is called"),
        (lambda f: f["window_"]["settings"].update(rows=0), "rows must be"),
        (lambda f: f["method_"].update(kind="map", name="temperature"), "cannot be used|damaged"),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_rejected(change, words, tmp_path):
    path = tmp_path / "monitor.json"
    monitor("sac").save(path)
    document = json.loads(path.read_text())
    document.pop("checksum")
    change(document["object"]["fitted"])
    document["checksum"] = checksum_of(document)  # as a hostile writer would
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match=words):
        load(path)


def test_before_fit_there_is_nothing_to_ask():
    fresh = clone(monitor("sac"))
    assert fresh.get_params()["method"] == "sac"
    for ask in (fresh.state_dict, fresh.reset, lambda: fresh.rows, lambda: fresh.feed(STREAM)):
        with pytest.raises(NotFittedError, match="call fit"):
            ask()


def changed(value):
    bad = STREAM[:300].copy()
    bad[250, 2] = value
    return bad


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (changed(np.nan), "logits must be finite; row 250 holds nan"),
        (changed(1e40), "within"),
        (STREAM[:, :5], "must have 6 columns, one per class it was fitted with; got 5"),
        (STREAM[0], r"shape \(n, k\)"),
        (STREAM[:0], "at least one row"),
        (STREAM.astype(complex), "real numbers"),
        ("logits.npy", "Read a file first"),
        (np.full((50, 6), 1 / 6), 'say input="probabilities"'),
        (Scores(STREAM, classes=list("bacdef")), "column 0 is 'b' here and 'a' there"),
    ],
)
def test_a_batch_that_cannot_be_used_changes_nothing(bad, words):
    named = SurrogateBank(bank().sets, classes=list("abcdef"))
    watch = Monitor(TS(), estimator=None, false_alarms=10.0).fit(named)
    watch.feed(STREAM)
    before = watch.state_dict()
    with pytest.raises(InputError, match=f"(?i){words}"):
        watch.feed(bad)
    with pytest.raises(InputError, match="at must be a finite number"):
        watch.feed(STREAM, float("nan"))
    assert watch.state_dict() == before


def test_scores_probabilities_and_any_layout_go_in_as_elsewhere():
    plain = monitor("sac").feed(STREAM)
    for same in (Scores(STREAM), np.asfortranarray(STREAM), STREAM[::-1][::-1]):
        np.testing.assert_array_equal(monitor("sac").feed(same).confidence, plain.confidence)
    with pytest.warns(InputWarning, match="look like probabilities"):
        monitor("sac").feed(np.full((3, 6), 1 / 6))
    probs = np.exp(STREAM - STREAM.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    watch = Monitor(
        "sac", estimator=None, window=Sliding(rows=1000), input="probabilities", false_alarms=10.0
    ).fit(SurrogateBank(bank().sets, input="probabilities"))
    found = watch.feed(probs).selection.mean_confidence
    assert found == pytest.approx(plain.selection.mean_confidence)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": SAC(distance="ks")}, 'distance="ks" compares rows.*Take rehearsal'),
        ({"method": SAC(peek=100)}, "peek=100 draws rows"),
        ({"method": CPCS()}, "cpcs cannot choose by them: it needs features"),
        ({"method": PseudoCal()}, "pseudocal .* mixed images"),
        ({"method": SAC}, "name of a Method, or one; got <class"),
        ({"estimator": "atc"}, "atc cannot estimate from them.*Take rehearsed"),
        ({"estimator": estimates.get("rehearsed")(input="probabilities")}, "for probabilities"),
        ({"estimator": True}, "AccuracyEstimator, or one; got True"),
        ({"false_alarms": 0}, "false_alarms must be a number above 0"),
        ({"false_alarms": 200}, "between 0.001 and 100"),
        ({"patience": 1.5}, "patience must be a whole number"),
        ({"level": 1.0}, "level must lie strictly between"),
        ({"seed": -1}, "seed"),
        ({"window": 2000}, r"window must be Sliding\(rows=...\) or Exponential"),
        ({"window": Sliding(rows=2010, blocks=20)}, "Take 2000 or 2020 rows"),
        ({"window": Sliding(rows=2_000_000, blocks=10)}, "at most 1,000,000"),
        ({"window": Sliding(rows=2001, blocks=2001)}, "at most 1,000"),
        ({"window": Exponential(half_life=101)}, "half_life must be a multiple of blocks"),
        ({"input": "probabilities"}, "method was made for logits"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_rejected(settings, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        Monitor(**{"method": TS(), "estimator": None, **settings}).fit(bank())


def test_several_threads_lose_no_row_and_see_states_between_two_batches():
    watch = monitor("sac", **WINDOW)
    barrier = threading.Barrier(4)
    parts = [[rows(37, 1.3 - 0.2 * t, seed=100 * t + b) for b in range(40)] for t in range(4)]
    taken = []

    def work(thread):
        barrier.wait()
        done = []
        for part in parts[thread]:
            done.append((part, watch.feed(part)))
            taken.append(watch.state_dict())
        return done

    with ThreadPoolExecutor(4) as pool:
        done = [pair for found in pool.map(work, range(4)) for pair in found]
    done.sort(key=lambda pair: pair[1].rows)  # the order in which they were taken
    assert [u.rows for _, u in done] == list(range(37, watch.rows + 1, 37))
    again, states = monitor("sac", **WINDOW), {}
    for part, update in done:
        serial = again.feed(part)
        np.testing.assert_array_equal(serial.confidence, update.confidence)
        assert (serial.events, serial.selection) == (update.events, update.selection)
        states[again.rows] = again.state_dict()
    assert again.rows == watch.rows == 4 * 40 * 37
    assert all(state == states[state["running"]["rows"]] for state in taken)

"""A monitor's choices are its method's, and its events come when they should."""

from __future__ import annotations

import numpy as np
import pytest
from monitored import bank, method, monitor, rows

from shiftcal import SAC, STS, Rehearsal, SurrogateBank
from shiftcal.estimates import Rehearsed
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
    kinds = [e.kind for e in watch.feed(hard).events]
    assert kinds == ["shift-began", "outside-bank"]
    assert watch.state == "outside-bank"
    inside = watch.feed(rows(3000, 0.5, seed=2))
    assert [e.kind for e in inside.events] == ["back-inside"]
    assert inside.state == "shifted"
    assert inside.outside < 1
    clean = watch.feed(rows(3000, seed=3))
    assert [e.kind for e in clean.events] == ["back-to-normal"]


def test_every_event_says_what_was_compared():
    watch = monitor("sac")
    watch.feed(rows(1000, seed=1))
    hard = np.random.default_rng(0).standard_normal((2500, 6)) * 0.01
    events = [
        e for x in (hard, rows(3000, 0.5, seed=2), rows(3000, seed=3)) for e in watch.feed(x).events
    ]
    assert [e.kind for e in events] == list(KINDS)
    for event in events:
        assert event.state in STATES
        assert f"{event.statistic:.2f}" in event.message
        assert str(event) == f"row {event.row:,}: {event.kind}: {event.message}"
        assert event.to_dict()["kind"] == event.kind
    assert "a guess" in events[1].message
    assert "within what was calibrated" in events[2].message


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


def test_scores_and_probabilities_go_in_as_elsewhere():
    stream = rows(1200, 0.8, seed=3)
    plain = monitor("sac").feed(stream)
    scored = monitor("sac").feed(Scores(stream))
    np.testing.assert_array_equal(plain.confidence, scored.confidence)
    probs = np.exp(stream - stream.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    given = SurrogateBank(bank().sets, input="probabilities")
    watch = Monitor(
        "sac", estimator=None, window=Sliding(rows=1000), input="probabilities", false_alarms=10.0
    )
    update = watch.fit(given).feed(probs)
    assert update.selection.mean_confidence == pytest.approx(plain.selection.mean_confidence)


def test_reset_forgets_the_stream_and_fitting_anew_too():
    watch = monitor("sac")
    fresh = watch.state_dict()
    watch.feed(rows(2000, 0.5, seed=1))
    assert watch.state == "shifted"
    watch.reset()
    assert watch.state_dict() == fresh
    watch.feed(rows(2000, 0.5, seed=1))
    watch.fit(bank())
    assert watch.rows == 0
    assert watch.state == "filling"

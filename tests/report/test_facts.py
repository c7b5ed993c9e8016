"""The numbers of a report, against scipy, brute force and the methods themselves."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from digits_bank import digits_bank, digits_target
from ladder_data import draw, make_bank
from report_facts import JUDGING, labelled, unlabelled
from scipy import stats

import shiftcal as sc
from shiftcal.errors import InputError
from shiftcal.report.facts import FlagFacts, Judging, _flags, make_facts
from shiftcal.report.verdict import Ranged, kept_words
from shiftcal.types import Flag


def small(n=300, **options):
    logits, labels = draw(n, 0.8, seed=5)
    options = {"method": "sac", "judging": Judging(n_resamples=0), **options}
    return make_facts(make_bank(200), sc.Scores(logits, labels=labels), **options)


def test_intervals_are_those_of_scipy():
    facts, target = labelled(), digits_target()
    found = facts.target.accuracy
    correct = target.logits().argmax(axis=1) == target.labels
    exact = stats.binomtest(int(correct.sum()), target.n).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    gap = facts.of("vanilla").gap
    c = sc.methods.get("vanilla")().fit(digits_bank()).confidence(target)
    low, high = stats.norm.interval(0.95, (c - correct).mean(), stats.sem(c - correct))
    assert (gap.value, gap.low, gap.high) == pytest.approx(((c - correct).mean(), low, high))


def test_methods_are_as_they_are_used_by_hand():
    facts, target = labelled(), digits_target()
    for name in ("vanilla", "ts", "sts", "sac", "rehearsal", "ace"):
        method = sc.methods.get(name)().fit(digits_bank())
        selection = method.adapt(target)
        probs = method.predict_proba(target)
        correct = probs.argmax(axis=1) == target.labels
        found = facts.of(name)
        assert found.selection == selection
        assert found.mean_confidence == pytest.approx(probs.max(axis=1).mean())
        assert found.ece.value == pytest.approx(sc.ece(probs.max(axis=1), correct))
        assert found.gap.value == pytest.approx(probs.max(axis=1).mean() - correct.mean())
        assert found.ece.low <= found.ece.value <= found.ece.high
    assert set(facts.missing) == {"cpcs", "transcal", "pseudocal"}


def test_labels_decide_nothing_but_the_judgement():
    swapped = dataclasses.replace(digits_target(), labels=np.zeros(digits_target().n, dtype=int))
    other = make_facts(digits_bank(), swapped, judging=Judging(n_resamples=0))
    facts = labelled()
    assert other.sets == facts.sets
    assert [one.selection for one in other.methods] == [one.selection for one in facts.methods]
    assert other.estimate == facts.estimate


def test_bins_are_those_of_the_table_behind_ece():
    facts, target = labelled(), digits_target()
    confidence = sc.methods.get("vanilla")().fit(digits_bank()).confidence(target)
    correct = target.logits().argmax(axis=1) == target.labels
    table = sc.metrics.bin_table(confidence, correct)
    found = facts.of("vanilla").bins
    for name, column in table.to_dict().items():
        np.testing.assert_allclose(found[name], column, atol=1e-12)
    for accuracy, n, low, high in zip(
        found["accuracy"], found["count"], found["low"], found["high"], strict=True
    ):
        exact = stats.binomtest(round(accuracy * n), n).proportion_ci(0.95, method="exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert sum(facts.of("vanilla").shares) == pytest.approx(1)
    assert facts.shown == facts.target.name


def test_without_labels_diagrams_are_of_the_chosen_set():
    facts, bank = unlabelled(), digits_bank()
    chosen = next(j for j, one in enumerate(facts.sets) if one.chosen)
    near = bank[chosen]
    assert facts.shown == near.name
    bins = facts.of("vanilla").bins
    assert np.dot(bins["accuracy"], bins["count"]) == pytest.approx(
        near.summary().accuracy * len(near)
    )
    assert facts.of("sac").ece is None
    assert facts.of("sac").gap.value == pytest.approx(
        facts.of("sac").mean_confidence - facts.estimate.value
    )


def test_classes_are_counted_by_what_is_predicted():
    facts, target = labelled(), digits_target()
    probs = sc.methods.get("vanilla")().fit(digits_bank()).predict_proba(target)
    predicted = probs.argmax(axis=1)
    assert sum(one.n for one in facts.classes) == target.n
    assert [one.n for one in facts.classes] == sorted(
        (one.n for one in facts.classes), reverse=True
    )
    for one in facts.classes:
        rows = predicted == one.index
        assert one.name == target.classes[one.index]
        assert one.before == pytest.approx(probs.max(axis=1)[rows].mean())
        assert one.accuracy.value == pytest.approx((target.labels[rows] == one.index).mean())
    total = sum(one.after * one.share for one in facts.classes)
    assert total == pytest.approx(facts.of("rehearsal").mean_confidence)


def test_classes_that_are_off_are_flagged_and_those_predicted_too_often():
    n, k = 400, 4
    rng = np.random.default_rng(3)
    labels = np.arange(n) % k
    logits = 4.0 * np.eye(k)[labels] + rng.standard_normal((n, k))
    bank = sc.SurrogateBank.from_arrays([logits, 0.7 * logits, 0.4 * logits], labels)
    taken = logits.copy()
    taken[labels >= 2, 1] += 6  # two classes are taken for the second
    facts = make_facts(bank, sc.Scores(taken, labels=labels), judging=Judging(n_resamples=0))
    (note,) = (one for one in facts.warnings if one.code == "class-gap")
    assert note.messages[0].startswith("class '1': 7")
    first = facts.classes[0]
    assert first.name == "1"
    wrong = (taken.argmax(axis=1) == 1) & (labels != 1)
    assert first.accuracy.value == pytest.approx(1 - wrong.sum() / first.n)
    used = first.after if facts.verdict.use else first.before
    assert first.gap.value == pytest.approx(used - first.accuracy.value)
    blind = make_facts(bank, taken, judging=Judging(n_resamples=0))
    (note,) = (one for one in blind.warnings if one.code == "class-share")
    assert note.messages[0].startswith("class '1' is predicted for 7")
    assert first.clean_share == pytest.approx((logits.argmax(axis=1) == 1).mean())


@pytest.mark.parametrize("made", [labelled, unlabelled])
def test_rows_and_the_operating_point_are_those_of_brute_force(made):
    facts, target = made(), digits_target()
    method = sc.methods.get(facts.method)().fit(digits_bank())
    method.adapt(target)
    after, correct = method.confidence(target), target.values.argmax(axis=1) == target.labels
    before = sc.methods.get("vanilla")().fit(digits_bank()).confidence(target)
    if made is labelled:
        wanted = np.sort(after[~correct])[::-1][:8]
        assert all(one.label != one.predicted for one in facts.rows)
    else:
        wanted = after[np.argsort(-np.abs(after - before), kind="stable")[:8]]
    np.testing.assert_allclose([one.after for one in facts.rows], wanted)
    kept = facts.kept
    assert kept.raw[-1] == pytest.approx(before.mean())
    if made is unlabelled:  # nothing can be trusted yet, so there is no operating point
        assert (facts.verdict.kind, kept.by, kept.threshold) == ("unclear", "vanilla", None)
        assert "no confidence can be trusted here" in kept_words(kept, facts.verdict)
        return
    assert (facts.verdict.use, kept.by) == (True, facts.method)
    ranked = np.sort(after)[::-1]
    n = max(m for m in range(1, len(after)) if ranked[:m].mean() >= 0.95)
    assert (kept.share, kept.threshold) == pytest.approx((n / len(after), ranked[n - 1]))
    assert kept.expected[-1] == pytest.approx(after.mean())
    assert kept.accuracy.value == pytest.approx(correct[after >= kept.threshold].mean())
    assert kept.measured[-1] == pytest.approx(correct.mean())
    assert "keep those with a confidence after rehearsal of" in kept_words(kept, facts.verdict)


def test_the_same_input_gives_the_same_facts_and_json_holds_them():
    again = make_facts(
        digits_bank(), digits_target(), judging=JUDGING, provenance=labelled().provenance
    )
    assert again == labelled()
    document = labelled().to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert document["format"] == "shiftcal-report"
    assert dataclasses.replace(labelled(), estimate=Ranged(math.inf)).to_dict()["estimate"] == {
        "value": None, "low": None, "high": None
    }  # fmt: skip


def test_a_bank_of_probabilities_gives_the_same_temperatures():
    from shiftcal.numerics.softmax import softmax

    bank = make_bank(200)
    probs = [softmax(s.logits) for s in bank]
    other = sc.SurrogateBank.from_arrays(probs, bank.clean.labels, input="probabilities")
    logits, labels = draw(300, 0.8, seed=5)
    scores = sc.Scores(softmax(logits), input="probabilities", labels=labels)
    found = make_facts(other, scores, method="sac", judging=Judging(n_resamples=0))
    found, plain = found.of("sac"), small().of("sac")
    assert found.selection.temperature == pytest.approx(plain.selection.temperature, rel=1e-6)
    assert found.ece.value == pytest.approx(plain.ece.value, abs=1e-6)


def test_a_method_with_settings_is_taken_with_them():
    facts = small(method=sc.SAC(distance="ks"))
    assert facts.method == "sac"
    assert facts.of("sac").selection.distance == "ks"
    assert [one.name for one in facts.methods].count("sac") == 1


def test_one_row_one_bin_and_a_bank_of_one_set_are_no_errors():
    logits, labels = draw(300, 0.8, seed=5)
    bank = sc.SurrogateBank.from_arrays([logits], labels)
    facts = make_facts(bank, logits[:1], judging=Judging(n_bins=1))
    assert facts.verdict.kind == "few"
    assert {"few-rows", "one-set"} <= {note.code for note in facts.warnings}
    assert facts.of("rehearsal").bins["count"] == [300]
    facts = make_facts(bank, sc.Scores(logits[:1], labels=labels[:1]))
    assert facts.of("vanilla").ece.low is None


def test_what_a_fit_says_is_on_the_report():
    logits, labels = draw(200, 1.3, seed=1)
    perfect = 30 * np.eye(6)[labels]
    bank = sc.SurrogateBank.from_arrays([perfect, logits], labels)
    for method, by in (("sac", {"sac"}), ("vanilla", {"ts", "sac"})):
        facts = make_facts(bank, logits, method=method, judging=Judging(n_resamples=0))
        (found,) = (note for note in facts.warnings if note.code == "fit")
        assert by <= set(found.by)
        assert found.serious == (method == "sac")
        assert any("set 1 of 2 (clean)" in text for text in found.messages)


def test_a_flag_is_there_once_and_serious_ones_come_first():
    raised = {
        "sac": [Flag("not-monotone", "rises"), Flag("outside-range", "below, says sac")],
        "rehearsal": [Flag("outside-range", "below"), Flag("like-clean", "alike")],
        "ace": [Flag("fit", "stuck"), Flag("fit", "stuck")],
        "the estimate": [Flag("outside-range", "below too")],
    }
    first, *others = _flags(raised, serious={"rehearsal", "the estimate"})
    assert first == FlagFacts(
        "outside-range", ("rehearsal", "the estimate"), ("below", "below too"), serious=True
    )
    assert [one.code for one in others] == ["not-monotone", "like-clean", "fit"]
    assert not any(one.serious for one in others)
    assert others[2].messages == ("stuck",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"judging": Judging(n_bins=0)}, "n_bins"),
        ({"judging": Judging(n_bins=101)}, "n_bins"),
        ({"judging": Judging(level=1.0)}, "level"),
        ({"judging": Judging(n_resamples=1)}, "n_resamples"),
        ({"judging": Judging(seed=-1)}, "seed"),
        ({"method": "sacc"}, "no .* is called 'sacc'"),
        ({"method": "cpcs"}, "cpcs needs features of three sets"),
        ({"method": "pseudocal"}, "pseudocal needs labelled Scores of mixed"),
    ],
)
def test_what_cannot_be_meant_is_rejected(options, words):
    with pytest.raises(InputError, match=words):
        small(**options)


def test_targets_that_cannot_be_used_are_rejected():
    bank = make_bank(200)
    for target, match in (
        (np.ones((9, 5)), "6"),
        (np.full((9, 6), np.nan), "finite"),
        (np.full((300, 6), 1 / 6), "probabilities"),
    ):
        with pytest.raises(InputError, match=match):
            make_facts(bank, target)
    with pytest.raises(InputError, match="bank must be a SurrogateBank; got str"):
        make_facts("bank", np.ones((9, 6)))


def test_another_model_is_flagged():
    origin = {"model": {"fingerprint": "a", "preprocessing": {}}}
    plain = make_bank(200)
    bank = sc.SurrogateBank(plain.sets, origin=origin)
    logits, _ = draw(300, 0.8, seed=5)
    facts = make_facts(bank, logits, method="sac", target_model="other")
    note = next(one for one in facts.warnings if one.code == "another-model")
    assert note.serious
    assert "another-model" not in {one.code for one in make_facts(plain, logits).warnings}

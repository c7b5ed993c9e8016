"""Cards made of methods, banks and targets: facts, refusals, limits."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from digits_bank import CLASSES, digits_bank, digits_target
from ladder_data import draw, make_bank

import shiftcal as sc
from shiftcal import estimates
from shiftcal.cards import CalibrationCard, Judging, Provenance, make_card
from shiftcal.errors import InputError, UnknownName

FAST = Judging(n_resamples=50, folds=2)


@pytest.fixture(scope="module")
def card():
    """Of real digits: SAC, a labelled target."""
    return make_card("sac", digits_bank(), digits_target(), judging=FAST)


@pytest.fixture(scope="module")
def bank():
    return make_bank(200)


def codes(card):
    return [limit.code for limit in card.limits]


def message(card, code):
    (found,) = (limit.message for limit in card.limits if limit.code == code)
    return found


def test_the_facts_of_the_data_are_those_of_the_bank(card):
    bank = digits_bank()
    assert card.model.classes == CLASSES
    assert card.calibration.n == 600
    assert card.calibration.same_rows
    assert card.calibration.label_counts == tuple(np.bincount(bank.clean.labels))
    for told, s in zip(card.bank, bank, strict=True):
        assert (told.name, told.corruption, told.severity) == (s.name, s.corruption, s.severity)
        assert told.accuracy == (s.logits.argmax(axis=1) == s.labels).mean()
        own = sc.maps.get("temperature")().fit(s.logits, s.labels)
        assert told.temperature == own.temperature_


def test_digests_are_of_the_numbers_and_not_of_their_type(card):
    target = digits_target()
    shape = np.array(target.values.shape, dtype="<i8").tobytes()
    content = shape + target.values.astype("<f8").tobytes() + target.labels.astype("<i8").tobytes()
    assert card.target.digest == hashlib.sha256(content).hexdigest()
    single = sc.Scores(np.float32([[1.0, 2.0], [3.0, 0.5]]))
    double = sc.Scores(np.float64([[1.0, 2.0], [3.0, 0.5]]))
    two = sc.SurrogateBank.from_arrays([np.array([[1.5, -1.0], [0.0, 3.0]] * 4)], [0, 1, 1, 0] * 2)
    told = [make_card("vanilla", two, t, estimator=None, judging=FAST) for t in (single, double)]
    assert told[0].target.digest == told[1].target.digest


def test_the_choice_and_the_metrics_of_the_target_are_those_of_the_method(card):
    target = digits_target()
    method = sc.SAC().fit(digits_bank())
    assert card.choice == method.adapt(target)
    probs = method.predict_proba(target)
    assert card.on_target.after["nll"].value == pytest.approx(sc.nll(probs, target.labels))
    interval = sc.bootstrap(
        sc.ece, probs.max(axis=1), probs.argmax(axis=1) == target.labels, n_resamples=50
    )
    told = card.on_target.after["ece"]
    assert [told.value, told.low, told.high] == pytest.approx(
        [interval.value, interval.low, interval.high], abs=1e-12
    )


def test_the_estimate_is_that_of_its_estimator(card):
    found = estimates.Rehearsed().fit(digits_bank()).estimate(digits_target().values)
    assert card.estimate == found


@pytest.mark.parametrize("name", ["rehearsal", "sac"])
def test_the_labels_of_the_target_decide_nothing(name, bank):
    logits, labels = draw(200, 0.6, seed=2)
    few = sc.SurrogateBank(bank.sets[:3])
    cards = [
        make_card(name, few, sc.Scores(logits, labels=known), judging=FAST)
        for known in (labels, None)
    ]
    assert cards[0].choice == cards[1].choice
    assert cards[0].estimate == cards[1].estimate
    assert cards[1].on_target is None
    assert "no-labels" in codes(cards[1])
    assert "estimate, not a measurement" in message(cards[1], "no-labels")


@pytest.mark.parametrize("seed", [3, 0])
def test_a_rehearsal_lends_its_rehearsals_to_an_estimate_of_the_same_seed_only(seed, bank):
    target, few = draw(200, 0.6, seed=2)[0], sc.SurrogateBank(bank.sets[:3])
    estimator = estimates.Rehearsed(seed=seed)
    card = make_card(sc.Rehearsal(seed=3), few, target, judging=FAST, estimator=estimator)
    assert card.estimate == estimator.fit(few).estimate(target)


def test_the_same_things_make_the_same_card(card):
    assert make_card("sac", digits_bank(), digits_target(), judging=FAST) == card


def test_it_comes_back_from_its_document(card):
    text = json.dumps(card.to_dict(), allow_nan=False)
    assert CalibrationCard.from_dict(json.loads(text)) == card


@pytest.mark.parametrize("name", [n for n in sc.methods.names() if n != "pseudocal"])
def test_every_method_has_a_card_that_comes_back(name, bank):
    rng = np.random.default_rng(0)
    clean = replace(bank.clean, features=rng.normal(size=(200, 3)))
    sets = sc.SurrogateBank([clean, *bank.sets[1:3]])
    target = sc.Scores(draw(150, 0.6, seed=2)[0], features=rng.normal(size=(150, 3)))
    source = rng.normal(size=(200, 3)) if sc.methods.get(name).uses_features else None
    card = make_card(name, sets, target, judging=FAST, source_features=source, estimator="doc")
    assert card.choice is not None
    assert CalibrationCard.from_dict(card.to_dict()) == card
    assert f"{name}: " in card.to_markdown()


@pytest.mark.parametrize("name", estimates.names())
def test_every_estimator_can_be_asked(name, bank):
    target = draw(150, 0.6, seed=2)[0]
    card = make_card("ts", bank, target, judging=FAST, estimator=name)
    assert card.estimate.estimator == name


def test_a_bank_of_probabilities_has_a_card(bank):
    probs = [np.exp(s.logits) / np.exp(s.logits).sum(axis=1, keepdims=True) for s in bank]
    sets = sc.SurrogateBank.from_arrays(probs, bank.clean.labels, input="probabilities")
    card = make_card("sac", sets, probs[2], judging=FAST, estimator="doc")
    plain = make_card(
        "sac", sc.SurrogateBank.from_arrays([s.logits for s in bank], bank.clean.labels),
        bank[2].logits, judging=FAST, estimator="doc",
    )  # fmt: skip
    assert card.model.input == "probabilities"
    assert "Before: the model's own probabilities. After" in card.to_markdown()
    assert card.choice.temperature == pytest.approx(plain.choice.temperature, rel=1e-6)
    with pytest.raises(InputError, match="probabilities"):
        make_card("sac", sets, bank[2].logits, judging=FAST)


def test_a_folder_is_a_bank_too(bank, tmp_path):
    bank.save(tmp_path / "bank")
    made = make_card("sac", tmp_path / "bank", judging=FAST)
    assert made == make_card("sac", bank, judging=FAST)
    assert "no-target" in codes(made)
    assert made.choice is None


def test_what_is_given_stays_as_it_was(bank):
    method, target = sc.SAC().fit(bank), draw(150, 0.6, seed=2)[0]
    before = method.adapt(draw(150, 1.2, seed=3)[0])
    copied = target.copy()
    card = make_card(method, bank, target, judging=FAST, estimator=None)
    assert method.selection_ == before != card.choice
    assert (target == copied).all()
    unfitted = sc.SAC(distance="ks")
    make_card(unfitted, bank, target, judging=FAST, estimator=None)
    assert not hasattr(unfitted, "n_classes_")


def test_what_a_method_chose_before_is_told_without_its_target(bank):
    method = sc.SAC().fit(bank)
    chosen = method.adapt(draw(150, 0.6, seed=2)[0])
    card = make_card(method, bank, judging=FAST)
    assert card.choice == chosen
    assert "only the choice is known" in message(card, "no-target")


def test_pseudocal_is_told_as_it_was_adapted(bank):
    method = sc.PseudoCal().fit(bank)
    logits, labels = draw(150, 0.6, seed=2)
    with pytest.raises(InputError, match=r"mixed images of the target.*Adapt it with mixed="):
        make_card(method, bank, logits, judging=FAST)
    mixed, theirs = draw(150, 0.5, seed=5)
    chosen = method.adapt(logits, mixed=sc.Scores(mixed, labels=theirs))
    card = make_card(method, bank, sc.Scores(logits, labels=labels), judging=FAST, estimator=None)
    assert card.choice == chosen
    assert card.method.fitted == "not-checked"
    assert "method-not-checked" in codes(card)
    assert all(one.after is None for one in card.on_bank)
    assert "mixed images of every target" in message(card, "not-measured")
    assert card.on_target.after is not None


@pytest.mark.parametrize(
    ("name", "belongs"),
    [("sac", "same-ladder"), ("rehearsal", "same-ladder"), ("ts", "same-answer"),
     ("sts", "same-answer"), ("ace", "same-answer")],
)  # fmt: skip
def test_a_method_of_this_bank_is_known_as_such_also_from_a_file(name, belongs, bank, tmp_path):
    few = sc.SurrogateBank(bank.sets[:3])
    sc.methods.get(name)().fit(few).save(tmp_path / "method.json")
    card = make_card(sc.load(tmp_path / "method.json"), few, judging=FAST)
    assert card.method.fitted == belongs
    assert card.on_bank == make_card(name, few, judging=FAST).on_bank


def model_of(fingerprint):
    return {"model": {"fingerprint": fingerprint, "preprocessing": {}, "spec": "net.onnx"}}


def as_bank(bank, **changes):
    given = {"classes": bank.classes, "input": bank.input, "origin": bank.origin, **changes}
    return sc.SurrogateBank(given.pop("sets", bank.sets), **given)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("sac", {"sets": 3}, "it was fitted on 6 sets, and the bank has 3"),
        ("rehearsal", {"sets": "other"}, "set 1 was 'clean' .* mean confidence .* and is"),
        ("ts", {"sets": "other"}, "a fit on it gives other probabilities, by up to"),
        ("sts", {"sets": "other"}, "a fit on it gives other probabilities"),
        ("sac", {"classes": list("abcdeg")}, "column 5 is 'f' to it and 'g' in the bank"),
        ("sac", {"origin": model_of("two")}, "another model or another preprocessing"),
        ("sac", {"sets": "narrow", "classes": None}, "it has 6 classes, and the bank has 4"),
    ],
)
def test_a_method_of_another_bank_is_refused(name, change, reason, bank):
    own = as_bank(bank, classes=list("abcdef"), origin=model_of("one"))
    method = sc.methods.get(name)().fit(own)
    sets = {
        3: bank.sets[:3],
        "other": make_bank(200, seed=12).sets,
        "narrow": [sc.SurrogateSet(s.logits[:, :4], s.labels % 4, s.name) for s in bank],
    }
    changed = dict(change)
    if "sets" in changed:
        changed["sets"] = sets[changed["sets"]]
    with pytest.raises(InputError, match="was not fitted on the bank of the card.*" + reason):
        make_card(method, as_bank(own, **changed), judging=FAST)


def test_a_method_for_another_kind_of_input_is_refused(bank):
    with pytest.raises(InputError, match=r"made of logits and this sac expects probabilities"):
        make_card(sc.SAC(input="probabilities"), bank)


def test_a_bank_that_says_its_model_is_quoted(bank):
    known = as_bank(bank, origin={**model_of("one"), "images": {"name": "pics", "digest": "d"}})
    card = make_card(
        "ts", known, draw(150, 0.6, seed=2)[0], judging=FAST, target_model="other", estimator=None
    )
    assert (card.model.spec, card.model.fingerprint) == ("net.onnx", "one")
    assert card.model.digest == sc.TS().fit(known).model_
    assert (card.calibration.images, card.calibration.images_digest) == ("pics", "d")
    assert "another-model" in codes(card)
    assert "model-unknown" not in codes(card)
    same = make_card(
        "ts",
        known,
        draw(150, 0.6, seed=2)[0],
        judging=FAST,
        target_model=card.model.digest,
        estimator=None,
    )
    assert not {"another-model", "target-model-unknown"} & set(codes(same))


@pytest.mark.parametrize(
    "origin", [{}, {"model": None}, {"model": 3, "images": []}, {"model": {"spec": 7}}]
)
def test_an_origin_that_says_nothing_useful_is_an_unknown_model(origin, bank):
    card = make_card("ts", as_bank(bank, origin=origin), judging=FAST)
    assert (card.model.spec, card.model.digest, card.calibration.images) == (None,) * 3
    assert "model-unknown" in codes(card)


def test_the_shifts_that_are_covered_are_named(card, bank):
    told = message(card, "shifts-covered")
    assert "noise (severity 1, 2, 3); fading (severity 1, 2)" in told
    alone = make_card("ts", sc.SurrogateBank([bank.clean]), judging=FAST)
    assert "no-shift" in codes(alone)
    nameless = [sc.SurrogateSet(s.logits, s.labels, f"file {j}") for j, s in enumerate(bank)]
    unknown = make_card("ts", sc.SurrogateBank(nameless), judging=FAST)
    assert "sets that do not say what made them" in message(unknown, "shifts-covered")


def test_flags_of_choice_and_estimate_are_limits(bank):
    few = draw(20, 0.05, seed=1)[0]
    card = make_card("sac", bank, few, judging=FAST, estimator="surrogate-curve")
    flags = [f"flag-{flag.code}" for flag in (*card.choice.flags, *card.estimate.flags)]
    assert "flag-few-rows" in flags
    assert [code for code in codes(card) if code.startswith("flag-")] == flags


def test_classes_that_are_rare_or_missing_are_named():
    rng = np.random.default_rng(0)
    labels = np.array([0] * 90 + [1] * 25 + [2] * 5)
    logits = 2.0 * np.eye(4)[labels] + rng.standard_normal((120, 4))
    card = make_card("ts", sc.SurrogateBank.from_arrays([logits], labels), judging=FAST)
    assert "no row of class 3" in message(card, "classes-missing")
    assert "class 2 (5)" in message(card, "classes-rare")
    assert "class 1" not in message(card, "classes-rare")


def test_another_mixture_of_classes_is_measured_if_labels_tell(bank):
    logits, labels = draw(600, 0.7, seed=4)
    some = labels < 3
    card = make_card(
        "ts", bank, sc.Scores(logits[some], labels=labels[some]), judging=FAST, estimator=None
    )
    apart = np.abs(
        np.bincount(labels[some], minlength=6) / some.sum()
        - np.bincount(bank.clean.labels, minlength=6) / 200
    ).sum() / 2  # fmt: skip
    assert f"{100 * apart:.0f} % of its rows" in message(card, "class-mixture")
    same = make_card("ts", bank, sc.Scores(logits, labels=labels), judging=FAST, estimator=None)
    assert "class-mixture" not in codes(same)


def test_few_rows_are_a_limit_and_the_noise_of_ece_is_about_right():
    logits, labels = draw(60, 1.0, seed=1)
    card = make_card("ts", sc.SurrogateBank.from_arrays([logits], labels), judging=FAST)
    assert "60 rows" in message(card, "few-rows")
    big = make_bank(1500)
    card = make_card("ts", big, judging=FAST, estimator=None)
    ts = sc.TS().fit(big)
    told = noise_told(card)
    # A formula for bins of one width.
    assert told["clean rows"] == pytest.approx(noise_of(ts, big.clean.logits), rel=0.25)


def test_the_noise_of_ece_is_told_where_rows_are_less_sure_and_on_the_target():
    big = make_bank(1500)
    logits, labels = draw(300, 0.4, seed=5)
    card = make_card("ts", big, sc.Scores(logits, labels=labels), judging=FAST, estimator=None)
    told = noise_told(card)
    ts = sc.TS().fit(big)
    of_sets = {s.name: noise_of(ts, s.logits) for s in big}
    worst = max(of_sets, key=of_sets.get)
    assert told[f"rows of {worst}"] == pytest.approx(of_sets[worst], rel=0.25)
    assert told[f"rows of {worst}"] > 1.2 * told["clean rows"]
    assert told["rows of the target"] == pytest.approx(noise_of(ts, logits), rel=0.25)


def noise_told(card):
    """What the card says of the noise of ECE, by the rows it is of."""
    found = re.findall(r"of about (0\.\d+) on the [\d,]+ (.*?)(?=, of about|: values)",
                       message(card, "ece-noise"))  # fmt: skip
    return {rows: float(level) for level, rows in found}


def noise_of(method, logits):
    """The mean ECE of truths that are drawn as the calibrated confidences say."""
    sure = method.confidence(logits)
    rng = np.random.default_rng(0)
    return np.mean([sc.ece(sure, rng.random(len(sure)) < sure) for _ in range(200)])


def test_one_class_alone_has_a_card():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((150, 3)) + np.eye(3)[0]
    bank = sc.SurrogateBank.from_arrays([logits], np.zeros(150, int))
    card = make_card("rehearsal", bank, logits[:100], judging=FAST)
    assert "no row of class 1 and class 2" in message(card, "classes-missing")
    assert CalibrationCard.from_dict(card.to_dict()) == card


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": 3}, "method must be the name of a method or a method; got 3"),
        ({"method": sc.SAC}, "got the class SAC"),
        ({"method": "sacc"}, "no method is called 'sacc'"),
        ({"bank": 3}, "SurrogateBank, the folder of one"),
        ({"target": np.zeros((3, 4))}, "6"),
        ({"target": np.full((3, 6), np.nan)}, "finite|NaN|nan"),
        ({"target": np.zeros((0, 6))}, "row"),
        ({"target": np.full((90, 6), 1 / 6)}, "these logits are probabilities"),
        ({"estimator": "atcc"}, "no accuracy estimator is called 'atcc'"),
        ({"estimator": 5}, "estimator must be the name of an accuracy estimator"),
        ({"judging": Judging(level=95)}, "level must lie strictly between 0 and 1; got 95"),
        ({"judging": Judging(n_resamples=1)}, r"0 for no intervals.* at least 2; got 1"),
        ({"judging": Judging(folds=1)}, "folds must be a whole number of at least 2"),
        ({"judging": Judging(n_bins=0)}, "n_bins must be a whole number"),
        ({"judging": Judging(seed=-1)}, "seed must be a whole number"),
        ({"provenance": Provenance(date="yesterday")}, "ISO 8601 .* got 'yesterday'"),
    ],
)
def test_what_cannot_be_used_is_refused(options, reason, bank):
    given = {"method": "ts", "bank": bank, "target": draw(100, 0.6, seed=2)[0], **options}
    with pytest.raises((InputError, UnknownName), match=reason):
        make_card(given.pop("method"), given.pop("bank"), given.pop("target"), **given)


def test_classes_in_another_order_are_refused():
    target = digits_target()
    swapped = replace(target, classes=CLASSES[::-1])
    with pytest.raises(InputError, match="classes of the bank in their order"):
        make_card("ts", digits_bank(), swapped, judging=FAST)

"""From stored scores to records: right, the same however it went, and never made twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from toy_study import ALL, toy_plan

from shiftcal import maps, methods, metrics, studies
from shiftcal.datasets import calibration_split
from shiftcal.errors import FileError, InputError
from shiftcal.scoring import progress
from shiftcal.scoring.run import Reporting
from shiftcal.studies.archive import Archive
from shiftcal.studies.planned import variants_of
from shiftcal.studies.stages.evaluation import evaluate
from shiftcal.studies.stages.kept import read_outcomes
from shiftcal.studies.variant import Ladder, Variant
from shiftcal.surrogates import SurrogateBank, SurrogateSet

NAMES = ("clean", "pixelate-1", "pixelate-3")
FIELDS = ("ece", "debiased_ece", "nll", "brier", "accuracy", "confidence", "temperature")


@pytest.fixture
def unevaluated(finished):
    shutil.rmtree(finished / "evaluated")
    return finished


def evaluated(folder, plan=None, **options):
    plan = plan or studies.Run(folder).plan
    archive = Archive.open(folder)
    variants = variants_of(plan, len(archive.scores("clean").logits))
    return evaluate(plan, variants, archive, **options)


def arrays(folder, archive, name):
    with np.load(folder / archive.entries[name].file) as found:
        return found["logits"], found["labels"], found["features"]


def by_hand(folder, record):
    """What a record must say, from the arrays on disk and the public parts of the package."""
    archive = Archive.open(folder)
    with np.load(folder / "splits" / f"seed-{record.split}.npz") as split:
        calibration, test = split["calibration"], split["test"]
    sets = []
    for severity, name in zip((0, 1, 3), NAMES, strict=True):
        logits, labels, features = arrays(folder, archive, name)
        kept = None if severity else features[calibration]
        told = {"corruption": "pixelate" if severity else None, "severity": severity}
        rows = logits[calibration], labels[calibration]
        sets.append(SurrogateSet(*rows, name, features=kept, **told))
    with np.load(folder / record.arrays) as found:
        logits, labels, features = (found[name][test] for name in ("logits", "labels", "features"))
    chosen = ""
    if record.method == "oracle":
        method = maps.get("temperature")().fit(logits, labels)
        temperature = method.temperature_
    else:
        method = methods.get(record.method)()
        with np.load(folder / archive.train.file) as found:
            method.fit(SurrogateBank(sets), source_features=found["features"])
        selection = method.adapt(logits, features)
        temperature, chosen = selection.temperature, selection.set_name or ""
    probs = method.predict_proba(logits)
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    return {
        "ece": metrics.ece(confidence, correct, n_bins=5),
        "debiased_ece": metrics.debiased_ece(confidence, correct, n_bins=5),
        "nll": -np.log(probs[np.arange(len(labels)), labels]).mean(),
        "brier": metrics.brier(probs, labels),
        "accuracy": correct.mean(),
        "confidence": confidence.mean(),
        "temperature": temperature,
        "chosen": chosen,
        "n": len(labels),
    }


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
@pytest.mark.parametrize("name", ALL)
def test_records_are_what_the_methods_give_on_the_arrays(once, name):
    records = [r for r in studies.Run(once.folder).records if r.method == name and r.split == 1]
    assert len(records) == 5
    for record in records:
        wanted = by_hand(once.folder, record)
        assert record.chosen == wanted["chosen"]
        assert record.n == wanted["n"] == 60
        for field in FIELDS:
            # The mean of logarithms is taken in another order here.
            assert getattr(record, field) == pytest.approx(wanted[field], rel=1e-12), field
        with np.load(once.folder / record.arrays) as found:
            z = found["logits"].astype(float)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        test = np.load(once.folder / "splits" / "seed-1.npz")["test"]
        raw = (p.max(axis=1) / p.sum(axis=1))[test].mean()
        assert record.raw_confidence == pytest.approx(raw, rel=1e-6)


def test_splits_are_by_class_and_seed(once, data):
    labels = np.load(data / "test-labels.npy")
    for seed in (0, 1):
        with np.load(once.folder / "splits" / f"seed-{seed}.npz") as split:
            wanted = calibration_split(labels, n=60, seed=seed)
            assert np.array_equal(split["calibration"], wanted[0])
            assert np.array_equal(split["test"], wanted[1])


def test_no_temperature_has_a_lower_loss_than_the_oracle(once):
    records = studies.Run(once.folder).records
    floor = {(r.split, r.target): r.nll for r in records if r.method == "oracle"}
    assert len(floor) == 10
    for record in records:
        # The solver ends within 1e-8 or so of the minimum.
        assert record.nll >= floor[record.split, record.target] - 1e-7


def test_what_is_evaluated_is_not_evaluated_again(finished):
    records, made = evaluated(finished)
    assert made == 0
    assert records == studies.Run(finished).records


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_evaluation_goes_on_and_ends_the_same_with_any_workers(
    unevaluated, once, monkeypatch, workers
):
    monkeypatch.setattr(progress, "_BETWEEN", 0.0)
    told = []

    def line(text):
        told.append(text)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluated(unevaluated, workers=workers, reporting=Reporting(shown=False, line=line))
    kept = len(read_outcomes(unevaluated))
    assert 0 < kept < 70
    # One worker tells of a target, several of a part of a split: two or three targets.
    assert int(told[0].split()[1]) in ((7,) if workers == 1 else (14, 21))
    records, made = evaluated(unevaluated, workers=workers)
    assert made == 70 - kept
    assert records == studies.Run(once.folder).records


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[1]",
        lambda _: '{"a": 3}',
        lambda _: "[" * 100_000,
        lambda text: text.replace('"ece": 0', '"ece": "0').replace(',\n"deb', '",\n"deb'),
        lambda text: text.replace('"nll"', '"nil"'),
        lambda text: text.replace('"n": 60', '"n": null'),
    ],
    ids=["half", "empty", "list", "number", "deep", "text", "name", "null"],
)
def test_damaged_outcomes_are_evaluated_again(finished, once, damage):
    file = finished / "evaluated" / "split-0" / "fog-1.json"
    text = file.read_text("utf-8")
    damaged = damage(text)
    assert damaged != text
    file.write_text(damaged, "utf-8")
    records, made = evaluated(finished)
    assert made == 7
    assert records == studies.Run(once.folder).records
    assert json.loads(file.read_text("utf-8"))


def test_bytes_that_are_no_text_are_evaluated_again(finished):
    (finished / "evaluated" / "split-0" / "fog-1.json").write_bytes(b"\xff\xfe{}")
    assert evaluated(finished)[1] == 7


def test_a_changed_plan_evaluates_only_what_it_must(finished, data):
    plan = studies.Run(finished).plan
    assert evaluated(finished, replace(plan, seeds=(1,)))[1] == 0
    assert evaluated(finished, replace(plan, seeds=(1, 5)))[1] == 35
    shown = tuple(replace(each, label=f"my {each.label}") for each in plan.methods)
    records, made = evaluated(finished, replace(plan, methods=shown))
    assert made == 0
    assert {record.label for record in records} == {each.label for each in shown}
    fewer = replace(plan, calibration=replace(plan.calibration, severities=(1,)))
    assert evaluated(finished, fewer)[1] == 2 * 2 * 5  # STS and SAC
    assert evaluated(finished, replace(plan, bins=4))[1] == 70
    assert evaluated(finished)[1] == 0


def test_what_two_variants_have_in_common_is_evaluated_once(unevaluated):
    plan, archive = studies.Run(unevaluated).plan, Archive.open(unevaluated)
    variants = variants_of(plan, 120)
    twice = [*variants, *(replace(each, panel="again") for each in variants)]
    records, made = evaluate(plan, twice, archive)
    assert (len(records), made) == (140, 70)
    first, second = records[:35], records[35:70]
    assert [replace(record, panel="") for record in second] == first


def test_fewer_calibration_images_are_a_part_of_the_split_drawn_by_its_seed(unevaluated):
    plan, archive = studies.Run(unevaluated).plan, Archive.open(unevaluated)
    target = variants_of(plan, 120)[0].targets[0]
    few = Variant("ts", "TS", "ts", Ladder("pixelate", (), images=30), (target,))
    records, _ = evaluate(plan, [few], archive)
    logits, labels, _ = arrays(unevaluated, archive, "clean")
    for record in records:
        rows, test = calibration_split(labels, n=60, seed=record.split)
        rows = rows[calibration_split(labels[rows], n=30, seed=record.split)[0]]
        assert np.bincount(labels[rows]).tolist() == [10, 10, 10]
        method = methods.get("ts")().fit(logits[rows], labels[rows])
        assert record.temperature == method.adapt(logits[test]).temperature
        assert record.n_calibration == 30


def seed_by_hand(*told):
    digest = hashlib.blake2b(json.dumps(told).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def test_every_draw_of_every_target_and_split_has_a_seed_of_its_own(unevaluated, monkeypatch):
    plan, archive = studies.Run(unevaluated).plan, Archive.open(unevaluated)
    sac = next(each for each in variants_of(plan, 120) if each.method == "sac")
    drawn = replace(sac, settings={"peek": 4}, draws=3)
    fits = []
    fit = methods.get("sac")._fit
    monkeypatch.setattr(methods.get("sac"), "_fit", lambda *a: (fits.append(1), fit(*a)))
    records, made = evaluate(plan, [drawn], archive)
    assert made == len(records) == 2 * 5 * 3
    assert len(fits) == 2  # once for each split
    seeds = {seed_by_hand(r.draw, r.split, r.target) for r in records}
    assert len(seeds) == 30
    for record in records:
        seed = seed_by_hand(record.draw, record.split, record.target)
        one = replace(sac, settings={"peek": 4, "seed": seed}, targets=(target_of(sac, record),))
        alone, _ = evaluate(replace(plan, seeds=(record.split,)), [one], archive)
        assert [alone[0].ece, alone[0].chosen] == [record.ece, record.chosen]


def target_of(variant, record):
    return next(target for target in variant.targets if target.name == record.target)


def test_a_natural_target_is_tested_on_all_of_its_images(tmp_path, data):
    from test_study_scoring import natural, scored

    plan = toy_plan(data, methods=("ts",), shifts__sets=(natural(data),))
    archive, _ = scored(plan, tmp_path)
    records, _ = evaluate(plan, variants_of(plan, 120), archive)
    own = [record for record in records if record.target == "natural"]
    assert [(record.n, record.severity, record.corruption) for record in own] == [
        (45, None, "natural")
    ] * 2


def test_methods_that_need_features_say_so_if_there_are_none(unevaluated):
    archive = replace(Archive.open(unevaluated), train=None)
    plan = studies.Run(unevaluated).plan
    with pytest.raises(InputError, match="CPCS needs features of training images"):
        evaluate(plan, variants_of(plan, 120), archive)


def test_scores_that_are_gone_are_named(unevaluated):
    (unevaluated / Archive.open(unevaluated).entries["fog-5"].file).unlink()
    with pytest.raises(FileError, match=r"fog-5\.npz"):
        evaluated(unevaluated)
    with pytest.raises(FileError, match="has no scores of snow-1"):
        Archive.open(unevaluated).scores("snow-1")

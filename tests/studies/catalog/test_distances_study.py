from __future__ import annotations

import itertools
import statistics

import pytest
from study_records import plan, record, results

from shiftcal.studies.catalog.distances import Distances
from shiftcal.studies.plan import MethodPlan, ShiftPlan, plan_text, read_plan

METHODS = (
    MethodPlan("ts", "TS"),
    MethodPlan("sac", "SAC, mean"),
    MethodPlan("sac", "SAC, KS", {"distance": "ks"}),
    MethodPlan("sac", "SAC, Wasserstein", {"distance": "wasserstein"}),
    MethodPlan("oracle", "Oracle"),
)
LABELS = {
    "ts": "TS",
    "sac": "SAC, mean",
    "sac-ks": "SAC, KS",
    "sac-wasserstein": "SAC, Wasserstein",
    "oracle": "Oracle",
}
SHIFTS = ShiftPlan(corruptions=("fog", "frost", "zoom_blur"), severities=(0, 1, 2))
TARGETS = [("none", 0), *itertools.product(SHIFTS.corruptions, (1, 2))]
SPLITS = (0, 1, 2)


def settings(**changes):
    return {"study": "distances", "methods": METHODS, "shifts": SHIFTS, **changes}


def differs(key, target, split):
    """Where a distance chooses another set than the means do."""
    ks = target == ("fog", 2) or (target == ("frost", 1) and split == 2)
    return key == "sac-ks" and ks


def ece(key, target, split):
    base = {"ts": 0.15, "sac": 0.05, "sac-ks": 0.05, "sac-wasserstein": 0.05, "oracle": 0.02}
    height = 0.01 * target[1] + 0.003 * ("none", *SHIFTS.corruptions).index(target[0])
    return base[key] + height + 0.001 * split + (0.04 if differs(key, target, split) else 0)


def made_records():
    return [
        record(
            variant=key,
            label=label,
            method=key.split("-")[0],
            corruption=target[0],
            severity=target[1],
            split=split,
            ece=ece(key, target, split),
            chosen=("pixelate-2" if differs(key, target, split) else "pixelate-1")
            if key.startswith("sac")
            else "",
        )
        for split in SPLITS
        for key, label in LABELS.items()
        for target in TARGETS
    ]


@pytest.fixture
def found():
    return Distances().findings(results(made_records(), **settings()))


def test_the_plan_that_comes_with_it_can_be_run():
    text, where = plan_text("distances")
    given = read_plan(text, data="somewhere", where=where)
    Distances().check(given)
    variants = Distances().variants(given)
    assert [variant.key for variant in variants] == list(LABELS)
    assert {len(variant.targets) for variant in variants} == {1 + 12 * 5}


def test_every_distance_has_a_key_of_its_own():
    variants = Distances().variants(plan(**settings()))
    assert [variant.key for variant in variants] == list(LABELS)
    assert [dict(variant.settings) for variant in variants[1:4]] == [
        {},
        {"distance": "ks"},
        {"distance": "wasserstein"},
    ]


def test_a_box_has_one_value_for_each_corruption(found):
    boxes = found.figures["distances"]
    assert boxes.groups == ("0", "1", "2")
    assert [series.key for series in boxes.series] == list(LABELS)
    for series in boxes.series:
        for severity, values in enumerate(series.values):
            targets = [target for target in TARGETS if target[1] == severity]
            wanted = [
                100 * statistics.fmean(ece(series.key, target, split) for split in SPLITS)
                for target in targets
            ]
            assert sorted(values) == pytest.approx(sorted(wanted))


def test_the_table_has_the_mean_of_every_severity_and_of_the_shifted_ones(found):
    table = found.tables["mean-ece"]
    spans = [[0], [1], [2], [1, 2]]
    for row, key in zip(table.rows, LABELS, strict=True):
        assert row.label == LABELS[key]
        for cell, span in zip(row.cells, spans, strict=True):
            wanted = [ece(key, t, split) for t in TARGETS if t[1] in span for split in SPLITS]
            assert cell.value == pytest.approx(100 * statistics.fmean(wanted))


def test_agreement_is_the_share_of_targets_with_the_same_set(found):
    table = found.tables["agreement"]
    assert [row.label for row in table.rows] == [
        "SAC, mean and SAC, KS",
        "SAC, mean and SAC, Wasserstein",
        "SAC, KS and SAC, Wasserstein",
    ]
    first, second, third = ([cell.value for cell in row.cells] for row in table.rows)
    # KS differs on one of the three targets of severity 2 in every split, and on one of the three
    # of severity 1 in one split of three.
    assert first == pytest.approx([100, 100 * 8 / 9, 100 * 2 / 3, 100 * 14 / 18])
    assert second == pytest.approx([100, 100, 100, 100])
    assert third == pytest.approx(first)


# Student's t of two degrees of freedom.


def test_the_figure_says_what_boxes_whiskers_and_diamonds_are(found):
    told = " ".join(
        text.get_text().replace("\n", " ") for text in found.figures["distances"].draw().texts
    )
    assert all(word in told for word in ("quartiles", "whiskers", "diamonds: means"))
    assert "A value is the ECE under one corruption" in told


@pytest.mark.parametrize(
    ("kept", "tables"),
    [
        (lambda r: r.variant != "sac-ks", {"mean-ece", "agreement"}),
        (lambda r: not r.variant.startswith("sac"), {"mean-ece"}),
        (lambda r: r.split == 0, {"mean-ece", "agreement"}),
        (lambda r: r.severity == 0, {"mean-ece", "agreement"}),
        (lambda r: r.severity == 2, {"mean-ece", "agreement"}),
        (lambda r: (r.variant == "sac-ks") == (r.severity == 1), {"mean-ece", "agreement"}),
        (lambda _: False, set()),
    ],
)
def test_what_is_missing_is_left_out(kept, tables):
    made = [r for r in made_records() if kept(r)]
    assert set(Distances().findings(results(made, **settings())).tables) == tables

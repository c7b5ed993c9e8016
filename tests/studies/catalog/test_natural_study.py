"""The natural study's tables, figure and sentences against numbers computed here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from study_records import plan, record, results

from shiftcal import metrics
from shiftcal.errors import InputError
from shiftcal.report.figures.base import read_figure, write_figure
from shiftcal.report.tables import read_csv, to_markdown, write_table
from shiftcal.studies.catalog._natural_sets import by_chance, standard_error
from shiftcal.studies.catalog.natural import Natural
from shiftcal.studies.plan.plan import MethodPlan, NaturalSet, ShiftPlan

MF = NaturalSet("v2-mf", "ImageNet-V2 MF", ("nowhere",), column="imagenet-v2-mf")
SKETCH = NaturalSet("sketch", "ImageNet-Sketch", ("nowhere",), column="imagenet-sketch")
EDGES = NaturalSet("edges", "edge drawings", ("nowhere",))
SHIFTS = ShiftPlan(severities=(0,), sets=(MF, SKETCH, EDGES))
LEVELS = {"vanilla": 0.2, "ts": 0.15, "sac": 0.06, "sts": 0.09, "oracle": 0.02}
ACCURACY = {"none": 0.76, "v2-mf": 0.63, "sketch": 0.24, "edges": 0.3}


def made(splits=(0, 1, 2)):
    """Records of five methods on the clean set and three natural ones."""
    rng = np.random.default_rng(11)
    return [
        record(
            variant=variant,
            split=split,
            corruption=name,
            severity=0 if name == "none" else None,
            n=900 if name == "none" else 10_000,
            accuracy=ACCURACY[name] + (0.01 * split if name == "none" else 0),
            ece=level + rng.normal(0, 0.003),
            temperature=1.0 + rng.uniform(0, 2),
            chosen=f"pixelate-{1 + (split == 2)}" if variant == "sac" else "",
        )
        for variant, level in LEVELS.items()
        for split in splits
        for name in ACCURACY
    ]


def findings(records, **changes):
    changes = {"study": "natural", "shifts": SHIFTS, **changes}
    return Natural().findings(results(records, **changes))


def cells_of(table, label):
    row = next(row for row in table.rows if row.label == label)
    return dict(zip([column.key for column in table.columns], row.cells, strict=True))


def test_every_method_meets_the_clean_images_and_every_natural_set():
    variants = Natural().variants(plan(shifts=SHIFTS))
    assert [target.name for target in variants[0].targets] == ["clean", "v2-mf", "sketch", "edges"]


def test_the_table_has_the_papers_layout_with_its_numbers_beside_ours():
    records = made()
    table = findings(records).tables["natural"]
    assert [column.key for column in table.columns] == [
        "clean test images",
        "ImageNet-V2 MF",
        "ImageNet-V2 MF, paper",
        "ImageNet-Sketch",
        "ImageNet-Sketch, paper",
        "edge drawings",
    ]
    sac, sts = cells_of(table, "SAC"), cells_of(table, "STS")
    eces = {
        key: [100 * r.ece for r in records if (r.variant, r.target) == (key, "v2-mf")]
        for key in ("sac", "sts")
    }
    mean, error = np.mean(eces["sts"]), stats.sem(eces["sts"])
    ends = stats.t.interval(0.95, 2, loc=mean, scale=error)
    found = sts["ImageNet-V2 MF"]
    assert (found.value, found.low, found.high) == pytest.approx((mean, *ends), rel=1e-12)
    # SAC chose another set in the last split.
    found = sac["ImageNet-V2 MF"]
    assert (found.low, found.high) == pytest.approx((min(eces["sac"]), max(eces["sac"])))
    assert sac["ImageNet-V2 MF, paper"].value == 4.44
    assert sac["ImageNet-Sketch, paper"].value == 10.71
    assert "Table 2" in sac["ImageNet-Sketch, paper"].source
    assert cells_of(table, "Oracle")["ImageNet-Sketch, paper"].value is None


def test_the_best_is_marked_among_ours_and_among_the_papers_and_the_oracle_never():
    table = findings(made()).tables["natural"]
    marked = {
        column.key: [row.label for row in table.rows if row.cells[i].mark]
        for i, column in enumerate(table.columns)
    }
    assert all(marked[name] == ["SAC"] for name in marked)


def test_methods_that_only_the_paper_has_are_shown_with_its_numbers():
    table = findings(made()).tables["natural"]
    assert [row.label for row in table.rows[-2:]] == ["CPCS (paper only)", "TransCal (paper only)"]
    cells = cells_of(table, "TransCal (paper only)")
    assert cells["ImageNet-Sketch, paper"].value == 52.24
    assert cells["ImageNet-Sketch"].value is None


def test_both_readings_of_transcal_stand_beside_the_papers_one():
    methods = (
        MethodPlan("transcal", "TransCal"),
        MethodPlan("transcal", "free", {"reading": "free"}),
    )
    records = [
        record(variant=key, label=label, corruption="sketch", severity=None, temperature=0.5)
        for key, label in (("transcal", "TransCal"), ("transcal-free", "free"))
    ]
    found = findings(records, methods=methods)
    for label in ("TransCal", "free"):
        cells = cells_of(found.tables["natural"], label)
        assert cells["ImageNet-Sketch, paper"].value == 52.24
    assert "which reading of TransCal it used" in found.tables["natural"].note
    assert any(
        "T >= 0.01, has a mean ECE of 5.00 % over the natural sets" in each
        for each in found.remarks
    )


def test_a_method_with_settings_of_its_own_is_not_the_papers():
    records = [
        record(variant="sac-ks", method="sac", label="KS", corruption="sketch", severity=None)
    ]
    cells = cells_of(findings(records).tables["natural"], "KS")
    assert cells["ImageNet-Sketch, paper"].value is None


def test_without_a_set_of_the_papers_nothing_of_the_paper_is_shown():
    records = [r for r in made() if r.target in ("clean", "edges")]
    found = findings(records)
    assert "aper" not in to_markdown(found.tables["natural"])
    assert found.figures["natural"].panels[0].x == ("clean test images", "edge drawings")
    assert len(found.figures["natural"].panels) == 1
    told = [each for each in found.remarks if "paper" in each]
    assert len(told) == 1
    assert "(none of them the paper's)" in told[0]


def test_the_sets_are_described_by_size_accuracy_confidence_and_choice():
    records = made()
    table = findings(records).tables["sets"]
    assert [row.label for row in table.rows] == [
        "clean test images", "ImageNet-V2 MF", "ImageNet-Sketch", "edge drawings",
    ]  # fmt: skip
    sketch = cells_of(table, "ImageNet-Sketch")
    assert sketch["images"].value == 10_000
    assert (sketch["accuracy"].value, sketch["accuracy"].low) == (pytest.approx(24), None)
    assert sketch["confidence"].value == pytest.approx(90)
    assert sketch["SAC chosen"].value == "pixelate-1 (2 of 3)"
    own = [r.temperature for r in records if (r.variant, r.target) == ("sac", "sketch")]
    assert sketch["SAC T"].value == pytest.approx(np.mean(own))
    clean = cells_of(table, "clean test images")
    assert clean["accuracy"].value == pytest.approx(77)
    assert clean["accuracy"].low < 77 < clean["accuracy"].high


def test_the_figure_has_ours_and_the_papers_side_by_side(tmp_path):
    records = made()
    figure = findings(records).figures["natural"]
    ours, theirs = figure.panels
    assert ours.x == ("ImageNet-V2 MF", "ImageNet-Sketch", "edge drawings")
    ts = next(series for series in ours.series if series.key == "ts")
    expected = [
        np.mean([100 * r.ece for r in records if (r.variant, r.target) == ("ts", name)])
        for name in ("v2-mf", "sketch", "edges")
    ]
    assert ts.y == pytest.approx(expected)
    assert ts.low[1] < ts.y[1] < ts.high[1]
    assert theirs.x == ("ImageNet-V2 MF", "ImageNet-Sketch")
    assert next(series.y for series in theirs.series if series.key == "cpcs") == (5.29, 38.79)
    write_figure(figure, tmp_path, "natural")
    assert read_figure(tmp_path / "natural.json") == figure


def test_the_remarks_rank_the_methods_on_every_set_and_name_the_papers_best():
    said = findings(made()).remarks
    assert sum("lowest first: Oracle" in each for each in said) == 4
    sketch = next(each for each in said if each.startswith("Of the 4 methods") and "Sketch" in each)
    assert "SAC is the lowest here on ImageNet-Sketch" in sketch
    assert "as in the paper (10.71 %)" in sketch


def test_a_best_method_other_than_the_papers_is_told():
    records = [
        record(variant="ts", corruption="v2-mf", severity=None, ece=0.01),
        record(variant="sac", corruption="v2-mf", severity=None, ece=0.02),
    ]
    said = " ".join(findings(records).remarks)
    assert "TS is the lowest here on ImageNet-V2 MF (1.00 %), SAC in the paper (4.44 %)" in said


@pytest.mark.parametrize(
    "records",
    [
        made(splits=(0,)),
        [record(corruption="edges", severity=None, temperature=None)],
        [record(corruption="edges", severity=None, variant="ts", chosen="")],
        [record(severity=0), record(corruption="sketch", severity=None, variant="ts")],
        [*made(), record(severity=3)],
    ],
)
def test_whatever_records_there_are_are_shown(records, tmp_path):
    found = findings(records)
    for name, table in found.tables.items():
        assert table.rows
        write_table(table, tmp_path, name)
        assert read_csv(tmp_path / f"{name}.csv")
    for name, figure in found.figures.items():
        write_figure(figure, tmp_path, name)


def test_without_any_record_it_says_so():
    found = findings([])
    assert (dict(found.tables), dict(found.figures)) == ({}, {})
    assert "No record" in found.remarks[0]


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ((), "needs a natural set at least"),
        ((NaturalSet("a", "A", ("x",), column="imagenet-v2-fm"),), "Did you mean 'imagenet-v2-mf'"),
        ((MF, NaturalSet("b", "B", ("x",), column=MF.column)), "column of its own"),
        ((MF, NaturalSet("b", MF.title, ("x",))), "title of its own"),
        ((NaturalSet("b", "clean test images", ("x",)),), "title of its own"),
    ],
)
def test_a_plan_that_could_not_be_shown_is_refused(sets, words):
    with pytest.raises(InputError, match=words):
        Natural().check(plan(study="natural", shifts=ShiftPlan(sets=sets)))


def test_a_plan_that_can_be_shown_is_not_refused():
    Natural().check(plan(study="natural", shifts=SHIFTS))


def test_an_option_that_the_study_does_not_have_is_refused():
    with pytest.raises(InputError, match="has no option 'sizes'"):
        Natural().check(plan(study="natural", shifts=SHIFTS, options={"sizes": [1]}))


CLAIM = "The paper's claim that SAC or STS is the best on natural shifts"


def on(target, **eces):
    return [
        record(variant=key, corruption=target, severity=None, split=split, ece=ece)
        for key, own in eces.items()
        for split, ece in enumerate(own)
    ]


def claimed(records):
    (told,) = [each for each in findings(records).remarks if each.startswith(CLAIM)]
    return told


def test_the_claim_about_natural_shifts_is_judged_against_the_best_of_the_others():
    records = made()
    told = claimed(records)
    assert f"{CLAIM} holds here, on 3 of 3 sets (2 of them the paper's): " in told
    one, two = (
        np.array([100 * r.ece for r in records if (r.variant, r.target) == (key, "sketch")])
        for key in ("sac", "ts")
    )
    low, high = stats.t.interval(0.95, 2, (one - two).mean(), stats.sem(one - two))
    assert (
        "on ImageNet-Sketch SAC against TS, the lowest of the others, "
        f"{(low + high) / 2:+.2f} ± {(high - low) / 2:.2f} points"
    ) in told
    assert "do not cover which images a set has" in told


def test_a_set_on_which_the_claim_is_in_doubt_does_not_count_for_it():
    surely = on("sketch", ts=(0.2, 0.21), sac=(0.1, 0.11))
    in_doubt = on("v2-mf", ts=(0.2, 0.21), sac=(0.1, 0.22))
    assert f"{CLAIM} holds partly here, on 1 of 2 sets" in claimed(surely + in_doubt)
    assert f"{CLAIM} does not hold here, on 0 of 1 sets" in claimed(in_doubt)


def test_one_number_repeated_by_every_split_has_no_interval():
    records = on("edges", vanilla=(0.2859,) * 3, ts=(0.14, 0.141, 0.145), oracle=(0.0159,) * 3)
    found = findings(records)
    table = found.tables["natural"]
    assert cells_of(table, "Vanilla")["edge drawings"].low is None
    assert cells_of(table, "Oracle")["edge drawings"].low is None
    assert cells_of(table, "TS")["edge drawings"].low is not None
    assert "the same images and no calibration set" in table.note
    assert "do not cover which images" in table.note
    series = {each.key: each for each in found.figures["natural"].panels[0].series}
    assert series["vanilla"].low is None
    assert series["ts"].low[0] is not None


def test_the_sets_say_what_chance_and_their_size_do_to_an_ece():
    table = findings(made()).tables["sets"]
    sketch = cells_of(table, "ImageNet-Sketch")
    root = np.sqrt(0.24 * 0.76)
    expected = 100 * np.sqrt(2 / np.pi) * root * np.sqrt(15 / 10_000)
    assert sketch["ECE by chance"].value == pytest.approx(expected)
    assert sketch["ECE standard error"].value == pytest.approx(100 * root / 100)


def test_chance_and_standard_error_are_about_those_of_drawn_images():
    rng = np.random.default_rng(5)
    n, bins = 2000, 15
    chance, large = [], []
    for _ in range(200):
        confidence = rng.uniform(0.4, 0.9, n)
        correct = rng.random(n) < confidence
        chance.append(metrics.ece(confidence, correct, n_bins=bins))
        large.append(metrics.ece(np.full(n, 0.95), correct, n_bins=bins))
    # sqrt(c (1 - c)) is nearly constant here, so that the bound is nearly reached.
    assert 0.9 * by_chance(0.65, n, bins) < np.mean(chance) <= by_chance(0.65, n, bins)
    # 200 draws give a standard deviation to 5 %.
    assert np.std(large) == pytest.approx(standard_error(0.65, n), rel=0.15)


def test_fewer_images_than_bins_make_as_many_bins_as_images():
    assert by_chance(0.5, 4, 15) == pytest.approx(by_chance(0.5, 4, 4))


def test_a_choice_that_changes_with_the_split_is_told():
    told = [each for each in findings(made()).remarks if "different splits" in each]
    assert len(told) == 1
    assert told[0].startswith(
        "SAC chose different surrogate sets in different splits on 4 of the 4"
    )

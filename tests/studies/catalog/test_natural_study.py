"""The natural study's tables, figure and sentences against numbers computed here."""

from __future__ import annotations

import numpy as np
import pytest
from study_records import plan, record, results

from shiftcal.errors import InputError
from shiftcal.report.figures import write_figure
from shiftcal.report.tables import read_csv, write_table
from shiftcal.studies.catalog.natural import Natural, by_chance
from shiftcal.studies.plan import NaturalSet, ShiftPlan

MF = NaturalSet("v2-mf", "ImageNet-V2 MF", ("nowhere",))
SKETCH = NaturalSet("sketch", "ImageNet-Sketch", ("nowhere",))
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


def test_the_best_is_marked_among_ours_and_among_the_papers_and_the_oracle_never():
    table = findings(made()).tables["natural"]
    marked = {
        column.key: [row.label for row in table.rows if row.cells[i].mark]
        for i, column in enumerate(table.columns)
    }
    assert all(marked[name] == ["SAC"] for name in marked)


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


def test_a_plan_that_can_be_shown_is_not_refused():
    Natural().check(plan(study="natural", shifts=SHIFTS))


def test_an_option_that_the_study_does_not_have_is_refused():
    with pytest.raises(InputError, match="has no option 'sizes'"):
        Natural().check(plan(study="natural", shifts=SHIFTS, options={"sizes": [1]}))


def on(target, **eces):
    return [
        record(variant=key, corruption=target, severity=None, split=split, ece=ece)
        for key, own in eces.items()
        for split, ece in enumerate(own)
    ]


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


def test_fewer_images_than_bins_make_as_many_bins_as_images():
    assert by_chance(0.5, 4, 15) == pytest.approx(by_chance(0.5, 4, 4))

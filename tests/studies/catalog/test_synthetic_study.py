"""The synthetic study's tables, figures and sentences against numbers computed here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from study_records import LABELS, plan, record, results

from shiftcal.report.figures import read_figure, write_figure
from shiftcal.report.tables import read_csv, write_table
from shiftcal.studies.catalog.synthetic import Synthetic
from shiftcal.studies.plan import MethodPlan, ShiftPlan

CORRUPTIONS = ("fog", "glass_blur", "spatter")
SHIFTS = ShiftPlan(corruptions=(*CORRUPTIONS, "pixelate"))
# ECE under severities 0 to 5; clean and low severities are where STS loses.
LEVELS = {
    "vanilla": (0.05, 0.13, 0.19, 0.26, 0.33, 0.42),
    "ts": (0.01, 0.05, 0.08, 0.13, 0.19, 0.26),
    "cpcs": (0.01, 0.06, 0.10, 0.15, 0.21, 0.28),
    "transcal": (0.02, 0.07, 0.09, 0.14, 0.20, 0.27),
    "sts": (0.075, 0.076, 0.079, 0.082, 0.10, 0.14),
    "sac": (0.01, 0.021, 0.045, 0.069, 0.078, 0.09),
    "oracle": (0.01, 0.012, 0.016, 0.02, 0.028, 0.036),
}


def made(splits=(0, 1, 2, 3, 4), severities=range(6), variants=tuple(LEVELS)):
    """Records whose ECE is a level and noise, the same for SAC and TS on the clean set."""
    rng = np.random.default_rng(7)
    found = []
    for variant in variants:
        for split in splits:
            for severity in severities:
                for corruption in CORRUPTIONS if severity else ("none",):
                    noise = rng.normal(0, 0.002)
                    if severity == 0 and variant in ("sac", "ts"):
                        noise = 0.0001 * split
                    found.append(
                        record(
                            variant=variant,
                            split=split,
                            severity=severity,
                            corruption=corruption,
                            ece=LEVELS[variant][severity] + noise,
                            temperature=1.0 if variant == "vanilla" else 1.0 + rng.uniform(0, 3),
                            chosen=_chosen(severity, corruption) if variant == "sac" else "",
                        )
                    )
    return found


def _chosen(severity, corruption):
    if severity == 0:
        return "clean"
    return f"pixelate-{min(5, severity + (corruption == 'glass_blur'))}"


def interval(values):
    """Mean and Student's interval, by SciPy."""
    mean, error = np.mean(values), stats.sem(values)
    return (mean, *stats.t.interval(0.95, len(values) - 1, loc=mean, scale=error))


def findings(records, **changes):
    return Synthetic().findings(results(records, **{"shifts": SHIFTS, **changes}))


def split_means(records, variant, severities):
    own = [r for r in records if r.variant == variant and r.severity in severities]
    return [
        100 * np.mean([r.ece for r in own if r.split == s]) for s in sorted({r.split for r in own})
    ]


def points(records, variant, other, severities):
    """A paired difference and its interval, by SciPy, as a sentence has it."""
    one, two = (np.array(split_means(records, key, severities)) for key in (variant, other))
    mean, _, high = interval(one - two)
    return f"{mean:+.2f} ± {high - mean:.2f} points"


def test_the_methods_of_the_plan_meet_every_target_but_the_calibration_corruption():
    variants = Synthetic().variants(plan(shifts=SHIFTS))
    assert [each.key for each in variants] == list(LABELS)
    names = [target.name for target in variants[0].targets]
    assert names[0] == "clean"
    assert len(names) == 1 + 3 * 5
    assert not any(name.startswith("pixelate") for name in names)


def test_both_readings_of_transcal_are_variants_of_their_own():
    methods = (
        MethodPlan("transcal", "TransCal"),
        MethodPlan("transcal", "free", {"reading": "free"}),
    )
    variants = Synthetic().variants(plan(methods=methods, shifts=SHIFTS))
    assert [each.key for each in variants] == ["transcal", "transcal-free"]


def test_the_mean_table_has_the_means_over_corruptions_and_intervals_over_splits():
    records = made()
    table = findings(records).tables["mean-ece"]
    assert [row.label for row in table.rows] == list(LABELS.values())
    cell = table.rows[5].cells[4]  # SAC, severity 4
    expected = interval(split_means(records, "sac", {4}))
    assert (cell.value, cell.low, cell.high) == pytest.approx(expected, rel=1e-12)
    last = table.rows[1].cells[-1]  # TS, severities 1 to 5
    assert last.value == pytest.approx(np.mean(split_means(records, "ts", {1, 2, 3, 4, 5})))
    assert [row.label for row in table.rows if row.cells[5].mark] == ["SAC"]


def test_the_full_table_has_a_row_a_target_and_marks_the_best_of_each_row():
    records = made()
    table = findings(records).tables["full"]
    assert [row.label for row in table.rows[:3]] == ["clean", "fog-1", "fog-2"]
    assert len(table.rows) == 16
    row = next(row for row in table.rows if row.label == "spatter-5")
    cells = dict(zip([column.name for column in table.columns], row.cells, strict=True))
    eces = [100 * r.ece for r in records if (r.variant, r.target) == ("sts", "spatter-5")]
    assert (cells["STS"].value, cells["STS"].low, cells["STS"].high) == pytest.approx(
        interval(eces)
    )
    assert cells["accuracy"].value == pytest.approx(80)
    assert cells["confidence"].value == pytest.approx(90)
    assert [name for name, cell in cells.items() if cell.mark] == ["SAC"]


def test_rows_of_one_corruption_stand_together_between_rules():
    table = findings(made()).tables["full"]  # made severity by severity
    ruled = [row.label for row in table.rows if row.rule_before]
    assert ruled == ["fog-1", "glass_blur-1", "spatter-1"]


def test_temperatures_are_geometric_means_and_vanilla_has_none():
    records = made()
    table = findings(records).tables["temperatures"]
    assert [row.label for row in table.rows] == [v for v in LABELS.values() if v != "Vanilla"]
    own = [r.temperature for r in records if (r.variant, r.severity) == ("ts", 3)]
    assert table.rows[0].cells[3].value == pytest.approx(stats.gmean(own))
    cell = table.rows[0].cells[3]
    assert cell.low < cell.value < cell.high


def test_choices_are_counted_in_percent_of_the_targets_of_a_severity():
    table = findings(made()).tables["chosen"]
    assert [column.name for column in table.columns] == [
        "choices", "clean", "pixelate-1", "pixelate-2", "pixelate-3", "pixelate-4", "pixelate-5",
    ]  # fmt: skip
    third = table.rows[3]
    assert third.label == "severity 3"
    assert [cell.value for cell in third.cells] == pytest.approx([15, 0, 0, 0, 200 / 3, 100 / 3, 0])


def test_the_figures_have_the_means_and_the_values_behind_them(tmp_path):
    records = made()
    figures = findings(records).figures
    series = {each.key: each for each in figures["ece-means"].panels[0].series}
    assert figures["ece-means"].panels[0].x == (0, 1, 2, 3, 4, 5)
    expected = [interval(split_means(records, "cpcs", {s})) for s in range(6)]
    found = zip(series["cpcs"].y, series["cpcs"].low, series["cpcs"].high, strict=True)
    assert np.array(list(found)) == pytest.approx(np.array(expected), rel=1e-12)
    boxes = {each.key: each for each in figures["ece-boxes"].series}
    fog = np.mean([100 * r.ece for r in records if (r.variant, r.target) == ("sac", "fog-2")])
    assert len(boxes["sac"].values[2]) == 3
    assert boxes["sac"].values[2][0] == pytest.approx(fog)
    for name, figure in figures.items():
        write_figure(figure, tmp_path, name)
        assert read_figure(tmp_path / f"{name}.json") == figure


def test_every_table_can_be_written_and_read(tmp_path):
    tables = findings(made()).tables
    assert list(tables) == ["mean-ece", "full", "temperatures", "chosen"]
    for name, table in tables.items():
        write_table(table, tmp_path, name)
    assert read_csv(tmp_path / "full.csv")["Target"][1] == "fog-1"


@pytest.mark.parametrize(
    "records",
    [
        [record()],
        [record(severity=0)],
        [record(temperature=None, chosen="", variant="ts")],
        [record(variant="vanilla", temperature=1.0)],
        made(splits=(0,), severities=(0, 5), variants=("ts", "sac")),
        [record(severity=1), record(severity=2, variant="ts")],
        [record(severity=3), record(corruption="sketch", severity=None, variant="ts")],
    ],
)
def test_whatever_records_there_are_are_shown(records, tmp_path):
    found = findings(records)
    assert found.tables["mean-ece"].rows
    for name, table in found.tables.items():
        assert table.rows
        write_table(table, tmp_path, name)
    for name, figure in found.figures.items():
        write_figure(figure, tmp_path, name)


def test_the_interval_of_a_temperature_may_reach_below_one():
    records = [
        record(variant="transcal", split=split, temperature=temperature)
        for split, temperature in enumerate((0.6, 0.9, 1.2))
    ]
    cell = findings(records).tables["temperatures"].rows[0].cells[0]
    logs = np.log([0.6, 0.9, 1.2])
    ends = stats.t.interval(0.95, 2, loc=logs.mean(), scale=stats.sem(logs))
    assert (cell.low, cell.high) == pytest.approx(np.exp(ends))


def remark(found, start):
    """The one remark that begins so."""
    (told,) = [each for each in found.remarks if each.startswith(start)]
    return told


def by_split(variant, target, *eces, **told):
    return [
        record(variant=variant, corruption=target, severity=3, split=split, ece=ece, **told)
        for split, ece in enumerate(eces)
    ]


def marked(records):
    (row,) = findings(records).tables["full"].rows
    return [
        column.name
        for column, cell in zip(findings(records).tables["full"].columns, row.cells, strict=True)
        if cell.mark
    ]


def test_what_is_not_clearly_worse_than_any_is_marked_with_the_best():
    records = [
        *by_split("ts", "frost", 0.09, 0.085, 0.1, 0.095, 0.09),
        *by_split("sts", "frost", 0.043, 0.045, 0.04, 0.045, 0.044),
        # The lowest in the mean, but not surely so: one split is far off.
        *by_split("sac", "frost", 0.014, 0.0248, 0.0253, 0.1133, 0.0223),
        *by_split("oracle", "frost", 0.01, 0.01, 0.01, 0.01, 0.01),
    ]
    assert marked(records) == ["STS", "SAC"]


def test_worse_in_every_split_is_worse_however_wide_the_interval():
    records = [
        *by_split("sts", "blur", 0.037, 0.038, 0.037, 0.036, 0.038),
        *by_split("sac", "blur", 0.0646, 0.0574, 0.1729, 0.0599, 0.0612),
    ]
    difference = np.subtract([r.ece for r in records[5:]], [r.ece for r in records[:5]])
    assert interval(difference)[1] < 0
    assert marked(records) == ["STS"]


def test_in_one_split_only_the_lowest_is_marked():
    records = [
        *by_split("ts", "fog", 0.05001),
        *by_split("sts", "fog", 0.05),
        *by_split("sac", "fog", 0.051),
    ]
    assert marked(records) == ["TS", "STS"]


def test_the_full_table_says_what_is_marked_and_what_brackets_are():
    note = findings(made()).tables["full"].note
    assert "not clearly larger than any" in note
    assert "[least, most]" in note
    assert "splits share images" in note

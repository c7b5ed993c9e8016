"""The synthetic study's tables, figures and sentences against numbers computed here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from study_records import LABELS, plan, record, results

from shiftcal.report.figures.base import read_figure, write_figure
from shiftcal.report.tables import read_csv, write_table
from shiftcal.studies.catalog.synthetic import Synthetic
from shiftcal.studies.plan.plan import DataPlan, MethodPlan, ShiftPlan

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


def test_the_remarks_tell_the_order_and_whether_it_is_the_papers():
    records = made()
    said = " ".join(findings(records).remarks)
    sac = np.mean(split_means(records, "sac", {3, 4, 5}))
    assert "over severities 3 to 5, lowest first: Oracle" in said
    assert f"SAC {sac:.2f} %, STS" in said
    assert "SAC <= STS < TS < Vanilla in mean ECE over severities 3 to 5 holds" in said
    assert "holds, and is that of 5 of the 5 splits; each against the one before: " in said
    steps = [points(records, b, a, {3, 4, 5}) for a, b in (("sac", "sts"), ("sts", "ts"))]
    assert f"before: {', '.join(steps)}, +" in said


def test_an_order_that_is_not_the_papers_is_told_with_its_numbers():
    records = [
        record(variant="sac", severity=3, ece=0.3),
        record(variant="sts", severity=3, ece=0.2),
    ]
    said = findings(records).remarks
    assert any(
        "SAC <= STS" in each and "does not hold (SAC 30.00 %, STS 20.00 %)" in each for each in said
    )


def test_equal_sac_and_sts_keep_the_order_and_equal_sts_and_ts_do_not():
    same = [record(variant=v, severity=5, ece=0.1) for v in ("sac", "sts", "ts")]
    said = " ".join(findings(same).remarks)
    assert "does not hold (STS 10.00 %, TS 10.00 %)" in said


@pytest.mark.parametrize(
    ("severities", "words"),
    [
        ((0, 1, 3, 5), "over severities 3 and 5,"),
        ((2, 3, 4), "over severities 3 to 4,"),
        ((5,), "over severity 5,"),
    ],
)
def test_the_remarks_name_the_severities_there_are(severities, words):
    said = findings(made(severities=severities)).remarks
    assert any(f"Mean ECE {words}" in each for each in said)


def test_sac_on_the_clean_set_is_compared_with_ts_split_by_split():
    said = " ".join(findings(made()).remarks)
    assert "SAC has the ECE of TS in all of 5 splits, since it chose the clean set" in said
    records = [
        record(variant="ts", severity=0, ece=0.01),
        record(variant="ts", severity=0, ece=0.01, split=1),
        record(variant="sac", severity=0, ece=0.01, chosen="clean"),
        record(variant="sac", severity=0, ece=0.0142, chosen="pixelate-1", split=1),
    ]
    said = " ".join(findings(records).remarks)
    assert "differ by up to 0.42 points of ECE" in said
    assert "another set than the clean one in 1 of 2 splits" in said


def test_the_remarks_tell_where_sts_hurts():
    records = made()
    said = " ".join(findings(records).remarks)
    told = [points(records, "sts", "ts", {severity}) for severity in (0, 1)]
    assert f"STS has a larger mean ECE than TS at severity 0 ({told[0]}), 1 ({told[1]})." in said
    assert "STS has a larger mean ECE than Vanilla at severity 0 (+" in said


def test_a_method_that_never_hurts_is_said_to():
    records = [record(variant="sts", ece=0.1), record(variant="ts", ece=0.2)]
    assert "At no severity STS has a larger mean ECE than TS." in findings(records).remarks


def test_the_readings_of_transcal_are_told_with_what_each_gave():
    methods = (
        MethodPlan("transcal", "TransCal"),
        MethodPlan("transcal", "free", {"reading": "free"}),
    )
    records = [
        record(variant="transcal", label="TransCal", ece=0.2, temperature=1.0),
        record(variant="transcal-free", label="free", ece=0.4, temperature=0.5),
        record(variant="transcal-free", label="free", ece=0.2, temperature=1.5, severity=2),
        record(variant="transcal-free", label="free", ece=0.9, temperature=0.1, severity=0),
    ]
    said = " ".join(findings(records, methods=methods).remarks)
    assert "TransCal, with T >= 1 as published, has a mean ECE of 20.00 %" in said
    assert "free, with T >= 0.01, has a mean ECE of 30.00 %" in said
    assert "sharpened (T < 1) in 1 of 2 evaluations" in said


def test_flags_are_counted_by_method_and_explained():
    records = [
        record(variant="cpcs", flags="domains-separable few-effective-samples"),
        record(variant="cpcs", flags="domains-separable", severity=2),
        record(variant="cpcs", severity=3, flags="weights-not-converged"),
        record(variant="sac", flags="something-new"),
    ]
    said = findings(records).remarks
    told = next(each for each in said if each.startswith("CPCS, of 3 evaluations: features "))
    assert "almost perfectly (domains-separable) in 2; " in told
    assert "100 as published (weights-not-converged) in 1" in told
    assert "(few-effective-samples) in 1" in told
    assert "SAC, of 1 evaluations: something-new in 1." in said


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


def test_without_any_record_it_says_so():
    found = findings([])
    assert not found.tables
    assert not found.figures
    assert "No record" in found.remarks[0]


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


LOWEST = "The paper's claim that SAC and STS have the lowest mean ECE at every severity"
GAIN = "The paper's claim that they gain most at the high severities"
WEIGHTS = "The paper's claim that CPCS and TransCal improve calibration at high severities"


def test_the_claim_of_the_lowest_means_is_judged_against_the_best_of_the_others():
    records = made(variants=("vanilla", "ts", "sts", "sac", "oracle"))
    told = remark(findings(records), LOWEST)
    assert f"{LOWEST} holds partly here: " in told
    assert "SAC is above no other method at any of the 6 severities" in told
    above = [points(records, "sts", "ts", {severity}) for severity in (0, 1)]
    assert f"STS is above the lowest of the others at severity 0 (TS: {above[0]}), 1 (TS: " in told
    assert told.endswith(f"1 (TS: {above[1]}).")


def test_the_claim_of_the_lowest_means_can_hold_and_fail():
    strong = made(severities=(3, 4))
    assert f"{LOWEST} holds here: " in remark(findings(strong), LOWEST)
    swapped = {"sac": "ts", "ts": "sac", "sts": "vanilla", "vanilla": "sts"}
    turned = [
        record(
            **{"variant": swapped[r.variant], "severity": r.severity, "ece": r.ece},
            split=r.split,
            corruption=r.corruption,
        )
        for r in strong
        if r.variant in swapped
    ]
    assert f"{LOWEST} does not hold here: " in remark(findings(turned), LOWEST)


def test_the_claim_of_the_largest_gain_is_judged_by_the_difference_of_the_gains():
    records = made()
    told = remark(findings(records), GAIN)
    assert f"{GAIN} holds here: against TS, SAC " in told
    strong = points(records, "sac", "ts", {3, 4, 5})
    gains = [
        np.array(split_means(records, "sac", which)) - np.array(split_means(records, "ts", which))
        for which in ({3, 4, 5}, {0, 1, 2})
    ]
    mean, _, high = interval(gains[0] - gains[1])
    assert f"SAC {strong} at severities 3 to 5 and -" in told
    assert f"at severities 0 to 2, {mean:+.2f} ± {high - mean:.2f} points apart; STS -" in told
    same = [
        record(variant=key, severity=s, split=split, ece=ece + 0.01 * s)
        for key, ece in (("ts", 0.2), ("sac", 0.1))
        for s in (1, 5)
        for split in (0, 1, 2)
    ]
    assert f"{GAIN} does not hold here: " in remark(findings(same), GAIN)


def test_the_claim_about_importance_weights_is_judged_against_ts_and_vanilla():
    records = made()
    told = remark(findings(records), WEIGHTS)
    assert "for ImageNet only holds partly here, not on ImageNet: at severities 3 to 5 " in told
    assert f"none of them improves on TS (CPCS {points(records, 'cpcs', 'ts', {3, 4, 5})}, " in told
    assert "CPCS and TransCal improve on Vanilla (CPCS -" in told


def test_on_imagenet_the_claim_about_importance_weights_is_that_they_improve():
    records = [r for r in made() if r.variant != "ts"]
    imagenet = DataPlan(("imagenet:somewhere",))
    assert "holds here, on ImageNet: " in remark(findings(records, data=imagenet), WEIGHTS)
    assert "does not hold here, not on ImageNet: " in remark(findings(records), WEIGHTS)


def test_without_the_methods_of_a_claim_there_is_no_verdict():
    said = " ".join(findings(made(variants=("vanilla", "oracle"))).remarks)
    assert "claim" not in said


def by_split(variant, target, *eces, **told):
    return [
        record(variant=variant, corruption=target, severity=3, split=split, ece=ece, **told)
        for split, ece in enumerate(eces)
    ]


def test_an_order_that_few_splits_have_holds_in_the_means_only():
    records = [
        *by_split("sts", "fog", 0.05, 0.05, 0.05, 0.05, 0.05),
        *by_split("ts", "fog", 0.04, 0.04, 0.04, 0.3, 0.3),
    ]
    told = remark(findings(records), "The paper's order")
    assert "holds in the means, but in only 2 of 5 splits; each" in told
    told = remark(findings([r for r in records if r.split != 0]), "The paper's order")
    assert "holds, and is that of 2 of the 4 splits; each" in told


def test_what_prints_as_no_difference_is_none():
    records = [
        *by_split("sts", "fog", 0.04004, 0.04004),
        *by_split("ts", "fog", 0.04, 0.04),
        *by_split("sac", "fog", 0.04008, 0.04008),
    ]
    said = findings(records).remarks
    assert "At no severity STS has a larger mean ECE than TS." in said
    assert "On none of the 1 targets SAC has a larger mean ECE than STS." in [
        each.replace(" at severity 3", "") for each in said
    ]
    assert not any("+0.00" in each for each in said if "larger mean ECE" in each)


def test_targets_on_which_a_method_loses_are_counted_and_named():
    records = [
        *by_split("sts", "fog", 0.04, 0.04, 0.04, 0.04, 0.04),
        *by_split("sac", "fog", 0.06, 0.05, 0.06, 0.05, 0.055),
        *by_split("sts", "frost", 0.04, 0.04, 0.04, 0.04, 0.04),
        *by_split("sac", "frost", 0.02, 0.01, 0.02, 0.25, 0.02),
        *by_split("sts", "snow", 0.04, 0.04, 0.04, 0.04, 0.04),
        *by_split("sac", "snow", 0.02, 0.02, 0.02, 0.02, 0.02),
        *by_split("sts", "spatter", 0.04, 0.04, 0.04, 0.04, 0.04),
        *by_split("sac", "spatter", 0.05, 0.05, 0.05, 0.17, 0.05),
    ]
    found = findings(records)
    told = remark(found, "SAC has a larger mean ECE than STS on ")
    assert "on 3 of the 4 targets at severity 3, on 2 of them clearly: spatter-3 (+3.40 ± " in told
    assert told.index("spatter-3") < told.index("frost-3") < told.index("fog-3")
    assert "snow" not in told
    assert sum("one is clearly larger if" in each for each in found.remarks) == 1


def test_a_method_that_loses_nowhere_is_said_to():
    records = [*by_split("sac", "fog", 0.1, 0.1), *by_split("ts", "fog", 0.2, 0.2)]
    said = findings(records).remarks
    assert "On none of the 1 targets SAC has a larger mean ECE than TS." in said
    assert not any("clearly" in each for each in said)


def test_the_targets_are_counted_on_which_the_choice_changes_with_the_split():
    records = [
        *by_split("sac", "fog", 0.07, 0.06, chosen="pixelate-4"),
        *by_split("sac", "zoom_blur", 0.0655, 0.07, chosen="pixelate-4"),
        record(corruption="zoom_blur", severity=3, split=2, ece=0.1941, chosen="pixelate-5"),
    ]
    told = remark(findings(records), "SAC chose different")
    assert "in different splits on 1 of the 2 targets" in told
    assert "most on zoom_blur-3: from 6.55 to 19.41 %." in told
    steady = findings(records[:2]).remarks
    assert "On none of the 1 targets SAC chose different surrogate sets in different splits." in (
        steady
    )
    assert not any("different splits" in each for each in findings(records[:1]).remarks)


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

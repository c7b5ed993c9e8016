from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from study_records import plan, record, results

from shiftcal.errors import InputError, UnknownName
from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.catalog.corruption_choice import CorruptionChoice
from shiftcal.studies.plan.plan import (
    PAPER_CORRUPTIONS,
    CalibrationPlan,
    LadderPlan,
    MethodPlan,
    ShiftPlan,
)
from shiftcal.studies.plan.reading import plan_text, read_plan
from shiftcal.studies.results import Results

CHOICES = ("fog", "pixelate", "brightness")
TARGETS = ("fog", "frost", "pixelate")
SEVERITIES = (0, 1, 3)
SPLITS = (0, 1)
METHODS = tuple(MethodPlan(name, name.upper()) for name in ("vanilla", "ts", "sts", "sac"))


def settings(**changes):
    return {
        "study": "corruption-choice",
        "methods": METHODS,
        "shifts": ShiftPlan(corruptions=TARGETS, severities=SEVERITIES),
        "options": {"choices": list(CHOICES)},
        **changes,
    }


def ece(variant, choice, target, split):
    """A number of its own for every evaluation; brightness is a bad choice for SAC."""
    corruption, severity = target
    base = {"vanilla": 0.3003, "ts": 0.15, "sts": 0.1, "sac": 0.05}[variant]
    worse = {"sac": {"brightness": 0.2, "fog": 0.01}, "sts": {"fog": 0.03}}
    return (
        base
        + worse.get(variant, {}).get(choice, 0.0)
        + 0.01 * severity
        + 0.002 * (TARGETS.index(corruption) if severity else 0)
        + 0.001 * split
    )


def targets(choice):
    shifted = itertools.product([name for name in TARGETS if name != choice], (1, 3))
    return [("none", 0), *shifted]


def made_records():
    made = []
    for split in SPLITS:
        for variant in ("vanilla", "ts"):
            for target in targets(""):
                made.append(_one(variant, "", target, split))
        for variant, choice in itertools.product(("sts", "sac"), CHOICES):
            made += [_one(variant, choice, target, split) for target in targets(choice)]
    return made


def _one(variant, choice, target, split):
    return record(
        variant=variant,
        label=variant.upper(),
        setting=choice,
        calibration=choice or "pixelate",
        corruption=target[0],
        severity=target[1],
        split=split,
        ece=ece(variant, choice, target, split),
        flags="few-rows outside-range" if choice == "brightness" and target[1] == 3 else "",
    )


def expected(variant, choice, severities, left_out=None):
    """Mean ECE in percent of a variant on the targets of a choice."""
    return 100 * statistics.fmean(
        ece(variant, choice, target, split)
        for split in SPLITS
        for target in targets(left_out or choice)
        if target[1] in severities
    )


@pytest.fixture
def found():
    return CorruptionChoice().findings(results(made_records(), **settings()))


def test_the_plan_that_comes_with_it_can_be_run():
    text, where = plan_text("corruption-choice")
    given = read_plan(text, data="somewhere", where=where)
    CorruptionChoice().check(given)
    variants = CorruptionChoice().variants(given)
    targets = {(v.key, v.setting): {t.corruption for t in v.targets} for v in variants}
    # The clean set and thirteen corruptions, without the chosen one if it is among them.
    assert len(targets["sac", "pixelate"]) == 13
    assert len(targets["sac", "contrast"]) == len(targets["ts", ""]) == 14
    assert len(variants) == 2 * 16 + 2


def test_each_choice_is_left_out_of_its_own_targets_and_others_are_evaluated_once():
    variants = CorruptionChoice().variants(plan(**settings()))
    own = {(v.key, v.setting): v for v in variants}
    assert sorted(own) == sorted(
        [("vanilla", ""), ("ts", ""), *itertools.product(("sac", "sts"), CHOICES)]
    )
    assert len(variants) == len(own)
    for choice in CHOICES:
        variant = own["sac", choice]
        assert variant.ladder.sets == ("clean", *(f"{choice}-{s}" for s in (1, 2, 3, 4, 5)))
        assert {t.corruption for t in variant.targets} == {"none", *TARGETS} - {choice}
    assert {t.name for t in own["ts", ""].targets} == {
        "clean",
        *(f"{name}-{s}" for name in TARGETS for s in (1, 3)),
    }
    assert own["ts", ""].ladder.sets == ("clean",)


def test_the_sixteen_of_the_paper_are_the_default():
    made = CorruptionChoice().variants(plan(**settings(options={})))
    assert tuple(v.setting for v in made if v.key == "sac") == PAPER_CORRUPTIONS


def test_a_choice_with_strengths_of_the_plans_own_leaves_out_the_corruption_beneath():
    given = plan(
        **settings(
            ladders=(LadderPlan("mild", "fog", ((0.1,),)),),
            options={"choices": ["mild"]},
            calibration=CalibrationPlan(severities=(1,)),
        )
    )
    CorruptionChoice().check(given)
    sac = CorruptionChoice().variants(given)[-1]
    assert sac.ladder.sets == ("clean", "mild-1")
    assert {t.corruption for t in sac.targets} == {"none", "frost", "pixelate"}


def test_the_figure_has_mean_and_deviation_over_choices(found):
    (panel,) = found.figures["choice"].panels
    assert panel.x == (0.0, 1.0, 3.0)
    for series in panel.series:
        for i, severity in enumerate(SEVERITIES):
            values = [expected(series.key, _given(series.key, c), [severity], c) for c in CHOICES]
            mean, sd = statistics.fmean(values), statistics.stdev(values)
            assert series.y[i] == pytest.approx(mean)
            assert series.low[i] == pytest.approx(mean - sd)
            assert series.high[i] == pytest.approx(mean + sd)
    assert "standard deviation over the choices" in found.figures["choice"].note


def test_the_table_of_means_has_the_numbers_of_the_figure(found):
    table = found.tables["choice"]
    (panel,) = found.figures["choice"].panels
    assert [row.label for row in table.rows] == [series.label for series in panel.series]
    for row, series in zip(table.rows, panel.series, strict=True):
        assert [cell.value for cell in row.cells[:3]] == pytest.approx(list(series.y))
        assert [cell.low for cell in row.cells[:3]] == pytest.approx(list(series.low))
        over = [expected(series.key, _given(series.key, c), [1, 3], c) for c in CHOICES]
        assert row.cells[3].value == pytest.approx(statistics.fmean(over))


def test_choices_are_sorted_by_sac_and_stand_beside_ts_on_the_same_targets(found):
    table = found.tables["choices"]
    order = sorted(CHOICES, key=lambda c: expected("sac", c, [1, 3]))
    assert [row.label for row in table.rows] == order
    columns = [column.key for column in table.columns]
    for row in table.rows:
        cells = dict(zip(columns, row.cells, strict=True))
        choice = row.label
        sac, ts = expected("sac", choice, [1, 3]), expected("ts", "", [1, 3], choice)
        assert cells["SAC"].value == pytest.approx(sac)
        assert cells["STS"].value == pytest.approx(expected("sts", choice, [1, 3]))
        assert cells["same targets TS"].value == pytest.approx(ts)
        assert cells["SAC minus TS"].value == pytest.approx(sac - ts)
        # Splits differ by the same 0.1 points for both, so that their difference never varies.
        assert cells["SAC minus TS"].high - cells["SAC minus TS"].low == pytest.approx(0, abs=1e-9)
        # Student's t of one degree of freedom is 12.7062; the two splits are 0.1 points apart.
        assert cells["SAC"].high - sac == pytest.approx(12.7062 * 0.1 / 2, rel=1e-4)
        assert cells["targets outside"].value == (50.0 if choice == "brightness" else 0.0)
        assert cells["surrogate sets lowest confidence"].value is None
    assert [row.cells[0].mark for row in table.rows] == [True, False, False]


def test_the_figure_of_choices_has_what_the_table_has_and_tells_of_vanilla(found):
    figure, table = found.figures["choices"], found.tables["choices"]
    (panel,) = figure.panels
    assert panel.x == tuple(row.label for row in table.rows)
    assert {series.key for series in panel.series} == {"ts", "sts", "sac"}
    columns = {"sac": "SAC", "sts": "STS", "ts": "same targets TS"}
    keys = [column.key for column in table.columns]
    for series in panel.series:
        cells = [row.cells[keys.index(columns[series.key])] for row in table.rows]
        assert series.y == pytest.approx([cell.value for cell in cells])
        assert series.low == pytest.approx([cell.low for cell in cells])
    values = [expected("vanilla", "", [1, 3], c) for c in CHOICES]
    assert f"{min(values):.1f} to {max(values):.1f} %" in figure.note


def test_every_choice_is_told_at_every_severity(found):
    table = found.tables["severities"]
    columns = [column.key for column in table.columns]
    for row in table.rows:
        for name in ("SAC", "STS"):
            for severity in SEVERITIES:
                cell = row.cells[columns.index(f"{name} severity {severity}")]
                value = expected(name.lower(), row.label, [severity])
                assert cell.value == pytest.approx(value)


def test_remarks_tell_the_spread_and_the_choices_that_fail(found):
    text = "\n".join(found.remarks)
    means = {c: expected("sac", c, [1, 3]) for c in CHOICES}
    assert (
        f"SAC, severities 1 to 3: mean ECE {statistics.fmean(means.values()):.2f} % over 3 choices"
        in text
    )
    assert f"standard deviation {statistics.stdev(means.values()):.2f} points" in text
    assert f"from {means['pixelate']:.2f} % with pixelate to" in text
    excess = means["brightness"] - expected("ts", "", [1, 3], "brightness")
    assert (
        f"SAC is worse than TS on the same targets with 1 of 3 choices: brightness "
        f"(by {excess:.2f} points)."
    ) in text
    least = min(expected("ts", "", [1, 3], c) - expected("sts", c, [1, 3]) for c in CHOICES)
    assert f"every one of the 3 choices, by {least:.2f} points at least" in text


def test_the_reach_of_the_surrogate_sets_is_read_from_their_scores(tmp_path):
    archive, reach = _archive(tmp_path, ("fog", "pixelate", "brightness", "frost"))
    extra = [_one("sac", "brightness", target, split) for target in targets("") for split in SPLITS]
    frost = [
        record(**{**vars(r), "setting": "frost", "calibration": "frost", "ece": r.ece / 9})
        for r in extra
        if r.corruption != "frost"
    ]
    given = settings(calibration=CalibrationPlan(severities=(1, 2), images=20))
    made = [*made_records(), *frost]
    found = CorruptionChoice().findings(Results(plan(**given), tuple(made), archive))
    table = found.tables["choices"]
    columns = [column.key for column in table.columns]
    for row in table.rows:
        got = [
            row.cells[columns.index(f"surrogate sets {name}")].value
            for name in ("highest confidence", "lowest confidence", "lowest accuracy")
        ]
        # Scores are stored in single precision.
        assert got == pytest.approx([100 * x for x in reach[row.label]], rel=1e-5)
    widths = [reach[row.label][0] - reach[row.label][1] for row in table.rows]
    expected_rank = spearmanr(widths, [row.cells[0].value for row in table.rows]).statistic
    assert any(f"rank correlation {expected_rank:+.2f}" in remark for remark in found.remarks)
    failed = 100 * (reach["brightness"][0] - reach["brightness"][1])
    told = next(remark for remark in found.remarks if "with the other choices" in remark)
    assert f"Where SAC is worse than TS, the sets cover {failed:.1f} points" in told


@pytest.mark.parametrize(
    "kept",
    [
        lambda r: r.variant != "ts",
        lambda r: r.variant != "sac",
        lambda r: r.split == 0,
        lambda r: r.severity == 0,
        lambda r: r.severity == 3,
        lambda r: r.setting in ("", "fog"),
        lambda r: r.variant == "sac" and r.target == "frost-1",
        lambda r: r.variant == "ts",
        lambda _: False,
    ],
)
def test_what_is_missing_is_left_out(kept):
    made = [r for r in made_records() if kept(r)]
    found = CorruptionChoice().findings(results(made, **settings()))
    shown = any(r.setting for r in made)
    assert bool(found.tables) == bool(found.figures) == shown
    assert ("choices" in found.tables) == (shown and any(r.severity for r in made))


@pytest.mark.parametrize("choices", [[], "fog", ["fog", "fog"], [1]])
def test_choices_must_be_a_list_of_different_names(choices):
    with pytest.raises(InputError, match="choices must be a list of different corruptions"):
        CorruptionChoice().check(plan(**settings(options={"choices": choices})))


def test_a_choice_must_be_a_corruption():
    with pytest.raises(UnknownName, match="Did you mean 'pixelate'"):
        CorruptionChoice().check(plan(**settings(options={"choices": ["pixelat"]})))


def test_a_plan_without_methods_that_use_surrogate_sets_is_refused():
    methods = tuple(MethodPlan(name, name) for name in ("ts", "oracle"))
    with pytest.raises(InputError, match="none of the plan's methods learns from them"):
        CorruptionChoice().check(plan(**settings(methods=methods)))


def _archive(folder: Path, names):
    """Stored scores whose mean confidence and accuracy fall by name and severity, and the truth."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(4), 10)
    (folder / "scores").mkdir()
    entries, numbers = {}, {}
    sets = ["clean", *(f"{name}-{s}" for name in names for s in (1, 2))]
    for i, name in enumerate(sets):
        logits = rng.standard_normal((40, 4)) * (1 + 0.1 * i)
        logits[np.arange(40), labels] += 2 - 0.2 * i
        file = f"scores/{name}.npz"
        np.savez(folder / file, logits=logits.astype(np.float32), labels=labels)
        entries[name] = Entry(file, name)
        numbers[name] = logits
    archive = Archive(folder, entries)
    rows = archive.split(0, 20).calibration
    reach = {}
    for name in names:
        own = [numbers[each][rows] for each in ("clean", f"{name}-1", f"{name}-2")]
        probs = [np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in own]
        means = [p.max(axis=1).mean() for p in probs]
        hits = [(z.argmax(axis=1) == labels[rows]).mean() for z in own]
        reach[name] = (max(means), min(means), min(hits))
    return archive, reach


def _given(variant, choice):
    return choice if variant in ("sac", "sts") else ""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
from study_records import plan, record, results

from shiftcal.charts import looks
from shiftcal.errors import InputError
from shiftcal.studies.catalog.peek import Peek
from shiftcal.studies.plan import MethodPlan, ShiftPlan, plan_text, read_plan

METHODS = (MethodPlan("ts", "TS"), MethodPlan("sac", "SAC"), MethodPlan("oracle", "Oracle"))
SHIFTS = ShiftPlan(corruptions=("fog", "frost"), severities=(0, 1, 2))
TARGETS = [("none", 0), *itertools.product(SHIFTS.corruptions, (1, 2))]
SIZES = (10, 100)
SPLITS = DRAWS = (0, 1)
OPTIONS = {"sizes": [100, 10], "draws": 2}


def settings(**changes):
    given = {"study": "peek", "methods": METHODS, "shifts": SHIFTS, "options": OPTIONS}
    return {**given, **changes}


def whole(key, target, split):
    base = {"ts": 0.15, "sac": 0.05, "oracle": 0.02}[key]
    return base + 0.02 * target[1] + (0.004 if target[0] == "frost" else 0) + 0.001 * split


def other(size, target, draw):
    """Where a draw of few rows chooses another set, which costs 20 points, or gives one."""
    if size == 10:
        return target[1] == 1 and draw == 1
    return target == ("frost", 2) and draw == 0


def peeked(size, target, split, draw):
    change = (0.20 if size == 10 else -0.01) if other(size, target, draw) else 0
    return whole("sac", target, split) + change


def made_records():
    made = []
    for split, target in itertools.product(SPLITS, TARGETS):
        shared = {"corruption": target[0], "severity": target[1], "split": split}
        for key, label in (("ts", "TS"), ("sac", "SAC, all rows"), ("oracle", "Oracle")):
            made.append(record(variant=key, label=label, ece=whole(key, target, split), **shared))
        made += [
            record(
                variant=f"sac-peek-{size}",
                label=f"SAC, {size} rows",
                setting=str(size),
                draw=draw,
                ece=peeked(size, target, split, draw),
                chosen="pixelate-4" if other(size, target, draw) else "pixelate-1",
                **shared,
            )
            for size in SIZES
            for draw in DRAWS
        ]
    return made


@pytest.fixture
def found():
    return Peek().findings(results(made_records(), **settings()))


def mean(size, severities):
    return 100 * statistics.fmean(
        peeked(size, target, split, draw)
        for target in TARGETS
        if target[1] in severities
        for split in SPLITS
        for draw in DRAWS
    )


def mean_of_all(key, severities):
    targets = [target for target in TARGETS if target[1] in severities]
    return 100 * statistics.fmean(whole(key, t, split) for t in targets for split in SPLITS)


def test_the_plan_that_comes_with_it_can_be_run():
    text, where = plan_text("peek")
    given = read_plan(text, data="somewhere", where=where)
    Peek().check(given)
    variants = Peek().variants(given)
    assert [v.setting for v in variants if v.setting] == ["10", "30", "100", "300", "1000"]
    assert {len(variant.targets) for variant in variants} == {1 + 12 * 5}


def test_sac_is_evaluated_with_all_rows_and_with_each_number_of_rows_in_several_draws():
    variants = {variant.key: variant for variant in Peek().variants(plan(**settings()))}
    assert list(variants) == ["ts", "sac-peek-10", "sac-peek-100", "sac", "oracle"]
    assert dict(variants["sac-peek-10"].settings) == {"peek": 10}
    assert [variant.draws for variant in variants.values()] == [1, 2, 2, 1, 1]
    assert variants["sac"].settings == {}


def test_ten_to_a_thousand_rows_are_the_default():
    variants = Peek().variants(plan(**settings(options={})))
    peeking = [variant for variant in variants if variant.setting]
    assert [variant.settings["peek"] for variant in peeking] == [10, 30, 100, 300, 1000]
    assert {variant.draws for variant in peeking} == {10}


def test_boxes_are_of_sac_alone_with_draws_averaged(found):
    boxes = found.figures["peek"]
    assert [series.key for series in boxes.series] == ["sac", "sac-peek-10", "sac-peek-100"]
    ten = boxes.series[1].values[1]
    wanted = [
        100 * statistics.fmean(peeked(10, (name, 1), s, d) for s in SPLITS for d in DRAWS)
        for name in ("fog", "frost")
    ]
    assert sorted(ten) == pytest.approx(wanted)


def test_the_figure_of_sizes_ends_with_all_rows_beside_level_lines(found):
    overall, by_severity = found.figures["peek-size"].panels
    assert overall.x == by_severity.x == (10.0, 100.0, 5000.0)
    assert overall.log_x
    assert by_severity.log_x
    series = {each.key: each for each in overall.series}
    assert list(series) == ["sac", "ts", "oracle"]
    wanted = [mean(10, [1, 2]), mean(100, [1, 2]), mean_of_all("sac", [1, 2])]
    assert series["sac"].y == pytest.approx(wanted)
    assert series["ts"].y == pytest.approx([mean_of_all("ts", [1, 2])] * 3)
    # Of the four targets two vary by 20 points between two draws, or one by 1 point: the
    # variances are 200 and 0.5, of which 2/4 and 1/4 are the means.
    half = [math.sqrt(200 * 2 / 4), math.sqrt(0.5 / 4)]
    assert series["sac"].low[:2] == pytest.approx([wanted[0] - half[0], wanted[1] - half[1]])
    assert series["sac"].high[:2] == pytest.approx([wanted[0] + half[0], wanted[1] + half[1]])
    assert series["sac"].low[2] is None
    for severity, each in enumerate(by_severity.series):
        last = mean_of_all("sac", [severity])
        assert each.y == pytest.approx([mean(10, [severity]), mean(100, [severity]), last])


def test_the_table_of_sizes_tells_cost_spread_and_agreement(found):
    table = found.tables["peek-size"]
    assert [row.label for row in table.rows] == ["SAC, 10 rows", "SAC, 100 rows", "SAC, all rows"]
    ten, hundred, everything = ([cell.value for cell in row.cells] for row in table.rows)
    # A quarter of the evaluations of 10 rows has 20 points more, an eighth of 100 rows 1 less.
    assert ten == pytest.approx([mean(10, [1, 2]), 5.0, 10.0, 75.0])
    assert hundred == pytest.approx([mean(100, [1, 2]), -1 / 8, math.sqrt(0.125), 87.5])
    assert everything[0] == pytest.approx(mean_of_all("sac", [1, 2]))
    assert everything[1:] == [None, None, None]


def test_the_same_set_is_counted_by_severity(found):
    rows = [[cell.value for cell in row.cells] for row in found.tables["same-set"].rows]
    assert rows[0] == pytest.approx([100, 50, 100, 75])
    assert rows[1] == pytest.approx([100, 100, 75, 87.5])


def test_the_table_of_means_has_all_methods(found):
    table = found.tables["mean-ece"]
    rows = {row.label: [cell.value for cell in row.cells] for row in table.rows}
    assert rows["SAC, 10 rows"] == pytest.approx(
        [mean(10, [0]), mean(10, [1]), mean(10, [2]), mean(10, [1, 2])]
    )
    assert rows["TS"][3] == pytest.approx(mean_of_all("ts", [1, 2]))


# Student's t of one degree of freedom, with two splits.
T = 12.7062


def test_the_note_tells_one_targets_deviation_from_the_interval_of_the_mean(found):
    note = found.figures["peek-size"].note
    assert "ECE of one target strays" in note
    assert "of the mean of all 4 targets" in note
    # Both splits are 0.1 points apart whatever the size.
    half = f"{T * 0.1 / 2:.2f}"
    assert f"known to ± {half} to {half} points" in note


def test_one_draw_has_no_band():
    made = [r for r in made_records() if r.draw == 0]
    figure = Peek().findings(results(made, **settings())).figures["peek-size"]
    assert figure.note == "One draw has no band."
    assert figure.panels[0].series[0].low == (None, None, None)


def test_severities_have_the_keys_of_a_scale_from_light_to_dark(found):
    _, by_severity = found.figures["peek-size"].panels
    keys = [series.key for series in by_severity.series]
    assert keys == ["severity-0", "severity-1", "severity-2"]
    colours = [look.colour for look in looks(keys).values()]
    brightness = [sum(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in colours]
    assert brightness == sorted(brightness, reverse=True)
    assert len(set(brightness)) == 3


def test_the_figure_says_what_boxes_whiskers_and_diamonds_are(found):
    told = " ".join(
        text.get_text().replace("\n", " ") for text in found.figures["peek"].draw().texts
    )
    assert all(word in told for word in ("quartiles", "whiskers", "diamonds: means"))
    assert "A value is the ECE under one corruption" in told


@pytest.mark.parametrize(
    ("kept", "tables"),
    [
        (lambda r: r.variant != "sac", {"mean-ece", "same-set", "peek-size"}),
        (lambda r: r.variant != "ts", {"mean-ece", "same-set", "peek-size"}),
        (lambda r: not r.setting, {"mean-ece"}),
        (lambda r: r.variant == "ts", {"mean-ece"}),
        (lambda r: r.split == 0 and r.draw == 0, {"mean-ece", "same-set", "peek-size"}),
        (lambda r: r.severity == 0, {"mean-ece", "same-set"}),
        (lambda r: r.severity == 1, {"mean-ece", "same-set", "peek-size"}),
        (lambda _: False, set()),
    ],
)
def test_what_is_missing_is_left_out(kept, tables):
    made = [r for r in made_records() if kept(r)]
    assert set(Peek().findings(results(made, **settings())).tables) == tables


@pytest.mark.parametrize("sizes", [[], 10, [10, 10]])
def test_sizes_must_be_a_list_of_different_numbers(sizes):
    with pytest.raises(InputError, match="sizes must be a list of different numbers of rows"):
        Peek().check(plan(**settings(options={"sizes": sizes})))


@pytest.mark.parametrize("options", [{"sizes": [0]}, {"sizes": ["ten"]}, {"draws": 0}])
def test_sizes_and_draws_are_counts(options):
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        Peek().check(plan(**settings(options=options)))

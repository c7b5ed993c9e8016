from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from study_records import plan, record, results

from shiftcal import corrupt
from shiftcal.corruptions import Strengths
from shiftcal.errors import InputError, UnknownName
from shiftcal.report.figures import write_figure
from shiftcal.studies.catalog.ablation import Ablation, spread
from shiftcal.studies.plan import (
    CalibrationPlan,
    LadderPlan,
    NaturalSet,
    ShiftPlan,
    plan_text,
    read_plan,
)

NAMES = ("vanilla", "ts", "sts", "sac", "oracle")
CORRUPTIONS, SEVERITIES, SPLITS = ("fog", "frost"), (0, 1, 3), (0, 1, 2)
FINE = LadderPlan("pixelate_fine", "pixelate", ((0.97,), (0.94,), (0.9,)))
# By panel: the settings, and which methods they are varied for.
PANELS = {
    "what the parts give": ([""], NAMES),
    "number of sets": (["1", "2", "3"], ("sts", "sac")),
    "spacing": (["1-2-3", "1-3-5"], ("sts", "sac")),
    "calibration images": (["100", "1000"], ("ts", "sts", "sac")),
    "map": (["temperature", "isotonic"], ("sts", "sac")),
    "fine ladder": (["pixelate", "pixelate_fine"], ("sts", "sac")),
}


def settings(**changes):
    methods = tuple(each for each in plan().methods if each.name in NAMES)
    shifts = ShiftPlan(corruptions=(*CORRUPTIONS, "pixelate"), severities=SEVERITIES)
    return {"study": "ablation", "methods": methods, "shifts": shifts, **changes}


def built_in():
    return read_plan(plan_text("ablation")[0], data="DATA")


def variants(**changes):
    return Ablation().variants(plan(**settings(**changes)))


def severities_by_setting(found, panel, method):
    return {v.setting: v.ladder.severities for v in found if (v.panel, v.method) == (panel, method)}


def ece(panel, setting, variant, corruption, severity, split):
    """A number of its own for every evaluation, whose order over severities is not that of STS."""
    base = {"vanilla": 0.3, "ts": 0.15, "sts": 0.1, "sac": 0.05, "oracle": 0.02}[variant]
    clean_cost = 0.2 if variant == "sts" and not severity else 0.0
    place = PANELS[panel][0].index(setting)
    own = 0.001 * split * NAMES.index(variant)  # so that splits differ otherwise for each method
    return (
        base + clean_cost + 0.01 * place + 0.02 * severity + 0.004 * (corruption == "frost") + own
    )


def made_records(panels=PANELS, splits=SPLITS):
    made = []
    for split in splits:
        for panel, (values, names) in panels.items():
            for setting in values:
                for variant in names:
                    for corruption, severity in [
                        ("none", 0), *((c, s) for c in CORRUPTIONS for s in (1, 3))
                    ]:  # fmt: skip
                        made.append(
                            record(
                                panel=panel,
                                setting=setting,
                                variant=variant,
                                split=split,
                                corruption=corruption,
                                severity=severity,
                                n_sets=4 if setting == "pixelate_fine" else 6,
                                flags="outside-range few-rows" if setting == "pixelate" else "",
                                ece=ece(panel, setting, variant, corruption, severity, split),
                            )
                        )
    return made


def expected(panel, setting, variant, severities):
    """Percent: the mean over targets of a split, then over splits."""
    of_splits = []
    for split in SPLITS:
        values = [
            ece(panel, setting, variant, corruption, severity, split)
            for severity in severities
            for corruption in (CORRUPTIONS if severity else ("none",))
        ]
        of_splits.append(100 * statistics.mean(values))
    return statistics.mean(of_splits), of_splits


def findings(records=None, **changes):
    made = made_records() if records is None else records
    return Ablation().findings(results(made, **settings(**changes)))


@pytest.mark.parametrize(
    ("n_sets", "severities"),
    [(1, ()), (2, (5,)), (3, (3, 5)), (4, (2, 3, 5)), (5, (1, 3, 4, 5)), (6, (1, 2, 3, 4, 5))],
)
def test_sets_are_spread_evenly_between_the_clean_one_and_the_strongest(n_sets, severities):
    assert spread((1, 2, 3, 4, 5), n_sets) == severities


def test_a_ladder_of_two_severities_has_up_to_three_sets():
    found = variants(calibration=CalibrationPlan(severities=(2, 4)))
    sets = severities_by_setting(found, "number of sets", "sac")
    assert sets == {"1": (), "2": (4,), "3": (2, 4)}


def test_the_first_panel_compares_all_methods_of_the_plan():
    own = [each for each in variants() if each.panel == "what the parts give"]
    assert [each.key for each in own] == list(NAMES)
    assert {each.ladder.severities for each in own} == {(1, 2, 3, 4, 5)}
    assert {target.name for target in own[0].targets} == {
        "clean", "fog-1", "fog-3", "frost-1", "frost-3",
    }  # fmt: skip


def test_every_panel_varies_what_it_says_and_nothing_else():
    found = variants(ladders=(FINE,))
    assert severities_by_setting(found, "spacing", "sts") == {
        "1-2-3": (1, 2, 3), "2-3-4": (2, 3, 4), "3-4-5": (3, 4, 5), "1-3-5": (1, 3, 5),
    }  # fmt: skip
    images = {
        (v.method, v.setting): v.ladder.images for v in found if v.panel == "calibration images"
    }
    assert {method for method, _ in images} == {"ts", "sts", "sac"}
    assert images["ts", "100"] == 100
    assert images["sac", "5000"] is None  # all of the split, not a part of it
    maps = {(v.method, v.setting): dict(v.settings) for v in found if v.panel == "map"}
    assert maps["sts", "spline"] == {"map": "spline"}
    assert len(maps) == 8
    ladders = {v.setting: v.ladder for v in found if v.panel == "fine ladder"}
    assert ladders["pixelate"].severities == (1, 2, 3, 4, 5)
    assert ladders["pixelate_fine"].sets == (
        "clean", "pixelate_fine-1", "pixelate_fine-2", "pixelate_fine-3",
    )  # fmt: skip


def test_a_method_keeps_its_key_and_its_own_settings_in_every_panel():
    base = plan(**settings())
    methods = tuple(
        replace(each, settings={"distance": "ks"}) if each.name == "sac" else each
        for each in base.methods
    )
    own = [each for each in variants(methods=methods) if each.method == "sac"]
    assert {each.key for each in own} == {"sac-ks"}
    assert {each.settings["distance"] for each in own} == {"ks"}


def test_keys_are_unique_within_a_panel_and_a_setting():
    found = [(v.panel, v.setting, v.key) for v in Ablation().variants(built_in())]
    assert len(set(found)) == len(found)


def test_what_the_plan_has_no_room_for_is_left_out():
    found = variants(calibration=CalibrationPlan(severities=(1, 3, 5), images=500))
    assert list(severities_by_setting(found, "spacing", "sac")) == ["1-3-5"]
    assert list(severities_by_setting(found, "number of sets", "sac")) == ["1", "2", "3", "4"]
    assert list(severities_by_setting(found, "calibration images", "sac")) == ["100", "200", "500"]
    assert not severities_by_setting(found, "fine ladder", "sac")


def test_what_another_ladder_is_made_of_is_no_target_of_the_fine_ladder_panel():
    found = variants(calibration=CalibrationPlan(corruption="fog"), ladders=(FINE,))
    shifted = {
        panel: {t.corruption for v in found if v.panel == panel for t in v.targets}
        for panel in ("what the parts give", "fine ladder")
    }
    assert shifted["what the parts give"] == {"none", "frost", "pixelate"}
    assert shifted["fine ladder"] == {"none", "frost"}


def test_options_choose_panels_and_values():
    options = {"panels": ["map", "number of sets"], "maps": ["beta"], "sets": [2]}
    found = variants(options=options)
    assert {(v.panel, v.setting) for v in found} == {("map", "beta"), ("number of sets", "2")}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"options": {"panels": ["maps"]}}, InputError, "no panel 'maps'. Did you mean 'map'"),
        ({"options": {"maps": ["isotonics"]}}, UnknownName, "isotonic"),
        ({"options": {"sets": [0, 1]}}, InputError, "sets of the study ablation .* above 0"),
        ({"options": {"images": [100, 100]}}, InputError, "images .* different whole numbers"),
        ({"options": {"spacings": [[1, 6]]}}, InputError, r"\[1, 2, 3, 4, 5\]; got \[1, 6\]"),
        ({"options": {"mapz": []}}, InputError, "no option 'mapz'"),
        (
            {"shifts": ShiftPlan(sets=(NaturalSet("sketch", "Sketch", ("x",)),))},
            InputError,
            "natural set 'sketch' has none",
        ),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(changes, error, words):
    with pytest.raises(error, match=words):
        Ablation().check(plan(**settings(**changes)))


def test_the_built_in_plan_is_runnable_and_of_sensible_size():
    own = built_in()
    Ablation().check(own)
    found = Ablation().variants(own)
    evaluations = len(own.seeds) * sum(len(each.targets) for each in found)
    assert {each.panel for each in found} == set(PANELS)
    assert len(found[0].targets) == 61
    assert evaluations < 20_000


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("pixelate_fine", list(range(31, 19, -1))),
        ("pixelate_wide", [30, 28, 27, 24, 20, 18, 16, 14, 12, 10, 8]),
    ],
)
def test_the_ladders_of_the_plan_reduce_to_the_sides_its_comments_say(name, sides):
    ladder = next(each for each in built_in().ladders if each.name == name)
    assert [int(strength[0] * 32) for strength in ladder.strengths] == sides
    images = np.random.default_rng(4).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    made = Strengths(ladder.corruption, ladder.strengths, name=name)
    for severity in (1, len(sides)):
        small = (sides[severity - 1],) * 2
        box = Image.Resampling.BOX
        reference = Image.fromarray(images[0]).resize(small, box).resize((32, 32), box)
        found = corrupt(images, made, severity=severity)
        np.testing.assert_array_equal(found[0], np.asarray(reference))


def test_tables_hold_the_mean_of_every_method_and_setting_by_severity():
    tables = findings().tables
    table = tables["number-of-sets"]
    assert [column.name for column in table.columns][-1] == "mean of 1 and 3"
    rows = {row.label: row for row in table.rows}
    assert list(rows) == [f"{m}, J = {j}" for m in ("STS", "SAC") for j in (1, 2, 3)]
    for name, variant in (("STS", "sts"), ("SAC", "sac")):
        cells = rows[f"{name}, J = 2"].cells
        for cell, which in zip(cells, ([0], [1], [3], [1, 3]), strict=True):
            value, _ = expected("number of sets", "2", variant, which)
            assert cell.value == pytest.approx(value)
            assert cell.low < value < cell.high
    assert rows["SAC, J = 1"].cells[-1].mark
    assert [row.label for row in table.rows if row.rule_before] == ["SAC, J = 1"]
    assert "TS, 1,000 images" in [row.label for row in tables["calibration-images"].rows]
    assert [row.label for row in tables["what-the-parts-give"].rows] == [
        "Vanilla", "TS", "STS", "SAC", "Oracle",
    ]  # fmt: skip


def test_shares_are_differences_within_splits():
    table = findings().tables["shares"]
    rows = {row.label: row.cells for row in table.rows}
    panel = "what the parts give"
    for label, before, after in (
        ("surrogate sets (TS to STS)", "ts", "sts"),
        ("adaptation (STS to SAC)", "sts", "sac"),
        ("target labels (SAC to oracle)", "sac", "oracle"),
    ):
        one, other = (expected(panel, "", name, [1, 3])[1] for name in (before, after))
        differences = [b - a for a, b in zip(one, other, strict=True)]
        cell = rows[label][-1]
        assert cell.value == pytest.approx(statistics.mean(differences))
        # Student's quantile for three splits
        half = 4.302653 * statistics.stdev(differences) / 3**0.5
        assert (cell.high - cell.low) / 2 == pytest.approx(half, rel=1e-6)
    clean = rows["surrogate sets (TS to STS)"][0]
    assert clean.value == pytest.approx(15.0 + 0.1 * statistics.mean(SPLITS))


def test_the_figure_has_a_panel_for_each_question_with_the_means_over_severities():
    figure = findings().figures["ablation"]
    panels = {panel.title: panel for panel in figure.panels}
    assert list(panels) == list(PANELS)
    images = panels["calibration images"]
    assert images.x == (100.0, 1000.0)
    assert images.log_x
    for series in images.series:
        for at, setting in enumerate(("100", "1000")):
            value, _ = expected("calibration images", setting, series.key, [1, 3])
            assert series.y[at] == pytest.approx(value)
            assert series.low[at] < value < series.high[at]
    assert panels["map"].x == ("temperature", "isotonic")
    parts = panels["what the parts give"]
    assert parts.x == ("severities 1 and 3",)
    assert [(series.key, len(series.y)) for series in parts.series] == [(n, 1) for n in NAMES]


def test_two_panels_are_shown_by_severity_too():
    figures = findings().figures
    parts = figures["what-the-parts-give"].panels[0]
    assert parts.x == (0.0, 1.0, 3.0)
    fine = figures["fine-ladder"]
    assert [panel.title for panel in fine.panels] == ["STS", "SAC"]
    series = {each.key: each for each in fine.panels[1].series}
    assert series["pixelate_fine"].label == "pixelate_fine (4 sets)"
    for at, severity in enumerate(SEVERITIES):
        value, _ = expected("fine ladder", "pixelate_fine", "sac", [severity])
        assert series["pixelate_fine"].y[at] == pytest.approx(value)


@pytest.mark.parametrize(
    "kept",
    [
        lambda _: False,
        lambda r: r.severity == 0,
        lambda r: r.severity == 3,
        lambda r: r.split == 0,
        lambda r: r.method == "sac",
        lambda r: r.method in ("vanilla", "oracle"),
        lambda r: r.panel == "map" and r.setting == "isotonic",
        lambda r: not (r.setting == "1" and r.method == "sac"),
        lambda r: not (r.method == "sts" and r.severity == 1),
    ],
)
def test_findings_show_what_there_is(kept):
    records = [each for each in made_records() if kept(each)]
    found = findings(records)
    panels = {each.panel.replace(" ", "-") for each in records}
    assert set(found.tables) - {"shares"} == panels
    assert ("ablation" in found.figures) == bool(panels)


@pytest.mark.parametrize("name", ["ablation", "fine-ladder"])
def test_figures_are_drawn(tmp_path: Path, name):
    pytest.importorskip("matplotlib")
    assert all(
        path.stat().st_size for path in write_figure(findings().figures[name], tmp_path, name)
    )

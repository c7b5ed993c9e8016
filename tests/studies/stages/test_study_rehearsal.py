"""Methods tried before anything is scored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toy_study import ALL, toy_plan

from shiftcal import methods
from shiftcal.errors import InputError
from shiftcal.studies.plan.plan import MethodPlan
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.planned import variants_of
from shiftcal.studies.stages import rehearsal
from shiftcal.studies.stages.rehearsal import Shape, check_settings, costs_of, made_up
from shiftcal.weighting import ImportanceWeights

SHAPE = Shape(calibration=60, test=600, train=90, classes=3, features=2)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("sac", {"distance": "far"}, "distance must be"),
        ("sac", {"peek": 0}, "peek must be"),
        ("sts", {"map": "temperatur"}, "temperature"),
        ("transcal", {"reading": "x"}, "reading must be"),
    ],
)
def test_settings_that_a_method_does_not_take_are_refused(data, name, settings, words):
    plan = replace(toy_plan(data), methods=(MethodPlan(name, "x", settings),))
    with pytest.raises(InputError, match=words):
        check_settings(variants_of(plan, 120))


def test_every_method_is_timed(data):
    variants = variants_of(toy_plan(data, methods=ALL), 120)
    costs = dict(zip(ALL, costs_of(variants, SHAPE, bins=5), strict=True))
    assert all(cost.row > 0 for cost in costs.values())
    assert all(costs[name].fit > 0 for name in ALL if name != "oracle")
    # Features of the training images are looked at for every target.
    assert [name for name in ALL if costs[name].fixed > 0] == ["cpcs", "transcal"]


class Clock:
    """Time that passes only where work is done."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(rehearsal.time, "perf_counter", lambda: self.now)

    def pass_with(self, monkeypatch, owner, name, seconds):
        real = getattr(owner, name)

        def taking(*args, **options):
            self.now += seconds(*args)
            return real(*args, **options)

        monkeypatch.setattr(owner, name, taking)


@pytest.fixture
def clock(monkeypatch):
    """A millisecond for a row that SAC is fitted to, a tenth of it for one that it looks at."""
    clock = Clock(monkeypatch)
    rows = lambda _, bank, *__: 1e-3 * sum(len(each) for each in bank)  # noqa: E731
    clock.pass_with(monkeypatch, methods.get("sac"), "_fit", rows)
    clock.pass_with(monkeypatch, rehearsal, "judged", lambda _, target: 1e-4 * len(target.logits))
    return clock


@pytest.mark.parametrize("share", [1, 10])
def test_known_costs_come_out_whatever_part_is_timed(data, clock, monkeypatch, share):
    sac = next(v for v in variants_of(toy_plan(data), 120) if v.method == "sac")
    whole = sum((3 * 60 * 3, 600 * (3 + 2), 90 * 2))
    monkeypatch.setattr(rehearsal, "_NUMBERS", whole / share)
    fewer = replace(sac, ladder=replace(sac.ladder, severities=(1,), images=30))
    costs = costs_of([sac, fewer], SHAPE, bins=5)
    assert [cost.fit for cost in costs] == pytest.approx([3 * 60 * 1e-3, 2 * 30 * 1e-3])
    assert [cost.row for cost in costs] == pytest.approx([1e-4] * 2)


def test_settings_of_a_method_are_timed_apart(data, monkeypatch):
    clock = Clock(monkeypatch)
    slow = lambda method, *_: {"isotonic": 3.0}.get(method.map, 1.0)  # noqa: E731
    clock.pass_with(monkeypatch, methods.get("sts"), "_fit", slow)
    sts = next(v for v in variants_of(toy_plan(data), 120) if v.method == "sts")
    others = [replace(sts, settings={"map": name}) for name in ("isotonic", "temperature")]
    costs = costs_of([sts, *others], SHAPE, bins=5)
    assert [cost.fit for cost in costs] == pytest.approx([1.0, 3.0, 1.0])


def test_what_loads_kernels_does_not_count(data, monkeypatch):
    clock = Clock(monkeypatch)
    seen = []
    first = lambda *_: 1.0 if seen or seen.append(1) else 3.0  # noqa: E731
    clock.pass_with(monkeypatch, methods.get("ts"), "_fit", first)
    ts = next(v for v in variants_of(toy_plan(data), 120) if v.method == "ts")
    assert costs_of([ts], SHAPE, bins=5)[0].fit == pytest.approx(1.0)


def test_source_and_target_are_as_hard_to_tell_apart_as_those_of_networks():
    source, target = made_up(4000, 3, 64, seed=1), made_up(2000, 3, 64, shift=0.3, seed=2)
    weights = ImportanceWeights(max_iter=70).fit(source.features, target.features)
    assert not weights.status_.converged
    same = made_up(2000, 3, 64, seed=2)
    assert ImportanceWeights(max_iter=70).fit(source.features, same.features).auc_ < 0.6


def test_large_arrays_are_timed_in_part_and_every_class_has_rows():
    whole = Shape(calibration=25_000, test=25_000, train=10_000, classes=1000, features=2048)
    part = whole.part(6)
    assert part == Shape(2000, 2000, 2000, 1000, 2048)
    assert Shape(5000, 5000, 10_000, 10, 64).part(6) == Shape(5000, 5000, 10_000, 10, 64)
    assert Shape(9_000_000, 4_000_000, 0, 10, 0).part(1) == Shape(276_923, 123_077, 0, 10, 0)


def test_made_up_scores_are_mostly_right_and_always_the_same():
    some = made_up(60, 3, 2)
    assert some.logits.shape == (60, 3)
    assert some.features.shape == (60, 2)
    assert (some.logits.argmax(axis=1) == some.labels).mean() > 0.8
    assert (made_up(60, 3, 2).logits == some.logits).all()


def test_a_setting_is_refused_with_its_place_in_the_plan(data):
    head = "methods = ['ts', {name = 'sac', distance = 'far'}]\n"
    text = head + to_toml(toy_plan(data, methods=()))
    plan = read_plan(text.replace("methods = []\n", ""), where="mine.toml")
    with pytest.raises(InputError, match=r"^mine\.toml methods 2: distance must be"):
        check_settings(variants_of(plan, 120))

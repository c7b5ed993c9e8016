"""Plans written and read again."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from shiftcal.studies.plan.plan import (
    CalibrationPlan,
    DataPlan,
    LadderPlan,
    MethodPlan,
    ModelPlan,
    NaturalSet,
    Plan,
    ShiftPlan,
)
from shiftcal.studies.plan.reading import built_in, plan_text, read_plan
from shiftcal.studies.plan.text import to_toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
    lambda text: "{data}" not in text
)
WORD = TEXT.filter(bool)
WORDS = st.lists(WORD, min_size=1, max_size=3).map(tuple)
OPTIONAL = st.none() | TEXT
MADE = st.none() | TEXT.map(lambda text: f"{{corruption}}{text}{{severity}}")
ANYTHING = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXT
    | st.dates()
    | st.times()
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def severities(most):
    return st.sets(st.integers(1, most), max_size=4).map(lambda found: tuple(sorted(found)))


METHODS = st.sampled_from(
    [("vanilla", {}), ("sac", {"distance": "ks", "peek": 3}), ("oracle", {}), ("sts", {})]
)


@st.composite
def plans(draw):
    sets = draw(st.lists(st.sampled_from(["a", "b-c", "v2.x_1"]), unique=True))
    labels = draw(st.lists(WORD, unique=True, max_size=3))
    return Plan(
        study=draw(WORD),
        about=draw(TEXT),
        model=ModelPlan(draw(WORDS), draw(OPTIONAL), draw(st.none() | st.integers(1)), "float16"),
        data=DataPlan(draw(WORDS), draw(OPTIONAL), draw(st.none() | st.integers(1, 10**12)),
                      draw(st.just(()) | WORDS), draw(OPTIONAL), draw(st.integers(1)), draw(TEXT)),
        calibration=CalibrationPlan("fine", draw(severities(2)), draw(st.integers(1))),
        shifts=ShiftPlan(
            tuple(draw(st.lists(st.sampled_from(["fog", "snow", "fine"]), unique=True))),
            draw(severities(5)),
            draw(MADE),
            draw(st.integers(0)),
            draw(st.sampled_from(["auto", "imagenet"])),
            tuple(NaturalSet(name, draw(WORD), draw(WORDS), draw(OPTIONAL), draw(OPTIONAL),
                             draw(TEXT)) for name in sets),
        ),
        methods=tuple(MethodPlan(*(m := draw(METHODS))[:1], label, m[1]) for label in labels),
        seeds=tuple(draw(st.lists(st.integers(0), min_size=1, max_size=3, unique=True))),
        bins=draw(st.integers(1)),
        ladders=(LadderPlan("fine", "pixelate", ((draw(st.floats(0, 1)),), (0.5,))),),
        options=draw(st.dictionaries(TEXT, ANYTHING, max_size=4)),
    )  # fmt: skip


@given(plans())
def test_a_plan_is_the_same_after_writing_and_reading(plan):
    assert read_plan(to_toml(plan)) == plan


@given(st.dictionaries(TEXT, ANYTHING, max_size=4))
def test_options_may_be_called_as_tables_of_the_plan_are(options):
    options |= {"sets": [{"a": 1}], "ladders": 3, "": 0}
    plan = Plan("x", ModelPlan(("m",)), DataPlan(("d",)), options=options)
    assert tomllib.loads(to_toml(plan))["options"] == options


def test_built_in_plans_are_the_same_after_writing_and_reading():
    for name in built_in():
        plan = read_plan(plan_text(name)[0], data="/data")
        assert read_plan(to_toml(plan)) == plan

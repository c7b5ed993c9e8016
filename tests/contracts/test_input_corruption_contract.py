"""Promises of every corruption of rows and texts that is found in its folder."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from shiftcal import corruptions
from shiftcal.corruptions import InputCorruption, corrupt_inputs, tabular, text
from shiftcal.errors import InputError

RNG = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(
    {
        "height": RNG.normal(170, 10, N),
        "visits": RNG.integers(0, 30, N),
        "colour": RNG.choice(["red", "green", "blue"], N),
        "smoker": RNG.random(N) < 0.3,
        "when": pd.date_range("2024-01-01", periods=N),
    },
    index=np.arange(N)[::-1],
)
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "watches"]
TEXTS = [" ".join(RNG.choice(WORDS, size=12)) for _ in range(N)]
EVERY = [(tabular, name) for name in tabular.names()] + [(text, name) for name in text.names()]


@pytest.fixture(params=EVERY, ids=[name for _, name in EVERY])
def family_and_name(request):
    return request.param


@pytest.fixture
def made(family_and_name):
    family, name = family_and_name
    return family.get(name)().fitted_to(FRAME)


@pytest.fixture
def inputs(family_and_name):
    return FRAME if family_and_name[0] is tabular else TEXTS


def part(inputs, rows):
    return inputs.iloc[rows] if isinstance(inputs, pd.DataFrame) else inputs[rows]


def equal(one, other):
    return one.equals(other) if isinstance(one, pd.DataFrame) else one == other


def test_it_carries_its_name_and_says_what_it_does(family_and_name):
    family, name = family_and_name
    found = family.get(name)
    assert found().name == name
    assert getattr(family, found.__name__) is found
    assert issubclass(found, InputCorruption)
    assert f"<corruption {name}" in repr(found())


def test_no_corruption_of_images_has_its_name(family_and_name):
    assert family_and_name[1] not in corruptions.names()
    assert not set(tabular.names()) & set(text.names())


def test_it_has_five_severities_of_rising_strength(made):
    assert made.severities == len(made.strengths) == 5
    assert list(made.strengths) == sorted(set(made.strengths))


def test_severity_0_gives_the_inputs_back_as_a_copy(made, inputs):
    back = corrupt_inputs(inputs, made, severity=0)
    assert equal(back, inputs)
    assert back is not inputs


def test_the_inputs_are_not_changed_and_the_container_stays(made, inputs):
    before = copy.deepcopy(inputs)
    after = corrupt_inputs(inputs, made, severity=5)
    assert equal(inputs, before)
    assert type(after) is type(inputs)
    assert not equal(after, inputs)
    if isinstance(inputs, pd.DataFrame):
        assert list(after.columns) == list(inputs.columns)
        assert after.index.equals(inputs.index)
        assert after["when"].equals(inputs["when"])


def test_batches_change_nothing(made, inputs):
    whole = corrupt_inputs(inputs, made, severity=4, seed=9)
    for rows in (slice(0, 1), slice(7, 8), slice(20, N)):
        alone = corrupt_inputs(part(inputs, rows), made, severity=4, seed=9, first_index=rows.start)
        if isinstance(inputs, pd.DataFrame):  # a batch in which nothing is lost keeps its types
            alone, of_whole = alone.astype(object), part(whole, rows).astype(object)
            assert alone.equals(of_whole)
        else:
            assert alone == part(whole, rows)


def test_the_seed_decides(made, inputs):
    first = corrupt_inputs(inputs, made, severity=5, seed=1)
    assert equal(first, corrupt_inputs(inputs, made, severity=5, seed=1))
    # A drift of two columns has four outcomes, so one other seed may well give the same.
    others = [corrupt_inputs(inputs, made, severity=5, seed=seed) for seed in range(2, 12)]
    assert not all(equal(first, other) for other in others)


def test_a_higher_severity_changes_more(made, inputs):
    shares = []
    for severity in range(1, 6):
        after = corrupt_inputs(inputs, made, severity=severity)
        if isinstance(inputs, list):
            shares.append(sum(a != b for a, b in zip(after, inputs, strict=True)))
        elif made.name in ("noise", "drift"):
            shares.append(np.abs(after["height"] - inputs["height"]).mean())
        else:
            columns = list(made.columns_)
            before = inputs[columns].astype(object)
            shares.append((after[columns].astype(object) != before).to_numpy().sum())
    assert all(later >= earlier for earlier, later in itertools.pairwise(shares))
    assert shares[-1] > shares[0]


def test_it_survives_pickling(made, inputs):
    again = pickle.loads(pickle.dumps(made))
    wanted = corrupt_inputs(inputs, made, severity=3)
    assert equal(corrupt_inputs(inputs, again, severity=3), wanted)


def test_strengths_of_ones_own_make_another_ladder(family_and_name, inputs):
    family, name = family_and_name
    own = family.get(name)(strengths=[0.2, 0.4]).fitted_to(FRAME)
    assert own.severities == 2
    corrupt_inputs(inputs, own, severity=2)
    with pytest.raises(InputError, match="severity must be a whole number of at least 0 and at"):
        corrupt_inputs(inputs, own, severity=3)


@pytest.mark.parametrize(
    ("strengths", "said"),
    [
        ([], "one or more"),
        ([0.2, 0.2], "must rise"),
        ([0.0], "above 0"),
        (0.5, "must be a list"),
    ],
)
def test_strengths_that_are_no_ladder_are_refused(family_and_name, strengths, said):
    family, name = family_and_name
    with pytest.raises(InputError, match=said):
        family.get(name)(strengths=strengths)


@pytest.mark.parametrize(
    "kind",
    [tabular.MissingValues, tabular.CategorySwaps, text.Typos, text.DroppedWords],
)
def test_shares_are_at_most_1(kind):
    assert kind(strengths=[1.0]).strengths == (1.0,)
    with pytest.raises(InputError, match=r"at most 1; got 1\.5"):
        kind(strengths=[0.5, 1.5])

"""Corruptions of rows, of texts, and of whatever else a function takes."""

from __future__ import annotations

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.impute import SimpleImputer

import shiftcal as sc
from shiftcal.corruptions import Custom, CustomInputs, as_input_corruption, corrupt_inputs
from shiftcal.corruptions.inputs import uniforms
from shiftcal.corruptions.tabular import CategorySwaps, Drift, MissingValues, Noise
from shiftcal.corruptions.text import (
    DroppedWords,
    Typos,
)
from shiftcal.errors import InputError, NotFittedError, UnknownName

RNG = np.random.default_rng(0)

# ---- random streams


def test_draws_are_those_of_splitmix64():
    # Published with the generator's reference code: the first numbers from the seed 1234567.
    published = (6457827717110365317, 3203168211198807973, 9817491932198370423)
    for number, wanted in enumerate(published):
        drawn = uniforms(np.array([1234567], dtype=np.uint64), number)
        assert drawn[0] == ((wanted >> 12) + 0.5) / 2**52


# ---- functions

ROWS = np.arange(12.0).reshape(6, 2)


def shifted(rows, severity, rng):
    rows += severity * rng.standard_normal(rows.shape)
    return rows


def test_a_function_gets_a_copy_of_all_inputs_and_a_seeded_generator():
    before = ROWS.copy()
    after = corrupt_inputs(ROWS, shifted, severity=2, seed=3)
    np.testing.assert_array_equal(ROWS, before)
    np.testing.assert_array_equal(corrupt_inputs(ROWS, shifted, severity=2, seed=3), after)
    assert (corrupt_inputs(ROWS, shifted, severity=2, seed=4) != after).any()
    once = corrupt_inputs(ROWS, shifted, severity=1, seed=3) - ROWS
    assert (2 * once != after - ROWS).all()  # other numbers for every severity


@pytest.mark.parametrize(
    ("inputs", "corruption", "words"),
    [
        (ROWS, lambda rows: rows[:3], "must return 6 inputs; got 3"),
        (ROWS, lambda rows: rows.sort(), "must return the inputs; got None"),
        (ROWS, 5, "a name such as 'typos'.* got 5"),
        (ROWS, "pixelate", "'pixelate'. It is for images"),
        (ROWS, Custom(np.flipud, name="own"), "'own' cannot be used here. It is for images"),
        ("one text", "typos", "got str"),
        ([], "typos", "one at least; got none"),
        ((text for text in "ab"), "typos", "got generator"),
        ({"a", "b"}, "typos", "texts must be a list.* got set"),
        (["a", None], "typos", "row 1 is None"),
        (np.array([["a"], ["b"]]), "typos", r"got ndarray of shape \(2, 1\)"),
    ],
)
def test_what_cannot_be_used_is_rejected(inputs, corruption, words):
    with pytest.raises((InputError, UnknownName), match=words):
        corrupt_inputs(inputs, corruption, severity=1)


def test_names_classes_and_functions_stand_for_corruptions():
    assert isinstance(as_input_corruption("Missing-Values"), MissingValues)
    assert isinstance(as_input_corruption(Noise), Noise)
    assert isinstance(as_input_corruption(np.negative), CustomInputs)
    with pytest.raises(UnknownName, match=r"rows or texts is called 'typo'. Did you mean 'typos'"):
        as_input_corruption("typo")
    for each in (Typos(), Noise):
        with pytest.raises(InputError, match="is for rows or texts"):
            sc.corrupt(np.zeros((2, 32, 32, 3), np.uint8), each, severity=1)


# ---- rows

NUMBERS = np.column_stack([RNG.normal(5, 2, 20_000), RNG.exponential(300, 20_000)])
N = 4000
FRAME = pd.DataFrame(
    {
        "height": RNG.normal(170, 10, N),
        "visits": RNG.integers(0, 30, N),
        "colour": RNG.choice(["red", "green", "blue", "infra-red"], N, p=[0.6, 0.25, 0.1, 0.05]),
        "grade": pd.Categorical(RNG.choice(list("ABC"), N), categories=list("CBA"), ordered=True),
        "smoker": RNG.random(N) < 0.3,
        "score": pd.array(RNG.integers(0, 9, N), dtype="Int64"),
        "sure": pd.array(RNG.random(N) < 0.5, dtype="boolean"),
        "x": pd.array(RNG.normal(size=N), dtype="double[pyarrow]"),
    }
)


@pytest.mark.parametrize("severity", [1, 5])
def test_noise_is_normal_in_units_of_the_interquartile_range(severity):
    noise = Noise(clip=False).fit(NUMBERS)
    moved = corrupt_inputs(NUMBERS, noise, severity=severity) - NUMBERS
    scale = stats.iqr(NUMBERS, axis=0, scale="normal")
    standard = moved / (scale * noise.strengths[severity - 1])
    assert min(stats.kstest(column, "norm").pvalue for column in standard.T) > 1e-4
    assert abs(np.corrcoef(standard.T)[0, 1]) < 5 / np.sqrt(len(NUMBERS))


def test_types_and_their_ranges_are_kept():
    rows = np.array([[0, 250], [3, 255], [9, 1], [4, 0]] * 50, dtype=np.uint8)
    noisy = corrupt_inputs(rows, Noise(clip=False).fit(rows), severity=5)
    assert (noisy.dtype, noisy.min(), noisy.max()) == (np.uint8, 0, 255)
    rows = NUMBERS[:50].astype(np.float16)
    assert corrupt_inputs(rows, Noise(clip=False).fit(rows), severity=5).dtype == np.float16
    for corruption in (MissingValues(fill="median"), CategorySwaps(), Noise(), Drift()):
        after = corrupt_inputs(FRAME, corruption.fit(FRAME), severity=5)
        assert after.dtypes.equals(FRAME.dtypes)
        assert not after.isna().any(axis=None)
        assert not after.equals(FRAME)


@pytest.mark.parametrize("kind", [Noise, Drift])
def test_the_observed_range_is_kept_by_default(kind):
    ends = NUMBERS.min(axis=0), NUMBERS.max(axis=0)
    after = corrupt_inputs(NUMBERS, kind().fit(NUMBERS), severity=5)
    assert ((after >= ends[0]) & (after <= ends[1])).all()
    wild = kind(clip=False).fit(NUMBERS)
    assert "beyond the range" in wild.description
    beyond = corrupt_inputs(NUMBERS, wild, severity=5)
    assert ((beyond < ends[0]) | (beyond > ends[1])).any()
    outside = np.array([[1000.0, -500.0]] * 500)  # not pulled in
    after = corrupt_inputs(outside, kind(strengths=[1.0]).fit(NUMBERS), severity=1)
    assert after[:, 0].max() <= 1000
    assert after[:, 1].min() >= -500


def test_missing_and_infinite_cells_stay_and_do_not_count():
    rows = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan], [np.nan] * 2, [np.inf, 1]] * 10)
    rows[:, 1] = np.nan
    noisy = corrupt_inputs(rows, Noise(strengths=[1.0], clip=False).fit(rows), severity=1)
    finite = np.isfinite(rows)
    np.testing.assert_array_equal(noisy[~finite], rows[~finite])
    assert (noisy[finite] != rows[finite]).all()
    filled = corrupt_inputs(rows, MissingValues(fill="median").fit(rows), severity=5)
    np.testing.assert_array_equal(np.isnan(filled), np.isnan(rows))
    frame = pd.DataFrame({"colour": ["red", None, "blue", None] * 20})
    after = corrupt_inputs(frame, CategorySwaps(strengths=[1.0]).fit(frame), severity=1)
    assert after["colour"].isna().equals(frame["colour"].isna())


def test_drift_moves_a_column_by_one_amount_in_one_direction_at_all_severities():
    rows = RNG.normal(size=(50, 200))
    drift = Drift(clip=False).fit(rows)
    scale = stats.iqr(rows, axis=0, scale="normal")
    directions = []
    for severity, strength in enumerate(drift.strengths, start=1):
        moved = corrupt_inputs(rows, drift, severity=severity, seed=4) - rows
        # Sums of numbers near 1 are exact to 1e-15.
        np.testing.assert_allclose(moved, np.tile(moved[0], (50, 1)), atol=1e-14)
        np.testing.assert_allclose(np.abs(moved[0]), strength * scale, rtol=1e-12)
        directions.append(np.sign(moved[0]))
    assert np.ptp(directions, axis=0).max() == 0
    assert stats.binomtest(int((directions[0] > 0).sum()), 200).pvalue > 1e-4


@pytest.mark.parametrize("severity", [1, 5])
def test_as_many_cells_are_lost_as_the_strength_says(severity):
    missing = MissingValues().fit(FRAME)
    after = corrupt_inputs(FRAME, missing, severity=severity)
    lost = after.isna()
    for column in lost:
        count = int(lost[column].sum())
        assert stats.binomtest(count, N, missing.strengths[severity - 1]).pvalue > 1e-5
        kept = ~lost[column]
        assert after[column][kept].tolist() == FRAME[column][kept].tolist()
    # Cells are lost independently: five standard errors of a correlation that is 0.
    apart = np.corrcoef(lost.to_numpy().T) - np.eye(lost.shape[1])
    assert np.abs(apart).max() < 5 / np.sqrt(N)


def test_a_filled_cell_equals_that_of_an_imputer():
    rows = FRAME[["height", "visits", "colour"]].astype({"visits": float})
    lost = corrupt_inputs(rows, MissingValues().fit(rows), severity=4)
    filled = corrupt_inputs(rows, MissingValues(fill="median").fit(rows), severity=4)
    for columns, strategy in ((["height", "visits"], "median"), (["colour"], "most_frequent")):
        imputer = SimpleImputer(strategy=strategy).fit(rows[columns])
        assert (filled[columns].to_numpy() == imputer.transform(lost[columns])).all()
    assert MissingValues().may_lose_values
    assert not MissingValues(fill="median").may_lose_values


@pytest.mark.parametrize("severity", [1, 5])
def test_swaps_keep_the_shares_of_the_categories(severity):
    swaps = CategorySwaps().fit(FRAME)
    assert list(swaps.columns_) == ["colour", "grade", "smoker", "sure"]
    after = corrupt_inputs(FRAME, swaps, severity=severity)
    for column in ("colour", "smoker"):
        shares = FRAME[column].value_counts(normalize=True)
        expected = swaps.strengths[severity - 1] * (1 - (shares**2).sum())
        changed = int((after[column] != FRAME[column]).sum())
        assert stats.binomtest(changed, N, expected).pvalue > 1e-5
        counts = after[column].value_counts().reindex(shares.index)
        assert stats.chisquare(counts, N * shares).pvalue > 1e-5


def test_columns_of_a_frame_are_known_by_name():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)[::-1], 3: list("xyzxyzxyz")})
    noise = Noise().fit(frame)
    after = corrupt_inputs(frame, noise, severity=5)
    turned = corrupt_inputs(frame[[3, "b", "a"]].assign(new=1), noise, severity=5)
    assert turned[["a", "b", 3]].equals(after)
    only = corrupt_inputs(frame, Noise(columns=["a"]).fit(frame), severity=5)
    assert only["b"].equals(frame["b"])
    rows = frame[["a", "b"]].to_numpy()
    only = corrupt_inputs(rows, Noise(columns=[0]).fit(rows), severity=5)
    np.testing.assert_array_equal(only[:, 1], rows[:, 1])


NAMED = pd.DataFrame({"age": [1.0, 2.0], "colour": ["x", "y"]})
NAMED["when"] = pd.date_range("2024-01-01", periods=2)


@pytest.mark.parametrize(
    ("corruption", "rows", "words"),
    [
        (Noise(), [[1.0, 2.0]], "got <class 'list'>"),
        (Noise(), np.arange(3.0), "must be an array .n, d."),
        (Noise(), np.empty((0, 2)), "must have cells"),
        (Noise(), pd.DataFrame([[1, 2]], columns=["a", "a"]), "different names"),
        (Noise(columns=["agee"]), NAMED, "must have a column 'agee'"),
        (Noise(columns=["colour"]), NAMED, "cannot change column 'colour'"),
        (MissingValues(columns=["when"]), NAMED, "cannot change column 'when'"),
        (CategorySwaps(), ROWS, "needs columns of kind category"),
    ],
)
def test_tables_that_cannot_be_fitted_are_rejected(corruption, rows, words):
    with pytest.raises(InputError, match=words):
        corruption.fit(rows)


def test_rows_that_do_not_fit_are_rejected():
    with pytest.raises(NotFittedError, match="call fit"):
        corrupt_inputs(ROWS, Noise(), severity=1)
    with pytest.raises(InputError, match="must have a column 'age'"):
        corrupt_inputs(NAMED[["colour"]], Noise().fit(NAMED), severity=1)
    with pytest.raises(UnknownName, match="fill must be one of"):
        MissingValues(fill="mean")


# ---- texts

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# No letter stands next to its like, so that every exchange shows.
LONG = ["".join(RNG.permutation(list(LETTERS)).tolist()) for _ in range(400)]
WORDS = [" ".join(f"w{i}-{j}" for j in range(100)) for i in range(50)]
TEXTS = ["one two three four", "five six seven eight", "nine ten eleven twelve"]


@pytest.mark.parametrize(
    "texts",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS, index=[5, 6, 9], name="text"),
        pd.Series(TEXTS, dtype="string"),
    ],
)
def test_texts_stay_in_their_container(texts):
    after = corrupt_inputs(texts, "typos", severity=5)
    assert type(after) is type(texts)
    assert list(after) == corrupt_inputs(TEXTS, "typos", severity=5)
    if isinstance(texts, pd.Series):
        assert after.index.equals(texts.index)
        assert (after.name, after.dtype) == (texts.name, texts.dtype)


@pytest.mark.parametrize("severity", [1, 5])
def test_as_many_letters_are_hit_as_the_strength_says(severity):
    alone = list("".join(LONG))  # every hit of a letter that stands alone shows
    after = corrupt_inputs(alone, "typos", severity=severity)
    hits = sum(a != b for a, b in zip(alone, after, strict=True))
    assert stats.binomtest(hits, len(alone), Typos().strengths[severity - 1]).pvalue > 1e-5


def test_letters_keep_their_case_and_accents_and_other_scripts_have_no_neighbours():
    every = Typos(strengths=[1.0])
    (after,) = corrupt_inputs(["THE 7 Quick, brown-foxes: 42!\n\t(ok)"], every, severity=1)
    assert [c for c in after if not c.isalpha()] == list(" 7 , -: 42!\n\t()")
    assert set("".join(corrupt_inputs(["A"] * 99, every, severity=1))) == set("AQSWZ")
    (after,) = corrupt_inputs(["e\u0301a" * 30], Typos(strengths=[0.5]), severity=1)
    assert after.count("\u0301") == after.count("e\u0301") < 30  # a mark stays with its letter
    assert set("".join(corrupt_inputs(["щука"] * 300, every, severity=1))) <= set("щука")


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60), st.integers(1, 5), st.integers(0, 2**40))
def test_only_letters_are_ever_touched(text, severity, seed):
    (after,) = corrupt_inputs([text], Typos(), severity=severity, seed=seed)

    # A dropped letter takes its marks with it, so marks are left out.
    def others(given):
        return [c for c in given if not c.isalpha() and unicodedata.category(c)[0] != "M"]

    if "\u200d" not in text:
        assert others(after) == others(text)
    assert len(after) <= 2 * len(text)


@pytest.mark.parametrize("severity", [1, 5])
def test_as_many_words_are_dropped_as_the_strength_says(severity):
    dropped = DroppedWords()
    after = corrupt_inputs(WORDS, dropped, severity=severity)
    gone = 5000 - sum(len(text.split()) for text in after)
    assert stats.binomtest(gone, 5000, dropped.strengths[severity - 1]).pvalue > 1e-5
    for before, text in zip(WORDS, after, strict=True):  # the others keep their order
        kept = set(text.split())
        assert text == " ".join(word for word in before.split() if word in kept)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.integers(0, 2**32))
def test_no_word_is_made_up(text, seed):
    (after,) = corrupt_inputs([text], DroppedWords(), severity=4, seed=seed)
    words = iter(text.split())
    assert all(word in words for word in after.split())  # in order: `in` uses up the iterator
    assert bool(after.split()) == bool(text.split())

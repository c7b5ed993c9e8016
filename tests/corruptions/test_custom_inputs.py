"""Functions of the user's own for any inputs, and what can stand for a corruption."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import shiftcal as sc
from shiftcal.corruptions import (
    Custom,
    CustomInputs,
    as_input_corruption,
    corrupt_inputs,
    tabular,
    text,
)
from shiftcal.errors import InputError, UnknownName

ROWS = np.arange(12.0).reshape(6, 2)


def shifted(rows, severity, rng):
    rows += severity * rng.standard_normal(rows.shape)
    return rows


def shouted(text, severity, rng):
    return "".join(c.upper() if rng.random() < 0.1 * severity else c for c in text)


def test_a_function_gets_all_inputs_and_may_change_its_copy():
    before = ROWS.copy()
    after = corrupt_inputs(ROWS, shifted, severity=2, seed=3)
    np.testing.assert_array_equal(ROWS, before)
    assert (after != ROWS).all()
    np.testing.assert_array_equal(corrupt_inputs(ROWS, shifted, severity=2, seed=3), after)
    assert (corrupt_inputs(ROWS, shifted, severity=2, seed=4) != after).any()
    # The same numbers are drawn for no two severities.
    once = corrupt_inputs(ROWS, shifted, severity=1, seed=3) - ROWS
    assert (2 * once != after - ROWS).all()


def test_frames_sparse_matrices_and_lists_go_in_as_they_are():
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    doubled = corrupt_inputs(frame, lambda f: f.assign(a=2 * f["a"]), severity=1)
    assert doubled["a"].equals(2 * frame["a"])
    matrix = sparse.csr_matrix(ROWS)
    assert (corrupt_inputs(matrix, lambda m: 2 * m, severity=1) != 2 * matrix).nnz == 0
    assert corrupt_inputs([{"x": 1}], lambda many: [{"x": 0} for _ in many], severity=1) == [
        {"x": 0}
    ]


def test_what_lies_deep_in_the_inputs_is_not_changed_either():
    given = [np.zeros(3), np.ones(4)]

    def spoil(many):
        for each in many:
            each[:] = 9
        return many

    assert corrupt_inputs(given, spoil, severity=1)[0].tolist() == [9, 9, 9]
    assert given[0].tolist() == [0, 0, 0]


def test_with_each_an_input_has_a_stream_of_its_own():
    texts = ["the quick brown fox"] * 4
    own = CustomInputs(shouted, each=True)
    assert (own.name, own.severities) == ("shouted", 5)
    whole = corrupt_inputs(texts, own, severity=4, seed=1)
    assert len(set(whole)) == 4
    for i in range(4):
        alone = corrupt_inputs(texts[i : i + 1], own, severity=4, seed=1, first_index=i)
        assert alone == [whole[i]]
    assert type(corrupt_inputs(np.array(texts, object), own, severity=4)) is np.ndarray
    rows = corrupt_inputs(ROWS, CustomInputs(shifted, each=True), severity=1)
    assert rows.shape == ROWS.shape


def test_a_list_has_a_function_for_each_severity():
    ladder = CustomInputs([lambda r: r + 1, lambda r: r + 5], name="up")
    assert ladder.severities == 2
    assert repr(ladder) == "<corruption up (custom, 2 severities)>"
    np.testing.assert_array_equal(corrupt_inputs(ROWS, ladder, severity=2), ROWS + 5)
    np.testing.assert_array_equal(corrupt_inputs(ROWS, [np.negative], severity=1), -ROWS)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda rows: rows[:3], "must return 6 inputs, as it was given; it returned 3. Labels"),
        (lambda rows: rows.sort(), "it returned nothing. Put a return"),
        (lambda rows: len(rows) - 1, "must return 6 inputs, .* got int"),
        (lambda rows: "a" * len(rows), "must return 6 inputs, .* got one text"),
        (lambda rows: rows[:0], "must return 6 inputs, .* got none"),
    ],
)
def test_a_function_that_returns_something_else_is_refused(function, said):
    with pytest.raises(InputError, match=said):
        corrupt_inputs(ROWS, CustomInputs(function, name="odd"), severity=1)


def test_with_each_shapes_must_stay():
    with pytest.raises(InputError, match=r"of shape \(2,\), as it was given; it returned \[\(1,\)"):
        corrupt_inputs(ROWS, CustomInputs(lambda row: row[:1], each=True), severity=1)
    with pytest.raises(InputError, match=r"must be a list or an array; got DataFrame. Leave each"):
        corrupt_inputs(pd.DataFrame(ROWS), CustomInputs(np.negative, each=True), severity=1)
    with pytest.raises(InputError, match="each must be true or false"):
        CustomInputs(np.negative, each=1)


def test_what_a_function_raises_comes_through_with_its_name():
    def broken(rows):
        raise KeyError("height")

    with pytest.raises(KeyError, match="height") as caught:
        corrupt_inputs(ROWS, broken, severity=1)
    assert caught.value.__notes__ == ["raised by the corruption 'broken', severity 1"]


def test_inputs_that_cannot_be_copied_are_refused():
    class Once(list):
        def __deepcopy__(self, memo):
            raise TypeError("only one of me")

    with pytest.raises(InputError, match=r"can be copied, .* Once is not: only one of me"):
        corrupt_inputs(Once([1, 2]), CustomInputs(lambda x: x), severity=1)


def test_what_stands_for_a_corruption():
    assert isinstance(as_input_corruption("typos"), text.Typos)
    assert isinstance(as_input_corruption("Missing-Values"), tabular.MissingValues)
    assert isinstance(as_input_corruption(tabular.Noise), tabular.Noise)
    assert isinstance(as_input_corruption(np.negative), CustomInputs)
    with pytest.raises(UnknownName, match=r"rows or texts is called 'typo'. Did you mean 'typos'"):
        as_input_corruption("typo")
    with pytest.raises(UnknownName, match=r"'pixelate' is for images: SurrogateBank.synthesize"):
        as_input_corruption("pixelate")
    with pytest.raises(InputError, match="'own' is for images"):
        as_input_corruption(Custom(np.flipud, name="own"))
    with pytest.raises(InputError, match=r"a name such as 'typos'.* got 5"):
        as_input_corruption(5)


@pytest.mark.parametrize("given", [text.Typos(), tabular.Noise])
def test_images_cannot_be_corrupted_by_them(given):
    images = np.zeros((2, 32, 32, 3), np.uint8)
    with pytest.raises(InputError, match=r"is for rows or texts. SurrogateBank.from_inputs"):
        sc.corrupt(images, given, severity=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"severity": 6}, "severity must be .* at most 5; got 6"),
        ({"severity": -1}, "severity must be"),
        ({"severity": 1, "seed": -1}, "seed must be"),
        ({"severity": 1, "seed": 0.5}, "seed must be"),
        ({"severity": 1, "first_index": -1}, "first_index must be"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        corrupt_inputs(["text"], "typos", **options)


def test_a_class_of_ones_own_is_named_by_itself():
    class LostAccents(text.TextCorruption):
        defaults = (1.0,)

        def _altered(self, text, strength, rng):
            return text.replace("é", "e")

    assert LostAccents().name == "lost_accents"
    assert corrupt_inputs(["été"], LostAccents, severity=1) == ["ete"]

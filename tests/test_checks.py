"""Input validation: what passes, and the words for what does not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from shiftcal import TS, Scores, SurrogateBank
from shiftcal.checks import (
    check_choice,
    check_confidence,
    check_correct,
    check_count,
    check_features,
    check_fraction,
    check_images,
    check_labels,
    check_logits,
    check_probs,
    check_row_groups,
    check_scores,
    check_weights,
)
from shiftcal.errors import InputError, InputWarning

Z = np.array([[1.0, 2.0, -1.0], [0.5, -3.0, 4.0], [2.0, 2.0, 2.0]])
NAMES = ["ant", "bee", "cat"]
labels = partial(check_labels, n=3, k=3)
weights = partial(check_weights, n=3)
correct = partial(check_correct, n=2)
features = partial(check_features, name="target_features", n=3)
peek, level = partial(check_count, name="peek"), partial(check_fraction, name="level")
binning = partial(check_choice, allowed=("size", "width"), name="binning")


def objects(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def of_objects(values):
    return Scores(Z, labels=objects(values), classes=NAMES)


@pytest.mark.parametrize(
    ("check", "given", "words"),
    [
        (check_logits, Z[0], r"shape \(n, k\).* got shape \(3,\).*np\.column_stack"),
        (check_logits, Z[None], r"must have shape \(n, k\).* got shape \(1, 3, 3\)\.$"),
        (check_logits, Z[:0], "at least one row; this set is empty"),
        (check_logits, Z[:, :1], r"k >= 2; got shape \(3, 1\).*np\.zeros_like\(s\)"),
        (check_logits, np.where(Z == 4.0, np.nan, Z), "must be finite; row 1 holds nan"),
        (check_logits, np.where(Z == 4.0, -np.inf, Z), "row 1 holds -inf.*zero probabilities"),
        (check_logits, Z.astype(str), "must be real numbers; got dtype <U"),
        (check_logits, [[1, 2], [3]], "could not be read as an array"),
        (check_logits, None, "logits must be an array; got NoneType"),
        (check_logits, "x.npz", r"got str\. Read a file first"),
        (check_logits, Scores(Z), r"got Scores.* pass logits\(\)"),
        (check_logits, np.array([[1, None]], dtype=object), r"frame\.to_numpy\(dtype=float\)"),
        (check_logits, 1e31 * Z, "must lie within ±1e\\+30; row 0 holds"),
        (check_logits, np.array([[0.2, 0.8], [1.0, 0.0]] * 5), 'Say input="probabilities"'),
        (check_logits, np.array([[20.0, 80.0]] * 10), "in percent, divide them by 100"),
        (check_probs, Z, r"must lie in \[0, 1\]; these go from -3 to 4.*input=\"logits\""),
        (check_probs, [[0.5, 0.1]], "row 0 sums to 0.6"),
        (check_probs, [[50.0, 50.0]], r"must lie in \[0, 1\].*percent"),
        (labels, np.eye(3), r"labels\.argmax\(axis=1\)"),
        (labels, [[0], [1], [2]], r"labels\.ravel\(\)"),
        (labels, NAMES, r"values like .*ant.*list\(classes\)\.index\(name\)"),
        (labels, [0, 1], "3 rows, 2 labels"),
        (labels, [0, 1, 3], r"must lie in 0\.\.2.*go from 0 to 3\.$"),
        (labels, [1, 2, 3], "start at 1, pass labels - 1"),
        (labels, [0, 1, 1.5], "entry 2 is 1.5"),
        (of_objects, ["ant", None, "bee"], "labels must be all text .*; entry 1 is None"),
        (weights, [1, 1], r"must have shape \(3,\).* got shape \(2,\)"),
        (weights, [1, -1, 1], "must not be negative.*row 1 has -1"),
        (weights, [0, 0, 0], "nor zero everywhere"),
        (check_confidence, [87.0, 91.0], "go from 87 to 91.*as a fraction"),
        (check_confidence, [], "not empty"),
        (check_confidence, [[0.5, 0.5]], r"probs\.max\(axis=1\)"),
        (check_confidence, [0.5, np.nan], "row 1 holds nan"),
        (correct, [True], r"shape \(2,\); got shape \(1,\)"),
        (correct, [0, 2], "must hold True and False"),
        (features, [1.0, 2.0], r"target_features must have shape \(3, d\)"),
        (features, [[1.0], [2.0]], r"got shape \(2, 1\)"),
        (check_images, np.zeros((2, 9, 9, 3)), r"must be uint8.*images \* 255"),
        (check_images, np.zeros((2, 3, 9, 9), np.uint8), r"transpose\(0, 2, 3, 1\)"),
        (check_images, np.zeros((3, 9, 9), np.uint8), r"transpose\(1, 2, 0\).*grey"),
        (check_images, np.zeros((9, 9, 4), np.uint8), r"images\[..., :3\]"),
        (check_images, np.zeros((9, 7, 3), np.uint8), "at least 8 pixels.*9 x 7"),
        (check_images, [np.zeros((9, 9)), np.zeros((9, 8))], "must have one size"),
        (level, 95, "level must lie strictly between 0 and 1; got 95"),
    ],
)
def test_what_cannot_be_used_raises(check, given, words):
    with pytest.raises(InputError, match=words):
        check(given)


@pytest.mark.parametrize(
    "given", [Z.tolist(), Z.astype(np.float16), Z.astype(">f4"), np.asfortranarray(Z), Z[::-1]]
)
def test_anything_that_is_a_matrix_of_numbers_becomes_contiguous_floats(given):
    checked = check_logits(given)
    np.testing.assert_allclose(checked, np.asarray(given, dtype=np.float64), rtol=1e-3)
    half = getattr(given, "dtype", None) == np.float16
    assert checked.dtype == (np.float32 if half else np.float64)
    assert checked.flags.c_contiguous


def test_torch_tensors_pass_with_gradients_and_in_bfloat16():
    np.testing.assert_array_equal(check_logits(torch.tensor(Z, requires_grad=True)), Z)
    half = torch.tensor(Z, requires_grad=True).bfloat16()
    plain = half.detach().float().numpy()
    np.testing.assert_array_equal(check_logits(half), plain)
    expected = TS().fit(plain, [1, 0, 0]).temperature_
    assert TS().fit(half, torch.tensor([1, 0, 0])).temperature_ == expected


@pytest.mark.parametrize("n", [1, 9])
def test_few_rows_that_look_like_probabilities_are_a_warning(n):
    with pytest.warns(InputWarning, match="look like probabilities"):
        assert check_scores([[0.2, 0.8]] * n).shape == (n, 2)


def test_numbers_at_the_edge_are_taken():
    p = np.random.default_rng(3).dirichlet(np.ones(1000), size=5).astype(np.float16)
    np.testing.assert_allclose(check_probs(p).sum(axis=1), 1.0, atol=1e-12)
    z = check_scores([[1.0, 0.0]], input="probabilities")
    assert z[0] == pytest.approx([0.0, np.log(1.1754944e-38)], rel=1e-6)
    c = np.array([0.5, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    np.testing.assert_array_equal(check_confidence(c), np.array([0.5, 1.0], np.float32))
    assert c[1] > 1  # what was passed is left alone
    np.testing.assert_array_equal(labels([0.0, 2.0, 1.0]), [0, 2, 1])
    np.testing.assert_array_equal(check_labels([True, False], n=2, k=2), [1, 0])
    assert peek(np.int64(3)) == 3


@pytest.mark.parametrize(
    "hold",
    [
        *(objects, pd.Series, pd.Index, pd.Categorical),
        *(partial(pd.Series, dtype=dtype) for dtype in ("category", "string", object)),
    ],
)
def test_text_of_pandas_serves_as_labels_classes_and_ids(hold):
    truth = ["ant", "cat", "bee"]
    scores = Scores(Z, labels=hold(truth), classes=hold(NAMES), ids=hold(["x", "y", "z"]))
    assert scores.labels.tolist() == [0, 2, 1]
    assert scores.classes == tuple(NAMES)
    assert scores.ids.tolist() == ["x", "y", "z"]
    bank = SurrogateBank.from_arrays([Z, Z / 2], [hold(truth), hold(NAMES)], classes=NAMES)
    assert bank[1].labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("hold", [list, np.array, pd.Series, pd.Categorical, objects])
@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["b", "a", "b"], ("b", "a")),
        ([7, 12, 7], ("7", "12")),
        ([7.0, 12.0, 7.0], ("7", "12")),
    ],
)
def test_groups_are_the_text_of_names_and_whole_numbers(hold, groups, names):
    found, codes = check_row_groups(hold(groups), n=3)
    assert found == names
    assert codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("missing", [None, float("nan"), "", pd.NA, pd.NaT, 1.5, ("a", 3), 2j])
def test_a_group_that_is_missing_or_no_name_raises(missing):
    with pytest.raises(InputError, match="groups must be"):
        check_row_groups(["a", missing], n=2)
    with pytest.raises(InputError, match="groups must be an array"):
        check_row_groups("north", n=3)
    dates = np.array(["2024-05-01", "NaT"], dtype="M8[D]")
    assert check_row_groups(dates[:1], n=1)[0] == ("2024-05-01",)
    with pytest.raises(InputError, match="with 'NaT'"):
        check_row_groups(dates, n=2)

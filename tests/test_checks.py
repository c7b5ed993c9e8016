"""Input validation: every message, and what passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shiftcal import TS, Scores
from shiftcal import checks as _checks
from shiftcal.errors import InputError, InputWarning, UnknownName

Z = np.array([[1.0, 2.0, -1.0], [0.5, -3.0, 4.0], [2.0, 2.0, 2.0]])


@pytest.mark.parametrize(
    "given", [Z.tolist(), Z.astype(np.float16), Z.astype(">f4"), np.asfortranarray(Z), Z[::-1]]
)
def test_anything_that_is_a_matrix_of_numbers_becomes_contiguous_floats(given):
    checked = _checks.check_logits(given)
    np.testing.assert_allclose(checked, np.asarray(given, dtype=np.float64), rtol=1e-3)
    assert checked.dtype in (np.float32, np.float64)
    assert checked.dtype.isnative
    assert checked.flags.c_contiguous


def test_float_dtypes_are_kept_and_others_widened():
    assert _checks.check_logits(Z.astype(np.float32)).dtype == np.float32
    assert _checks.check_logits(Z.astype(np.float16)).dtype == np.float32
    assert _checks.check_logits((Z * 2).astype(np.int8)).dtype == np.float64


def test_torch_tensors_pass_with_gradients_and_in_bfloat16():
    np.testing.assert_array_equal(_checks.check_logits(torch.tensor(Z)), Z)
    np.testing.assert_array_equal(_checks.check_logits(torch.tensor(Z, requires_grad=True)), Z)
    half = torch.tensor(Z, requires_grad=True).bfloat16()
    np.testing.assert_array_equal(_checks.check_logits(half), half.detach().float().numpy())
    expected = TS().fit(half.detach().float().numpy(), [1, 0, 0]).temperature_
    assert TS().fit(half, torch.tensor([1, 0, 0])).temperature_ == expected
    with pytest.raises(InputError, match="logits could not be read as an array"):
        _checks.check_logits(torch.tensor(Z, device="meta"))


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        (Z[0], r"shape \(n, k\) with k >= 2; got shape \(3,\).*np\.column_stack"),
        (Z[None], r"must have shape \(n, k\) with k >= 2; got shape \(1, 3, 3\)\.$"),
        (Z[:0], "at least one row; this set is empty"),
        (Z[:, :1], r"at least two; got shape \(3, 1\)"),
        (np.where(Z == 4.0, np.nan, Z), "must be finite; row 1 holds nan"),
        (np.where(Z == 4.0, -np.inf, Z), "must be finite; row 1 holds -inf.*zero probability"),
        (Z.astype(str), "must be real numbers; got dtype <U"),
        (Z + 1j, "must be real numbers; got dtype complex"),
        ([[1, 2], [3]], "could not be read as an array"),
        (None, "logits must be an array; got NoneType"),
        ("x.npz", r"got str\. Read a file first"),
        (Scores(Z), r"got Scores\. Pass its logits\(\)"),
        (np.array([[1, None]], dtype=object), r"frame\.to_numpy\(dtype=float\)"),
        (1e31 * Z, "must lie within ±1e\\+30; row 0 holds"),
        (Z[:, :1] * 0 + 0.3, r"np\.zeros_like\(s\)"),
        (np.ma.masked_equal(Z, 4.0), "must not be masked"),
        (np.array([[0.2, 0.8], [1.0, 0.0]]), 'Say input="probabilities"'),
    ],
)
def test_logits_that_cannot_be_used_are_refused(logits, words):
    with pytest.raises(InputError, match=words):
        _checks.check_logits(logits)


def test_few_rows_that_look_like_probabilities_are_warned_of_where_they_are_to_be_calibrated():
    for n, words in ((1, "One is too few"), (9, "9 are too few")):
        with pytest.warns(InputWarning, match=f"look like probabilities.* {words}") as caught:
            z = _checks.check_scores([[0.2, 0.8]] * n, guard_from=_checks.GUARD_FROM)
        assert z.shape == (n, 2)
        assert len(caught) == 1
    with pytest.raises(InputError, match="are probabilities"):
        _checks.check_scores([[0.2, 0.8]] * 10, guard_from=_checks.GUARD_FROM)


@pytest.mark.parametrize(
    ("probs", "words"),
    [
        (Z, r"must lie in \[0, 1\]; these go from -3 to 4.*input=\"logits\""),
        ([[0.5, 0.1]], "row 0 sums to 0.6"),
        ([[50.0, 50.0]], r"must lie in \[0, 1\]"),
        ([0.5, 0.5], r"np\.column_stack\(\[1 - p, p\]\)"),
    ],
)
def test_probabilities_that_are_none_are_refused(probs, words):
    with pytest.raises(InputError, match=words):
        _checks.check_probs(probs)


def test_half_precision_probabilities_pass_and_sum_to_one():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(1000), size=5).astype(np.float16)
    np.testing.assert_allclose(_checks.check_probs(p).sum(axis=1), 1.0, atol=1e-12)


def test_a_zero_probability_becomes_a_finite_logit():
    z = _checks.check_scores([[1.0, 0.0]], input="probabilities")
    assert z[0, 0] == 0.0
    assert z[0, 1] == pytest.approx(np.log(1.1754944e-38), rel=1e-6)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.eye(3), r"pass labels\.argmax\(axis=1\)"),
        ([[0], [1], [2]], r"labels\.ravel\(\)"),
        (["cat", "dog", "cat"], r"values like .*cat.*list\(classes\)\.index\(name\)"),
        ([0, 1], "3 rows, 2 labels"),
        ([0, 1, 3], r"must lie in 0\.\.2.*go from 0 to 3\.$"),
        ([1, 2, 3], "start at 1, pass labels - 1"),
        ([0, 1, -1], "go from -1 to 1"),
        ([0, 1, 1.5], "entry 2 is 1.5"),
        ([0, 1, np.nan], "entry 2 is nan"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(labels, words):
    with pytest.raises(InputError, match=words):
        _checks.check_labels(labels, n=3, k=3)


def test_whole_floats_and_booleans_are_labels():
    np.testing.assert_array_equal(_checks.check_labels([0.0, 2.0, 1.0], n=3, k=3), [0, 2, 1])
    np.testing.assert_array_equal(_checks.check_labels([True, False], n=2, k=2), [1, 0])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 1], r"must have shape \(3,\); got shape \(2,\)"),
        ([1, -1, 1], "must not be negative; row 1 has -1"),
        ([0, 0, 0], "must not be zero everywhere"),
        ([1, np.nan, 1], "must be finite; row 1 holds nan"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights, words):
    with pytest.raises(InputError, match=words):
        _checks.check_weights(weights, n=3)


@pytest.mark.parametrize(
    ("confidence", "words"),
    [
        ([87.0, 91.0], "go from 87 to 91.*as a fraction"),
        ([-0.1, 0.5], "go from -0.1"),
        ([], "this set is empty"),
        ([[0.5]], r"must have shape \(n,\)"),
        ([[0.5, 0.5]], r"probs\.max\(axis=1\), and correct is"),
        ([1.001], "go from 1.001"),
        ([0.5, np.nan], "row 1 holds nan"),
    ],
)
def test_confidences_that_are_none_are_refused(confidence, words):
    with pytest.raises(InputError, match=words):
        _checks.check_confidence(confidence)


def test_a_hair_above_one_is_one():
    c = np.array([0.5, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    np.testing.assert_array_equal(_checks.check_confidence(c), np.array([0.5, 1.0], np.float32))
    assert c[1] > 1  # what was passed is left alone


@pytest.mark.parametrize(
    ("correct", "words"),
    [
        ([True], r"shape \(2,\); got shape \(1,\)"),
        ([0, 2], "must hold True and False"),
        (["yes", "no"], "must hold True and False"),
        ([0.5, 1.0], "must hold True and False"),
    ],
)
def test_correctness_that_is_none_is_refused(correct, words):
    with pytest.raises(InputError, match=words):
        _checks.check_correct(correct, n=2)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([1.0, 2.0], r"target_features must have shape \(n, d\)"),
        ([[1.0], [2.0]], "3 samples, 2 rows"),
        ([[1.0], [2.0], [np.nan]], "row 2 holds nan"),
    ],
)
def test_features_that_cannot_be_used_are_refused(features, words):
    with pytest.raises(InputError, match=words):
        _checks.check_features(features, name="target_features", n=3)


def test_small_settings_are_checked():
    assert _checks.check_count(np.int64(3), name="peek") == 3
    with pytest.raises(InputError, match="peek must be a whole number of at least 1; got True"):
        _checks.check_count(True, name="peek")
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1; got 95"):
        _checks.check_fraction(95, name="level")
    with pytest.raises(UnknownName, match=r"one of 'size', 'width'; got 'mass'"):
        _checks.check_choice("mass", ("size", "width"), name="binning")

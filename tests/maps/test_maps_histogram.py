"""Histogram binning against plain slices of sorted rows."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw, quiet_fit, top1

from shiftcal.maps import Histogram
from shiftcal.numerics.fits import lowest_top1


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_bins_are_equal_slices_of_the_sorted_rows(n_bins):
    logits, labels = draw(60 * n_bins, 4, temperature=1.5, seed=n_bins)
    confidence, correct = top1(logits, labels)
    slices = np.split(np.argsort(confidence), n_bins)
    fitted = Histogram(n_bins=n_bins).fit(logits, labels)
    np.testing.assert_allclose(fitted.accuracy_, [correct[rows].mean() for rows in slices])
    got = fitted.predict_proba(logits).max(axis=1)
    for rows in slices:
        np.testing.assert_allclose(got[rows], max(correct[rows].mean(), lowest_top1(4)))


def test_edges_lie_midway_between_their_neighbours():
    logits = np.array([[float(s), 0.0] for s in (1, 2, 3, 4)])
    labels = np.array([1, 0, 0, 0])
    fitted = quiet_fit(Histogram(n_bins=2), logits, labels)
    confidence, _ = top1(logits, labels)
    np.testing.assert_allclose(fitted.edges_, [(confidence[1] + confidence[2]) / 2])
    np.testing.assert_allclose(fitted.accuracy_, [0.5, 1.0])


def test_equal_confidences_are_never_parted():
    logits = np.array([[1.0, 0.0]] * 70 + [[2.0, 0.0]] * 20 + [[3.0, 0.0]] * 10)
    labels = np.tile([0, 0, 0, 0, 1], 20)
    fitted = Histogram(n_bins=10).fit(logits, labels)
    assert len(fitted.accuracy_) == 3
    assert len(np.unique(fitted.predict_proba(logits)[:, 0])) <= 3
    np.testing.assert_allclose(fitted.accuracy_, [0.8, 0.8, 0.8])


def test_weights_set_the_sizes_and_the_accuracies():
    logits = np.array([[float(s), 0.0] for s in (1, 2, 3, 4)])
    labels = np.array([0, 1, 0, 1])
    fitted = quiet_fit(Histogram(n_bins=2), logits, labels, sample_weight=[1, 1, 1, 3])
    # half of the weight lies on the last row
    np.testing.assert_allclose(fitted.accuracy_, [2 / 3, 0.0])

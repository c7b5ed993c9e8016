"""The bin table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shiftcal.errors import InputError, UnknownName
from shiftcal.metrics import bin_table, ece, mce


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    c = np.round(rng.beta(6, 2, 1003), 3)
    return c, rng.random(len(c)) < c


@pytest.mark.parametrize("binning", ["size", "width"])
@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_it_sums_up_to_the_errors(rows, binning, n_bins):
    table = bin_table(*rows, n_bins=n_bins, binning=binning)
    assert table.ece == pytest.approx(ece(*rows, n_bins=n_bins, binning=binning), abs=1e-12)
    assert table.mce == pytest.approx(mce(*rows, n_bins=n_bins, binning=binning), abs=1e-12)
    assert len(table) == n_bins


def test_an_empty_bin_has_no_means():
    table = bin_table([0.9, 0.95], [True, False], n_bins=2, binning="width")
    assert table.count.tolist() == [0, 2]
    assert np.isnan(table.gap[0])
    assert table.to_dict()["accuracy"] == [None, 0.5]
    assert str(table).splitlines()[1].split() == ["1", "0.0000", "0.5000", "0", "-", "-", "-"]


def test_it_becomes_json_and_text(rows):
    table = bin_table(*rows, n_bins=3)
    columns = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert list(columns) == ["lower", "upper", "count", "confidence", "accuracy", "gap"]
    assert columns["count"] == table.count.tolist()
    lines = str(table).splitlines()
    assert lines[0].split() == ["bin", *columns]
    assert len(lines) == 4
    assert lines[2].split()[1] == f"{table.lower[1]:.4f}"


@pytest.mark.parametrize("binning", ["size", "width"])
def test_bins_may_be_formed_on_another_confidence(rows, binning):
    judged, correct = rows
    raw = judged**0.5
    # An increasing change keeps every rank, so bins of equal size are the same rows.
    table = bin_table(judged, correct, bin_by=raw, binning=binning)
    if binning == "size":
        np.testing.assert_allclose(table.gap, bin_table(judged, correct).gap, atol=1e-12)
    for i in range(15):
        inside = (raw > table.lower[i]) & (raw <= table.upper[i])
        if binning == "width" and inside.any():
            assert table.count[i] == inside.sum()
            assert table.confidence[i] == pytest.approx(judged[inside].mean())
            assert table.accuracy[i] == pytest.approx(correct[inside].mean())


def test_what_is_wrong_is_said(rows):
    with pytest.raises(InputError, match=r"bin_by must have one entry per confidence: 1003 .* 3"):
        bin_table(*rows, bin_by=[0.1, 0.2, 0.3])
    with pytest.raises(InputError, match=r"bin_by must lie in \[0, 1\]"):
        bin_table(*rows, bin_by=100 * rows[0])
    with pytest.raises(
        UnknownName,
        match="binning must be one of 'size', 'width', 'quantile', 'uniform'; got 'mass'",
    ):
        bin_table(*rows, binning="mass")
    with pytest.raises(
        InputError, match="n_bins must be a whole number of at least 1 and at most 1,000,000; got 0"
    ):
        bin_table(*rows, n_bins=0)

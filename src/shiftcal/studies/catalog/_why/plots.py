"""Calibration plots: binned accuracy and confidence of one target under every method."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from shiftcal import metrics
from shiftcal._types import Confidence
from shiftcal.errors import FitWarning
from shiftcal.metrics import BinTable
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures.calibration import Reliability
from shiftcal.studies.archive import Archive, Stored
from shiftcal.studies.catalog._why.measured import correctness
from shiftcal.studies.record import Record
from shiftcal.studies.stages.outcome import fitted
from shiftcal.studies.variant import Variant
from shiftcal.surrogates import SurrogateBank

# Half the width of a bin that has none.
_SLIVER = 5e-4


def reliability(
    record: Record,
    variant: Variant,
    target: Stored,
    *,
    bank: SurrogateBank,
    archive: Archive,
    bins: int,
) -> Reliability:
    """One method's bins of equal size, over its calibrated confidence.

    A method that divides by one temperature is applied again by that of its record; another is
    fitted again.

    Args:
        record: What came of it.
        variant: What it is.
        target: The test rows.
        bank: The surrogate sets of the record's split.
        archive: The scores.
        bins: How many.
    """
    if record.temperature is None:
        confidence, correct = _again(variant, target, bank, archive)
    else:
        confidence, correct = p_max(target.logits, record.temperature), correctness(target)
    table = metrics.bin_table(confidence, correct, n_bins=bins)
    edges, first = _edges(table)
    count = np.add.reduceat(table.count, first)
    sure = np.add.reduceat(table.count * table.confidence, first) / count
    right = np.add.reduceat(table.count * table.accuracy, first) / count
    return Reliability(
        key=record.variant,
        label=record.label,
        edges=edges,
        accuracy=tuple((100 * right).tolist()),
        confidence=tuple((100 * sure).tolist()),
        count=tuple(count.tolist()),
        ece=100 * table.ece,
        temperature=record.temperature,
    )


def _again(
    variant: Variant, target: Stored, bank: SurrogateBank, archive: Archive
) -> tuple[Confidence, NDArray[np.bool_]]:
    method = fitted(variant, bank, archive).method
    assert method is not None  # the oracle has a temperature
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # it is in the record's flags
        method.adapt(target.logits, target.features)
        probs = method.predict_proba(target.logits)
    return probs.max(axis=1), probs.argmax(axis=1) == target.labels


def _edges(table: BinTable) -> tuple[tuple[float, ...], list[int]]:
    """Edges half-way between neighbouring bins, and the first bin of each that is drawn.

    Bins of one and the same confidence, as at 1, have no width: they are drawn as part of the bin
    before them, or after them if they are the first.
    """
    start, end = float(table.lower[0]), float(table.upper[-1])
    if start == end:  # one confidence everywhere: a sliver, so that it is seen
        start, end = max(0.0, start - _SLIVER), min(1.0, end + _SLIVER)
    edges, first = [start], [0]
    for index, edge in enumerate(((table.upper[:-1] + table.lower[1:]) / 2).tolist(), start=1):
        if edges[-1] < edge < end and table.lower[0] < table.upper[-1]:
            edges.append(edge)
            first.append(index)
    return (*edges, end), first

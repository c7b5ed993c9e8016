"""Fitted methods on the target, and on the labelled rows that diagrams are drawn of."""

from __future__ import annotations

from pathlib import PurePath

import numpy as np

from shiftcal._types import Floats, Labels
from shiftcal.methods._selection import Selection
from shiftcal.report.html._fitting import Fitted
from shiftcal.report.html._judge import (
    Outputs,
    calibration_error,
    diagram,
    draws_for,
    of_kind,
    outputs,
    strip,
)
from shiftcal.report.html._shares import gap, share
from shiftcal.report.html._words import shown
from shiftcal.report.html.evidence import MethodFacts, Shown
from shiftcal.report.html.parts import EstimateFacts, Judging, Ranged, TargetFacts
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank


class Judged:
    """What methods do to the target.

    Args:
        bank: The bank.
        scores: Of the target.
        fitted: The methods.
        main: The one the report is about.
        judging: How.

    Attributes:
        target: The target in numbers.
        nearest: The set that stands for the target where a labelled one is needed: that which the
            method chose, else the nearest in mean confidence.
        shown: What diagrams are drawn of.
        draws: Bootstrap draws behind an interval of ECE.
    """

    def __init__(
        self, bank: SurrogateBank, scores: Scores, fitted: Fitted, *, main: str, judging: Judging
    ) -> None:
        self._bank, self._labels, self._fitted = bank, scores.labels, fitted
        self._judging = judging
        values = scores.as_kind(bank.input).values
        self._outputs = {name: outputs(one, values) for name, one in fitted.methods.items()}
        self.target = self._target(scores)
        chosen = self.selection(main).index
        self.nearest = self._nearest() if chosen is None else chosen
        near = bank[self.nearest]
        self.shown = (
            Shown("surrogate", shown(near.name), len(near))
            if scores.labels is None
            else Shown("target", self.target.name, scores.n)
        )
        labelled = scores.labels is not None and judging.n_resamples
        self.draws = draws_for(scores.n, judging) if labelled else judging.n_resamples

    def of(self, name: str) -> Outputs:
        """What a method gives for the target."""
        return self._outputs[name]

    def selection(self, name: str) -> Selection:
        """What a method chose."""
        found = self._fitted.methods[name].selection_
        assert found is not None
        return found

    def methods(self, estimate: EstimateFacts | None) -> tuple[MethodFacts, ...]:
        """Every method in numbers."""
        rows, labels = self._drawn_rows()
        return tuple(self._method(name, estimate, rows, labels) for name in self._outputs)

    def _method(
        self, name: str, estimate: EstimateFacts | None, rows: Floats | None, labels: Labels
    ) -> MethodFacts:
        method, selection, made = self._fitted.methods[name], self.selection(name), self.of(name)
        drawn = made if rows is None else outputs(method, rows)
        ends = selection.temperature_interval
        return MethodFacts(
            name=name,
            summary=type(method).summary().replace("``", ""),
            choice=shown(str(selection), 400),
            temperature=selection.temperature,
            temperature_low=None if ends is None else ends.low,
            temperature_high=None if ends is None else ends.high,
            mean_confidence=float(made.confidence.mean()),
            gap=self._gap(made, estimate),
            ece=None
            if self._labels is None
            else calibration_error(made, self._labels, self._judging),
            n_changed=int(np.count_nonzero(made.predicted != self.of("vanilla").predicted)),
            bins=diagram(drawn, labels, self._judging),
            shares=strip(drawn.confidence),
        )

    def _drawn_rows(self) -> tuple[Floats | None, Labels]:
        """Rows to draw diagrams of, ``None`` for the target's own, and their labels."""
        if self._labels is not None:
            return None, self._labels
        near = self._bank[self.nearest]
        return of_kind(near.logits, self._bank.input), near.labels

    def _gap(self, made: Outputs, estimate: EstimateFacts | None) -> Ranged | None:
        if self._labels is not None:
            return gap(made.confidence, made.correct(self._labels), level=self._judging.level)
        if estimate is None:
            return None
        mean = float(made.confidence.mean())
        return Ranged(mean - estimate.value, mean - estimate.high, mean - estimate.low)

    def _target(self, scores: Scores) -> TargetFacts:
        raw, accuracy = self._outputs["vanilla"], None
        if scores.labels is not None:
            right = float(np.count_nonzero(raw.correct(scores.labels)))
            accuracy = share(right, float(scores.n), level=self._judging.level)
        name = PurePath(scores.source).name if scores.source else "target"
        mean = float(raw.confidence.mean())
        return TargetFacts(shown(name), scores.n, scores.k, mean, accuracy)

    def _nearest(self) -> int:
        means = np.array([s.mean_confidence for s in self._bank.summaries()])
        return int(np.abs(means - self.target.mean_confidence).argmin())

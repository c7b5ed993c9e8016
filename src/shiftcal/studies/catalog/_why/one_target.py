"""One target beside every surrogate set: the figure of densities and its table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shiftcal._types import Logits
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures.densities import Densities, Surrogate, density, stretched_grid
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._why.case import spoken
from shiftcal.studies.catalog._why.measured import Rung, Seen

_POINTS = 201
# If more than half of the target's p_max are above it, a plain axis shows nothing but a peak at 1.
_CROWDED = 0.95


def densities(
    rungs: Sequence[Rung], logits: Logits, seen: Seen, *, title: str, note: str
) -> Densities:
    """Densities of raw p_max; below, the target under each surrogate's temperature.

    The axis is stretched towards 1 if more than half of the target's p_max are above 0.95.
    """
    confidence = p_max(logits)
    stretched = float(np.median(confidence)) > _CROWDED
    grid = stretched_grid(_POINTS) if stretched else np.linspace(0.0, 1.0, _POINTS)
    surrogates = [
        Surrogate(
            label=spoken(rung.name),
            density=tuple(density(rung.p_max, grid, stretched=stretched).tolist()),
            mean=rung.mean,
            accuracy=100 * seen.accuracy,
            confidence=100 * seen.confidences[j],
            ece=100 * seen.eces[j],
            chosen=j == seen.nearest,
        )
        for j, rung in enumerate(rungs)
    ]
    return Densities(
        grid=tuple(grid.tolist()),
        target=tuple(density(confidence, grid, stretched=stretched).tolist()),
        target_mean=seen.mean,
        target_label=title,
        surrogates=tuple(surrogates),
        title=f"Target and surrogate sets: {title}",
        note=note,
        stretched=stretched,
    )


def surrogates_table(rungs: Sequence[Rung], seen: Seen, *, title: str, note: str) -> Table:
    """Every surrogate in numbers; the least ECE is marked."""
    columns = (
        Column("mean p_max", digits=4),
        Column("difference to the target", digits=4),
        Column("T", digits=3),
        Column("accuracy", unit="%", group="target under T"),
        Column("confidence", unit="%", group="target under T"),
        Column("ECE", unit="%", group="target under T", lower_is_better=True),
        Column("chosen"),
    )
    rows = [
        Row(
            spoken(rung.name),
            (
                Cell(rung.mean),
                Cell(seen.distances[j]),
                Cell(rung.temperature),
                Cell(100 * seen.accuracy),
                Cell(100 * seen.confidences[j]),
                Cell(100 * seen.eces[j]),
                Cell("yes" if j == seen.nearest else "no"),
            ),
        )
        for j, rung in enumerate(rungs)
    ]
    said = f"Mean p_max of the target: {seen.mean:.4f}. {note}"
    name = f"Surrogate sets beside the target: {title}"
    return Table(name, columns, tuple(rows), note=said, corner="Surrogate set").marked()

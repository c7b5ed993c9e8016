"""One target beside every surrogate set: the figure of densities, its table, its sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shiftcal._types import Logits
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures.densities import Densities, Surrogate, density
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._why.measured import Rung, Seen

_GRID = np.linspace(0.0, 1.0, 201)


def densities(
    rungs: Sequence[Rung], logits: Logits, seen: Seen, *, title: str, note: str
) -> Densities:
    """Densities of raw p_max; below, the target under each surrogate's temperature."""
    surrogates = [
        Surrogate(
            label=spoken(rung.name),
            density=tuple(density(rung.p_max, _GRID).tolist()),
            mean=rung.mean,
            accuracy=100 * seen.accuracy,
            confidence=100 * seen.confidences[j],
            ece=100 * seen.eces[j],
            chosen=j == seen.nearest,
        )
        for j, rung in enumerate(rungs)
    ]
    return Densities(
        grid=tuple(_GRID.tolist()),
        target=tuple(density(p_max(logits), _GRID).tolist()),
        target_mean=seen.mean,
        target_label=title,
        surrogates=tuple(surrogates),
        title=f"Target and surrogate sets: {title}",
        note=note,
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


def verdict(rungs: Sequence[Rung], seen: Seen, *, title: str) -> str:
    """Whether the closest mean gives the least ECE, as the paper says of its example."""
    nearest, best = seen.nearest, seen.best
    found = (
        f"Target {title}: the surrogate set with the closest mean p_max is "
        f"{spoken(rungs[nearest].name)} "
        f"(difference {seen.distances[nearest]:.4f}), and under its temperature the ECE is "
        f"{100 * seen.eces[nearest]:.2f} %"
    )
    if nearest == best:
        return f"{found}, the least of all {len(rungs)} sets, as the paper says."
    return (
        f"{found}. The least is that of {spoken(rungs[best].name)}, {100 * seen.eces[best]:.2f} %: "
        "here the closest mean does not give the least ECE, unlike in the paper's example."
    )


def spoken(name: str) -> str:
    """A set's name for people: ``pixelate-3`` is pixelate 3."""
    return name.replace("_", " ").replace("-", " ")

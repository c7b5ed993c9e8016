"""Error against the number of target rows looked at, drawn."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.studies.catalog._peek.peeked import Peeked, shifted_of
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, Results, mean_over_splits, select
from shiftcal.studies.showing import ECE, severities_in_words


def sizes_figure(peeked: Sequence[Peeked], results: Results) -> Lines:
    """Mean ECE against the number of rows: over all severities beside others, and by severity."""
    shifted = shifted_of(peeked)
    bases = [
        [each for each in peeked if each.base == base]
        for base in dict.fromkeys(each.base for each in peeked)
    ]
    base = bases[0]
    x = _x(base)
    overall = [*(_of_sac(own, x, shifted) for own in bases), *_references(results, shifted, len(x))]
    by_severity = tuple(
        Series(key=f"severity-{s}", label=f"severity {s}", y=_y(base, x, [s]))
        for s in results.severities
    )
    label = "target rows looked at" + (", all of them last" if len(x) > len(base) else "")
    return Lines(
        panels=(
            Panel(
                x=x,
                series=tuple(overall),
                x_label=label,
                title=f"mean of {severities_in_words(shifted)}",
                log_x=True,
            ),
            Panel(
                x=x,
                series=by_severity,
                x_label=label,
                title=f"{_name(base)} by severity",
                log_x=True,
            ),
        ),
        y_label=f"mean {ECE}",
        title="How many target rows have to be looked at",
        intervals="bands",
        note=_note(base, shifted),
    )


def _note(base: Sequence[Peeked], shifted: Sequence[int]) -> str:
    """What the band is, and how much better the mean within it is known."""
    if all(each.spread(shifted) is None for each in base):
        return "One draw has no band."
    targets = {record.target for each in base for record in each.records if record.severity}
    told = (
        "Band on the left: how far the ECE of one target strays when other rows are drawn, one "
        f"standard deviation to either side of the mean of all {len(targets)} targets."
    )
    means = [each.mean(shifted) for each in base]
    halves = [100 * (m.high - m.value) for m in means if m is not None and m.high is not None]
    if not halves:
        return told
    return (
        f"{told} The mean itself is known to ± {min(halves):.2f} to {max(halves):.2f} points "
        "(95 %, over the splits)."
    )


def _x(base: Sequence[Peeked]) -> tuple[float, ...]:
    """The numbers of rows, and that of all rows if it is greater."""
    sizes = sorted(each.size for each in base)
    everything = {record.n for record in base[0].whole if record.severity is not None}
    return tuple(map(float, (*sizes, *(n for n in sorted(everything)[-1:] if n > sizes[-1]))))


def _y(
    base: Sequence[Peeked], x: Sequence[float], severities: Sequence[int]
) -> tuple[float | None, ...]:
    at = {float(each.size): each.mean(severities) for each in base}
    last = _mean(select(base[0].whole, severity=severities))
    means = [at.get(each, last) for each in x]
    return tuple(None if mean is None else 100 * mean.value for mean in means)


def _of_sac(base: Sequence[Peeked], x: Sequence[float], shifted: Sequence[int]) -> Series:
    y = _y(base, x, shifted)
    spreads = {float(each.size): each.spread(shifted) for each in base}
    half = [spreads.get(each) for each in x]
    ends = [
        (None, None) if h is None or v is None else (v - 100 * h, v + 100 * h)
        for v, h in zip(y, half, strict=True)
    ]
    return Series(
        key=base[0].base,
        label=_name(base),
        y=y,
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
    )


def _name(base: Sequence[Peeked]) -> str:
    """What it is called without the number of rows."""
    return base[0].label.rpartition(",")[0]


def _references(results: Results, shifted: Sequence[int], n: int) -> list[Series]:
    """Methods that look at no rows or know the labels, as level lines; Vanilla is far above."""
    made = []
    for key in results.variants:
        records = results.select(variant=key, severity=shifted)
        if key == "vanilla" or not records or records[0].method == "sac":
            continue
        value = 100 * mean_over_splits(records).value
        made.append(Series(key=key, label=records[0].label, y=(value,) * n))
    return made


def _mean(records: Sequence[Record]) -> Mean | None:
    return mean_over_splits(records) if records else None

"""Error against the number of target rows looked at, drawn and told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.studies.catalog._peek.peeked import Peeked, shifted_of
from shiftcal.studies.catalog._spans import in_words
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, Results, mean_over_splits, select
from shiftcal.studies.showing import ECE

# So many points beside the error with all rows count as the same.
_NEAR = 0.5


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
                title=f"mean of {in_words(shifted)}",
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
        note=(
            "Band: one standard deviation of one target's ECE to either side, when other rows "
            "are drawn."
        ),
    )


def remarks_of(peeked: Sequence[Peeked], results: Results) -> Iterator[str]:
    """Sentences made from the numbers."""
    shifted = shifted_of(peeked)
    if not shifted:
        return
    for each in peeked:
        yield from _cost(each, shifted)
    for base in dict.fromkeys(each.base for each in peeked):
        own = [each for each in peeked if each.base == base]
        yield from _fewest(own, shifted)
        yield from _against_ts(own, results, shifted)
        yield from _better(own, shifted)


def _cost(each: Peeked, shifted: Sequence[int]) -> Iterator[str]:
    mean, more, same = each.mean(shifted), each.more(shifted), each.same(shifted)
    if mean is None or more is None or same is None:
        return
    points = f"{abs(100 * more.value):.2f}"
    word = "more" if more.value > 0 else "less"
    beside = f"{points} points {word} than" if float(points) else "the same as"
    spread = each.spread(shifted)
    varies = "" if spread is None else f"; one target's ECE varies by {100 * spread:.2f} points"
    yield (
        f"{each.label}: mean ECE {100 * mean.value:.2f} %, {beside} with all rows; "
        f"{100 * same.value:.0f} % of the draws choose the same set{varies}."
    )


def _fewest(own: Sequence[Peeked], shifted: Sequence[int]) -> Iterator[str]:
    extra = {each.size: each.more(shifted) for each in own}
    known = {size: 100 * mean.value for size, mean in extra.items() if mean is not None}
    near = [size for size, points in known.items() if points <= _NEAR]
    whole = own[0].whole[0].label if own[0].whole else ""
    if near:
        yield (
            f"{min(near)} rows are the fewest tried whose mean ECE is at most {_NEAR} points above "
            f"that of {whole}."
        )
    elif known:
        yield f"No number of rows tried comes within {_NEAR} points of {whole}."


def _against_ts(own: Sequence[Peeked], results: Results, shifted: Sequence[int]) -> Iterator[str]:
    ts = _mean(results.select(variant="ts", severity=shifted))
    if ts is None:
        return
    means = {each.size: each.mean(shifted) for each in own}
    values = {size: mean.value for size, mean in means.items() if mean is not None}
    below = [size for size, value in values.items() if value < ts.value]
    told = f"{results.label('ts')} has {100 * ts.value:.2f} %"
    if below:
        least = min(below)
        yield f"{told}; {least} rows are the fewest tried with less: {100 * values[least]:.2f} %."
    else:
        yield f"{told}; no number of rows tried has less."


def _better(own: Sequence[Peeked], shifted: Sequence[int]) -> Iterator[str]:
    """Where fewer rows have less error than all, beyond the interval if there is one."""
    found: dict[int, list[int]] = {}
    for s in shifted:
        for each in own:
            more = each.more([s])
            if more is not None and (more.value if more.high is None else more.high) < 0:
                found.setdefault(s, []).append(each.size)
    if found:
        told = "; ".join(
            f"severity {s} ({', '.join(map(str, sizes))} rows)" for s, sizes in found.items()
        )
        yield f"Fewer rows have less mean ECE than all of them at {told}."


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

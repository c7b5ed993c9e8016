"""What few target rows cost, in sentences, and whether as few are enough as the paper says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal.studies.catalog._pairs import ece_difference, in_points, paired
from shiftcal.studies.catalog._peek.peeked import Peeked, shifted_of
from shiftcal.studies.results import Results, mean_over_splits, select

# So many points beside the error with all rows count as the same.
_NEAR = 0.5
# What the paper says is enough.
_CLAIMED = 100
# Of the gain on TS: with so much of it left, fewer rows are still worth having.
_MOST = 0.8


def remarks_of(peeked: Sequence[Peeked], results: Results) -> Iterator[str]:
    """Sentences made from the numbers."""
    shifted = shifted_of(peeked)
    if not shifted:
        return
    for each in peeked:
        yield from _cost(each, shifted)
    for base in dict.fromkeys(each.base for each in peeked):
        own = [each for each in peeked if each.base == base]
        yield from _verdict(own, results, shifted)
        yield from _fewest(own, shifted)
        yield from _against_ts(own, results, shifted)
        yield from _better(own, shifted)


def _cost(each: Peeked, shifted: Sequence[int]) -> Iterator[str]:
    mean, more, same = each.mean(shifted), each.more(shifted), each.same(shifted)
    if mean is None or more is None or same is None:
        return
    spread = each.spread(shifted)
    varies = "" if spread is None else f"; one target's ECE varies by {100 * spread:.2f} points"
    yield (
        f"{each.label}: mean ECE {100 * mean.value:.2f} %, minus that with all rows "
        f"{in_points(more)}; {100 * same.value:.0f} % of the draws choose the same set{varies}."
    )


def _verdict(own: Sequence[Peeked], results: Results, shifted: Sequence[int]) -> Iterator[str]:
    """Whether the paper's number of rows is enough.

    The claim holds if the interval of the difference to all rows ends within ``_NEAR`` points, and
    holds partly if ``_MOST`` of what SAC gains on TS is left.
    """
    each = next((each for each in own if each.size == _CLAIMED), None)
    more = None if each is None else each.more(shifted)
    if each is None or more is None:
        return
    kept = _kept(each, more.value, results, shifted)
    if 100 * (more.value if more.high is None else more.high) <= _NEAR:
        word = "holds"
    else:
        word = "holds partly" if kept is not None and kept >= _MOST else "does not hold"
    left = (
        ""
        if kept is None
        else f", and {100 * kept:.0f} % of what all rows gain on {results.label('ts')} is left"
    )
    yield (
        f"The paper's claim that {_CLAIMED} rows are about as good as all {word} here: their mean "
        f"ECE minus that with all rows is {in_points(more)} on the same targets{left}."
    )


def _kept(each: Peeked, more: float, results: Results, shifted: Sequence[int]) -> float | None:
    """How much of what all rows gain on TS is left; ``None`` if they gain nothing."""
    ts = results.select(variant="ts")
    gain = paired(select(each.whole, severity=shifted), ts, ece_difference)
    if gain is None or gain.value >= 0:
        return None
    return 1 + more / gain.value


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
    records = results.select(variant="ts", severity=shifted)
    if not records:
        return
    ts = mean_over_splits(records)
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

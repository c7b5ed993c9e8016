"""What the choices of the calibration corruption say, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shiftcal.studies.catalog._corruption_choice.choices import Choice, spread
from shiftcal.studies.catalog._corruption_choice.views import View
from shiftcal.studies.catalog._pairs import ece_difference, paired

# Fewer choices have no rank correlation worth telling.
_ENOUGH = 4


def remarks_of(view: View) -> tuple[str, ...]:
    """Sentences made from the numbers."""
    if not view.shifted:
        return ()
    return tuple(
        [*_ranges(view), *_left_out(view), *_failures(view), *_foreseen(view)],
    )


def _ranges(view: View) -> Iterator[str]:
    """How much each method depends on the choice."""
    for key in view.varied:
        found = {c.name: c.mean(key, view.shifted) for c in view.choices}
        means = {name: 100 * mean.value for name, mean in found.items() if mean is not None}
        over = spread(view.choices, key, view.shifted)
        if not means or over is None:
            continue
        best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        if over.sd is None:
            yield (
                f"{view.labels[key]}, {view.over}, {best} as the only calibration corruption: mean "
                f"ECE {means[best]:.2f} %."
            )
            continue
        yield (
            f"{view.labels[key]}, {view.over}: mean ECE {100 * over.mean:.2f} % over {over.n} "
            f"choices of the calibration corruption, standard deviation {100 * over.sd:.2f} "
            f"points, from {means[best]:.2f} % with {best} to {means[worst]:.2f} % with {worst}."
        )


def _left_out(view: View) -> Iterator[str]:
    """How much of the differences comes from the targets alone."""
    found = [choice.mean("ts", view.shifted) for choice in view.choices]
    values = [100 * mean.value for mean in found if mean is not None]
    if len(values) > 1:
        yield (
            f"{view.labels['ts']} uses no surrogate sets and yet goes from {min(values):.2f} % to "
            f"{max(values):.2f} %: so much comes from leaving out another target each time."
        )


def _failures(view: View) -> Iterator[str]:
    """With which choices a method is worse than TS on the same targets."""
    if "ts" not in view.labels:
        return
    for key in view.varied:
        gains = _gains(view, key)
        worse = {name: gain for name, gain in gains.items() if gain > 0}
        label, ts = view.labels[key], view.labels["ts"]
        if gains and not worse:
            yield (
                f"{label} is better than {ts} on the same targets with every one of the "
                f"{len(gains)} choices, by {-max(gains.values()):.2f} points at least."
            )
        elif worse:
            named = ", ".join(f"{name} (by {gain:.2f} points)" for name, gain in worse.items())
            yield (
                f"{label} is worse than {ts} on the same targets with {len(worse)} of "
                f"{len(gains)} choices: {named}."
            )


def _foreseen(view: View) -> Iterator[str]:
    """Whether the reach of the surrogate sets tells the order of the choices beforehand."""
    known = [choice for choice in view.choices if choice.name in view.reach]
    means = [choice.mean(view.leading, view.shifted) for choice in known]
    pairs = [
        (view.reach[choice.name].width, mean.value)
        for choice, mean in zip(known, means, strict=True)
        if mean is not None
    ]
    if len(pairs) < _ENOUGH:
        return
    correlation = _rank_correlation(*(list(side) for side in zip(*pairs, strict=True)))
    if correlation is not None:
        yield (
            "Over the choices, the range of mean confidence that the surrogate sets cover and the "
            f"mean ECE of {view.labels[view.leading]} have the rank correlation "
            f"{correlation:+.2f}. The range is known before any target is seen."
        )
    yield from _narrow(view, known)


def _narrow(view: View, known: Sequence[Choice]) -> Iterator[str]:
    gains = _gains(view, view.leading)
    widths = {c.name: 100 * view.reach[c.name].width for c in known if c.name in gains}
    failed = [width for name, width in widths.items() if gains[name] > 0]
    served = [width for name, width in widths.items() if gains[name] <= 0]
    if failed and served:
        yield (
            f"Where {view.labels[view.leading]} is worse than {view.labels['ts']}, the sets cover "
            f"{_from_to(failed)} points of mean confidence; with the other choices "
            f"{_from_to(served)}."
        )


def _from_to(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _gains(view: View, key: str) -> dict[str, float]:
    """How many points more ECE than TS each choice gives on the same targets."""
    gains = {}
    for choice in view.choices:
        own, ts = (choice.of(each, view.shifted) for each in (key, "ts"))
        found = paired(own, ts, ece_difference)
        if found is not None:
            gains[choice.name] = 100 * found.value
    return gains


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's; ``None`` if one of the two does not vary."""
    from scipy.stats import rankdata

    ranks = np.array([rankdata(a), rankdata(b)])
    if not ranks.std(axis=1).all():
        return None
    return float(np.corrcoef(ranks)[0, 1])

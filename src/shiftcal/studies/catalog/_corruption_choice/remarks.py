"""What the choices of the calibration corruption say, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal.studies.catalog._corruption_choice.choices import spread
from shiftcal.studies.catalog._corruption_choice.verdict import verdicts
from shiftcal.studies.catalog._corruption_choice.views import TS, View
from shiftcal.studies.catalog._pairs import in_points

# Fewer choices have no rank correlation worth telling.
_ENOUGH = 4
# A rank correlation with a greater p may be chance.
_CHANCE = 0.05
# Half of the last digit that is printed.
_SEEN = 0.00005


def remarks_of(view: View) -> tuple[str, ...]:
    """Sentences made from the numbers."""
    if not view.shifted:
        return ()
    found = [*_ranges(view), *_left_out(view), *verdicts(view), *_failures(view)]
    return (*found, *_families(view), *_foreseen(view), *_narrow(view))


def _ranges(view: View) -> Iterator[str]:
    """How much each method depends on the choice."""
    for key in view.varied:
        found = {c.name: c.mean(key, view.shifted) for c in view.choices}
        names = [name for name, mean in found.items() if mean is not None]
        over = spread(view.choices, key, view.shifted)
        if over is None:
            continue
        if over.sd is None:
            yield (
                f"{view.labels[key]}, {view.over}, {names[0]} as the only calibration "
                f"corruption: mean ECE {100 * over.mean:.2f} %."
            )
            continue
        yield (
            f"{view.labels[key]}, {view.over}: mean ECE {100 * over.mean:.2f} % over {over.n} "
            f"choices of the calibration corruption, standard deviation {100 * over.sd:.2f} "
            f"points; each choice has its own targets.{_gains(view, key)}"
        )


def _gains(view: View, key: str) -> str:
    """From the greatest gain on TS to the least."""
    differences = view.minus_ts(key)
    if len(differences) < 2:
        return ""
    order = sorted(differences, key=lambda name: differences[name].value)
    best, worst = (f"{in_points(differences[name])} with {name}" for name in (order[0], order[-1]))
    return f" Minus {view.labels[TS]} on the same targets: from {best} to {worst}."


def _left_out(view: View) -> Iterator[str]:
    """How much of the differences comes from the targets alone."""
    found = [choice.mean(TS, view.shifted) for choice in view.choices]
    values = [100 * mean.value for mean in found if mean is not None]
    if len(values) > 1:
        yield (
            f"{view.labels[TS]} uses no surrogate sets and yet goes from {min(values):.2f} % to "
            f"{max(values):.2f} %: so much comes from leaving out another target each time."
        )


def _failures(view: View) -> Iterator[str]:
    """With which choices a method is worse than TS on the same targets."""
    for key in view.varied:
        gains = view.minus_ts(key)
        worse = {name: gain for name, gain in gains.items() if gain.value > 0}
        label = view.labels[key]
        if gains and not worse:
            least = max(gains.values(), key=lambda gain: gain.value)
            yield (
                f"{label} is better than {view.labels[TS]} on the same targets with every one of "
                f"the {len(gains)} choices, by {in_points(least).lstrip('+-')} at least."
            )
        elif worse:
            named = ", ".join(f"{name} ({in_points(gain)})" for name, gain in worse.items())
            yield (
                f"{label} is worse than {view.labels[TS]} on the same targets with {len(worse)} of "
                f"{len(gains)} choices: {named}."
            )


def _families(view: View) -> Iterator[str]:
    """What is left of the gain where the target is of another kind than the surrogate sets."""
    gains = view.minus_ts(view.leading)
    others = view.minus_ts(view.leading, others=True)
    lost = {name: others[name].value - gains[name].value for name in others}
    if len(lost) < 2:
        return
    order = sorted(others, key=lambda name: others[name].value)
    best, worst = (f"{in_points(others[name])} with {name}" for name in (order[0], order[-1]))
    less = sum(change >= _SEEN for change in lost.values())
    yield (
        "Without the targets of the choice's own family (noise, blur, weather, digital), "
        f"{view.labels[view.leading]} minus {view.labels[TS]} goes from {best} to {worst}; the "
        f"gain is less than on all targets with {less} of {len(lost)} choices."
        f"{_most_lost(view, max(lost, key=lost.__getitem__)) if less else ''}"
    )


def _most_lost(view: View, name: str) -> str:
    """The choice that loses most, with what each of the two has: the targets differ in hardness."""
    choice = next(each for each in view.choices if each.name == name)
    both = (choice, choice.without_family(view.families))
    told = []
    for key in (view.leading, TS):
        means = [each.mean(key, view.shifted) for each in both]
        values = " to ".join(f"{100 * mean.value:.2f} %" for mean in means if mean is not None)
        told.append(f"{view.labels[key]} goes from {values}")
    return f" It loses most with {name}, where {' and '.join(told)}."


def _foreseen(view: View) -> Iterator[str]:
    """Whether the reach of the surrogate sets tells the order of the choices beforehand."""
    gains = view.minus_ts(view.leading)
    known = [name for name in gains if name in view.reach]
    if len(known) < _ENOUGH:
        return
    widths = [view.reach[name].width for name in known]
    found = _rank_correlation(widths, [gains[name].value for name in known])
    if found is None:
        return
    correlation, p = found
    chance = ", which is weak: it may be chance" if p > _CHANCE else ""
    yield (
        "Over the choices, the range of mean confidence that the surrogate sets cover and "
        f"{view.labels[view.leading]} minus {view.labels[TS]} have the rank correlation "
        f"{correlation:+.2f} (Spearman, n = {len(known)}, {_told(p)}){chance}. The range is known "
        "before any target is seen."
    )


def _narrow(view: View) -> Iterator[str]:
    gains = view.minus_ts(view.leading)
    widths = {name: 100 * view.reach[name].width for name in gains if name in view.reach}
    failed = [width for name, width in widths.items() if gains[name].value > 0]
    served = [width for name, width in widths.items() if gains[name].value <= 0]
    if failed and served:
        yield (
            f"Where {view.labels[view.leading]} is worse than {view.labels[TS]}, the sets cover "
            f"{_from_to(failed)} points of mean confidence; with the other choices "
            f"{_from_to(served)}."
        )


def _from_to(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _told(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Spearman's, and its p; ``None`` if one of the two does not vary."""
    from scipy.stats import spearmanr

    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    found = spearmanr(a, b)
    return float(found.statistic), float(found.pvalue)

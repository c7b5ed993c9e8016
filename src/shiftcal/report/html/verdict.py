"""What to make of the numbers, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shiftcal.methods._ladder import FEW_ROWS
from shiftcal.methods._selection import Selection
from shiftcal.report.html._words import number, rough_percent, rough_range, shown
from shiftcal.report.html.evidence import MethodFacts
from shiftcal.report.html.parts import EstimateFacts, TargetFacts, Verdict, VerdictKind

# A difference that does not matter to a reader; an error that nobody would call fine if it were
# there.
TOLERANCE, TOO_MUCH = 0.02, 0.1
_OUTSIDE = ("outside-bank", "outside-range")
_HEADLINES: dict[VerdictKind, str] = {
    "over": "Do not trust the raw confidences: the model is too sure.",
    "under": "The model is right more often than it says.",
    "uneven": "Right on average, wrong in detail: do not trust single raw confidences.",
    "fine": "The raw confidences can be trusted.",
    "worse": "Do not use this calibration here: it makes the confidences worse.",
    "outside": "Cannot say: this data is unlike anything in the bank.",
    "unclear": "Cannot say: the numbers are too uncertain.",
    "few": "Cannot say: there are too few rows.",
}
# Without labels only the mean is known.
_FINE_ON_AVERAGE = "The raw confidences can be trusted, as far as can be told without labels."
_INSTEAD = "Fit a map on these labels instead, or give the bank sets that resemble this data."


@dataclass(frozen=True)
class Case:
    """All that a verdict is made of.

    Attributes:
        target: The target.
        estimate: Its accuracy without labels, if it could be estimated.
        raw: What the model itself says.
        method: What the method makes of it.
        selection: The method's choice.
        flags: Codes raised by the method or the estimate.
    """

    target: TargetFacts
    estimate: EstimateFacts | None
    raw: MethodFacts
    method: MethodFacts
    selection: Selection
    flags: frozenset[str]


def judge(case: Case) -> Verdict:
    """The verdict: with labels by what they say, else by the estimated accuracy."""
    kind = _with_labels(case) if case.target.accuracy is not None else _without(case)
    headline = _HEADLINES[kind]
    if kind == "fine" and case.target.accuracy is None:
        headline = _FINE_ON_AVERAGE
    return Verdict(kind, headline, _reason(case), tuple(_advice(kind, case)))


def _with_labels(case: Case) -> VerdictKind:
    before, after, gap = case.raw.ece, case.method.ece, case.raw.gap
    assert before is not None
    assert after is not None
    assert gap is not None
    if case.target.n < FEW_ROWS:
        return "few"
    surely = after.value if after.low is None else after.low
    if after.value > before.value + TOLERANCE and surely > before.value:
        return "worse"
    if before.value <= TOLERANCE or before.low == 0.0:
        return "fine" if (before.high or before.value) <= TOO_MUCH else "unclear"
    if abs(gap.value) < max(before.value / 2, TOLERANCE):
        return "uneven"
    return "over" if gap.value > 0 else "under"


def _without(case: Case) -> VerdictKind:
    estimate, confidence = case.estimate, case.target.mean_confidence
    if case.target.n < FEW_ROWS:
        return "few"
    if case.flags & set(_OUTSIDE):
        return "outside"
    if estimate is None:
        return "unclear"
    if confidence > estimate.high and confidence - estimate.value > TOLERANCE:
        return "over"
    if confidence < estimate.low and estimate.value - confidence > TOLERANCE:
        return "under"
    return "unclear" if _furthest(case, estimate) > TOO_MUCH else "fine"


def _furthest(case: Case, estimate: EstimateFacts) -> float:
    """How far mean confidence and accuracy may be from one another by the interval."""
    confidence = case.target.mean_confidence
    return max(confidence - estimate.low, estimate.high - confidence)


def _reason(case: Case) -> str:
    sure = f"The model is {rough_percent(case.target.mean_confidence)} sure on average"
    accuracy, estimate = case.target.accuracy, case.estimate
    if accuracy is not None:
        text = f"{sure} and right in {rough_percent(accuracy.value)} of the rows"
        if accuracy.low is not None and accuracy.high is not None:
            text += f" ({rough_range(accuracy.low, accuracy.high)}), by their labels"
        if estimate is None:
            return f"{text}."
        ends = rough_range(estimate.low, estimate.high)
        return f"{text}. Without labels {rough_percent(estimate.value)} ({ends}) was estimated."
    if estimate is None:
        return f"{sure}; how often it is right could not be estimated."
    ends = rough_range(estimate.low, estimate.high)
    return f"{sure}, and its estimated accuracy is {rough_percent(estimate.value)} ({ends})."


def _advice(kind: VerdictKind, case: Case) -> Iterator[str]:
    if kind in ("over", "under", "uneven"):
        yield from _mended(case)
    elif kind == "fine":
        yield from _left_alone(case)
    elif kind == "worse":
        yield from _effect(case)
        yield _INSTEAD
    elif kind == "outside":
        yield "Give the bank surrogate sets that resemble this data, and make the report again."
        yield "Or label some rows of it, a few hundred, which tells: --labels."
        yield f"Until then take {_in_words(case)} as a guess."
    elif kind == "unclear":
        more = "some" if case.target.accuracy is None else "more"
        yield f"Label {more} rows of this data, a few hundred, which tells: --labels."
        yield f"Until then take {_in_words(case)} as a guess."
    else:
        yield f"Collect {FEW_ROWS} rows or more, and make the report again."
        yield f"Until then take {_in_words(case)} as a guess."


def _mended(case: Case) -> Iterator[str]:
    """Use it, unless it takes the confidences farther from what they should be."""
    mean = rough_percent(case.method.mean_confidence)
    if _helps(case):
        yield f"Use {_in_words(case)}: mean confidence becomes {mean}."
        yield from _effect(case)
        return
    yield f"{_in_words(case, start=True)}, does not mend it: mean confidence becomes {mean}."
    yield from _effect(case)
    labelled = case.target.accuracy is not None
    yield _INSTEAD if labelled else "Look at the other methods below, or label some rows: --labels."


def _helps(case: Case) -> bool:
    before, after, estimate = case.raw.ece, case.method.ece, case.estimate
    if before is not None and after is not None:
        return after.value < before.value
    if estimate is None:
        return True
    confidence = case.method.mean_confidence
    return abs(confidence - estimate.value) < abs(case.target.mean_confidence - estimate.value)


def _left_alone(case: Case) -> Iterator[str]:
    nothing = "Nothing has to be done"
    if case.target.accuracy is None and case.estimate is not None:
        most = 100 * _furthest(case, case.estimate)
        nothing += f": by its interval the mean is off by {most:.0f} points at most"
    yield (
        f"{nothing}. {_in_words(case, start=True)}, would make the mean confidence "
        f"{rough_percent(case.method.mean_confidence)}."
    )
    yield from _effect(case)


def _effect(case: Case) -> Iterator[str]:
    before, after = case.raw.ece, case.method.ece
    if before is not None and after is not None:
        start, end = _points(before.value), _points(after.value)
        word = "falls" if after.value < before.value else "rises"
        change = f"stays at {end}" if start == end else f"{word} from {start} to {end}"
        yield f"Its calibration error (ECE) {change} points."


def _points(fraction: float) -> str:
    return f"{100 * fraction:.1f}"


def _in_words(case: Case, *, start: bool = False) -> str:
    """``rehearsal, T = 4.5 (4.1 to 4.9)``, ``sac with set 4 of 6 (fog), T = 4.5``."""
    chosen, name = case.selection, case.method.name
    text = name.capitalize() if start and name not in ("sac", "sts", "ts", "ace", "cpcs") else name
    if chosen.index is not None:
        text += f" with set {chosen.index + 1} of {chosen.n_sets} ({shown(str(chosen.set_name))})"
    if chosen.temperature is not None:
        text += f", T = {number(chosen.temperature)}"
    if chosen.temperature_interval is not None:
        ends = chosen.temperature_interval
        text += f" ({number(ends.low)} to {number(ends.high)})"
    return text

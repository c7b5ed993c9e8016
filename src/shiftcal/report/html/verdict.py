"""What to make of the numbers, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shiftcal.methods._ladder import FEW_ROWS
from shiftcal.methods._selection import Selection
from shiftcal.report.html._words import number, rough_percent, rough_range, shown
from shiftcal.report.html.evidence import MethodFacts
from shiftcal.report.html.parts import EstimateFacts, TargetFacts, Verdict, VerdictKind

# A difference that does not matter to a reader; an interval of the accuracy too wide to say
# anything; an error that nobody would call fine if it were there.
TOLERANCE, TOO_WIDE, TOO_MUCH = 0.02, 0.25, 0.1
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
    return "unclear" if estimate.high - estimate.low > TOO_WIDE else "fine"


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
    use = f"Use {_in_words(case)}"
    if kind in ("over", "under", "uneven"):
        yield f"{use}: mean confidence becomes {rough_percent(case.method.mean_confidence)}."
        yield from _effect(case)
    elif kind == "fine":
        yield (
            f"Nothing has to be done. {_in_words(case, start=True)} would make the mean "
            f"confidence {rough_percent(case.method.mean_confidence)}."
        )
        yield from _effect(case)
    elif kind == "worse":
        yield from _effect(case)
        yield "Fit a map on these labels instead, or give the bank sets that resemble this data."
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


def _effect(case: Case) -> Iterator[str]:
    before, after = case.raw.ece, case.method.ece
    if before is not None and after is not None:
        word = "falls" if after.value < before.value else "rises"
        yield (
            f"Its calibration error (ECE) {word} from {_points(before.value)} to "
            f"{_points(after.value)} points."
        )


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

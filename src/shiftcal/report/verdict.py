"""The verdict of a report: whether raw confidences can be trusted, and what to do.

:func:`judge` decides; the rest is what numbers and names look like in its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shiftcal.methods.method import FEW_ROWS

if TYPE_CHECKING:
    from shiftcal.report.facts import MethodFacts, TargetFacts

VerdictKind = Literal["over", "under", "uneven", "fine", "worse", "outside", "unclear", "few"]

# A difference a reader can ignore, and an error nobody would call fine.
TOLERANCE, TOO_MUCH = 0.02, 0.1
_HEADLINES: dict[VerdictKind, str] = {
    "over": "Do not trust the raw confidences: the model is overconfident.",
    "under": "The model is underconfident: it is correct more often than it says.",
    "uneven": "Correct on average, wrong in detail: do not trust single raw confidences.",
    "fine": "The raw confidences can be trusted.",
    "worse": "Do not use this calibration here: it makes the confidences worse.",
    "outside": "Cannot say: this data is unlike anything in the bank.",
    "unclear": "Cannot say: the numbers are too uncertain.",
    "few": "Cannot say: there are too few rows.",
}
_FINE_WITHOUT_LABELS = "The raw confidences can be trusted on average, judged without labels."
_REFIT = "Add sets to the bank that resemble this data, or fit a map on labelled rows of it."
# Other kinds are advised to use the method, if it helps.
_ADVICE: dict[VerdictKind, str] = {
    "fine": "Nothing needs to be done.",
    "worse": _REFIT,
    "outside": "Add surrogate sets that resemble this data, or label a few hundred of its rows: "
    "--labels. Until then any calibration is a guess.",
    "unclear": "Label a few hundred rows more: --labels. Until then any calibration is a guess.",
    "few": f"Collect {FEW_ROWS} rows or more. Until then any calibration is a guess.",
}


@dataclass(frozen=True)
class Ranged:
    """A number with its interval; both ends are ``None`` if there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The conclusion: its kind, a headline, the numbers behind it, and what to do."""

    kind: VerdictKind
    headline: str
    reason: str
    advice: tuple[str, ...]


def judge(
    target: TargetFacts,
    estimate: Ranged,
    raw: MethodFacts,
    method: MethodFacts,
    flags: frozenset[str] = frozenset(),
) -> Verdict:
    """The verdict on a target: by its labels if it has any, else by its estimated accuracy.

    Args:
        target: The target.
        estimate: Its accuracy estimated without labels.
        raw: The model's own confidences.
        method: The same after calibration.
        flags: Codes raised by the method or the estimate.
    """
    kind = _kind(target, estimate, raw, method, flags)
    labelled = target.accuracy is not None
    headline = _HEADLINES[kind] if labelled or kind != "fine" else _FINE_WITHOUT_LABELS
    reason = f"Mean confidence is {percent(target.mean_confidence)}"
    if labelled:
        reason += f", accuracy {percent(target.accuracy)} by the labels"
    reason += f", estimated accuracy {percent(estimate)}."
    mean = percent(method.mean_confidence)
    effect = f"{method.name}, {method.choice}: mean confidence becomes {mean}"
    if raw.ece is not None and method.ece is not None:
        before, after = raw.ece.value, method.ece.value
        effect += f", and ECE goes from {percent(before)} to {percent(after)}"
    else:
        before, after = (abs(one.mean_confidence - estimate.value) for one in (raw, method))
    advice: tuple[str, ...] = (_ADVICE.get(kind, _REFIT), f"With {effect}.")
    if kind not in _ADVICE and after < before:
        advice = (f"Use {effect}.",)
    return Verdict(kind, headline, reason, advice)


def _kind(
    target: TargetFacts,
    estimate: Ranged,
    raw: MethodFacts,
    method: MethodFacts,
    flags: frozenset[str],
) -> VerdictKind:
    if target.n < FEW_ROWS:
        return "few"
    before, after, gap = raw.ece, method.ece, raw.gap.value
    if before is not None and after is not None:
        at_least = after.value if after.low is None else after.low
        if after.value > before.value + TOLERANCE and at_least > before.value:
            return "worse"
        if before.value <= TOLERANCE or before.low == 0.0:
            return "fine" if (before.high or before.value) <= TOO_MUCH else "unclear"
        if abs(gap) < max(before.value / 2, TOLERANCE):
            return "uneven"
        return "over" if gap > 0 else "under"
    if flags & {"outside-bank", "outside-range"}:
        return "outside"
    assert estimate.low is not None
    assert estimate.high is not None
    confidence = target.mean_confidence
    if confidence > estimate.high and gap > TOLERANCE:
        return "over"
    if confidence < estimate.low and -gap > TOLERANCE:
        return "under"
    largest_gap = max(confidence - estimate.low, estimate.high - confidence)
    return "unclear" if largest_gap > TOO_MUCH else "fine"


# Control characters and marks that reverse text, which would break the line around a name.
_UNPRINTABLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, most: int = 120) -> str:
    """The text with control characters escaped, cut after ``most`` characters."""
    plain = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def percent(found: Ranged | float | None, digits: int = 1, unit: str = "\u00a0%") -> str:
    """``91.2 % (88.0 to 93.1)``: a fraction, with its interval if it has one; a dash for none."""
    if found is None:
        return "–"
    if not isinstance(found, Ranged):
        found = Ranged(found)
    text = f"{100 * found.value:.{digits}f}{unit}"
    if found.low is None or found.high is None:
        return text
    return f"{text} ({100 * found.low:.{digits}f} to {100 * found.high:.{digits}f})"

"""The verdict of a report: whether raw confidences can be trusted, and what to do.

:func:`judge` decides; the rest is what numbers and names look like in its words.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shiftcal.methods.method import FEW_ROWS

if TYPE_CHECKING:
    from shiftcal.report.facts import KeptFacts, MethodFacts, TargetFacts

VerdictKind = Literal[
    "over", "under", "uneven", "fine", "worse", "outside", "model", "unclear", "few"
]

# A difference a reader can ignore, and an error nobody would call fine.
TOLERANCE, TOO_MUCH = 0.02, 0.1
_LEAVE = "Leave the confidences as they are:"
_HEADLINES: dict[VerdictKind, str] = {
    "over": "Do not trust the raw confidences: the model is overconfident.",
    "under": "The model is underconfident: it is correct more often than it says.",
    "uneven": "Correct on average, wrong in detail: do not trust single raw confidences.",
    "fine": "The raw confidences can be trusted.",
    "worse": "Do not use this calibration here: it makes the confidences worse.",
    "outside": f"{_LEAVE} this data is unlike anything in the bank.",
    "model": f"{_LEAVE} another model scored this data.",
    "unclear": f"{_LEAVE} the numbers are too uncertain to change them.",
    "few": f"{_LEAVE} there are too few rows.",
}
_FINE_WITHOUT_LABELS = "The raw confidences can be trusted on average, judged without labels."
_REFIT = "Add sets to the bank that resemble this data, or fit a map on labelled rows of it."
# What to do; other kinds are advised to use the method, if it helps.
_ADVICE: dict[VerdictKind, str] = {
    "fine": "Nothing needs to be done.",
    "worse": _REFIT,
    "outside": "To settle it: add surrogate sets that resemble this data, or {label}.",
    "model": "To settle it: score the data with the model of the bank (shiftcal score --bank).",
    "unclear": "To settle it: {label}.",
    "few": f"To settle it: collect {FEW_ROWS} rows or more.",
}
# How precisely labels that are asked for give the accuracy.
_PRECISION = 0.05


@dataclass(frozen=True)
class Ranged:
    """A number with its interval; both ends are ``None`` if there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The conclusion: its kind, a headline, the numbers behind it, what to do, whether to use it.

    ``use`` is True only where the data supports the calibration: with labels, if ECE falls below
    the interval that it had; without, if the target is inside the bank, mean confidence is outside
    the interval of the estimated accuracy, and the interval of the temperature does not contain 1.
    """

    kind: VerdictKind
    headline: str
    reason: str
    advice: tuple[str, ...]
    use: bool = False

    @property
    def unsupported(self) -> bool:
        """Whether nothing can be said about the confidences yet."""
        return self.headline.startswith(_LEAVE)


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
    ends = method.selection.temperature_interval
    if kind == "unclear" and not labelled and _no_direction(method):
        assert ends is not None
        reason += (
            f" The temperature may be {ends.low:.2g} to {ends.high:.2g}: below 1 it raises "
            "confidences, above 1 it lowers them."
        )
    mean = percent(method.mean_confidence)
    effect = f"mean confidence {{}} {mean}"
    if raw.ece is not None and method.ece is not None:
        effect += f", and ECE {{}} from {percent(raw.ece.value)} to {percent(method.ece.value)}"
        helps = method.ece.value < (raw.ece.value if raw.ece.low is None else raw.ece.low)
    else:
        before, after = (abs(one.mean_confidence - estimate.value) for one in (raw, method))
        helps = after < before
    if use := kind not in _ADVICE and helps:
        text = f"Use {method.name}, {method.choice}: {effect.format('becomes', 'goes')}."
        return Verdict(kind, headline, reason, (text,), use)
    share = min(max(estimate.value, 0.1), 0.9)
    rows = math.ceil(1.96**2 * share * (1 - share) / _PRECISION**2 / 10) * 10
    label = f"label {rows} of its rows (--labels), which gives the accuracy to 5 points"
    advice = _ADVICE.get(kind, _REFIT).format(label=label)
    effect = effect.format("would become", "would go")
    return Verdict(
        kind, headline, reason, (advice, f"With {method.name}, {method.choice}: {effect}.")
    )


def _no_direction(method: MethodFacts) -> bool:
    """Whether the temperature may be above 1 as well as below."""
    ends = method.selection.temperature_interval
    return ends is not None and ends.low <= 1 <= ends.high


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
    if "another-model" in flags:
        return "model"
    if flags & {"outside-bank", "outside-range"}:
        return "outside"
    assert estimate.low is not None
    assert estimate.high is not None
    confidence = target.mean_confidence
    over = confidence > estimate.high and gap > TOLERANCE
    under = confidence < estimate.low and -gap > TOLERANCE
    if over or under:
        # A bank of one set says nothing about shifts.
        if _no_direction(method) or "one-set" in flags:
            return "unclear"
        return "over" if over else "under"
    largest_gap = max(confidence - estimate.low, estimate.high - confidence)
    return "unclear" if largest_gap > TOO_MUCH else "fine"


def kept_words(kept: KeptFacts, verdict: Verdict) -> str:
    """Which rows to keep for the accuracy that is aimed at, in words."""
    aim = f"To have {percent(kept.goal, 0)} correct among the rows you keep"
    if kept.threshold is None:
        if verdict.unsupported:
            return "There is no threshold for keeping rows yet: no confidence can be trusted here."
        return f"{aim}, keep none: no row is confident enough."
    whose = "raw confidence" if kept.by == "vanilla" else f"confidence after {kept.by}"
    text = (
        f"{aim}, keep those with a {whose} of {kept.threshold:.3g} or more: "
        f"{percent(kept.share)} of the rows"
    )
    if kept.accuracy is not None:
        text += f", of which {percent(kept.accuracy)} are correct by the labels"
    text += "."
    if kept.by != "vanilla" and kept.raw_share is not None:
        text += f" Raw confidences promise the same for {percent(kept.raw_share)} of the rows"
        if kept.raw_accuracy is not None:
            text += f", of which {percent(kept.raw_accuracy)} are correct"
        text += "."
    return text


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

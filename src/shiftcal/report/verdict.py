"""The verdict of a report: whether raw confidences can be trusted, and what to do.

:func:`judge` decides. :func:`explain_flags` says what the flags behind it mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shiftcal.methods.method import FEW_ROWS, Selection
from shiftcal.types import Flag

if TYPE_CHECKING:
    from shiftcal.report.facts import EstimateFacts, MethodFacts, Ranged, TargetFacts

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
_REFIT = "Fit a map on these labels instead, or add sets to the bank that resemble this data."


@dataclass(frozen=True)
class Verdict:
    """The conclusion: its kind, a headline, the numbers behind it, and what to do."""

    kind: VerdictKind
    headline: str
    reason: str
    advice: tuple[str, ...]


def judge(
    target: TargetFacts,
    estimate: EstimateFacts | None,
    raw: MethodFacts,
    method: MethodFacts,
    selection: Selection,
    flags: frozenset[str] = frozenset(),
) -> Verdict:
    """The verdict on a target: by its labels if it has any, else by its estimated accuracy.

    Args:
        target: The target.
        estimate: Its accuracy estimated without labels.
        raw: The model's own confidences.
        method: The same after calibration.
        selection: What the method chose.
        flags: Codes raised by the method or the estimate.
    """
    kind = _kind(target, estimate, raw, method, flags)
    labelled = target.accuracy is not None
    headline = _HEADLINES[kind] if labelled or kind != "fine" else _FINE_WITHOUT_LABELS
    calibration = _in_words(method.name, selection)
    sentence_start = calibration[:1].upper() + calibration[1:]
    mean = rough_percent(method.mean_confidence)
    effect, helps = [], True
    if raw.ece is not None and method.ece is not None:
        helps = method.ece.value < raw.ece.value
        before, after = f"{100 * raw.ece.value:.1f}", f"{100 * method.ece.value:.1f}"
        change = f"{'falls' if helps else 'rises'} from {before} to {after}"
        change = f"stays at {after}" if before == after else change
        effect = [f"The calibration error (ECE) {change} points."]
    elif estimate is not None:
        after_gap = abs(method.mean_confidence - estimate.value)
        helps = after_gap < abs(target.mean_confidence - estimate.value)
    guess = f"Until then treat {calibration} as a guess."
    if kind == "few":
        advice = [f"Collect {FEW_ROWS} rows or more, and write the report again.", guess]
    elif kind == "outside":
        add = "Add surrogate sets that resemble this data, and write the report again."
        advice = [add, "Or label a few hundred of its rows: --labels.", guess]
    elif kind == "unclear":
        more = " more" if labelled else ""
        advice = [f"Label a few hundred{more} rows of this data: --labels.", guess]
    elif kind == "worse":
        advice = [*effect, _REFIT]
    elif kind == "fine":
        nothing = "Nothing needs to be done"
        if not labelled and estimate is not None:
            points = f"{100 * _largest_gap(target, estimate):.0f}"
            nothing += f": by the interval the mean is off by {points} points at most"
        advice = [f"{nothing}. {sentence_start}, would make the mean confidence {mean}.", *effect]
    elif helps:
        advice = [f"Use {calibration}: mean confidence becomes {mean}.", *effect]
    else:
        failure = f"{sentence_start}, does not fix it: mean confidence becomes {mean}."
        others = "See the other methods below, or label rows: --labels."
        advice = [failure, *effect, _REFIT if labelled else others]
    return Verdict(kind, headline, _reason(target, estimate), tuple(advice))


def _kind(
    target: TargetFacts,
    estimate: EstimateFacts | None,
    raw: MethodFacts,
    method: MethodFacts,
    flags: frozenset[str],
) -> VerdictKind:
    if target.n < FEW_ROWS:
        return "few"
    before, after, gap = raw.ece, method.ece, raw.gap
    if before is not None and after is not None and gap is not None:
        at_least = after.value if after.low is None else after.low
        if after.value > before.value + TOLERANCE and at_least > before.value:
            return "worse"
        if before.value <= TOLERANCE or before.low == 0.0:
            return "fine" if (before.high or before.value) <= TOO_MUCH else "unclear"
        if abs(gap.value) < max(before.value / 2, TOLERANCE):
            return "uneven"
        return "over" if gap.value > 0 else "under"
    if flags & {"outside-bank", "outside-range"}:
        return "outside"
    if estimate is None:
        return "unclear"
    confidence = target.mean_confidence
    if confidence > estimate.high and confidence - estimate.value > TOLERANCE:
        return "over"
    if confidence < estimate.low and estimate.value - confidence > TOLERANCE:
        return "under"
    return "unclear" if _largest_gap(target, estimate) > TOO_MUCH else "fine"


def _largest_gap(target: TargetFacts, estimate: EstimateFacts) -> float:
    """The largest distance of mean confidence and accuracy that the interval allows."""
    return max(target.mean_confidence - estimate.low, estimate.high - target.mean_confidence)


def _reason(target: TargetFacts, estimate: EstimateFacts | None) -> str:
    mean = f"Mean confidence is {rough_percent(target.mean_confidence)}"
    estimated = _rough_range(estimate)
    if target.accuracy is None:
        return f"{mean}, estimated accuracy {estimated or 'unknown'}."
    text = f"{mean}, accuracy {_rough_range(target.accuracy)} by the labels."
    return f"{text} Estimated without labels: {estimated}." if estimated else text


def _rough_range(found: Ranged | EstimateFacts | None) -> str:
    """``91 % (88 to 93)``; empty for none."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return rough_percent(found.value)
    return f"{rough_percent(found.value)} ({_rough(found.low)} to {_rough(found.high)})"


def _in_words(name: str, selection: Selection) -> str:
    """``rehearsal, T = 4.5 (4.1 to 4.9)``, ``sac with set 4 of 6 (fog), T = 4.5``."""
    text = name
    if selection.index is not None:
        set_name = printable_name(str(selection.set_name))
        text += f" with set {selection.index + 1} of {selection.n_sets} ({set_name})"
    if selection.temperature is not None:
        text += f", T = {selection.temperature:.3g}"
    if (interval := selection.temperature_interval) is not None:
        text += f" ({interval.low:.3g} to {interval.high:.3g})"
    return text


# What numbers and names look like in text.

# Control characters and marks that reverse text, which would break the line around a name.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable_name(text: str, most: int | None = 120) -> str:
    """The text on one line: control characters escaped, cut after ``most`` characters."""
    plain = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return plain if most is None or len(plain) <= most else f"{plain[: most - 1]}…"


def percent(fraction: float) -> str:
    """``91.2 %``, with a space that does not break."""
    return f"{100 * fraction:.1f}\u00a0%"


def ranged(found: Ranged | EstimateFacts | None, digits: int = 1) -> str:
    """``91.2 (88.0 to 93.1)``: a fraction and its interval in percent; a dash for none."""
    if found is None:
        return "–"
    value = f"{100 * found.value:.{digits}f}"
    if found.low is None or found.high is None:
        return value
    return f"{value} ({100 * found.low:.{digits}f} to {100 * found.high:.{digits}f})"


def _rough(fraction: float) -> str:
    value = 100 * fraction
    return f"{value:.1f}" if 0 < value < 1 or 99 < value < 100 else f"{value:.0f}"


def rough_percent(fraction: float) -> str:
    """``91 %``, and ``99.6 %`` near the ends."""
    return f"{_rough(fraction)}\u00a0%"


@dataclass(frozen=True)
class FlagFacts:
    """A flag that was raised.

    Attributes:
        code: Of the flag.
        by: Who raised it: methods, the estimate, the files.
        messages: With the numbers.
        meaning: What it means.
        todo: What to do about it.
        serious: Whether it concerns the method of the report or its estimate.
    """

    code: str
    by: tuple[str, ...]
    messages: tuple[str, ...]
    meaning: str
    todo: str
    serious: bool


# A warning of a fit, as a flag.
FIT_WARNING = "fit"
_OTHER_METHOD = "Use another method, such as rehearsal."
_NO_FEATURES = "Use a method without features, such as rehearsal."
_UNKNOWN_FLAG = ("A method or the estimate noticed this.", "Read the message.")
# Code to meaning and remedy.
MEANINGS: dict[str, tuple[str, str]] = {
    "few-rows": ("With so few rows, chance decides much.", "Collect 100 rows or more."),
    "one-set": (
        "The bank has only clean data, so nothing about shift can be learned from it.",
        "Build a bank with corruptions: shiftcal bank --corruption.",
    ),
    "one-corruption": (
        "The bank has one corruption; the error under other kinds of shift is unknown.",
        "Build a bank of several corruptions.",
    ),
    "like-clean": (
        "The data looks like the clean calibration data: probably there is no shift.",
        "Nothing; the calibration of the clean set is used.",
    ),
    "outside-bank": (
        "The data is farther from all rehearsed targets than sets of the bank are from others.",
        "Add sets that resemble this data to the bank, or label some of its rows.",
    ),
    "outside-range": (
        "The data is more, or less, confident than every set of the bank.",
        "Add harder (or easier) sets to the bank, or label some rows of the data.",
    ),
    "label-shift": (
        "The class prior seems to differ from that of the calibration data (label shift).",
        "Check the predicted shares in the table of classes against what you expect.",
    ),
    "disagreement": (
        "Two answers differ, and which one holds depends on the class prior.",
        "If you know whether the prior is that of the calibration data, use that answer.",
    ),
    "not-monotone": (
        "Harder sets of the bank are not less confident, so confidence says little.",
        "Try another corruption, or a method that uses more than the mean, such as rehearsal.",
    ),
    "indistinguishable": (
        "Two sets fit the data equally well; their calibrations may differ.",
        "Compare the temperatures of the two. If they differ, collect more rows.",
    ),
    "map-not-converged": (
        "A calibration map reached the end of its range, or did not converge.",
        "Look at the accuracy of that set: near 0 or 1 nothing can be fitted. Add rows to it.",
    ),
    "search-not-converged": ("The search for a temperature ended early.", _OTHER_METHOD),
    "accuracy-estimate-outside": ("The accuracy this method assumes is impossible.", _OTHER_METHOD),
    "gap-open": ("No temperature makes confidence match the assumed accuracy.", _OTHER_METHOD),
    "domains-separable": ("Features separate training and new data entirely.", _NO_FEATURES),
    "few-effective-samples": ("A handful of rows carry nearly all weight.", _NO_FEATURES),
    "weights-not-converged": ("The weights of features did not converge.", _NO_FEATURES),
    "no-hard-set": ("The clean set has no mistakes to learn from.", _OTHER_METHOD),
    "alpha-clipped": ("The data is more confident than the clean set.", _OTHER_METHOD),
    "clean-fallback": ("Nothing could be learned from mixed images.", _OTHER_METHOD),
    "no-shift-error": (
        "The error of the estimate under shift is unknown: its interval is too narrow.",
        "Build a bank of several sets.",
    ),
    "another-model": (
        "Bank and target come from different models, or were preprocessed differently.",
        "Score the target with shiftcal score --bank.",
    ),
    FIT_WARNING: ("A fit is usable, but has a limitation.", "Read the message; it names the set."),
}


def explain_flags(
    raised: Mapping[str, Sequence[Flag]], *, serious: frozenset[str]
) -> tuple[FlagFacts, ...]:
    """Every flag once, with all who raised it and their messages; the serious ones first.

    Args:
        raised: Who raised what.
        serious: Those whose flags concern the conclusion. Of a serious flag only their messages
            are kept.
    """
    messages: dict[str, list[tuple[str, str]]] = {}
    for who, flags in raised.items():
        for flag in flags:
            messages.setdefault(flag.code, []).append((who, flag.message))
    explained = []
    for code, pairs in messages.items():
        concerned = [(who, text) for who, text in pairs if who in serious]
        kept = concerned or pairs
        explained.append(
            FlagFacts(
                code,
                tuple(dict.fromkeys(who for who, _ in kept)),
                tuple(dict.fromkeys(printable_name(text, 1000) for _, text in kept))[:20],
                *MEANINGS.get(code, _UNKNOWN_FLAG),
                serious=bool(concerned) and code != "like-clean",
            )
        )
    return tuple(sorted(explained, key=lambda flag: not flag.serious))

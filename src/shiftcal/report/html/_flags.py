"""What flags mean, and what to do about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftcal._types import Flag
from shiftcal.report.html._words import shown
from shiftcal.report.html.evidence import Warned

_LONGEST, _MOST_MESSAGES = 1000, 20
# Good to know, and nothing to worry about.
_HARMLESS = frozenset({"like-clean"})
# What a fit warned of, as a flag.
SAID = "fit"
_OTHER = ("A method or the estimate noticed this.", "Read the message, and the page of the method.")
# Code to meaning and remedy.
MEANINGS: dict[str, tuple[str, str]] = {
    "few-rows": (
        "So few rows decide by chance as much as by the shift.",
        "Collect 100 rows or more.",
    ),
    "one-set": (
        "The bank has only clean data, so that nothing about shift could be learnt.",
        "Make a bank with corruptions: shiftcal bank --corruption.",
    ),
    "one-corruption": (
        "The bank knows one kind of damage; how far off another kind is was never seen.",
        "Make a bank of several corruptions.",
    ),
    "like-clean": (
        "The data looks like the clean calibration data: probably there is no shift.",
        "Nothing; the calibration of the clean set is used.",
    ),
    "outside-bank": (
        "The data is farther from all that was rehearsed than sets of the bank are from others.",
        "Give the bank sets that resemble this data, or label some rows of it.",
    ),
    "outside-range": (
        "The data is more, or less, confident than every set of the bank.",
        "Give the bank harder (or easier) sets, or label some rows of the data.",
    ),
    "label-shift": (
        "The classes seem to be mixed otherwise than in the calibration data.",
        "Check the predicted shares in the table of classes against what you expect.",
    ),
    "disagreement": (
        "Two answers differ, and which one holds depends on how the classes are mixed.",
        "If you know whether the classes are mixed as in the calibration data, take that answer.",
    ),
    "not-monotone": (
        "Harder sets of the bank are not less confident, so that confidence tells little.",
        "Try another corruption, or a method that looks at more, such as rehearsal.",
    ),
    "indistinguishable": (
        "Two sets fit the data equally well; their calibrations may differ.",
        "Compare the temperatures of the two. If they are near, nothing; else collect more rows.",
    ),
    "map-not-converged": (
        "A calibration map reached the end of its range, or did not settle.",
        "Look at the accuracy of that set: near 0 or 1 nothing can be fitted. Give it more rows.",
    ),
    "search-not-converged": ("The search for a temperature ended early.", "Use another method."),
    "accuracy-estimate-outside": (
        "The accuracy that this method assumes for the data lies outside what is possible.",
        "Use another method, such as rehearsal.",
    ),
    "gap-open": (
        "No temperature brings confidence and assumed accuracy together.",
        "Use another method, such as rehearsal.",
    ),
    "domains-separable": (
        "Features tell training and new data apart so well that weights say nothing.",
        "Use a method without features, such as rehearsal.",
    ),
    "few-effective-samples": (
        "A handful of rows carry nearly all weight.",
        "Use a method without features, such as rehearsal.",
    ),
    "weights-not-converged": (
        "The weights of features did not settle.",
        "Use a method without features, such as rehearsal.",
    ),
    "no-hard-set": (
        "The clean set has no mistakes to learn from.",
        "Use a method that learns from corrupted sets.",
    ),
    "alpha-clipped": (
        "The data is more confident than the clean set, which this method does not foresee.",
        "Use another method, such as rehearsal.",
    ),
    "clean-fallback": ("Nothing could be learnt from mixed images.", "Use another method."),
    "no-shift-error": (
        "How far the estimate is off under shift is not known: its interval is too narrow.",
        "Make a bank of several sets.",
    ),
    "another-model": (
        "Bank and target come from different models, or were preprocessed differently.",
        "Score the target with shiftcal score --bank.",
    ),
    SAID: (
        "A fit is usable, but something about it should be known.",
        "Read the message; it names the set it is about.",
    ),
}


def warned(raised: Mapping[str, Sequence[Flag]], *, serious: frozenset[str]) -> tuple[Warned, ...]:
    """Every flag once, with all who raised it and what they said; the serious ones first.

    Args:
        raised: Who, to what was raised.
        serious: Those whose flags concern the conclusion.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for who, flags in raised.items():
        for flag in flags:
            found.setdefault(flag.code, []).append((who, flag.message))
    told = [_one(code, told, serious) for code, told in found.items()]
    return tuple(sorted(told, key=lambda one: not one.serious))


def _one(code: str, told: list[tuple[str, str]], serious: frozenset[str]) -> Warned:
    """A flag; of one that concerns the conclusion, only what was said about that is kept."""
    concerned = [(who, text) for who, text in told if who in serious]
    kept = concerned or told
    meaning, todo = MEANINGS.get(code, _OTHER)
    return Warned(
        code,
        tuple(dict.fromkeys(who for who, _ in kept)),
        tuple(dict.fromkeys(shown(text, _LONGEST) for _, text in kept))[:_MOST_MESSAGES],
        meaning,
        todo,
        serious=bool(concerned) and code not in _HARMLESS,
    )

"""What ``fit`` and ``adapt`` are given, checked: a bank to learn from, scores of a target."""

from __future__ import annotations

import os

from shiftcal._checks import GUARD_FROM, check_choice, check_scores
from shiftcal._types import InputKind, Logits
from shiftcal.errors import InputError
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank

_KINDS = ("logits", "probabilities")


def given_bank(bank: object, labels: object, *, input: str, name: str) -> SurrogateBank:
    """The bank that ``fit`` was given, in whichever form.

    Args:
        bank: A :class:`SurrogateBank`, the folder of one, or logits ``(n, k)`` with ``labels``.
        labels: ``(n,)``, only with logits.
        input: What the model gives, as whoever is fitted expects it.
        name: Whoever is fitted, for messages.

    Raises:
        InputError: If it is none of these, or of another kind than ``input`` says.
    """
    check_choice(input, _KINDS, name="input")
    if isinstance(bank, str | os.PathLike):
        bank = SurrogateBank.load(bank)
    if not isinstance(bank, SurrogateBank):
        if labels is None:
            raise InputError(
                f"{name} is fitted on a SurrogateBank, the folder of one, or logits and "
                f"labels; got {type(bank).__name__} and no labels. See "
                "SurrogateBank.from_arrays."
            )
        return SurrogateBank.from_arrays([bank], labels, input=input)
    if labels is not None:
        raise InputError("labels go with logits; a SurrogateBank has its own. Leave them out.")
    if bank.input != input:
        raise InputError(
            f"the bank was made of {bank.input} and this {name} expects {input}. "
            f'Make it with input="{bank.input}".'
        )
    return bank


def given_logits(logits: object, *, input: str, k: int, classes: tuple[str, ...] | None) -> Logits:
    """The logits of a target, given as an array of kind ``input`` or as :class:`Scores`.

    Args:
        logits: ``(n, k)``.
        input: What the model gives.
        k: Number of classes of the bank.
        classes: Their names, if the bank has them.

    Raises:
        InputError: If they cannot be used, or are of other classes.
    """
    if isinstance(logits, Scores):
        _check_order(logits.classes, classes)
        kind: InputKind = check_choice(input, _KINDS, name="input")
        logits = logits.as_kind(kind).values
    return check_scores(logits, input=input, k=k, guard_from=GUARD_FROM)


def _check_order(found: tuple[str, ...] | None, expected: tuple[str, ...] | None) -> None:
    if found is None or expected is None or len(found) != len(expected):
        return  # the number of classes is checked with the columns
    for column, (here, there) in enumerate(zip(found, expected, strict=True)):
        if here != there:
            raise InputError(
                f"scores must have the classes of the bank in their order; column {column} is "
                f"{here!r} here and {there!r} there. Both must come from one model."
            )

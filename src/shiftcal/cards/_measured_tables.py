"""The tables of a card that say how well calibrated its data is, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shiftcal.cards._text import NONE, cell, measure, table
from shiftcal.cards.parts import Judging, Measured

if TYPE_CHECKING:
    from shiftcal.cards.card import CalibrationCard

_NAMES = {"accuracy": "accuracy", "ece": "ECE", "nll": "NLL", "brier": "Brier score"}


def on_bank(card: CalibrationCard) -> Iterator[str]:
    """A table for each metric: every set before and after."""
    yield _how(card)
    for metric, name in _NAMES.items():
        rows = [[cell(one.name), *_both(one, metric)] for one in card.on_bank]
        yield table([name, "before", "after"], rows)


def on_target(card: CalibrationCard) -> Iterator[str]:
    """One table: every metric before and after."""
    if card.on_target is None:
        return
    rows = [[name, *_both(card.on_target, metric)] for metric, name in _NAMES.items()]
    yield table(["metric", "before", "after"], rows)
    yield f"The labels judged the choice; the method did not see them. {_draws(card.judging)}"


def _both(one: Measured, metric: str) -> list[str]:
    after = NONE if one.after is None else measure(one.after.get(metric))
    return [measure(one.before.get(metric)), after]


def _how(card: CalibrationCard) -> str:
    folds = card.judging.folds
    fits = (
        "There are no numbers after calibration; the limits say why."
        if not folds
        else f"After: the rows were parted into {folds} folds, and each was calibrated by a fit on "
        "the others, with each set in turn as a target. No row was judged by a fit that saw it"
        f"{', in any set.' if card.calibration.same_rows else ' in the same set.'}"
    )
    raw = "raw softmax" if card.model.input == "logits" else "model's own probabilities"
    return (
        f"Before: the {raw}. {fits} The card's own method is fitted on all rows. "
        f"{_draws(card.judging)}"
    )


def _draws(judging: Judging) -> str:
    bins = f"ECE: {judging.n_bins} bins of equal size. NLL is in nats."
    if not judging.n_resamples:
        return f"{bins} No intervals were asked for."
    return (
        f"{bins} Intervals: {100 * judging.level:g} % bootstrap, {judging.n_resamples} draws, "
        f"seed {judging.seed}."
    )

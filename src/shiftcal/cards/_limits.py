"""What the numbers of a card do not cover, said by its own facts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shiftcal._types import Flag
from shiftcal.cards._crossfit import HeldOut
from shiftcal.cards.parts import Applied, BankSet, Calibration, Judging, Limit, Model, Target
from shiftcal.estimates import AccuracyEstimate
from shiftcal.methods._ladder import FEW_ROWS
from shiftcal.methods._selection import Selection

# Of a class with fewer rows next to nothing is known; names shown before "and so on".
_FEW_OF_A_CLASS, _NAMED = 20, 8
# Class shares that differ more than this, summed over classes and halved, are another mixture.
_ANOTHER_MIXTURE = 0.1


@dataclass(frozen=True)
class Known:
    """The facts that limits are made of; the attributes are those of the card.

    Attributes:
        spreads: For every set the mean over its rows of ``sqrt(c (1 - c))``, c the calibrated
            confidence, or the raw one where there is no other.
        target_spread: The same of the target, if it has labels.
        held: How the bank was measured.
    """

    model: Model
    calibration: Calibration
    target: Target | None
    bank: tuple[BankSet, ...]
    method: Applied
    choice: Selection | None
    estimate: AccuracyEstimate | None
    judging: Judging
    held: HeldOut
    spreads: tuple[float, ...]
    target_spread: float | None


def limits_of(known: Known) -> tuple[Limit, ...]:
    """Every limit that holds."""
    return (
        *_shifts(known.bank),
        *_stuck(known.bank),
        *_measuring(known),
        *_rows(known),
        *_classes(known.model, known.calibration),
        *_mixture(known.calibration, known.target),
        *_model(known.model, known.target),
        *_target(known),
        *_flags("the choice", () if known.choice is None else known.choice.flags),
        *_flags("the estimate", () if known.estimate is None else known.estimate.flags),
    )


def _shifts(bank: Sequence[BankSet]) -> Iterator[Limit]:
    if len(bank) == 1:
        yield Limit(
            "no-shift",
            "The bank has the clean set alone: nothing here says what happens when the data "
            "shifts.",
        )
        return
    kinds: dict[str, list[str]] = {}
    for s in bank[1:]:
        name = "sets that do not say what made them" if s.corruption is None else s.corruption
        kinds.setdefault(name, []).append("?" if s.severity is None else str(s.severity))
    told = "; ".join(
        name if set(steps) == {"?"} else f"{name} (severity {', '.join(steps)})"
        for name, steps in kinds.items()
    )
    yield Limit(
        "shifts-covered",
        f"The bank covers these shifts: {told}. Of a shift of another kind the card says nothing "
        "but what the flags say.",
    )


def _stuck(bank: Sequence[BankSet]) -> Iterator[Limit]:
    stuck = [s.name for s in bank if not s.converged]
    if stuck:
        yield Limit(
            "temperature-at-end",
            f"The temperature of {_listed(stuck)} lies at the end of the range that is searched: "
            "no temperature fits there.",
        )


def _measuring(known: Known) -> Iterator[Limit]:
    held, missing = known.held, [reason for reason in known.held.missing if reason]
    if len(missing) < len(known.bank):
        yield Limit(
            "known-corruptions",
            f"The numbers after calibration on the bank are from {held.folds} fits, each judged on "
            "rows it did not see. But every fit knew the corruption, by other rows: on a new "
            "corruption the error can be larger.",
        )
    for reason in dict.fromkeys(missing):
        which = [s.name for s, why in zip(known.bank, held.missing, strict=True) if why == reason]
        yield Limit("not-measured", f"Not measured after calibration: {_listed(which)}; {reason}")
    if held.warned:
        yield Limit(
            "fold-warnings",
            f"{held.warned} of the {held.folds} fits behind those numbers warned of themselves: "
            "fewer rows than in the whole bank were not enough for some map.",
        )
    if not known.calibration.same_rows and len(known.bank) > 1:
        yield Limit(
            "rows-unmatched",
            "The sets of the bank do not have the same labels in the same order, so that it is not "
            "known which rows are of one sample. A sample may have been fitted on in one set and "
            "judged in another, which makes numbers look better.",
        )


def _rows(known: Known) -> Iterator[Limit]:
    n = min(s.n for s in known.bank)
    if n < FEW_ROWS:
        yield Limit(
            "few-rows",
            f"The smallest set of the bank has {n:,} rows; fewer than {FEW_ROWS} tell little.",
        )
    yield Limit("ece-noise", _noise(known))
    yield Limit(
        "independent-rows",
        "Intervals are for rows drawn independently, and hold the fits as they are. Frames of one "
        "film, or photographs of one thing, are fewer rows than they seem.",
    )


def _noise(known: Known) -> str:
    """The ECE of chance alone: on the clean set, where it is largest, and on the target."""

    def chance(spread: float, n: int) -> float:
        return 0.8 * spread * math.sqrt(min(known.judging.n_bins, n) / n)

    found = [chance(spread, s.n) for spread, s in zip(known.spreads, known.bank, strict=True)]
    most = max(range(len(found)), key=found.__getitem__)
    told = (
        "A model without any calibration error, as sure as this one is after calibration, shows "
        f"an ECE of about {found[0]:.4f} on the {known.bank[0].n:,} clean rows"
    )
    if most:
        worst = known.bank[most]
        told += f", of about {found[most]:.4f} on the {worst.n:,} rows of {worst.name}"
    if known.target is not None and known.target_spread is not None:
        n = known.target.n
        told += f", of about {chance(known.target_spread, n):.4f} on the {n:,} rows of the target"
    return f"{told}: values near these are noise."


def _classes(model: Model, calibration: Calibration) -> Iterator[Limit]:
    names = model.classes or tuple(f"class {c}" for c in range(model.n_classes))
    counts = list(zip(names, calibration.label_counts, strict=True))
    none = [name for name, count in counts if count == 0]
    few = [f"{name} ({count})" for name, count in counts if 0 < count < _FEW_OF_A_CLASS]
    if none:
        yield Limit(
            "classes-missing",
            f"The calibration set has no row of {_listed(none)}: nothing is known of "
            f"{'it' if len(none) == 1 else 'them'}.",
        )
    if few:
        yield Limit(
            "classes-rare",
            f"The calibration set has fewer than {_FEW_OF_A_CLASS} rows of {_listed(few)}: what "
            "holds for all rows need not hold there.",
        )


def _mixture(calibration: Calibration, target: Target | None) -> Iterator[Limit]:
    if target is None or target.label_counts is None:
        yield Limit(
            "class-mixture",
            "How the classes are mixed in the target is not known. Temperatures are for a mixture "
            "much as in the calibration set, unless the method says otherwise.",
        )
        return
    there = np.array(calibration.label_counts) / calibration.n
    here = np.array(target.label_counts) / target.n
    apart = float(np.abs(there - here).sum() / 2)
    if apart > _ANOTHER_MIXTURE:
        yield Limit(
            "class-mixture",
            "The classes of the target are mixed otherwise than those of the calibration set: "
            f"{100 * apart:.0f} % of its rows would have to be of another class.",
        )


def _model(model: Model, target: Target | None) -> Iterator[Limit]:
    if model.digest is None:
        yield Limit(
            "model-unknown",
            "The bank does not say which model it was made with. The card holds for that model and "
            "its preprocessing only, whichever it was.",
        )
    elif target is not None and target.model is None:
        yield Limit(
            "target-model-unknown",
            "The target does not say which model scored it; it must be that of the bank, with the "
            "same preprocessing.",
        )
    elif target is not None and target.model != model.digest:
        yield Limit(
            "another-model",
            "The target was scored by another model, or with another preprocessing, than the bank. "
            "The card means something only if both give the same logits.",
        )


def _target(known: Known) -> Iterator[Limit]:
    if known.method.fitted == "not-checked":
        yield Limit(
            "method-not-checked",
            "The method came fitted, and it could not be checked that it was fitted on this bank.",
        )
    if known.target is None:
        what = (
            "No target was given: the card says what the method does on its bank."
            if known.choice is None
            else "The target that the choice was made for was not given; only the choice is known."
        )
        yield Limit("no-target", what)
        return
    yield Limit(
        "one-target",
        f"The choice is for one target of {known.target.n:,} rows. For other data the method has "
        "to look again.",
    )
    if known.target.label_counts is None:
        told = "" if known.estimate is None else " Its accuracy is an estimate, not a measurement."
        yield Limit("no-labels", f"The target has no labels: nothing was measured on it.{told}")


def _flags(whose: str, flags: Iterable[Flag]) -> Iterator[Limit]:
    for flag in flags:
        yield Limit(f"flag-{flag.code}", f"Flag of {whose}: {flag.message}")


def _listed(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    *others, last = names
    return f"{', '.join(others)}{' and ' * bool(others)}{last}"

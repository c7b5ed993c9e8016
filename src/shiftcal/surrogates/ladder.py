"""Which strength of a corruption leaves a model a given accuracy, by bisection."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shiftcal.checks import check_count, check_fraction
from shiftcal.corruptions import Corruption, Strengths, as_corruption
from shiftcal.corruptions.images import LIMITS, Limits
from shiftcal.errors import FitWarning, InputError
from shiftcal.progress import Reporting
from shiftcal.registry import CORRUPTIONS
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.shards import (
    CLEAN,
    Condition,
    ShardStore,
    cache_folder,
    gathered,
    run_job,
    warn_of_bad,
)
from shiftcal.surrogates.build import labelled_job

# Strengths nearer to one another than this part of the range count as one.
_FINEST = 1e-3


class StrengthSearch:
    """Accuracies by strength, measured once each.

    Accuracy is taken to fall from the weak end to the strong one; where it rises on the way, one of
    the strengths that have the accuracy wanted is found.

    Args:
        measure: The accuracy at a strength.
        ends: The weakest setting and the strongest, in this order, whichever is the larger number.
        whole: Whether strengths are whole numbers.
        clean: Accuracy before anything is done, which the weak end is taken to leave.
    """

    def __init__(
        self,
        measure: Callable[[float], float],
        *,
        ends: tuple[float, float],
        whole: bool,
        clean: float,
    ) -> None:
        self.clean = clean
        self._measure = measure
        self._weak, self._strong = ends
        self._whole = whole
        # Settings that reach over decades, and not to zero, are halved in their logarithm.
        self._decades = min(ends) > 0
        self._known: dict[float, float] = {}

    def strongest(self) -> tuple[float, float]:
        """The strongest setting with its accuracy."""
        return self._strong, self._at(self._strong)

    def nearest(self, wanted: float, close: float) -> tuple[float, float]:
        """The strength whose accuracy is nearest to the one wanted, and that accuracy.

        Args:
            wanted: At most :attr:`clean`.
            close: So near that no further strength is tried.
        """
        self.strongest()
        while True:
            best = min(self._known, key=lambda strength: abs(self._known[strength] - wanted))
            middle = self._middle(wanted)
            if abs(self._known[best] - wanted) <= close or middle is None:
                return best, self._known[best]
            self._at(middle)

    def tried(self) -> tuple[tuple[float, float], ...]:
        """Every strength that was measured with its accuracy, from weak to strong."""
        return tuple(sorted(self._known.items(), reverse=self._weak > self._strong))

    def _at(self, strength: float) -> float:
        if strength not in self._known:
            self._known[strength] = self._measure(strength)
        return self._known[strength]

    def _middle(self, wanted: float) -> float | None:
        """Between the strengths where accuracy crosses; ``None`` if nothing new is there."""
        points = [(self._weak, self.clean), *self.tried()]
        below = [
            place for place, (_, accuracy) in enumerate(points) if accuracy <= wanted and place
        ]
        if not below:
            return None
        weaker, stronger = (self._place(points[below[0] - back][0]) for back in (1, 0))
        if abs(stronger - weaker) < _FINEST:
            return None
        middle = self._strength((weaker + stronger) / 2)
        return None if middle in self._known or middle == self._weak else middle

    def _place(self, strength: float) -> float:
        """Where a strength is between the weak end, 0, and the strong one, 1."""
        if self._decades:
            return math.log(strength / self._weak) / math.log(self._strong / self._weak)
        return (strength - self._weak) / (self._strong - self._weak)

    def _strength(self, place: float) -> float:
        if self._decades:
            strength = self._weak * (self._strong / self._weak) ** place
        else:
            strength = self._weak + place * (self._strong - self._weak)
        return float(round(strength)) if self._whole else strength


class Rung(NamedTuple):
    """A step of a ladder.

    Attributes:
        severity: 0 for the images as they are.
        strength: Of the corruption; ``None`` for the images as they are.
        wanted: The accuracy that was sought.
        accuracy: The accuracy of the model, as it is in a bank of the same seed.
    """

    severity: int
    strength: float | None
    wanted: float
    accuracy: float


class EvenLadder(NamedTuple):
    """What :func:`even_ladder` found.

    Attributes:
        corruption: With a severity for every step; what :meth:`SurrogateBank.synthesize` takes.
        table: The steps, the clean one first.
        tried: Strengths whose accuracy was measured on the way, and that accuracy.
    """

    corruption: Strengths
    table: tuple[Rung, ...]
    tried: tuple[tuple[float, float], ...]


def even_ladder(
    model: object,
    images: object,
    labels: object = None,
    *,
    corruption: object = "gaussian_noise",
    levels: int = 6,
    floor: float | None = None,
    tolerance: float = 0.03,
    seed: int = 0,
    name: str | None = None,
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> EvenLadder:
    """Strengths of a corruption at which the model's accuracy falls in even steps.

    Step ``i`` of ``levels`` has accuracy ``a - i (a - floor) / levels``, with ``a`` that of the
    images as they are, so that the last is at the floor. Strengths are found by bisection, which
    starts from all that were tried before; the model runs over the images some three or four times
    a step. STS on a bank of them is the calibration on perturbed data of Tomani et al. (2021)::

        ladder = even_ladder(model, images, labels)
        bank = SurrogateBank.synthesize(model, images, labels, corruption=ladder.corruption)
        method = STS().fit(bank)

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        labels: As for :meth:`SurrogateBank.synthesize`.
        corruption: One with a single number as its setting, by name or the object.
        levels: How many steps, in addition to the clean one.
        floor: Accuracy of the last; ``None`` is that of guessing, one over the number of classes.
        tolerance: How far from the wanted accuracy a step may be; half a step if that is less.
        seed: Fixes the random numbers of the corruption; give the bank the same.
        name: What the ladder is called; by default ``"gaussian_noise_even"``.
        engine: As for :meth:`SurrogateBank.synthesize`.
        cache: As for :meth:`SurrogateBank.synthesize`; a bank with the same cache does not score
            the steps again.
        progress: As for :meth:`SurrogateBank.synthesize`.

    Warns:
        FitWarning: If the strongest setting leaves the model more accurate than the floor, so that
            the steps end there; or if there is no setting for some of the steps.

    Raises:
        InputError: If the corruption has no single number as its setting, or the model is no
            better than the floor.
    """
    base, limits, rises = _scalar(corruption)
    count = check_count(levels, name="levels")
    near = check_fraction(tolerance, name="tolerance")
    title = f"{base.name}_even" if name is None else name
    ends = (limits.low, limits.high) if rises else (limits.high, limits.low)
    Strengths(base, ends, name=title)  # raises before any work if the name cannot be used
    folder = cache_folder(cache)
    # One job for all strengths: it knows the digests of the images.
    job = labelled_job(model, images, labels, (CLEAN,), seed=seed, lasting=folder is not None)

    def accuracies(conditions: list[Condition]) -> tuple[list[float], int]:
        job.conditions, store = tuple(conditions), ShardStore(cache=folder)
        done = run_job(job, store, engine, Reporting(progress))
        outline = done.outlines[conditions[0]]
        if conditions == [CLEAN]:
            warn_of_bad(job, outline.bad)
        assert done.labels is not None
        truth, found = done.labels[outline.rows()], (gathered(job, c, store) for c in conditions)
        return [float(np.mean(z.argmax(axis=1) == truth)) for z, _ in found], outline.k

    def measure(strength: float) -> float:
        return accuracies([Condition(Strengths(base, [strength], name=title), 1)])[0][0]

    (clean,), k = accuracies([CLEAN])
    bottom = _floor(floor, k, clean, near)
    search = StrengthSearch(measure, ends=ends, whole=limits.whole, clean=clean)
    bottom = _reachable(search, bottom, near, base)
    step = (clean - bottom) / count
    wanted = [clean - i * step for i in range(1, count + 1)]
    chosen = _chosen(search, wanted, min(near, step / 2))
    made = Strengths(base, list(chosen), name=title)
    found, _ = accuracies([Condition(made, i) for i in range(1, made.severities + 1)])
    rungs = [
        Rung(i, strength, want, accuracy)
        for i, ((strength, want), accuracy) in enumerate(zip(chosen.items(), found, strict=True), 1)
    ]
    return EvenLadder(made, (Rung(0, None, clean, clean), *rungs), search.tried())


def _scalar(given: object) -> tuple[Corruption, Limits, bool]:
    """The corruption, between which numbers its setting may lie, and whether more is stronger."""
    base = as_corruption(given)
    limits = LIMITS.get(base.name, ())
    own = CORRUPTIONS.is_built_in(type(base))
    if not own or len(limits) != 1:
        fit = ", ".join(name for name, each in LIMITS.items() if len(each) == 1)
        raise InputError(
            f"corruption must be a published one with a single number as its setting; "
            f"{base.description} {f'takes {len(limits)}' if own else 'is none'}. Take one of {fit}."
        )
    published = base.settings.imagenet
    return base, limits[0], published[-1] > published[0]


def _floor(floor: float | None, k: int, clean: float, near: float) -> float:
    """The accuracy to go down to, if the model is above it."""
    bottom = 1 / k if floor is None else check_fraction(floor, name="floor")
    if clean - bottom > near:
        return bottom
    raise InputError(
        f"the model must be better than the floor, {bottom:.4g}, by more than the tolerance, "
        f"{near:.4g}; its accuracy is {clean:.4g}. Look whether labels and classes agree, or give "
        "another floor."
    )


def _reachable(search: StrengthSearch, floor: float, near: float, base: Corruption) -> float:
    """The floor, or what the strongest setting reaches."""
    strength, lowest = search.strongest()
    if lowest <= floor + near:
        return max(floor, lowest)
    if search.clean - lowest <= near:
        raise InputError(
            f"corruption must cost the model accuracy; {base.name} at its strongest setting, "
            f"{strength:g}, leaves {lowest:.4g} of {search.clean:.4g}. Take another corruption."
        )
    warnings.warn(
        f"{base.name} at its strongest setting, {strength:g}, leaves the model an accuracy of "
        f"{lowest:.4g}, above the floor of {floor:.4g}: the steps are even down to there. Another "
        "corruption may reach the floor.",
        FitWarning,
        stacklevel=3,  # 1 here, 2 even_ladder, 3 the caller's line
    )
    return lowest


def _chosen(search: StrengthSearch, wanted: list[float], close: float) -> dict[float, float]:
    """Strengths from weak to strong with the accuracy each is for; none twice."""
    chosen: dict[float, float] = {}
    missed = []
    for want in wanted:
        # Past the strength at which nothing is recognised any more, accuracy stays: the last step
        # is to be where it gets there, and not the strongest setting there is.
        shift = 0.6 * close if want == wanted[-1] else 0.0
        strength, accuracy = search.nearest(want + shift, close - shift)
        if abs(accuracy - want) > close or strength in chosen:
            missed.append(f"{want:.3f}")
        chosen.setdefault(strength, want)
    if missed:
        warnings.warn(
            f"no strength has an accuracy within {close:.3g} of {', '.join(missed)}; the nearest "
            "were taken, each once. Accuracy falls in jumps there, or the images are few.",
            FitWarning,
            stacklevel=3,  # 1 here, 2 even_ladder, 3 the caller's line
        )
    order = [strength for strength, _ in search.tried() if strength in chosen]
    return {strength: chosen[strength] for strength in order}

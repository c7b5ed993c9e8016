"""Vanilla, TS and STS, which never look at a target; ACE and PseudoCal, which move T for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, final

import numpy as np

from shiftcal.checks import check_count, check_positive
from shiftcal.errors import FitWarning
from shiftcal.maps import Map, Temperature
from shiftcal.methods.method import (
    FEW_ROWS,
    Method,
    Selection,
    few_rows,
    fit_map,
    temperature_of,
    warn_of_one_set,
)
from shiftcal.methods.rehearsal import Grouped
from shiftcal.numerics.softmax import p_max, softmax
from shiftcal.numerics.temperature import FitStatus
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Flag, Floats, Labels, Logits, Probs


@final
class Vanilla(Method):
    """The raw softmax; learns nothing. The baseline every other method has to beat.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.
    """

    name: ClassVar[str] = "vanilla"

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        pass

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name, temperature=1.0)

    def _apply(self, logits: Logits) -> Probs:
        return softmax(logits)


class OneMap(Method):
    """A method that applies one fitted map to every target."""

    map_: Map

    @property
    def temperature_(self) -> float:
        """The fitted temperature."""
        self._require_fitted()
        temperature = temperature_of(self.map_)
        if temperature is None:
            raise AttributeError(
                f"this {type(self).__name__} has no temperature_: its map is not a temperature."
            )
        return temperature

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name, temperature=temperature_of(self.map_))

    def _apply(self, logits: Logits) -> Probs:
        return self.map_.apply_checked(logits)


@final
class TS(OneMap):
    """One temperature of least NLL on the clean set: ``softmax(z / T)``. Knows of no shift.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        map_: The fitted map.
        temperature_: Its temperature.
    """

    name: ClassVar[str] = "ts"

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        clean = bank.clean
        self.map_ = fit_map("temperature", clean.logits, clean.labels, where=clean.name)


@final
class STS(OneMap):
    """One map fitted on all surrogate sets together; never looks at the target.

    ``T = argmin Σ_j NLL(D_j; T)`` over the sets ``D_1 ... D_J`` of the bank. With a bank of one
    set it is TS, and ``fit`` warns of it. It trades some calibration on clean
    data for much better calibration under shift.

    Args:
        map: Name of the calibration map, or an unfitted one with its settings.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        map_: The fitted map.
        temperature_: Its temperature, if the map is one.
    """

    name: ClassVar[str] = "sts"
    uses_bank: ClassVar[bool] = True

    def __init__(self, *, map: str | Map = "temperature", input: str = "logits") -> None:
        self.map = map
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        logits, labels = bank.union()
        self.map_ = fit_map(self.map, logits, labels, where=f"union of {len(bank)} sets")
        warn_of_one_set(self, bank, self.map_)


@final
class ACE(Method):
    """Between the temperature of the clean set and that of its mistakes, by mean confidence.

    ``T_0`` is fitted on the clean set, ``T_1`` on a hard resample of it: all rows predicted
    wrongly and ``ratio`` times as many that were right, drawn with replacement. With ``α`` the
    mean raw p_max of the target over that of the clean set, at most 1, the output is
    ``softmax(α z / T_0 + (1 - α) z / T_1)``: one temperature. (Zou, Deng and Zheng 2023)

    Most rows of the hard resample are wrong, so its predictions can be worse than chance; with two
    classes they always are. ``T_1`` is then 100, the largest allowed: close to a uniform guess,
    as it should be, and no reason for a warning.

    The published code differs in three points: it does not clip ``α`` at 1, so a target more
    confident than the clean set gets a sharper temperature than ``T_0``; it searches ``T_0`` and
    ``T_1`` in [0.5, 3] only; and where no more rows are right than wrong, it draws from the wrong
    ones instead.

    Args:
        ratio: Right rows in the hard resample for every wrong one.
        seed: Of their draw.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        easy_: The temperature of the clean set.
        hard_: That of the hard resample; that of the clean set where there is none.
        mean_confidence_: Mean raw p_max of the clean set.
        accuracy_: Accuracy of the clean set; with 0 or 1 there is no hard resample.
    """

    name: ClassVar[str] = "ace"
    uses_target: ClassVar[bool] = True

    easy_: Temperature
    hard_: Temperature
    mean_confidence_: float
    accuracy_: float

    def __init__(self, *, ratio: float = 0.1, seed: int = 0, input: str = "logits") -> None:
        self.ratio = ratio
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        check_positive(self.ratio, name="ratio")
        check_count(self.seed, name="seed", least=0)
        clean = bank.clean
        summary = clean.summary()
        self.mean_confidence_, self.accuracy_ = summary.mean_confidence, summary.accuracy
        self.easy_ = fit_map("temperature", clean.logits, clean.labels, where=clean.name)
        for flag in self._no_hard_set():
            # 1 here, 2 and 3 Method.fit, 4 the caller's line
            warnings.warn(flag.message, FitWarning, stacklevel=4)
            self.hard_ = self.easy_
            return
        right = clean.logits.argmax(axis=1) == clean.labels
        wrong_rows, right_rows = np.flatnonzero(~right), np.flatnonzero(right)
        # With none that is right nothing but a uniform guess would fit.
        n = max(1, int(self.ratio * len(wrong_rows)))
        drawn = np.random.default_rng(self.seed).choice(right_rows, n, replace=True)
        rows = np.concatenate([wrong_rows, drawn])
        where = f"hard resample of {clean.name}"
        self.hard_ = fit_map(
            "temperature", clean.logits[rows], clean.labels[rows], where=where, flat_is_fine=True
        )

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return self._select(float(p_max(logits).mean()), len(logits))

    def needs_rows(self) -> str | None:
        """Mean confidence is all that is needed."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return self._select(target.mean_confidence, target.n)

    def _select(self, mean: float, n: int) -> Selection:
        share = mean / self.mean_confidence_
        alpha = min(share, 1.0)
        easy, hard = self.easy_.temperature_, self.hard_.temperature_
        return Selection(
            self.name,
            temperature=1 / (alpha / easy + (1 - alpha) / hard),
            n_target=n,
            mean_confidence=mean,
            details={"alpha": alpha, "t_easy": easy, "t_hard": hard},
            flags=tuple(self._flags(n, share)),
        )

    def _no_hard_set(self) -> Iterator[Flag]:
        if self.accuracy_ in (0.0, 1.0):
            what = "correctly" if self.accuracy_ else "wrongly"
            yield Flag(
                "no-hard-set",
                f"every row of the clean set is predicted {what}, so no harder set can be drawn "
                "from it and every target gets the clean set's temperature. Calibrate on a set "
                "with correct and wrong predictions.",
            )

    def _flags(self, n: int, share: float) -> Iterator[Flag]:
        yield from few_rows(n)
        if share > 1:
            yield Flag(
                "alpha-clipped",
                f"the target's mean confidence is {share:.4f} times that of the clean set: by this "
                "measure it is no harder, and it gets the clean set's temperature.",
            )
        yield from self._no_hard_set()
        for map_, whose in ((self.easy_, "clean set"), (self.hard_, "hard resample")):
            flat = whose == "hard resample" and map_.status_.code == "at-upper-bound"
            if not map_.status_.converged and not flat:
                yield Flag("map-not-converged", f"{whose}: {map_.status_.message}")


@final
class PseudoCal(Method):
    """The T of least NLL on mixed target images, labelled by the model itself.

    Two target images that are predicted to be of different classes are mixed, ``x = λ a +
    (1 - λ) b`` with ``λ = 0.65``, and labelled with the prediction for ``a``: ``T = argmin
    NLL(mixed; T)`` (Hu et al., 2024). Mixing is taken to make errors about as often, and as
    confidently, as the model makes them on the target. No label of the target is needed, and of
    the source only what the fallback is made of.

    Needs the model run over mixed images: ``mixed=`` in ``adapt``, as
    :func:`shiftcal.scoring.score_mixed` gives them. Where no T fits those, because the model is
    right on every mixture or on none, T is that of the clean calibration set, with a flag.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        clean_temperature_: T of the clean calibration set.
    """

    name: ClassVar[str] = "pseudocal"
    uses_target: ClassVar[bool] = True
    uses_mixed: ClassVar[bool] = True

    clean_temperature_: float

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        clean = bank.clean
        scaling = fit_map("temperature", clean.logits, clean.labels, where=clean.name)
        self.clean_temperature_ = scaling.temperature_

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        """The clean temperature, for mixtures that tell none."""
        return Selection(
            self.name,
            temperature=self.clean_temperature_,
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
        )

    def _adapt_mixed(self, logits: Logits, mixed: Logits, labels: Labels) -> Selection:
        scaling = Temperature().fit_checked(mixed, labels, None)
        made = self._adapt(logits, None)
        if scaling.status_.converged:
            made = replace(made, temperature=scaling.temperature_)
        return replace(
            made,
            details={
                "mixed_rows": float(len(mixed)),
                "mixed_accuracy": float(np.mean(mixed.argmax(axis=1) == labels)),
                "clean_temperature": self.clean_temperature_,
            },
            flags=tuple(self._flags(len(mixed), scaling.status_)),
        )

    def _flags(self, rows: int, status: FitStatus) -> Iterator[Flag]:
        if rows < FEW_ROWS:
            yield Flag(
                "few-rows",
                f"with {rows} mixed images the temperature is uncertain. Use {FEW_ROWS} or more.",
            )
        if not status.converged:
            yield Flag(
                "clean-fallback",
                "the mixed images determine no temperature, so that of the clean calibration set "
                f"is used: {status.message}",
            )

"""The files that a calibration card is made of, and when it is made."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.cli._inputs import NEEDS_MIXED, lacking_features, read_bank, read_target
from shiftcal.cli._settings import choose_settings
from shiftcal.errors import FileError, InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal._types import Floats
    from shiftcal.cards import CalibrationCard, Judging, Provenance
    from shiftcal.methods import Method
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank

_METHOD, _ESTIMATOR, _NO_ESTIMATE = "rehearsal", "rehearsed", "none"
_EPOCH = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class CardFiles:
    """What is read for a card; what is not given is ``None``."""

    bank: Path
    fitted: Path | None
    target: Path | None
    labels: Path | None
    source_train: Path | None

    def all(self) -> Iterator[Path]:
        """Every file, those of a bank's folder among them."""
        yield from self.bank.iterdir() if self.bank.is_dir() else [self.bank]
        yield from self._others()

    def digests(self) -> dict[str, str]:
        """File to SHA-256; a bank's folder by ``bank.json``, which has those of its sets."""
        from shiftcal.surrogates.folder import digest_of

        bank = self.bank / "bank.json" if self.bank.is_dir() else self.bank
        found = {}
        for file in (bank, *self._others()):
            try:
                found[str(file)] = digest_of(file)
            except OSError as error:
                raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
        return found

    def make_card(
        self,
        *,
        method: str | None,
        settings: Sequence[str],
        estimator: str | None,
        judging: Judging,
        provenance: Provenance,
        title: str,
        notes: str,
    ) -> CalibrationCard:
        """The card, of files that are read and checked before anything is computed."""
        from shiftcal import cards, estimates
        from shiftcal.scores import read_features
        from shiftcal.scores._origin import model_digest_of_file

        asked = None if estimator == _NO_ESTIMATE else estimator or _ESTIMATOR
        if asked is not None:
            estimates.get(asked)  # a mistyped name is told before files are read
        chosen = self._method(method, settings)
        sets = read_bank(self.bank, None) if self.bank.is_dir() else read_bank(None, [self.bank])
        if not hasattr(chosen, "n_classes_"):
            chosen.set_params(input=sets.input)
        scores = self._target(sets)
        features = None if self.source_train is None else read_features(self.source_train)
        self._check_features(chosen, sets, scores, source=features)
        made = cards.make_card(
            chosen,
            sets,
            scores,
            estimator=asked,
            title=title,
            notes=notes,
            judging=judging,
            provenance=provenance,
            source_features=features,
            target_model=None if self.target is None else model_digest_of_file(self.target),
        )
        for limit in made.limits:
            if limit.code == "another-model":
                warnings.warn(f"{self.target}: {limit.message}", InputWarning, stacklevel=2)
        return made

    def _others(self) -> Iterator[Path]:
        for file in (self.fitted, self.target, self.labels, self.source_train):
            if file is not None:
                yield file

    def _method(self, name: str | None, settings: Sequence[str]) -> Method:
        from shiftcal import methods
        from shiftcal._persistence import load
        from shiftcal.methods import Method

        if self.fitted is None:
            cls = methods.get(name or _METHOD)
            if cls.uses_mixed:
                raise InputError(f"{cls.name()} {NEEDS_MIXED}")
            made: Method = cls(**choose_settings(cls, {}, settings))
            return made
        if name is not None or settings:
            raise InputError(
                f"--fitted brings its method and settings, and excludes "
                f"{'--method' if name is not None else '--set'}. Leave one of them out."
            )
        fitted = load(self.fitted)
        if not isinstance(fitted, Method):
            raise FileError(
                f"{self.fitted} holds the {fitted.kind} {fitted.name()!r}, not a method. "
                "Write one with `shiftcal fit`."
            )
        return fitted

    def _target(self, sets: SurrogateBank) -> Scores | None:
        if self.target is None:
            if self.labels is not None:
                raise InputError("--labels are those of the target. Name that with --target.")
            return None
        scores = read_target(self.target, n_classes=sets.n_classes, classes=sets.classes)
        if self.labels is None:
            return scores
        from shiftcal.scores import read_labels

        return replace(scores, labels=read_labels(self.labels, scores))

    def _check_features(
        self, method: Method, sets: SurrogateBank, target: Scores | None, *, source: Floats | None
    ) -> None:
        if not method.uses_features:
            if source is not None:
                raise InputError(f"{method.name()} uses no features. Leave --source-train out.")
            return
        needed = {"clean": sets.clean.features}
        if not hasattr(method, "n_classes_"):
            needed["source"] = source
        if target is not None:
            needed["target"] = target.features
        if lacking := lacking_features(**needed):
            raise InputError(f"{method.name()} needs {lacking}.")


def is_card(path: Path) -> bool:
    """Whether the path can be nothing but the JSON of a card."""
    return path.suffix.lower() == ".json" and not path.is_dir()


def made_on() -> str:
    """Today's date by UTC, or that of the variable by which builds are made the same again.

    Raises:
        InputError: If the variable holds no time.
    """
    given = os.environ.get(_EPOCH)
    if given is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        return datetime.datetime.fromtimestamp(int(given), datetime.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(
            f"the variable {_EPOCH} must hold whole seconds since 1970; got {given!r}. Set it so, "
            "or unset it for today's date."
        ) from error

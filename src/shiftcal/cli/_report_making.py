"""What a report is made of, whatever it was read from, made into its facts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from shiftcal.cli._inputs import NEEDS_MIXED
from shiftcal.cli._settings import choose_settings, settings_of
from shiftcal.errors import InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal._types import Floats
    from shiftcal.methods import Method
    from shiftcal.report.html import Judging, Provenance, ReportFacts
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """Bank and target, and what may come with them.

    Attributes:
        bank: The bank.
        scores: Of the target.
        source_features: Of training samples.
        images: What was scored.
        target_model: Digest of the model that scored the target.
    """

    bank: SurrogateBank
    scores: Scores
    source_features: Floats | None = None
    images: str | None = None
    target_model: str | None = None


class ReportSource(Protocol):
    """Where bank and target come from."""

    @property
    def target(self) -> str | Path:
        """The target as it was named."""

    def all(self) -> Iterator[Path]:
        """Every file that is read."""

    def digests(self) -> dict[str, str]:
        """File to SHA-256."""

    def options(self) -> list[str]:
        """The words of a command that name it."""

    def usage(self, method: str, settings: Sequence[str], judging: Judging) -> str:
        """Commands that calibrate the target; empty if there are none."""

    def read(self) -> ReportInputs:
        """What is there, checked."""


def check_wanted(method: str, settings: Sequence[str], judging: Judging) -> None:
    """Refuse what cannot be meant, before files are read.

    Raises:
        InputError: Naming the option.
    """
    from shiftcal._checks import check_fraction
    from shiftcal.report.html.parts import MOST_BINS

    _method(method, settings, judging)
    check_fraction(judging.level, name="--level")
    if judging.n_resamples == 1:
        raise InputError("--resamples must be 0 (no intervals) or at least 2; got 1.")
    if judging.n_bins > MOST_BINS:
        raise InputError(
            f"--bins must be at most {MOST_BINS}, since each is a point to be seen; got "
            f"{judging.n_bins}."
        )


def make(
    source: ReportSource,
    *,
    method: str,
    settings: Sequence[str],
    title: str,
    judging: Judging,
    provenance: Provenance,
) -> ReportFacts:
    """All that the page says, of what is read and checked before it is computed."""
    from shiftcal.report.html import make_facts

    chosen = _method(method, settings, judging)
    given = source.read()
    given.scores.logits()  # a target that cannot be used is an error, not a reason to skip a method
    facts = make_facts(
        given.bank,
        given.scores,
        method=chosen,
        images=given.images,
        source_features=given.source_features,
        target_model=given.target_model,
        title=title,
        judging=judging,
        provenance=provenance,
    )
    for note in facts.warnings:
        if note.code == "another-model":
            warnings.warn(f"{source.target}: {note.messages[0]}", InputWarning, stacklevel=2)
    return facts


def implied(name: str, settings: Sequence[str], judging: Judging) -> list[str]:
    """Settings of the method that options of the report decide, where they are not the default."""
    from shiftcal import methods

    known = settings_of(methods.get(name))
    given = {text.partition("=")[0] for text in settings}
    told = {"seed": judging.seed, "level": judging.level}
    return [
        f"{setting}={value}"
        for setting, value in told.items()
        if setting in known and setting not in given and value != known[setting]
    ]


def _method(name: str, settings: Sequence[str], judging: Judging) -> Method:
    from shiftcal import methods

    cls = methods.get(name)
    if cls.uses_mixed:
        raise InputError(f"{cls.name()} {NEEDS_MIXED}")
    assigned = [*settings, *implied(name, settings, judging)]
    made: Method = cls(**choose_settings(cls, {}, assigned))
    return made

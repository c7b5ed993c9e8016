"""What a plan names, looked for in all the places where it may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from shiftcal.errors import FileError, MissingData, MissingExtra
from shiftcal.studies.stages.missing import Missing, told

Place = TypeVar("Place")
T = TypeVar("T")


class Search:
    """Alternatives tried one after the other; what is found nowhere is remembered."""

    def __init__(self) -> None:
        self.missing: list[Missing] = []
        self.left_out: list[str] = []

    def first(
        self,
        what: str,
        specs: Sequence[Place],
        open_one: Callable[[Place], T],
        fetch: str,
        *,
        optional: bool = False,
    ) -> tuple[Place, T | None]:
        """The first alternative that is there, and what it opens as.

        Raises:
            InputError: If one is there and cannot be used.
        """
        reasons = []
        for spec in specs:
            try:
                return spec, open_one(spec)
            except (MissingData, MissingExtra) as error:
                reasons.append(f"{_text(spec)}: {error}")
            except FileError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                reasons.append(f"{_text(spec)}: {error}")
        self.missing.append(Missing(what, tuple(reasons), fetch, optional))
        return specs[0], None

    def leave_out(self) -> None:
        """What was found missing last is left out, and said so."""
        self.left_out.append(str(self.missing.pop()))

    def leave_out_optional(self) -> None:
        """What was found missing and the study can be run without is left out, and said so."""
        self.left_out += [str(each) for each in self.missing if each.optional]
        self.missing = [each for each in self.missing if not each.optional]

    def need_all(self) -> None:
        """Nothing of what was found missing can be left out."""
        self.missing = [replace(each, optional=False) for each in self.missing]

    def raise_if_missing(self, *, skipping: bool = False) -> None:
        """Raises MissingData with everything that was found nowhere."""
        if self.missing:
            raise MissingData(told(self.missing, skipping=skipping))


def _text(spec: object) -> str:
    """A place in a message; several sets that are joined have one text each."""
    return " + ".join(spec) if isinstance(spec, tuple) else str(spec)

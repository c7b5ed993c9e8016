"""Slips of the fingers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np

from shiftcal._checks import check_choice
from shiftcal.corruptions.text._graphemes import graphemes, is_letter
from shiftcal.corruptions.text.base import TextCorruption
from shiftcal.errors import InputError

KINDS = ("neighbour", "drop", "double", "transpose")
# Rows of keys, each half a key further to the right than the one above.
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    """Every letter of the keyboard -> the letters whose keys touch its own."""
    place = {key: (row, x) for row, keys in enumerate(_ROWS) for x, key in enumerate(keys)}

    def touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
        down, right = other[0] - one[0], other[1] - one[1]
        return (down, right) in ((0, 1), (0, -1), (1, 0), (1, -1), (-1, 0), (-1, 1))

    return {
        key: "".join(other for other, there in place.items() if touch(here, there))
        for key, here in place.items()
    }


NEIGHBOURS = _neighbours()


@final
class Typos(TextCorruption):
    """Hits letters, each with a probability that is the strength, as hurried fingers do.

    A letter that is hit is replaced by a neighbour on a QWERTY keyboard, dropped, doubled, or
    exchanged with the next letter of its word: one of these that can happen to it, at random.
    Neighbours and doubles happen to the letters a to z and A to Z only; those of all other scripts
    are dropped or exchanged. A letter keeps its accents, capitals stay capitals, and what is not a
    letter stays.

    Args:
        strengths: Shares of the letters, one for each severity, rising, at most 1.
        kinds: What may happen to a letter.
    """

    defaults: ClassVar[tuple[float, ...]] = (0.02, 0.05, 0.1, 0.2, 0.3)

    def __init__(
        self, *, strengths: Sequence[float] | None = None, kinds: Sequence[str] = KINDS
    ) -> None:
        super().__init__(strengths=strengths)
        if isinstance(kinds, str) or not kinds:
            raise InputError(f"kinds must be a list of some of {KINDS}; got {kinds!r}.")
        self.kinds = tuple(check_choice(each, KINDS, name="each of the kinds") for each in kinds)

    @property
    def description(self) -> str:
        """The name, with the strengths, and the kinds if they are not all."""
        kinds = "" if self.kinds == KINDS else f", {' '.join(self.kinds)}"
        return f"{super().description}{kinds}"

    def _altered(self, text: str, strength: float, rng: np.random.Generator) -> str:
        parts = graphemes(text)
        hit, which, key = rng.random((3, len(parts)))
        made = list(parts)
        exchanged = []
        for i in np.flatnonzero(hit < strength).tolist():
            possible = [kind for kind in self.kinds if _can(kind, parts, i)]
            if not possible:
                continue
            kind = possible[int(which[i] * len(possible))]
            if kind == "transpose":
                exchanged.append(i)
            else:
                made[i] = _slip(kind, parts[i], float(key[i]))
        for i in exchanged:
            made[i], made[i + 1] = made[i + 1], made[i]
        return "".join(made)


def _can(kind: str, parts: list[str], i: int) -> bool:
    """Whether this can happen to part ``i``, and would change the text."""
    if not is_letter(parts[i]):
        return False
    if kind == "transpose":
        following = parts[i + 1] if i + 1 < len(parts) else " "
        return is_letter(following) and following != parts[i]
    return kind == "drop" or parts[i].lower() in NEIGHBOURS


def _slip(kind: str, letter: str, draw: float) -> str:
    if kind == "drop":
        return ""
    if kind == "double":
        return 2 * letter
    near = NEIGHBOURS[letter.lower()]
    found = near[int(draw * len(near))]
    return found.upper() if letter.isupper() else found

"""Corruptions of texts: a list of texts in, the same texts, harder to classify, out.

``text.names()`` lists them, ``text.get("typos")`` and ``text.Typos`` give the class.
"""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from shiftcal.corruptions.inputs import InputCorruption, check_strengths
from shiftcal.errors import InputError
from shiftcal.registry import TEXT

names = TEXT.names
get = TEXT.get

_WORD = re.compile(r"\S+")
_JOINER = "\u200d"


class TextCorruption(InputCorruption):
    """Texts made harder to classify. A strength is the share of what is hit, at most 1.

    A new corruption is a final subclass with a ``name``, ``defaults`` for its strengths and
    ``_altered``. Texts are a list, a tuple, an array or a Series, and come out as the same.

    Args:
        strengths: One for each severity, rising; each class says what they are shares of.

    Attributes:
        defaults: Strengths of the five severities.
    """

    defaults: ClassVar[tuple[float, ...]]

    def __init__(self, *, strengths: Sequence[float] | None = None) -> None:
        self.strengths = check_strengths(self.defaults if strengths is None else strengths, most=1)

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        is_series = hasattr(inputs, "to_numpy")
        listed = is_series or isinstance(inputs, (list, tuple, np.ndarray))
        if not listed or getattr(inputs, "ndim", 1) != 1:
            raise InputError(
                "texts must be a list, a tuple, an array (n,) or a Series of text; got "
                f"{type(inputs).__name__} of shape {np.shape(inputs)}."
            )
        for row, text in enumerate(inputs):
            if not isinstance(text, str):
                raise InputError(f"every text must be a str; row {row} is {text!r}.")
        keys = self._streams(len(inputs), severity, seed=seed, first_index=first_index)
        altered = [
            self._altered(str(text), self.strengths[severity - 1], np.random.default_rng(int(key)))
            for text, key in zip(inputs, keys, strict=True)
        ]
        if isinstance(inputs, np.ndarray):
            return np.array(altered, None if inputs.dtype.kind == "U" else inputs.dtype)
        if is_series:
            kept = {"index": inputs.index, "name": inputs.name, "dtype": inputs.dtype}
            return type(inputs)(altered, **kept)
        return altered if isinstance(inputs, list) else tuple(altered)

    @abstractmethod
    def _altered(self, text: str, strength: float, rng: np.random.Generator) -> str:
        """One text, corrupted; ``rng`` is its own."""


@final
class DroppedWords(TextCorruption):
    """Drops words, each with the probability ``strength``; one is always left.

    Words are separated by spaces and keep their punctuation; a text in a script without spaces is
    one word. Other spaces and line breaks stay.

    Args:
        strengths: Shares of the words, one for each severity, rising, at most 1.
    """

    name = "dropped_words"
    defaults = (0.1, 0.2, 0.35, 0.5, 0.7)

    def _altered(self, text: str, strength: float, rng: np.random.Generator) -> str:
        words = list(_WORD.finditer(text))
        if len(words) < 2:
            return text
        kept = np.flatnonzero(rng.random(len(words)) >= strength).tolist()
        kept = kept or [int(rng.integers(len(words)))]
        altered = text[: words[0].start()] + words[kept[0]].group()
        for i in kept[1:]:
            altered += text[words[i - 1].end() : words[i].end()]
        return altered + text[words[-1].end() :]


def graphemes(text: str) -> list[str]:
    """The text in pieces that are not cut further: an accent stays with its letter.

    A simple reading of Unicode's rules (UAX 29): marks, skin tones, medial and final Korean
    letters and whatever follows a joiner belong to what is before them; two regional letters are
    a flag.
    """
    parts: list[str] = []
    for c in text:
        last = parts[-1] if parts else ""
        flag = len(last) == 1 and all("\U0001f1e6" <= x <= "\U0001f1ff" for x in last + c)
        mark = unicodedata.category(c)[0] == "M" or c == _JOINER or last[-1:] == _JOINER
        if last and (
            mark or flag or "\u1160" <= c <= "\u11ff" or "\U0001f3fb" <= c <= "\U0001f3ff"
        ):
            parts[-1] += c
        else:
            parts.append(c)
    return parts


def _neighbours() -> dict[str, str]:
    """Every letter -> the letters whose keys touch its own on a QWERTY keyboard."""
    rows = ("qwertyuiop", "asdfghjkl", "zxcvbnm")  # each half a key right of the one above
    place = {key: (y, x) for y, keys in enumerate(rows) for x, key in enumerate(keys)}
    touching = ((0, 1), (0, -1), (1, 0), (1, -1), (-1, 0), (-1, 1))
    return {
        key: "".join(k for k, (down, right) in place.items() if (down - y, right - x) in touching)
        for key, (y, x) in place.items()
    }


NEIGHBOURS = _neighbours()


@final
class Typos(TextCorruption):
    """Hits letters, each with the probability ``strength``.

    A letter that is hit is replaced by a neighbour on a QWERTY keyboard, dropped, doubled, or
    exchanged with the next letter of its word: one of those that are possible, at random.
    Only a to z and A to Z have neighbours and doubles. A letter keeps its accents, capitals stay
    capitals, and whatever is not a letter stays.

    Args:
        strengths: Shares of the letters, one for each severity, rising, at most 1.
    """

    name = "typos"
    defaults = (0.02, 0.05, 0.1, 0.2, 0.3)

    def _altered(self, text: str, strength: float, rng: np.random.Generator) -> str:
        parts = list(text) if text.isascii() else graphemes(text)
        hit, which, key = rng.random((3, len(parts)))
        altered = list(parts)
        transposed = []
        for i in np.flatnonzero(hit < strength).tolist():
            letter, following = parts[i], parts[i + 1] if i + 1 < len(parts) else " "
            if not letter[0].isalpha():
                continue
            near = NEIGHBOURS.get(letter.lower(), "")
            possible = ["neighbour", "drop", "double"] if near else ["drop"]
            if following[0].isalpha() and following != letter:
                possible.append("transpose")
            kind = possible[int(which[i] * len(possible))]
            if kind == "transpose":
                transposed.append(i)
            elif kind == "neighbour":
                new = near[int(key[i] * len(near))]
                altered[i] = new.upper() if letter.isupper() else new
            else:
                altered[i] = "" if kind == "drop" else 2 * letter
        for i in transposed:
            altered[i], altered[i + 1] = altered[i + 1], altered[i]
        return "".join(altered)

"""Text cut where a reader would cut it: an accent stays with its letter, a flag is one thing."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"


def graphemes(text: str) -> list[str]:
    """The parts of a text that are not cut further; put together they are the text.

    A simple reading of Unicode's rules (UAX 29): marks, variation selectors, skin tones, medial
    and final Korean letters, and whatever stands behind a joiner belong to what is before them; two
    regional letters are a flag.
    """
    if text.isascii():
        return list(text)
    parts: list[str] = []
    for character in text:
        if parts and (
            _extends(character) or parts[-1][-1] == _JOINER or _flag(parts[-1], character)
        ):
            parts[-1] += character
        else:
            parts.append(character)
    return parts


def is_letter(part: str) -> bool:
    """Whether a part is a letter of any script."""
    return part[0].isalpha()


def _extends(character: str) -> bool:
    return (
        character == _JOINER
        or unicodedata.category(character).startswith("M")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\u1160" <= character <= "\u11ff"
    )


def _flag(before: str, character: str) -> bool:
    return len(before) == 1 and all("\U0001f1e6" <= c <= "\U0001f1ff" for c in before + character)

"""Words that are not there."""

from __future__ import annotations

import re
from typing import ClassVar, final

import numpy as np

from shiftcal.corruptions.text.base import TextCorruption

_WORD = re.compile(r"\S+")


@final
class DroppedWords(TextCorruption):
    """Drops words, each with a probability that is the strength; one is always left.

    Words are what stands between spaces, with the punctuation at them. So a text in a script
    without spaces is one word, and stays as it is. Other spaces and line breaks stay.

    Args:
        strengths: Shares of the words, one for each severity, rising, at most 1.
    """

    defaults: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.35, 0.5, 0.7)

    def _altered(self, text: str, strength: float, rng: np.random.Generator) -> str:
        words = list(_WORD.finditer(text))
        if len(words) < 2:
            return text
        kept = np.flatnonzero(rng.random(len(words)) >= strength).tolist()
        if not kept:
            kept = [int(rng.integers(len(words)))]
        made = text[: words[0].start()] + words[kept[0]].group()
        for i in kept[1:]:
            made += text[words[i - 1].end() : words[i].end()]
        return made + text[words[-1].end() :]

"""The blocks of code of a page, and whether what they print is what the page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DECIMAL = re.compile(r"\d[\d,]*\.\d+(?:e-?\d+)?")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Another processor, or another release of a library, trains a slightly other network.
_RELATIVE, _ABSOLUTE, _POINTS = 0.05, 0.02, 3


@dataclass(frozen=True)
class Block:
    """A block of a page; ``line`` is that of its fence, from 1."""

    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in its order."""
    text = page.read_text("utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def shown_after(blocks: list[Block]) -> list[Block | None]:
    """For each block that runs, the ``text`` block that follows it, if one does."""
    followed = pairwise([*blocks, Block("", "", 0)])
    return [
        after if after.language == "text" else None
        for block, after in followed
        if block.language != "text"
    ]


def is_shown(printed: str, shown: str) -> bool:
    """Whether a page shows what was printed.

    Words and whole numbers must be the same; numbers with a point, and those of a line that speaks
    of percent, near. Spaces between words are of no account. A line ``...`` stands for any lines,
    and ``...`` in a line for any of it.
    """
    lines = [line for line in shown.splitlines() if line.strip()]
    pattern = "".join(_line_pattern(line) for line in lines)
    plain = "".join(f"{' '.join(line.split())}\n" for line in printed.splitlines() if line.strip())
    found = re.fullmatch(pattern, plain)
    wanted = [number for line in lines for number in _measured_in(line).findall(line)]
    return found is not None and all(map(_near, found.groups(), wanted))


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    measured = _measured_in(line)
    parts = measured.split(" ".join(line.split()))
    escaped = (re.escape(part).replace(re.escape("..."), ".*?") for part in parts)
    return rf"({measured.pattern})".join(escaped) + r"\n"


def _measured_in(line: str) -> re.Pattern[str]:
    return _NUMBER if " % " in line else _DECIMAL


def _near(printed: str, shown: str) -> bool:
    one, other = (float(text.replace(",", "")) for text in (printed, shown))
    least = _ABSOLUTE if "." in shown else _POINTS
    return abs(one - other) <= max(least, _RELATIVE * abs(other))

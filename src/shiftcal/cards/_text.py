"""Numbers, intervals and tables as the markdown of a card has them."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal._markdown_text import inline, table_cell
from shiftcal.cards.parts import Measure

NONE = "–"


def fraction(value: float | None) -> str:
    """A number with four decimals, or a dash where there is none."""
    return NONE if value is None else format(value, "z.4f")


def temperature(value: float | None) -> str:
    """A temperature with four digits, however large or small."""
    return NONE if value is None else format(value, ".4g")


def measure(found: Measure | None) -> str:
    """``0.0123 (0.0100 to 0.0150)``, without the ends if there are none."""
    if found is None:
        return NONE
    if found.low is None or found.high is None:
        return fraction(found.value)
    return f"{fraction(found.value)} ({fraction(found.low)} to {fraction(found.high)})"


def count(n: int, noun: str = "row") -> str:
    """``1 row``, ``1,024 rows``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def code(text: str) -> str:
    """Text as code, if nothing in it could end the code or the cell of a table; else escaped.

    Digests, names of settings and versions are read and copied so.
    """
    plain = text.isascii() and text.isprintable() and text.strip() == text
    return f"`{text}`" if text and plain and not set(text) & set("`|\\") else inline(text)


def fenced(text: str) -> str:
    """Text of one line or more as a block of code, shown to the letter."""
    longest, run = 2, 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table of finished cells.

    Args:
        header: Name of every column.
        rows: Cells, which may hold markdown and no bar or line end that is not escaped.
        left: Columns from the first on whose cells stand to the left; the others hold numbers.
    """
    rule = ["---" if i < left else "---:" for i in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and finished values in a table of two columns."""
    return table(["", "value"], [[name, value] for name, value in pairs], left=2)


def cell(text: str | None) -> str:
    """Anybody's text for a cell."""
    return NONE if text is None or not text.strip() else table_cell(text)

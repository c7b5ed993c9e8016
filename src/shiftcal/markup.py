"""Plain text as Markdown that shows just that text, on code hosts and in Python-Markdown."""

from __future__ import annotations

import re

# What Markdown would read as more than itself, and which of it both escape with a backslash; the
# rest becomes character references.
_ESCAPED = "\\`*[]{_#>!+-"
_SPECIAL = re.compile(
    r"[\\`*\[\]{<~$|]"  # everywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is a mere letter
    r"|&(?=#?\w+;)"  # what would be read as a character reference
    r"|#(?=#*$)|^[#>!]|^[+-](?![\w.])|^\d(?=\d*[.)](?:\s|$))"  # opens or ends something
)


def inline(text: str) -> str:
    """The text in one line; runs of white space become one space."""
    return _SPECIAL.sub(
        lambda found: f"\\{found[0]}" if found[0] in _ESCAPED else f"&#{ord(found[0])};",
        " ".join(text.split()),
    )


def bold(text: str) -> str:
    """The text in one line, bold; nothing for nothing."""
    return f"**{inline(text)}**" if text.strip() else ""


def paragraphs(text: str) -> str:
    """Paragraphs, each in one line, separated where blank lines separate them in the text."""
    return "\n\n".join(inline(part) for part in re.split(r"\n\s*\n", text) if part.strip())


def heading(text: str, *, level: int) -> str:
    """A heading in one line."""
    return f"{'#' * level} {inline(text)}"


def code(*lines: str, language: str = "") -> str:
    """A block of code, in a fence longer than any in it."""
    text = "\n".join(lines).strip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def table_cell(text: str) -> str:
    """The text for a cell of a table: its lines stay lines."""
    return "<br>".join(map(inline, text.strip().splitlines()))

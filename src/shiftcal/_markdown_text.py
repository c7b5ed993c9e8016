"""Plain text as markdown that shows just that text, on code hosts and in Python-Markdown.

The two read backslashes differently (Python-Markdown knows few of them), so what is written here
is the part of the language that both understand, with character references for the rest.
"""

from __future__ import annotations

import re

_REFERENCES = {"<": "&lt;", "~": "&#126;", "$": "&#36;"}
_SPECIAL = re.compile(
    r"[\\`*\[\]{]"  # everywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is a mere letter
    r"|[<~$]"
    r"|&(?=#?\w+;)"  # what would be read as a character reference
)
# What opens a list, a heading, a quotation, a rule or an admonition at the start of a line.
_OPENS = re.compile(r"\d+(?=[.)])|(?=[#>+\-!])")


def inline(text: str) -> str:
    """The text in one line, for the middle of a line; runs of white space become one space."""
    return _SPECIAL.sub(_escape, " ".join(text.split()))


def bold(text: str) -> str:
    """The text in one line, bold; nothing for nothing."""
    return f"**{inline(text)}**" if text.strip() else ""


def paragraphs(text: str) -> str:
    """Paragraphs, each in one line, parted where blank lines part them in the text."""
    parts = re.split(r"\n\s*\n", text)
    return "\n\n".join(_start(inline(part)) for part in parts if part.strip())


def heading(text: str, *, level: int) -> str:
    """A heading in one line; a number sign at its end is part of it."""
    line = inline(text)
    kept = line.rstrip("#")
    return f"{'#' * level} {kept}" + r"\#" * (len(line) - len(kept))


def table_cell(text: str) -> str:
    """The text for a cell: its lines stay lines, and a bar does not end it."""
    lines = text.strip().splitlines()
    return "<br>".join(inline(line).replace("|", r"\|") for line in lines)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    if character == "&":
        return "&amp;"
    return _REFERENCES.get(character, f"\\{character}")


def _start(line: str) -> str:
    """The line, not read as the start of anything but a paragraph."""
    opening = _OPENS.match(line)
    return line if opening is None else f"{opening.group()}\\{line[opening.end() :]}"

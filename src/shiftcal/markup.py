"""Plain text as Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

# Small pieces of HTML for notebooks. No colour is set, so that text has that of the notebook;
# nothing is fetched, and nothing runs.

_LINE = "1px solid rgba(128,128,128,.4)"
_TABLE = "border-collapse:collapse;background:transparent;color:inherit;margin:.3em 0"
# A name in another script must not turn the numbers next to it around.
_CELL = "padding:.15em .8em .15em 0;vertical-align:top;unicode-bidi:isolate;overflow-wrap:anywhere"
_HEAD = f"border-bottom:{_LINE};font-weight:600"
_LEFT, _RIGHT = "text-align:left", "text-align:right;font-variant-numeric:tabular-nums"


def piece(title: object, *parts: str) -> str:
    """A heading and what stands below it; ``parts`` are HTML already."""
    return f'<div style="color:inherit"><div><b>{_text(title)}</b></div>{"".join(parts)}</div>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    total: int,
    most: int,
    words: int = 1,
    marked: int | None = None,
) -> str:
    """A table of the first rows, with a last line for how many more there are.

    Args:
        head: What is in each column.
        rows: As long as the head; no more than ``most`` are asked for.
        total: How many there are.
        most: How many are shown.
        words: Columns on the left that hold words; the others hold numbers.
        marked: Row that is bold.
    """
    sides = [_LEFT if j < words else _RIGHT for j in range(len(head))]
    cells = "".join(
        f'<th scope="col" style="{_CELL};{_HEAD};{side}">{_text(word)}</th>'
        for word, side in zip(head, sides, strict=True)
    )
    body = "".join(
        _row(row, sides, bold=index == marked) for index, row in enumerate(islice(rows, most))
    )
    if total > most:
        rest = f"... {total - most:,} more"
        body += f'<tr><td colspan="{len(head)}" style="{_CELL};{_LEFT}">{rest}</td></tr>'
    return f'<table style="{_TABLE}"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """What is what, a line each; what is ``None`` is left out."""
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};{_LEFT};font-weight:normal;opacity:.75">'
        f'{_text(name)}</th><td style="{_CELL};{_LEFT}">{_text(value)}</td></tr>'
        for name, value in pairs
        if value is not None
    )
    return f'<table style="{_TABLE}"><tbody>{body}</tbody></table>' if body else ""


def lines(sentences: Iterable[object]) -> str:
    """Sentences below one another."""
    return "".join(f'<div style="unicode-bidi:isolate">{_text(one)}</div>' for one in sentences)


def remarks(pairs: Iterable[tuple[str, str]]) -> str:
    """What should be known, each with a short name before it."""
    lines = "".join(
        f'<li style="unicode-bidi:isolate"><b>{_text(code)}</b>: {_text(message)}</li>'
        for code, message in pairs
    )
    return f'<ul style="margin:.3em 0;padding-left:1.4em">{lines}</ul>' if lines else ""


def _row(row: Sequence[object], sides: Sequence[str], *, bold: bool) -> str:
    weight = ";font-weight:600" if bold else ""
    cells = "".join(
        f'<td style="{_CELL};{side}{weight}">{_text(value)}</td>'
        for value, side in zip(row, sides, strict=True)
    )
    return f"<tr>{cells}</tr>"


def _text(value: object) -> str:
    return escape(str(value), quote=True)


# Plain text as Markdown that shows just that text, on code hosts and in Python-Markdown. The two
# read backslashes differently, so this is what both understand, with character references for the
# rest.

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
    """Paragraphs, each in one line, separated where blank lines separate them in the text."""
    parts = re.split(r"\n\s*\n", text)
    return "\n\n".join(_start(inline(part)) for part in parts if part.strip())


def heading(text: str, *, level: int) -> str:
    """A heading in one line; a number sign at its end is part of it."""
    line = inline(text)
    kept = line.rstrip("#")
    return f"{'#' * level} {kept}" + r"\#" * (len(line) - len(kept))


def code(*lines: str, language: str = "") -> str:
    """A block of code, in a fence longer than any in it."""
    text = "\n".join(lines).strip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


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

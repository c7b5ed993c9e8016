"""A page of headings, paragraphs, tables, figures and code, in one markdown file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from shiftcal.files import atomic_write
from shiftcal.markup import heading, inline, paragraphs
from shiftcal.report.tables import Table
from shiftcal.report.tables import to_markdown as table_to_markdown


@dataclass(frozen=True)
class Heading:
    """Plain text of level 2 (a section) to 6; level 1 is the title of the page."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Plain text; blank lines separate paragraphs."""

    text: str


@dataclass(frozen=True)
class Markdown:
    """Text that is Markdown already."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of plain texts, each shown as it is, in one line."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A picture in a file next to the page.

    Attributes:
        path: From the folder of the page, with slashes: ``figures/ece.png``.
        alt: What it shows, in words.
        caption: Plain text below it.
    """

    path: str
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """A code block.

    Attributes:
        text: The lines.
        language: For colouring, such as ``toml``; may be empty.
    """

    text: str
    language: str = ""


Part = Heading | Paragraph | Markdown | Bullets | Table | Figure | Code


@dataclass(frozen=True)
class Page:
    """A page, from the top.

    Attributes:
        title: Plain text.
        parts: In order.
    """

    title: str
    parts: tuple[Part, ...]


def to_markdown(page: Page) -> str:
    """The page as text; blank lines separate its parts."""
    blocks = [heading(page.title, level=1), *map(_block, page.parts)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page atomically, and return its path.

    Raises:
        FileError: If the file cannot be written.
    """
    text = to_markdown(page)
    with atomic_write(path) as temporary:
        # As bytes: writing text would change the ends of lines on some systems.
        temporary.write_bytes(text.encode())
    return Path(path)


def _block(part: Part) -> str:
    match part:
        case Heading():
            return heading(part.text, level=part.level)
        case Paragraph():
            return paragraphs(part.text)
        case Markdown():
            return part.text.strip("\n")
        case Bullets():
            return "\n".join(f"- {paragraphs(' '.join(item.split()))}" for item in part.items)
        case Table():
            return table_to_markdown(part).rstrip("\n")
        case Figure():
            # Quoted, a path has no space, bracket or parenthesis that could end the link.
            link = f"![{inline(part.alt)}]({quote(part.path)})"
            return f"{link}\n\n{paragraphs(part.caption)}".rstrip()
        case Code():
            # A fence longer than any in the text, so that none of its lines ends it.
            runs = [len(run) for run in re.findall(r"`+", part.text)]
            fence = "`" * max(3, 1 + max(runs, default=0))
            text = part.text.strip("\n")
            return f"{fence}{part.language}\n{text}\n{fence}"

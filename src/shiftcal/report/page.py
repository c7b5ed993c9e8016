"""A page of headings, paragraphs, tables, figures and code, in one markdown file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import quote

from shiftcal._files import atomic_write
from shiftcal._markdown_text import heading, inline, paragraphs
from shiftcal.errors import InputError
from shiftcal.report.tables.markdown import to_markdown as table_to_markdown
from shiftcal.report.tables.table import Table


@dataclass(frozen=True)
class Heading:
    """Plain text of level 2 (a section) to 6; level 1 is the title of the page."""

    text: str
    level: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.level <= 6 or not self.text.strip():
            raise InputError(
                "a heading must have a text and a level from 2 to 6 (1 is the page's title); "
                f"got {self.text!r} of level {self.level!r}."
            )


@dataclass(frozen=True)
class Paragraph:
    """Plain text, shown as it is; blank lines part it into paragraphs."""

    text: str


@dataclass(frozen=True)
class Markdown:
    """Text that is markdown already: a list, links, anything else."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of plain texts, each shown as it is, in one line."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A picture in a file beside the page.

    Attributes:
        path: From the folder of the page, with slashes: ``figures/ece.png``.
        alt: What it shows, for those who do not see it.
        caption: Plain text below it.
    """

    path: str
    alt: str
    caption: str = ""

    def __post_init__(self) -> None:
        absolute = PurePosixPath(self.path).is_absolute() or PureWindowsPath(self.path).anchor
        if not self.path or absolute or "\\" in self.path:
            raise InputError(
                "path of a figure must lead from the folder of the page, with slashes, so that "
                f"both can be moved together; got {self.path!r}. "
                "Pass path.relative_to(folder).as_posix()."
            )
        if not self.alt.strip():
            raise InputError(
                f"alt of the figure {self.path} must say what it shows; got {self.alt!r}."
            )


@dataclass(frozen=True)
class Code:
    """Lines shown letter by letter.

    Attributes:
        text: The lines.
        language: For colouring, such as ``toml``; may be empty.
    """

    text: str
    language: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9+#-]*", self.language):
            raise InputError(
                f"language of a code block must be one word, such as 'toml'; got {self.language!r}."
            )


Part = Heading | Paragraph | Markdown | Bullets | Table | Figure | Code


@dataclass(frozen=True)
class Page:
    """What stands on a page, from the top.

    Attributes:
        title: Plain text.
        parts: In order.
    """

    title: str
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.title.strip():
            raise InputError(f"title of a page must be a text; got {self.title!r}.")
        for part in self.parts:
            if not isinstance(part, Part):
                raise InputError(
                    "parts of a page must be Heading, Paragraph, Markdown, Bullets, Table, Figure "
                    f"or Code; got {type(part).__name__}."
                )


def to_markdown(page: Page) -> str:
    """The page as text; every part is parted from the next by a blank line."""
    blocks = [heading(page.title, level=1), *map(_block, page.parts)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page, whole or not at all, and give back where.

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
            return _figure(part)
        case Code():
            return _code(part)


def _figure(figure: Figure) -> str:
    # Quoted, a path has no space, bracket or parenthesis that could end the link.
    link = f"![{inline(figure.alt)}]({quote(figure.path)})"
    return f"{link}\n\n{paragraphs(figure.caption)}" if figure.caption.strip() else link


def _code(code: Code) -> str:
    """A fence longer than any in the text, so that none of its lines ends it."""
    runs = [len(run) for run in re.findall(r"`+", code.text)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    text = code.text.strip("\n")
    return f"{fence}{code.language}\n{text}\n{fence}"

"""Write the commands of reference/cli.md from the program itself, below the page's own text."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from shiftcal.cli.main import COMMON, program, record_of

PAGE = Path(__file__).resolve().parents[1] / "reference" / "cli.md"
MARK = "<!-- commands: written by docs/scripts/cli_reference.py -->\n"


def commands(group: Any, words: str = "shiftcal") -> list[tuple[str, Any]]:
    """Every command with the words that call it, such as ``shiftcal data check``."""
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        below = hasattr(command, "commands")
        found += commands(command, f"{words} {name}") if below else [(f"{words} {name}", command)]
    return found


def escaped(text: str) -> str:
    """Text that stays inside its cell."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def row(words: str, meaning: str) -> str:
    """A parameter and its meaning, options in it as code, as a row of a table."""
    meaning = re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)(?![\w`])", r"`\1`", escaped(meaning))
    names = ", ".join(f"<code>{escaped(word)}</code>" for word in words.split(", "))
    return f"| {names} | {meaning} |"


def section(words: str, command: Any) -> str:
    """Heading, help, an example, arguments and options of a command."""
    context = command.make_context(words, ["--help"], resilient_parsing=True)
    example = (command.epilog or "").partition("Example:\n")[2]
    records = [record_of(p, context) for p in command.params if p.name not in COMMON]
    rows = [row(*record) for record in records if record]
    return "\n".join(
        [f"## {words}\n", command.help, "\n```sh", example, "```\n"]
        + (["| argument or option | meaning |", "|---|---|", *rows, ""] if rows else [])
    )


def renewed(text: str) -> str:
    """The page with the part below the mark written from the program."""
    body = "\n".join(section(words, command) for words, command in commands(program()))
    return text.partition(MARK)[0] + MARK + "\n" + body


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")

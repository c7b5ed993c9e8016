"""Write the commands of reference/cli.md from the program itself, below the page's own text."""

from __future__ import annotations

import html
import re
from collections import Counter
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


def rows_of(words: str, command: Any) -> list[str]:
    """Arguments and options of a command, but for those that every command has."""
    context = command.make_context(words, ["--help"], resilient_parsing=True)
    records = [record_of(p, context) for p in command.params if p.name not in COMMON]
    return [row(*record) for record in records if record]


def section(words: str, command: Any, shared: list[str]) -> str:
    """Heading, help, an example, and the arguments and options that are this command's own."""
    example = (command.epilog or "").partition("Example:\n")[2]
    rows = rows_of(words, command)
    names = [re.findall("<code>(.*?)</code>", one)[0].split()[0] for one in rows if one in shared]
    also = ", ".join(f"`{name}`" for name in names)
    own = [one for one in rows if one not in shared]
    table = ["| argument or option | meaning |", "|---|---|", *own, ""]
    return "\n".join(
        [f"## {words}\n", command.help, "\n```sh", example, "```\n"]
        + ([f"[Shared](#shared-options): {also}.\n"] if also else [])
        + (table if own else [])
    )


def renewed(text: str) -> str:
    """The page with the part below the mark written from the program."""
    found = commands(program())
    counted = Counter(one for words, command in found for one in rows_of(words, command))
    shared = sorted((one for one, n in counted.items() if n > 2), key=lambda one: ">-" in one)
    body = ["## Shared options\n", "These mean the same in every command that lists them.\n"]
    body += ["| argument or option | meaning |", "|---|---|", *shared, ""]
    body += [section(words, command, shared) for words, command in found]
    return text.partition(MARK)[0] + MARK + "\n" + "\n".join(body)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")

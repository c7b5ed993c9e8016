"""The blocks of code of a page, run as a reader would, and whether the page shows what they print.

Called as ``python page_blocks.py PAGE OUTPUT``, in the folder where the reader sits. Only
``python`` and ``sh`` blocks run. Python blocks share a namespace; every ``sh`` block is a shell of
its own, which ends with the first command that fails. What each block wrote to stdout goes to
OUTPUT, as a JSON list.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DECIMAL = re.compile(r"\d[\d,]*\.\d+(?:e-?\d+)?")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
RUN = ("python", "sh")
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
        if block.language in RUN
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


def run(page: Path) -> list[str]:
    """The stdout of each block of ``page`` that runs."""
    # The page is the main module, with none of the names above and the reader's folder on the path.
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.path[0] = ""
    return [_run(b, page, main.__dict__) for b in blocks_of(page) if b.language in RUN]


def _run(block: Block, page: Path, namespace: dict[str, object]) -> str:
    if block.language == "sh":
        shell = ["sh", "-eu", "-c", block.text]
        done = subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{page.name}, line {block.line}: status {done.returncode} of\n{block.text}")
        return done.stdout
    written = io.StringIO()
    # Empty lines before it give a traceback the line numbers of the page.
    code = compile("\n" * block.line + block.text, str(page), "exec")
    with contextlib.redirect_stdout(written):
        exec(code, namespace)
    return written.getvalue()


if __name__ == "__main__":
    output = Path(sys.argv[2])
    output.write_text(json.dumps(run(Path(sys.argv[1]))), "utf-8")

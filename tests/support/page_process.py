"""Runs the blocks of a page in their order, as a reader would: one Python, a real shell.

Called as ``python page_process.py PAGE OUTPUT``, in the folder where the reader sits. Python blocks
share a namespace; every ``sh`` block is a shell of its own, which ends with the first command that
fails. What each block wrote to stdout goes to OUTPUT, as a list in JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from page_blocks import Block, blocks_of


def run(page: Path) -> list[str]:
    """The stdout of each block of ``page`` that runs."""
    # The page is the main module, with none of the names above and the reader's folder on the path.
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.path[0] = ""
    return [_run(b, page, main.__dict__) for b in blocks_of(page) if b.language != "text"]


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

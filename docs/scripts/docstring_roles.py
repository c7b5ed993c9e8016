"""Docstrings as the reference page shows them: roles become plain code, simple tables text."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")
_BLOCK = re.compile(r"^( *)(.*?)::$", re.MULTILINE)
_TABLE = re.compile(r"^( *)(=+(?: +=+)+)\n(.*?)\n\1\2$", re.MULTILINE | re.DOTALL)


def readable(text: str) -> str:
    """``:class:`Name``` becomes code, a table drawn with ``=`` a block of text, ``::`` a colon."""
    text = _BLOCK.sub(lambda block: f"{block[1]}{block[2]}:" if block[2] else "", text)
    text = _TABLE.sub(r"\1```text\n\3\n\1```", text)
    return _ROLE.sub(lambda role: f"`{role[1].removeprefix('shiftcal.')}`", text)


class DocstringRoles(griffe.Extension):
    """Rewrites every docstring while it is collected."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """One object with its docstring."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)

"""The graph in a ``torch.export`` file: nothing in it may be more than tensor operations."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from shiftcal.errors import FileError

_NAME = re.compile(r"[\w.+\-]*")
_TEXT = re.compile(r"[\w .,:>+\-]*")
# Operators of torch itself; one of them maps any file into memory.
_OPERATOR = re.compile(
    r"torch\.ops\.aten\.(?!from_file\b)\w+\.\w+|torch\.sym_(int|float|max|min|not|ite)"
    r"|_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|pow|neg|eq|ne|lt|le|gt|ge|and_|or_)"
    r"|math\.(ceil|floor|trunc)"
)
_FUNCTIONS = {
    "Symbol", "Integer", "Rational", "Add", "Mul", "Pow", "Max", "Min", "Mod",
    "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not",
    "FloorDiv", "CeilDiv", "CleanDiv", "PythonMod", "ModularIndexing",
    "CeilToInt", "FloorToInt", "TruncToInt", "IntTrueDiv",
}  # fmt: skip
_SYNTAX = (
    ast.Expression | ast.Call | ast.keyword | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    | ast.Load | ast.Name | ast.Constant
)  # fmt: skip
_TREES = (None, "builtins.tuple", "builtins.list", "builtins.dict")


def checked_graph(graph: Any) -> Any:
    """A copy of the graph without what is only said about it, if it computes and no more.

    torch turns names of a graph into Python source, and evaluates the text of its shapes: names
    must be names and shapes arithmetic. Operators must be those of torch's own tensors. Traces,
    notes and guards, which are source too, are left out.

    Raises:
        FileError: If anything else is in it, naming that.
    """
    if isinstance(graph, dict):
        return {_plain(key, _NAME): _entry(key, value) for key, value in graph.items()}
    if isinstance(graph, list):
        return [checked_graph(value) for value in graph]
    return _plain(graph, _NAME) if isinstance(graph, str) else graph


def _entry(key: str, value: Any) -> Any:
    if key in ("metadata", "guards_code"):
        return {} if key == "metadata" else []
    if not isinstance(value, str):
        return checked_graph(value)
    if key == "target":
        return _plain(value, _OPERATOR)
    if key == "expr_str":
        return _arithmetic(value)
    if key in ("in_spec", "out_spec"):
        return _containers(value)
    return _plain(value, _TEXT if key == "as_string" else _NAME)


def _plain(text: str, rule: re.Pattern[str]) -> str:
    if rule.fullmatch(text) is None:
        kind = "the operator" if rule is _OPERATOR else "the text"
        raise _refused(f"{kind} {text[:80]!r}")
    return text


def _arithmetic(text: str) -> str:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(f"the shape {text[:80]!r}") from None
    for node in ast.walk(tree):
        named = not isinstance(node, ast.Call) or (
            isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        )
        value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        short = not isinstance(value, str) or re.fullmatch(r"\w+", value) is not None
        if not isinstance(node, _SYNTAX) or not named or not short:
            raise _refused(f"the shape {text[:80]!r}")
    return text


def _containers(text: str) -> str:
    """The text of nested tuples, lists and dicts, which torch would otherwise look up by type."""
    try:
        version, tree = json.loads(text)
        rest = [tree]
        while rest:
            part = rest.pop()
            names = json.loads(part["context"] or "null") or []
            if part["type"] not in _TREES or not all(_NAME.fullmatch(name) for name in names):
                raise _refused(f"the container {part['type']!r}")
            rest.extend(part["children_spec"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise _refused(f"the container {text[:80]!r}") from error
    return json.dumps([version, tree])


def _refused(what: str) -> FileError:
    return FileError(f"holds {what}, which is not among what a network of tensors needs")

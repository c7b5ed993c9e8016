"""The operations of pickle that make plain things, on a stack of their own.

None of them runs or imports anything. A name becomes :class:`Named`, and calling it gives a record
of the call, :class:`Made`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# How Python 3 writes bytes so that Python 2 can read them.
ENCODE = "_codecs encode"


class Named:
    """A name in a pickle, in the place of what it stands for."""

    def __init__(self, name: str) -> None:
        self.name = name


class Made:
    """A call that a pickle asks for: by what name, with what, and the state it then gets."""

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name = name
        self.args = args
        self.state: Any = None


class Machine:
    """What a pickle works on: a stack, the stacks below its marks, and what it remembers."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def since_mark(self) -> list[Any]:
        """The things since the last mark, taken from the stack."""
        things = self.stack
        self.stack = self.below.pop()
        return things

    def take(self, n: int) -> list[Any]:
        """The last ``n`` things, taken from the stack."""
        if len(self.stack) < n:
            raise ValueError("the stack is empty")
        things = self.stack[len(self.stack) - n :]
        del self.stack[len(self.stack) - n :]
        return things


def _mark(machine: Machine, _: Any) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _marked_tuple(machine: Machine, _: Any) -> None:
    things = machine.since_mark()
    machine.stack.append(tuple(things))


def _marked_list(machine: Machine, _: Any) -> None:
    things = machine.since_mark()
    machine.stack.append(things)


def _marked_dict(machine: Machine, _: Any) -> None:
    things = machine.since_mark()
    machine.stack.append({})
    _fill(machine, things)


def _tuple_of(n: int) -> Callable[[Machine, Any], None]:
    def step(machine: Machine, _: Any) -> None:
        machine.stack.append(tuple(machine.take(n)))

    return step


def _extend(machine: Machine, things: list[Any]) -> None:
    target = machine.stack[-1]
    if type(target) is not list:
        raise TypeError("only lists are added to")
    target.extend(things)


def _fill(machine: Machine, things: list[Any]) -> None:
    target = machine.stack[-1]
    # The hash of tuples nested without end would overflow the stack of the process.
    if type(target) is not dict or not all(isinstance(key, (bytes, str)) for key in things[::2]):
        raise TypeError("only dicts with text as keys are filled")
    target.update(zip(things[::2], things[1::2], strict=True))


def _remember(machine: Machine, place: Any) -> None:
    machine.memo[len(machine.memo) if place is None else place] = machine.stack[-1]


def _recall(machine: Machine, place: Any) -> None:
    machine.stack.append(machine.memo[place])


def _name(machine: Machine, name: Any) -> str:
    if name is None:
        module, inner = machine.take(2)
        name = f"{module} {inner}" if isinstance(module, str) and isinstance(inner, str) else ""
    machine.stack.append(Named(name))
    return str(name)


def _call(machine: Machine, _: Any) -> None:
    what, args = machine.take(2)
    if not isinstance(what, Named) or type(args) is not tuple:
        raise TypeError("only names are called")
    if what.name != ENCODE:
        machine.stack.append(Made(what.name, args))
        return
    text, encoding = args
    if encoding not in ("latin1", b"latin1"):
        raise ValueError("bytes must be written as latin1")
    machine.stack.append(text.encode("latin1"))


def _build(machine: Machine, _: Any) -> None:
    (state,) = machine.take(1)
    target = machine.stack[-1]
    if not isinstance(target, Made):
        raise TypeError("only what was called has a state")
    target.state = state


def _same(value: Any) -> Any:
    return value


def _as_bytes(value: Any) -> bytes:
    return bytes(value.encode("latin1"))


IGNORED = frozenset({"PROTO", "FRAME", "STOP"})
EMPTY: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
}
VALUES: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), _same),
    **dict.fromkeys(("BINFLOAT", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), _same),
    **dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _same),
    # The text of Python 2 is bytes.
    **dict.fromkeys(("STRING", "SHORT_BINSTRING", "BINSTRING"), _as_bytes),
}
# Each gives the name that was asked for, if it asks for one.
STEPS: Mapping[str, Callable[[Machine, Any], str | None]] = {
    "MARK": _mark,
    "TUPLE": _marked_tuple,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "LIST": _marked_list,
    "DICT": _marked_dict,
    "APPEND": lambda machine, _: _extend(machine, machine.take(1)),
    "APPENDS": lambda machine, _: _extend(machine, machine.since_mark()),
    "SETITEM": lambda machine, _: _fill(machine, machine.take(2)),
    "SETITEMS": lambda machine, _: _fill(machine, machine.since_mark()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _recall),
    "GLOBAL": _name,
    "STACK_GLOBAL": _name,
    "REDUCE": _call,
    "BUILD": _build,
}

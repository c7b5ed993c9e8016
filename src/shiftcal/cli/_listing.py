"""The order in which methods are shown."""

from __future__ import annotations

# As in the paper, from the least to the most informed; methods added later follow by name.
_FIRST = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac")


def method_names() -> list[str]:
    """Every method's name, in the order of a table."""
    from shiftcal import methods

    names = methods.names()
    return sorted(names, key=lambda name: (name not in _FIRST, _rank(name), name))


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else 0

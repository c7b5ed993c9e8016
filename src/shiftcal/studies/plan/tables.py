"""Values of a TOML table, each checked for what it must be; nothing unknown is passed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shiftcal._registry import suggest
from shiftcal.errors import InputError

T = TypeVar("T")


class TomlTable:
    """One table of a plan, asked for its entries; what nobody asked for is a mistake.

    Args:
        values: The table.
        where: What it is called in messages, such as ``plan.toml: [data]``.
    """

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, Mapping):
            raise InputError(f"{where} must be a table; got {values!r}.")
        self.values = values
        self.where = where
        self.asked: list[str] = []

    def text(self, name: str, default: str | None = None) -> str | None:
        """A text."""
        return self._get(name, default, _is_text, "a text in quotes")

    def word(self, name: str) -> str:
        """A text that must be there, and not empty."""
        found = self.text(name)
        if not found:
            raise InputError(f"{self.where} needs {name} = ...; it was not given.")
        return found

    def count(self, name: str, default: int | None, *, least: int = 1) -> int | None:
        """A whole number."""
        return self._get(
            name, default, lambda v: _is_count(v, least), f"a whole number of at least {least}"
        )

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts; one text is a list of one."""
        found = self._get(name, default, _are_texts, "a text, or a list of texts")
        return (found,) if isinstance(found, str) else tuple(found)

    def counts(self, name: str, default: tuple[int, ...], *, least: int = 0) -> tuple[int, ...]:
        """A list of different whole numbers."""
        found = self._get(
            name,
            default,
            lambda v: _are_counts(v, least),
            f"a list of different whole numbers of at least {least}",
        )
        return tuple(found)

    def mapping(self, name: str) -> dict[str, Any]:
        """A table of anything."""
        return dict(self._get(name, {}, lambda v: isinstance(v, Mapping), "a table"))

    def tables(self, name: str) -> list[TomlTable]:
        """A list of tables."""
        found: list[object] = self._get(name, [], lambda v: isinstance(v, list), "a list of tables")
        return [TomlTable(each, f"{self.where} {name} {i}") for i, each in enumerate(found, 1)]

    def table(self, name: str) -> TomlTable:
        """A table; an empty one if it is not there."""
        return TomlTable(self._get(name, {}, lambda _: True, ""), f"{self.where} [{name}]")

    def anything(self, name: str) -> Any:
        """Whatever is there."""
        return self._get(name, None, lambda _: True, "")

    def done(self) -> None:
        """Refuse what nobody asked for.

        Raises:
            InputError: Naming it, and the nearest that there is.
        """
        for name in self.values:
            if name not in self.asked:
                raise InputError(f"{self.where} has no entry {name!r}. {suggest(name, self.asked)}")

    def _get(self, name: str, default: T, fits: Callable[[Any], bool], what: str) -> Any | T:
        self.asked.append(name)
        if name not in self.values:
            return default
        value = self.values[name]
        if not fits(value):
            raise InputError(f"{self.where} {name} must be {what}; got {value!r}.")
        return value


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _are_texts(value: object) -> bool:
    several = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, str) or several


def _are_counts(value: object, least: int) -> bool:
    if not isinstance(value, list):
        return False
    return all(_is_count(each, least) for each in value) and len(set(value)) == len(value)

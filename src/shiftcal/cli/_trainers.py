"""``shiftcal adapt --list``: the trainers, or the numbers of one."""

from __future__ import annotations

from typing import Any

from shiftcal.cli import _tables
from shiftcal.cli._report import Report


def listed(as_json: bool) -> Report:
    """All of them, one line each."""
    from shiftcal import adaptation

    trainers = [_about(name) for name in adaptation.names()]
    rows = [[each["name"], each["summary"], ", ".join(each["recipes"])] for each in trainers]
    text = _tables.table(["method", "what it is", "recipes"], rows)
    return Report("adapt", {"trainers": trainers}, text, as_json)


def one_listed(name: str, as_json: bool) -> Report:
    """One of them, with its options and the settings of its training in each of its recipes.

    Raises:
        UnknownName: If there is no such trainer.
    """
    from shiftcal.adaptation.choice import DEFAULT, choose

    about = _about(name)
    chosen = {recipe: choose(name, recipe=recipe) for recipe in (DEFAULT, *about["recipes"])}
    numbers = {
        recipe: {"options": each.trainer.to_dict(), "settings": each.settings.to_dict()}
        for recipe, each in chosen.items()
    }
    document = {"trainer": {**about, "numbers": numbers}}
    tables = [_table(part, numbers) for part in ("options", "settings")]
    text = "\n\n".join([f"{about['name']}: {about['summary']}", *tables])
    return Report("adapt", document, text, as_json)


def _table(part: str, numbers: dict[str, dict[str, dict[str, Any]]]) -> str:
    names = next(iter(numbers.values()))[part]
    rows = [[name, *(str(each[part][name]) for each in numbers.values())] for name in names]
    return _tables.table([part, *numbers], rows)


def _about(name: str) -> dict[str, Any]:
    from shiftcal import adaptation

    kind = adaptation.get(name)
    return {
        "name": name.replace("_", "-").lower(),
        "label": kind.label,
        "summary": _plain(kind.__doc__),
        "recipes": sorted(kind.recipes),
    }


def _plain(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0].replace("``", "")

"""``shiftcal list``: everything that has a name, one line each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from shiftcal.cli.inputs import method_names
from shiftcal.cli.options import Json, settings_of
from shiftcal.cli.output import Report, table
from shiftcal.registry import CORRUPTIONS, ESTIMATORS, MAPS, METHODS, METRICS, STUDIES, TRAINERS

_NEEDS = "needs besides the bank"
# Kinds that are listed by default, with the headers of their tables.
_TABLES = {
    "methods": ("method", _NEEDS, "what it does"),
    "maps": ("map", "keeps the predicted class", "what it does"),
    "metrics": ("metric", "better", "what it is"),
    "corruptions": ("corruption", "group", "random", "what it does"),
}
# Kinds that are listed by name only.
_NAMES = {"estimators": ESTIMATORS, "trainers": TRAINERS, "studies": STUDIES}


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help=f"{', '.join([*_TABLES, *_NAMES])}; default: the first four.",
        ),
    ] = None,
    as_json: Json = False,
) -> Report:
    """List methods, calibration maps, metrics and corruptions. One line each."""
    from shiftcal.checks import check_choice

    if kind is not None:
        check_choice(kind, (*_TABLES, *_NAMES), name="KIND")
    kinds = list(_TABLES) if kind is None else [kind]
    document = {one: _entries(one) for one in kinds}
    text = "\n\n".join(
        table(_TABLES.get(one) or (_NAMES[one].noun,), _rows(one, entries))
        for one, entries in document.items()
    )
    return Report("list", document, text, as_json)


def _entries(kind: str) -> list[dict[str, Any]]:
    if kind in _NAMES:
        return [{"name": name} for name in _NAMES[kind].names()]
    registry = {"methods": METHODS, "maps": MAPS, "metrics": METRICS, "corruptions": CORRUPTIONS}
    names = method_names() if kind == "methods" else registry[kind].names()
    return [_entry(kind, name, registry[kind].get(name)) for name in names]


def _entry(kind: str, name: str, entry: Any) -> dict[str, Any]:
    summary = (entry.__doc__ or "").strip().partition("\n")[0].replace("``", "")
    facts: dict[str, Any] = {"name": name, "summary": summary}
    if kind == "metrics":
        from shiftcal.metrics import facts_of

        return facts | {"better": facts_of(entry).better}
    if kind == "corruptions":
        severities = entry().severities
        return facts | {"group": entry.group, "random": entry.random, "severities": severities}
    flags = ["uses_target", "uses_features", "uses_mixed"]
    flags = flags if kind == "methods" else ["preserves_accuracy"]
    return facts | {flag: getattr(entry, flag) for flag in flags} | {"settings": settings_of(entry)}


def _rows(kind: str, entries: list[dict[str, Any]]) -> list[list[str]]:
    if kind in _NAMES:
        return [[entry["name"]] for entry in entries]
    return [[entry["name"], *_middle(kind, entry), entry["summary"]] for entry in entries]


def _middle(kind: str, entry: dict[str, Any]) -> list[str]:
    """The columns between name and summary."""
    if kind == "maps":
        return [_yes(entry["preserves_accuracy"])]
    if kind == "corruptions":
        return [entry["group"], _yes(entry["random"])]
    return [entry["better"] if kind == "metrics" else _needs(entry)]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _needs(method: dict[str, Any]) -> str:
    if method["uses_features"]:
        return "target; features of training, clean set and target"
    if method["uses_mixed"]:
        return "target; scores of its images, mixed (in Python)"
    return "target" if method["uses_target"] else "-"

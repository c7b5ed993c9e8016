"""``shiftcal methods``: what there is, one line each."""

from __future__ import annotations

from typing import Any

from shiftcal.cli import _tables
from shiftcal.cli._listing import method_names
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._settings import settings_of


def methods(as_json: Json = False) -> Report:
    """List methods, calibration maps, metrics and corruptions. One line each."""
    document = {
        "methods": _methods(),
        "maps": _maps(),
        "metrics": _metrics(),
        "corruptions": _corruptions(),
    }
    return Report("methods", document, _text(document), as_json)


def _methods() -> list[dict[str, Any]]:
    from shiftcal import methods as registry

    classes = [(name, registry.get(name)) for name in method_names()]
    return [
        {
            "name": name,
            "summary": _plain(cls.__doc__),
            "uses_target": cls.uses_target,
            "uses_features": cls.uses_features,
            "uses_mixed": cls.uses_mixed,
            "settings": settings_of(cls),
        }
        for name, cls in classes
    ]


def _maps() -> list[dict[str, Any]]:
    from shiftcal import maps as registry

    classes = [(name, registry.get(name)) for name in registry.names()]
    return [
        {
            "name": name,
            "summary": _plain(cls.__doc__),
            "preserves_accuracy": cls.preserves_accuracy,
            "settings": settings_of(cls),
        }
        for name, cls in classes
    ]


def _metrics() -> list[dict[str, Any]]:
    from shiftcal import metrics as registry
    from shiftcal.metrics.base import facts_of

    functions = [(name, registry.get(name)) for name in registry.names()]
    return [
        {"name": name, "summary": _plain(f.__doc__), "better": facts_of(f).better}
        for name, f in functions
    ]


def _corruptions() -> list[dict[str, Any]]:
    from shiftcal import corruptions as registry

    classes = [(name, registry.get(name)) for name in registry.names()]
    return [
        {
            "name": name,
            "summary": _plain(cls.__doc__),
            "group": cls.group,
            "random": cls.random,
            "severities": cls().severities,
        }
        for name, cls in classes
    ]


def _plain(docstring: str | None) -> str:
    """The first line of a docstring, without the marks of its markup."""
    return (docstring or "").strip().partition("\n")[0].replace("``", "")


def _text(document: dict[str, Any]) -> str:
    methods_table = _tables.table(
        ["method", "needs beside the bank", "what it does"],
        [[m["name"], _needs(m), m["summary"]] for m in document["methods"]],
    )
    maps_table = _tables.table(
        ["map", "keeps the predicted class", "what it does"],
        [
            [m["name"], "yes" if m["preserves_accuracy"] else "no", m["summary"]]
            for m in document["maps"]
        ],
    )
    metrics_table = _tables.table(
        ["metric", "better", "what it is"],
        [[m["name"], m["better"], m["summary"]] for m in document["metrics"]],
    )
    corruptions_table = _tables.table(
        ["corruption", "group", "random", "what it does"],
        [
            [c["name"], c["group"], "yes" if c["random"] else "no", c["summary"]]
            for c in document["corruptions"]
        ],
    )
    return "\n\n".join([methods_table, maps_table, metrics_table, corruptions_table])


def _needs(method: dict[str, Any]) -> str:
    if method["uses_features"]:
        return "target; features of training, clean set and target"
    if method["uses_mixed"]:
        return "target; scores of its images, mixed (in Python)"
    return "target" if method["uses_target"] else "-"

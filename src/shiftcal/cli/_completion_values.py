"""What can stand behind an option, where that is a closed list: found, not listed by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from shiftcal._registry import plugin_names

_WORD = re.compile(r"[a-z][a-z0-9-]*")
_SEVERITIES = ("1", "2", "3", "4", "5", "all")


def _estimators() -> list[str]:
    return plugin_names("shiftcal.estimates")


def _data_sets() -> list[str]:
    return plugin_names("shiftcal.datasets.catalog")


def _studies() -> list[str]:
    plans = files("shiftcal.studies").joinpath("plans").iterdir()
    return sorted(plan.name.removesuffix(".toml") for plan in plans if plan.name.endswith(".toml"))


def _recipes() -> list[str]:
    from shiftcal import adaptation

    found = {recipe for name in adaptation.names() for recipe in adaptation.get(name).recipes}
    return ["default", *sorted(found)]


# By option or argument; where a command means something else by it, by both.
_NAMES: dict[str, Callable[[], Sequence[str]]] = {
    "--method": partial(plugin_names, "shiftcal.methods"),
    "adapt --method": partial(plugin_names, "shiftcal.adaptation.trainers"),
    "--map": partial(plugin_names, "shiftcal.maps"),
    "--metric": lambda: [*plugin_names("shiftcal.metrics"), "all"],
    "--corruption": lambda: [*plugin_names("shiftcal.corruptions", space="_"), "all"],
    "--estimator": _estimators,
    "monitor --estimator": lambda: [*_estimators(), "none"],
    "card --estimator": lambda: [*_estimators(), "none"],
    "--severity": lambda: _SEVERITIES,
    "--recipe": _recipes,
    "--backbone": lambda: ("resnet50", "resnet101", "efficientnet-lite0", "digits-cnn"),
    "--device": lambda: ("auto", "cpu", "cuda", "mps"),
    "data check NAME": _data_sets,
    "data get NAME": _data_sets,
    "reproduce STUDY": _studies,
}
# Several with commas between them may stand behind these.
_LISTS = {"--corruption"}
# Behind this estimator and a colon a method may stand.
_OF_METHOD = "mean-confidence:"


def values_of(command: str, parameter: Any, typed: str) -> list[str]:
    """What a value may be that begins with ``typed``; nothing if it is no closed list.

    Args:
        command: Words of the command, such as ``"data check"``.
        parameter: An option or argument, as typer keeps it.
        typed: What there is of the value.
    """
    before = ""
    if _LISTS.intersection(parameter.opts):
        before = typed[: typed.rfind(",") + 1]
    if "--estimator" in parameter.opts and typed.startswith(_OF_METHOD):
        before, known = _OF_METHOD, _NAMES["--method"]()
    else:
        known = _known(command, parameter)
    return [before + value for value in known if (before + value).startswith(typed)]


def _known(command: str, parameter: Any) -> Sequence[str]:
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar or ""]
    for name in names:
        for key in (f"{command} {name}", name):
            if key in _NAMES:
                return _NAMES[key]()
    return choices_in(parameter.metavar or "")


def choices_in(metavar: str) -> list[str]:
    """The choices that a metavar such as ``size|width`` spells out; else none."""
    parts = metavar.split("|")
    return parts if len(parts) > 1 and all(map(_WORD.fullmatch, parts)) else []

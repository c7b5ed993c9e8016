"""From TOML to a plan."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from shiftcal._registry import suggest
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.studies.adapting.plan import STUDY as ADAPTATION
from shiftcal.studies.adapting.plan import AnyPlan
from shiftcal.studies.plan.checking import check_plan
from shiftcal.studies.plan.entries import file_name, needed, spelled
from shiftcal.studies.plan.methods import read_methods
from shiftcal.studies.plan.plan import (
    CalibrationPlan,
    DataPlan,
    LadderPlan,
    ModelPlan,
    NaturalSet,
    Plan,
    ShiftPlan,
)
from shiftcal.studies.plan.tables import TomlTable

BUILT_IN = Path(__file__).parent.parent / "plans"
_DATA = "{data}"


def built_in() -> list[str]:
    """Names of the plans that come with shiftcal."""
    return sorted(file.stem for file in BUILT_IN.glob("*.toml"))


def plan_text(plan: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of a plan and what it is called in messages.

    Args:
        plan: Name of one that comes with shiftcal, or a file.

    Raises:
        UnknownName: If it is neither.
        FileError: If the file cannot be read.
    """
    name = os.fspath(plan)
    if name in built_in():
        return (BUILT_IN / f"{name}.toml").read_text("utf-8"), f"the plan {name!r}"
    file = Path(name)
    if file.suffix.lower() != ".toml" and not file.exists():
        known = built_in()
        raise UnknownName(
            f"no study is called {name!r}, and no file. {suggest(name, known)} A plan of your own "
            "is a file that ends in .toml."
        )
    try:
        return file.read_text("utf-8"), name
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise FileError(f"{name} could not be read: {reason or error}.") from error


def read_plan(
    text: str, *, data: str | os.PathLike[str] | None = None, where: str = "plan"
) -> AnyPlan:
    """A plan from its text.

    Args:
        text: TOML.
        data: What ``{data}`` stands for in it.
        where: What it is called in messages.

    Raises:
        InputError: Naming the entry that is missing, unknown or not what it must be.
        FileError: If it is not TOML at all.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where} is not TOML: {error}.") from error
    root = TomlTable(_filled(values, data, where), where)
    if values.get("study") == ADAPTATION:
        from shiftcal.studies.adapting.reading import read_adaptation_plan

        return read_adaptation_plan(root)
    plan = Plan(
        study=root.word("study"),
        about=root.text("about") or "",
        model=_model(root.table("model")),
        data=_data(root.table("data")),
        calibration=_calibration(root.table("calibration")),
        shifts=_shifts(root.table("shifts")),
        methods=read_methods(root.anything("methods"), where),
        seeds=root.counts("seeds", Plan.seeds),
        bins=root.count("bins", 15) or 15,
        ladders=tuple(_ladder(table) for table in root.tables("ladders")),
        options=root.mapping("options"),
        where=where,
    )
    root.done()
    check_plan(plan, where)
    return plan


def _filled(value: Any, data: str | os.PathLike[str] | None, where: str) -> Any:
    """The same with ``{data}`` put in."""
    if isinstance(value, dict):
        return {key: _filled(each, data, where) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, data, where) for each in value]
    if not isinstance(value, str) or _DATA not in value:
        return value
    if data is None:
        raise InputError(f"{where} speaks of {_DATA}: say where the data is with --data FOLDER.")
    return value.replace(_DATA, os.fspath(data))


def _model(table: TomlTable) -> ModelPlan:
    found = ModelPlan(
        spec=needed(table, "spec"),
        groups=table.text("groups"),
        batch_size=table.count("batch_size", None),
        dtype=table.text("dtype") or ModelPlan.dtype,
    )
    table.done()
    return found


def _data(table: TomlTable) -> DataPlan:
    found = DataPlan(
        images=needed(table, "images"),
        labels=table.text("labels"),
        limit=table.count("limit", None),
        train=table.texts("train"),
        train_labels=table.text("train_labels"),
        train_limit=table.count("train_limit", DataPlan.train_limit) or DataPlan.train_limit,
        fetch=table.text("fetch") or "",
    )
    table.done()
    return found


def _calibration(table: TomlTable) -> CalibrationPlan:
    usual = CalibrationPlan()
    found = CalibrationPlan(
        corruption=spelled(table.text("corruption") or usual.corruption),
        severities=tuple(sorted(table.counts("severities", usual.severities, least=1))),
        images=table.count("images", usual.images) or usual.images,
    )
    table.done()
    return found


def _shifts(table: TomlTable) -> ShiftPlan:
    usual = ShiftPlan()
    found = ShiftPlan(
        corruptions=tuple(spelled(name) for name in table.texts("corruptions")),
        severities=tuple(sorted(table.counts("severities", usual.severities))),
        made=table.text("made"),
        seed=table.count("seed", 0, least=0) or 0,
        table=table.text("table") or usual.table,
        sets=tuple(_natural(each) for each in table.tables("sets")),
    )
    table.done()
    return found


def _natural(table: TomlTable) -> NaturalSet:
    name = file_name(table, "name")
    found = NaturalSet(
        name=name,
        title=table.text("title") or name,
        images=needed(table, "images"),
        labels=table.text("labels"),
        column=table.text("column"),
        fetch=table.text("fetch") or "",
    )
    table.done()
    return found


def _ladder(table: TomlTable) -> LadderPlan:
    found = LadderPlan(table.word("name"), spelled(table.word("corruption")), _strengths(table))
    table.done()
    return found


def _strengths(table: TomlTable) -> tuple[tuple[float, ...], ...]:
    given = table.anything("strengths")
    listed = given if isinstance(given, list) else []
    steps = [each if isinstance(each, list) else [each] for each in listed]
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for s in steps for x in s)
    if not steps or not numbers or not all(steps):
        raise InputError(
            f"{table.where} strengths must be a list of numbers, or of lists of numbers, one for "
            f"each severity; got {given!r}."
        )
    return tuple(tuple(float(x) for x in step) for step in steps)

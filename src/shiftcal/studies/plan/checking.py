"""What concerns several entries of a plan at once, or what other packages know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal._checks import check_choice
from shiftcal.corruptions._engine import TABLES
from shiftcal.errors import InputError, UnknownName
from shiftcal.studies.plan.plan import LadderPlan, Plan

# Names of files beside those of natural sets.
_TAKEN = ("clean", "train")
# Between the name of a ladder and the digest of its strengths, in files.
MARK = ".."


def check_plan(plan: Plan, where: str) -> None:
    """Refuse a plan whose parts do not go together.

    Args:
        plan: The plan.
        where: What it is called in messages.

    Raises:
        InputError: Naming what is wrong.
    """
    check_choice(plan.model.dtype, ("float32", "float16"), name=f"{where} [model] dtype")
    check_choice(plan.shifts.table, ("auto", *TABLES), name=f"{where} [shifts] table")
    if not plan.seeds:
        raise InputError(f"{where} seeds must name one at least: one split is made of each.")
    for index, ladder in enumerate(plan.ladders, 1):
        _check_ladder(ladder, plan, f"{where} ladders {index}")
    made_by, shifts = plan.calibration, plan.shifts
    _check_names((made_by.corruption,), plan, f"{where} [calibration] corruption")
    _check_names(shifts.corruptions, plan, f"{where} [shifts] corruptions")
    _check_severities(made_by.corruption, made_by.severities, plan, f"{where} [calibration]")
    for name in shifts.corruptions:
        if name != made_by.corruption:  # which is left out of the targets
            _check_severities(name, shifts.severities, plan, f"{where} [shifts]")
    _check_made(plan.shifts.made, where)
    for name in _repeated(plan.shifts.corruptions):
        raise InputError(f"{where} [shifts] corruptions name {name} twice. Once is enough.")
    _check_sets(plan, where)
    for label in _repeated([method.label for method in plan.methods]):
        raise InputError(f"{where}: two methods have the label {label!r}. Give each its own.")


def _check_names(names: Sequence[str], plan: Plan, where: str) -> None:
    from shiftcal import corruptions

    own = {ladder.name for ladder in plan.ladders}
    for name in names:
        try:
            if name not in own:
                corruptions.get(name)  # raises, with the nearest name
        except UnknownName as error:
            raise UnknownName(f"{where}: {error}") from error


def _check_severities(name: str, severities: Sequence[int], plan: Plan, where: str) -> None:
    from shiftcal import corruptions

    own = {ladder.name: len(ladder.strengths) for ladder in plan.ladders}
    most = own[name] if name in own else corruptions.get(name)().severities
    if max(severities, default=0) > most:
        has = "one severity" if most == 1 else f"the severities 1 to {most}"
        raise InputError(
            f"{where} severities must be those of {name}, which has {has}; got {list(severities)}."
        )


def _check_made(made: str | None, where: str) -> None:
    """Refuse one place for the images of all corruptions and severities."""
    for blank in ("{corruption}", "{severity}"):
        if made is not None and blank not in made:
            raise InputError(
                f"{where} [shifts] made must have {{corruption}} and {{severity}} in it, or all "
                f"targets would be the same images; got {made!r}. Write {blank} where its value "
                "belongs."
            )


def _check_ladder(ladder: LadderPlan, plan: Plan, where: str) -> None:
    from shiftcal import corruptions
    from shiftcal.corruptions import Strengths

    published = ladder.name.replace("-", "_").lower() in corruptions.names()
    if published or MARK in ladder.name:
        rule = f"not have {MARK!r} in it" if MARK in ladder.name else "be no published corruption's"
        raise InputError(f"{where} name must {rule}; got {ladder.name!r}. Give it another.")
    if ladder.name in _repeated([each.name for each in plan.ladders]):
        raise InputError(
            f"{where}: two ladders are called {ladder.name!r}. Give each its own name."
        )
    try:
        Strengths(ladder.corruption, ladder.strengths, name=ladder.name)
    except InputError as error:
        raise type(error)(f"{where}: {error}") from error


def _check_sets(plan: Plan, where: str) -> None:
    from shiftcal import corruptions

    names = [each.name for each in plan.shifts.sets]
    made = {*corruptions.names(), *(ladder.name for ladder in plan.ladders)}
    for name in names:
        if name in _TAKEN or name.rpartition("-")[0] in made or name in _repeated(names):
            raise InputError(f"{where}: the set name {name!r} is taken. Give another one.")


def _repeated(names: list[str] | tuple[str, ...]) -> Iterator[str]:
    return (name for name in dict.fromkeys(names) if names.count(name) > 1)

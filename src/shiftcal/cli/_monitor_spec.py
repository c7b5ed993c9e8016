"""The monitor that SPEC names: a saved one, or one fitted on a bank at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftcal.cli._inputs import check_output
from shiftcal.cli._streams import progress
from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal.monitoring import Monitor, Window

_METHOD = "rehearsal"
_WHAT = (
    "Name a monitor that Monitor.save or `shiftcal monitor BANK --save FILE` wrote, or the folder "
    "of a bank."
)


@dataclass(frozen=True)
class Fitting:
    """What is said about a monitor that is yet to be fitted; ``None`` where nothing is.

    Attributes:
        method: Name of the method.
        set_: Its settings, as ``NAME=VALUE``.
        estimator: Name of the accuracy estimator, or ``"none"``.
        window: Rows of a sliding window.
        half_life: Half-life of an exponential one.
        false_alarms: False alarms allowed in 100,000 clean rows.
        save: Where to keep it.
    """

    method: str | None
    set_: Sequence[str]
    estimator: str | None
    window: int | None
    half_life: int | None
    false_alarms: float | None
    save: Path | None

    def said(self) -> list[str]:
        """The options that were given."""
        names = {"set_": "set"}
        return [
            f"--{names.get(name, name).replace('_', '-')}"
            for name, value in vars(self).items()
            if value not in (None, [], ())
        ]


def find_monitor(spec: Path, fitting: Fitting) -> Monitor:
    """The monitor, ready to be fed.

    Raises:
        FileError: If there is nothing of the kind at ``spec``.
        InputError: If options do not go with it.
    """
    if spec.is_dir():
        return _fitted(spec, fitting)
    if said := fitting.said():
        say = "says" if len(said) == 1 else "say"
        raise InputError(
            f"{', '.join(said)} {say} how a monitor is fitted, which needs the folder of a bank; "
            f"{spec} is none. Leave {'it' if len(said) == 1 else 'them'} out, or name a bank."
        )
    if not spec.exists():
        raise FileError(f"{spec} does not exist. {_WHAT}")
    from shiftcal._persistence import load
    from shiftcal.monitoring import Monitor

    found = load(spec)
    if not isinstance(found, Monitor):
        raise FileError(f"{spec} holds the {found.kind} {found.name()!r}, not a monitor. {_WHAT}")
    return found


def _fitted(bank: Path, fitting: Fitting) -> Monitor:
    from shiftcal import methods
    from shiftcal.cli._settings import choose_settings
    from shiftcal.monitoring import Monitor
    from shiftcal.surrogates import SurrogateBank

    if fitting.window is not None and fitting.half_life is not None:
        raise InputError("--window and --half-life exclude one another. Leave one of them out.")
    method = methods.get(fitting.method or _METHOD)
    settings = choose_settings(method, {}, fitting.set_)
    options: dict[str, Any] = {"window": _window(fitting)}
    if fitting.estimator is not None:
        options["estimator"] = _estimator(fitting.estimator)
    if fitting.false_alarms is not None:
        options["false_alarms"] = fitting.false_alarms
    if fitting.save is not None:
        check_output(fitting.save, inputs=[])
        if fitting.save.suffix.lower() != ".json":
            raise FileError(f"{fitting.save} must end in .json, as saved monitors do.")
    with progress(f"fitting a monitor on {bank} ..."):
        sets = SurrogateBank.load(bank)
        monitor = Monitor(method(input=sets.input, **settings), **options).fit(sets)
    if fitting.save is not None:
        monitor.save(fitting.save)
    return monitor


def _estimator(name: str) -> str | None:
    from shiftcal import estimates

    return None if name == "none" else estimates.get(name).name()


def _window(fitting: Fitting) -> Window:
    from shiftcal.monitoring import Exponential, Sliding

    word = "--window"
    window: Window = Sliding()
    if fitting.half_life is not None:
        word, window = "--half-life", Exponential(half_life=fitting.half_life)
    elif fitting.window is not None:
        window = Sliding(rows=fitting.window)
    try:
        window.plan()
    except InputError as error:
        raise InputError(f"{word}: {error}") from error
    return window

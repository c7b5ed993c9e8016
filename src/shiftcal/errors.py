"""Everything shiftcal raises on purpose, and the error for a package that is not installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

# --------------------------------------------------------------------------------------
# Every exception and warning shiftcal raises.
#
# ::
#
# ShiftcalError
# ├── InputError (ValueError)        what was passed cannot be used
# │   ├── UnknownName                no map, method, metric ... of that name
# │   └── FileError                  a file is missing, damaged, or of another kind
# │       └── MissingData            images or a model asked for are not there
# ├── FitError (ValueError)          the data cannot support the fit
# ├── NotFittedError                 fit (or adapt) has to come first; also scikit-learn's class
# └── MissingExtra (ImportError)     an optional package is not installed
#
# FitWarning (UserWarning)           the fit is usable, but something about it should be known
# InputWarning (UserWarning)         the input is usable, but perhaps not what was meant
#
# A message says, in this order: the subject, the rule, what came, what to do.
# --------------------------------------------------------------------------------------

__all__ = ["FileError", "FitError", "FitWarning", "InputError", "InputWarning", "MissingData"]
__all__ += ["MissingExtra", "NotFittedError", "ShiftcalError", "UnknownName"]


class ShiftcalError(Exception):
    """Base of every error shiftcal raises on purpose."""


class InputError(ShiftcalError, ValueError):
    """What was passed cannot be used."""


class UnknownName(InputError):
    """Nothing is registered under that name."""


class FileError(InputError):
    """A file is missing, damaged, from a newer version, or not of the kind asked for."""


class MissingData(FileError):
    """Images or a model asked for are not there: no folder, no file, no such part.

    If they are there and not as they must be, that is a plain :class:`FileError`.
    """


class FitError(ShiftcalError, ValueError):
    """The data cannot support the fit."""


class MissingExtra(ShiftcalError, ImportError):
    """An optional package is needed here and is not installed."""


class FitWarning(UserWarning):
    """The fit is usable, but something about it should be known."""


class InputWarning(UserWarning):
    """The input is usable, but perhaps not what was meant."""


if TYPE_CHECKING:

    class NotFittedError(ShiftcalError, ValueError, AttributeError):
        """``fit`` (or ``adapt``) has to be called first."""


def __getattr__(name: str) -> Any:
    # NotFittedError is also scikit-learn's, and importing that costs a second: made on demand.
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as Theirs

    doc = "``fit`` (or ``adapt``) has to be called first."
    made = type(name, (ShiftcalError, Theirs), {"__doc__": doc, "__module__": __name__})
    return globals().setdefault(name, made)


# --------------------------------------------------------------------------------------
# Optional packages: imported where they are used, with an error that says what to install.
# --------------------------------------------------------------------------------------


def require(module: str, *, needed_by: str, extra: str = "", package: str = "") -> ModuleType:
    """Import ``module``, or say what to install.

    Args:
        module: Importable name, such as ``"pyarrow.parquet"``.
        needed_by: What the user asked for, as the subject of the message.
        extra: The extra of shiftcal that installs it.
        package: What pip calls the package, if no extra brings it.

    Raises:
        MissingExtra: If the package is absent. A package that is there but broken
            raises its own error untouched.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name != top:
            raise
        install = package or f"'shiftcal[{extra}]'"
        raise MissingExtra(
            f"{needed_by} needs {top}, which is not installed. Run: pip install {install}"
        ) from error


# Common words for methods, maps and commands; those that exist where one is used are suggested.
_SYNONYMS = {
    "temperature": ("ts",),
    "temperature-scaling": ("ts", "temperature"),
    "ts": ("temperature",),
    "none": ("vanilla",),
    "raw": ("vanilla",),
    "uncalibrated": ("vanilla",),
    "calibrate": ("fit", "apply"),
    "predict": ("apply",),
    "adapt": ("train",),
    "infer": ("score",),
    "test": ("evaluate",),
    "eval": ("evaluate",),
    "methods": ("list",),
    "download": ("data", "get"),
    "fetch": ("data", "get"),
}


def suggest(wanted: object, known: Sequence[str]) -> str:
    """A sentence that points from a mistyped name, or a common word for it, to those that exist."""
    import difflib

    word = str(wanted).lower()
    near = [name for name in _SYNONYMS.get(word, ()) if name in known]
    near = near or difflib.get_close_matches(word, known, n=1)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    if len(known) > 40:
        return f"There are {len(known):,}, such as {', '.join(known[-5:])}."
    return f"There are: {', '.join(known)}."

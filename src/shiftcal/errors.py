"""Every exception and warning shiftcal raises.

::

    ShiftcalError
    ├── InputError (ValueError)        what was passed cannot be used
    │   ├── UnknownName                no map, method, metric ... of that name
    │   └── FileError                  a file is missing, damaged, or of another kind
    │       └── MissingData            nothing of the images asked for is there
    ├── FitError (ValueError)          the data cannot support the fit
    ├── NotFittedError                 fit (or adapt) has to come first; also scikit-learn's class
    └── MissingExtra (ImportError)     an optional package is not installed

    FitWarning (UserWarning)           the fit is usable, but something about it should be known
    InputWarning (UserWarning)         the input is usable, but perhaps not what was meant

A message says, in this order: the subject, the rule, what came, what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "FileError",
    "FitError",
    "FitWarning",
    "InputError",
    "InputWarning",
    "MissingData",
    "MissingExtra",
    "NotFittedError",
    "ShiftcalError",
    "UnknownName",
]


class ShiftcalError(Exception):
    """Base of every error shiftcal raises on purpose."""


class InputError(ShiftcalError, ValueError):
    """What was passed cannot be used."""


class UnknownName(InputError):
    """Nothing is registered under that name."""


class FileError(InputError):
    """A file is missing, damaged, from a newer version, or not of the kind asked for."""


class MissingData(FileError):
    """Nothing of the images or the model asked for is there: no folder, no file, no such part.

    If some of it is there, or it is not as it must be, that is a plain :class:`FileError`.
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

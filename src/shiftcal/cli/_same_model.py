"""Whether a target was scored by the model that a method was fitted for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.errors import InputWarning

if TYPE_CHECKING:
    from shiftcal.methods import Method


def warn_of_another_model(fitted: Method, method: Path, target: Path) -> bool:
    """Warn if both files say which model they are of, and it is not one; gives whether it did.

    One network in two files, say as ONNX and as TorchScript, counts as two: hence no error.
    """
    from shiftcal.scores._origin import model_digest_of_file

    theirs = model_digest_of_file(target)
    another = None not in (theirs, fitted.model_) and theirs != fitted.model_
    if another:
        warnings.warn(
            f"{target} was scored by another model, or with another preprocessing, than the bank "
            f"that {method} was fitted on. Its confidences mean something only if both give the "
            "same logits. `shiftcal score --bank` sees to that.",
            InputWarning,
            stacklevel=2,
        )
    return another

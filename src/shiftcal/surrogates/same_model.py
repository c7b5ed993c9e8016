"""The model a bank was made with, so that new images are treated as its own were."""

from __future__ import annotations

import copy
import os
from pathlib import Path

from shiftcal.errors import FileError, InputError
from shiftcal.models import Model, Preprocessing, as_model
from shiftcal.models.spec import parse_spec
from shiftcal.surrogates.folder import read_document


def model_of_bank(
    folder: str | os.PathLike[str], model: Model | None = None, batch_size: int | None = None
) -> Model:
    """The model of a bank, with the bank's preprocessing.

    Args:
        folder: The bank's folder.
        model: The model, if it is at hand, which is not changed; otherwise it is made of the line
            the bank names.
        batch_size: Images given to the model at once; as in the bank if left out.

    Raises:
        FileError: If the bank does not say how it was made.
        InputError: If the model is another than that of the bank.
    """
    source = Path(folder)
    origin = read_document(source).get("origin")
    try:
        told = origin["model"]  # type: ignore[index]
        preprocessing = Preprocessing.from_dict(told["preprocessing"])
        fingerprint, spec, size = told["fingerprint"], told["spec"], int(told["batch_size"])
    except (TypeError, KeyError, ValueError) as error:
        raise FileError(
            f"{source} does not say which model it was made with: only banks of `shiftcal bank` "
            "or SurrogateBank.synthesize do. Name the model and leave the bank out."
        ) from error
    if model is None:
        model = as_model(_harmless(source, spec))
    model = copy.copy(model)
    model.preprocessing = preprocessing
    model.batch_size = batch_size or size
    if model.fingerprint != fingerprint:
        raise InputError(
            f"{source} was made with another model (fingerprint {fingerprint[:12]}...; this one "
            f"has {str(model.fingerprint)[:12]}...). Scores of one model say nothing about banks "
            "of another: name the same model, or leave the bank out."
        )
    return model


def _harmless(source: Path, spec: object) -> str:
    """The line of a model, unless making that model would run code that the line names.

    A bank is a file that may come from anybody, and a line on the command line is not.
    """
    if not isinstance(spec, str):
        raise InputError(f"{source} was made with a model that has no name. Name it: --model.")
    found = parse_spec(spec)
    if found.kind in ("torch", "python") or "trusted" in found.options:
        raise InputError(
            f"{source} was made with the model {spec!r}, and making it would run code. If you "
            f"know that code, name the model yourself: --model {spec!r}."
        )
    return spec

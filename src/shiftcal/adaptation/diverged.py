"""The network of a run that diverged, as it was before."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from shiftcal.adaptation._divergence_note import TRAINING, read_note
from shiftcal.adaptation.adapted import Adapted
from shiftcal.adaptation.again import new_classifier
from shiftcal.adaptation.network import Classifier, Objective
from shiftcal.adaptation.training.checkpoint import FILE, Checkpoints
from shiftcal.adaptation.training.weights import network_tensors
from shiftcal.errors import FileError


def last_checkpoint(folder: str | os.PathLike[str], backbone: object = None) -> Classifier:
    """The network of the last checkpoint of a run whose training diverged, in evaluation mode.

    From images to logits; from features, if they were frozen.

    Args:
        folder: Of the run.
        backbone: The torch module that was trained, if it was given as one.

    Raises:
        FileError: If no training diverged there, or it had no checkpoint yet.
        InputError: If the backbone cannot be made again without.
    """
    where = Path(folder)
    note = read_note(where)
    if note is None:
        raise FileError(
            f"{where} holds no training that diverged. A finished run is opened by Adapted.open."
        )
    if not (where / TRAINING / FILE).exists():
        raise FileError(f"{where} holds no checkpoint: {note['reason']}")
    adapted = Adapted(where, note)
    classifier, trainer = new_classifier(adapted, backbone), adapted.trainer
    extra = trainer.extra(classifier.width, note["n_classes"])
    kept = Checkpoints(where / TRAINING, _identity(where / TRAINING / FILE))
    kept.read(network_tensors(Objective(classifier, trainer, extra)))
    return classifier.eval()


def _identity(file: Path) -> dict[str, Any]:
    """Of the training; nothing if the file is damaged, which is told where it is read."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        return dict(json.loads(file.read_text("utf-8"))["identity"])
    return {}

"""Labels of the target, which may come after the training: they decide nothing but accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal._types import Labels
from shiftcal.adaptation._about import write_about
from shiftcal.adaptation._npz_arrays import read_arrays, write_arrays
from shiftcal.adaptation.mode import TARGET
from shiftcal.scores import read_scores
from shiftcal.scoring.labels import digest_of_labels

KEY = "target_labels"


def target_accuracy(folder: Path) -> float | None:
    """Share of the held-out target that is classified right, if that is known."""
    target = read_scores(folder / TARGET)
    if target.labels is None:
        return None
    return float((target.values.argmax(axis=1) == target.labels).mean())


def renew_labels(folder: Path, document: Mapping[str, Any], labels: Labels | None) -> None:
    """Have a finished run judged by the labels that the target has now.

    Nothing is written if they are the same. Scores and features stay what they are.

    Args:
        folder: Of the run.
        document: What its ``adapt.json`` says.
        labels: Of all held-out images, if they are known.

    Raises:
        FileError: If the scores of the target cannot be read, or not be written.
    """
    now = digest_of_labels(labels)
    before = document[KEY] if KEY in document else _stored_digest(folder)
    if before == now:
        return
    path = folder / TARGET
    arrays: dict[str, Any] = read_arrays(path)
    arrays["labels"] = None if labels is None else _of_rows(arrays, labels).astype(np.int64)
    write_arrays(path, arrays, durable=True)
    accuracy = {**document["accuracy"], "target": target_accuracy(folder)}
    write_about(folder, {**document, "accuracy": accuracy, KEY: now}, durable=True)


def _of_rows(arrays: Mapping[str, Any], labels: Labels) -> Labels:
    """Those of the images that have a row: one that could not be read was left out."""
    left_out = json.loads(str(arrays["origin"])).get("left_out", [])
    kept: Labels = np.delete(labels, [image["index"] for image in left_out])
    return kept


def _stored_digest(folder: Path) -> str | None:
    return digest_of_labels(read_scores(folder / TARGET).labels)

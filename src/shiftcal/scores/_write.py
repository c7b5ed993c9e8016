"""Writing a scores file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from shiftcal._checks import check_confidence, check_labels
from shiftcal._files import atomic_write
from shiftcal.errors import FileError, InputError
from shiftcal.scores._read import format_of
from shiftcal.scores._scores import Scores

WRITABLE = (".npz", ".csv", ".parquet", ".safetensors")


def write_scores(
    path: str | os.PathLike[str],
    scores: Scores,
    *,
    confidence: object = None,
    predicted: object = None,
    durable: bool = True,
) -> None:
    """Write scores to a file that :func:`read_scores` reads; the suffix says the format.

    An existing file is replaced in one step; whatever goes wrong, it stays as it was.

    Args:
        path: Where to, ending in ``.npz``, ``.csv``, ``.parquet`` or ``.safetensors``.
        scores: What to write.
        confidence: Confidence ``(n,)`` of the predicted class, written beside the scores.
        predicted: Predicted class ``(n,)`` as an index, likewise.
        durable: Whether the file outlives a power cut at once. Otherwise the system writes it
            within seconds, which is faster for many small files that can be made again.

    Raises:
        FileError: If the suffix is another, or the file cannot be written.
        MissingExtra: If the format needs a package that is not installed.
    """
    target = Path(path)
    if target.suffix.lower() == ".npy":
        raise FileError(
            f"{target} cannot be written: a .npy file holds one array. "
            f"Choose one of {', '.join(WRITABLE)}."
        )
    module = format_of(target, WRITABLE)
    extra = {}
    if predicted is not None:
        extra["predicted"] = check_labels(predicted, n=scores.n, k=scores.k)
    if confidence is not None:
        extra["confidence"] = np.asarray(check_confidence(confidence))
        if len(extra["confidence"]) != scores.n:
            raise InputError(
                "confidence must have one entry per row: "
                f"{scores.n} rows, {len(extra['confidence'])} entries."
            )
    with atomic_write(target, durable=durable) as temporary:
        try:
            module.write(temporary, scores, extra)
        except UnicodeEncodeError as error:
            raise FileError(
                f"{target} cannot be written: {error.object!r} among its ids or classes is not "
                "valid text. Replace the characters that UTF-8 cannot express."
            ) from error

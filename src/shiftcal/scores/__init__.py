"""Scores files: what a model gave for one set of samples, in any of five formats.

:func:`read_scores` and :func:`write_scores` choose the format by the file's suffix, one module of
this package each. Whether the numbers are logits or probabilities is said by the file, never
guessed. Nothing is ever unpickled, and a file is written whole or not at all.
"""

from __future__ import annotations

from shiftcal.scores.formats import read_features, read_scores, write_scores
from shiftcal.scores.labels import read_labelled, read_labels
from shiftcal.scores.scores import Scores

__all__ = ["Scores", "read_features", "read_labelled", "read_labels", "read_scores", "write_scores"]

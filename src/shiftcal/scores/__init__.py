"""Scores files: what a model gave for one set of samples, in any of five formats.

:func:`read_scores` and :func:`write_scores` choose the format by the file's suffix, one module of
this package each. Whether the numbers are logits or probabilities is said by the file, never
guessed. Nothing is ever unpickled, and a file is written whole or not at all.
"""

from __future__ import annotations

from shiftcal.scores._read import read_scores
from shiftcal.scores._read_features import read_features
from shiftcal.scores._read_labels import read_labelled, read_labels
from shiftcal.scores._scores import Scores
from shiftcal.scores._write import write_scores

__all__ = ["Scores", "read_features", "read_labelled", "read_labels", "read_scores", "write_scores"]

"""How right and how sure a model is on scores that are in a file, read in bounded memory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftcal.cli._tables import count_of
from shiftcal.errors import InputWarning

# Images below which next to nothing can be said of calibration.
_FEW = 100
# What accuracy must fall by, if a bank is to say anything of data on which it does.
_HARM = 0.05
# Standard deviations that an accuracy must be above that of guessing.
_CLEARLY = 2


@dataclass(frozen=True)
class Judged:
    """A labelled set in numbers.

    Attributes:
        name: What it is called.
        rows: Images with scores.
        mean_confidence: Mean of the raw p_max.
        accuracy: Share of rows whose largest logit is the label's.
        n_classes: Columns of the scores.
        seen: Which classes have a row at least.
    """

    name: str
    rows: int
    mean_confidence: float
    accuracy: float
    n_classes: int
    seen: tuple[int, ...]


def judged(path: Path, name: str) -> Judged:
    """What a labelled ``.npz`` file of logits comes to, some megabytes at a time.

    Args:
        path: The file.
        name: What the set is called.
    """
    import numpy as np

    from shiftcal.numerics.softmax import p_max
    from shiftcal.scores.npz import read_member
    from shiftcal.scoring.merging.npz import heads, stretches

    labels = read_member(path, "labels")
    assert labels is not None, "whoever asks knows that there are labels"
    n, k = heads(path)["logits"].shape
    sure, right, start = 0.0, 0, 0
    for z in stretches(path, "logits"):
        sure += float(p_max(z).sum())
        right += int((z.argmax(axis=1) == labels[start : start + len(z)]).sum())
        start += len(z)
    rows = max(n, 1)
    return Judged(name, n, sure / rows, right / rows, k, tuple(np.unique(labels).tolist()))


def accuracy_of(output: Path | None, statistics: Path | None) -> float:
    """Accuracy of labelled scores that were written to either file, or to both."""
    if statistics is not None:
        from shiftcal.scoring.statistics.score_statistics import ScoreStatistics

        return ScoreStatistics.read(statistics).accuracy()
    assert output is not None, "something was written"
    if output.suffix.lower() == ".npz":
        return judged(output, output.name).accuracy
    from shiftcal.scores import read_scores

    scores = read_scores(output)
    return float((scores.values.argmax(axis=1) == scores.labels).mean())


def warn_of_odd(sets: Sequence[Judged], classes: Sequence[str] | None) -> None:
    """Warn of what is wrong with most banks that are of no use.

    Args:
        sets: All sets, the clean one first.
        classes: Names of the classes, if they are known.
    """
    clean = sets[0]
    odd = (_at_chance(clean), _one_class(clean, classes), _few(clean))
    for text in odd if any(odd) else (_hardly_harder(sets),):
        if text:
            warnings.warn(text, InputWarning, stacklevel=2)


def _at_chance(clean: Judged) -> str:
    chance = 1 / clean.n_classes
    noise = math.sqrt(chance * (1 - chance) / max(clean.rows, 1))
    if clean.accuracy > chance + _CLEARLY * noise:
        return ""
    return (
        f"the accuracy of the clean set is {clean.accuracy:.4f}, no better than guessing among "
        f"{clean.n_classes} classes ({chance:.4f}). Look at mean and std of the preprocessing, and "
        "at the order of the classes (--classes)."
    )


def _one_class(clean: Judged, classes: Sequence[str] | None) -> str:
    if len(clean.seen) != 1:
        return ""
    name = classes[clean.seen[0]] if classes else clean.seen[0]
    return f"all images are of one class, {name}, which says nothing about the others."


def _hardly_harder(sets: Sequence[Judged]) -> str:
    clean, *others = sets
    hardest = min(others, key=lambda one: one.accuracy, default=None)
    if hardest is None or clean.accuracy - hardest.accuracy >= _HARM:
        return ""
    return (
        f"the corruptions hardly harm this model: accuracy falls from {clean.accuracy:.4f} to "
        f"{hardest.accuracy:.4f} at the most ({hardest.name}). Of data that harm it more the bank "
        "can say nothing; add other corruptions, such as --corruption brightness,motion_blur."
    )


def _few(clean: Judged) -> str:
    if clean.rows >= _FEW:
        return ""
    return f"the clean set has {count_of(clean.rows)}; fewer than {_FEW} tell little. Give more."

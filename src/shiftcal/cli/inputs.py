"""Reading and checking the files that options name."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shiftcal.cli.output import count_of
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import naming

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shiftcal.methods import Method
    from shiftcal.metrics import BinTable
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.types import Floats, Labels, Probs

# --------------------------------------------------------------------------------------
# Reading and checking the files that options name.
# --------------------------------------------------------------------------------------

_WHOSE = {
    "source": "the training samples (--source-train FILE)",
    "clean": "the clean set (in its scores file)",
    "target": "the target (in its scores file)",
}

# Such a method runs the model once more for every target, which files of scores cannot do.
NEEDS_MIXED = (
    "needs the model run over mixed target images, in Python: shiftcal.scoring.score_mixed."
)


def read_bank(
    bank: Path | None, surrogates: Sequence[Path] | None, *, normalize: bool
) -> SurrogateBank:
    """The surrogate bank that either ``--bank`` or ``--surrogate`` names.

    Args:
        bank: The folder.
        surrogates: The files.
        normalize: ``--normalize``.

    Raises:
        InputError: If both are given, or neither.
    """
    if bank is not None and surrogates:
        raise InputError("--bank and --surrogate exclude one another. Leave one of them out.")
    from shiftcal.surrogates import SurrogateBank

    if bank is not None:
        return SurrogateBank.load(bank, normalize=normalize)
    if not surrogates:
        raise InputError(
            "surrogate sets are missing. Give --surrogate FILE for every set, the clean "
            "calibration set first, or --bank DIR."
        )
    return SurrogateBank.from_files(surrogates, normalize=normalize)


def lacking_features(**features: Floats | None) -> str:
    """Whose features a method would need and does not have, in words; empty if none are lacking.

    Args:
        **features: Those there are, by the keys of ``_WHOSE``.
    """
    lacking = [_WHOSE[key] for key, given in features.items() if given is None]
    *others, last = lacking or [""]
    return f"features of {', '.join(others)}{' and ' * bool(others)}{last}" if lacking else ""


def read_target(
    path: Path,
    *,
    n_classes: int,
    classes: Sequence[str] | None,
    normalize: bool = False,
    labels: Path | None = None,
) -> Scores:
    """The scores of a target whose classes must be those of the surrogate sets.

    Args:
        path: A scores file.
        n_classes: Number of classes there must be.
        classes: Their names in order, if known; not compared if the target has none.
        normalize: ``--normalize``.
        labels: File of labels in the place of its own, ``--labels``.

    Raises:
        FileError: If the classes are others, or in another order.
    """
    from shiftcal.scores import read_labels, read_scores

    target = read_scores(path, normalize=normalize)
    if target.k != n_classes:
        raise FileError(
            f"{path} must have the classes of the surrogate sets: they have {n_classes}, and "
            f"this one has {target.k}. Both must come from one model."
        )
    if classes is not None and target.classes is not None:
        check_order(path, target.classes, tuple(classes))
    return target if labels is None else replace(target, labels=read_labels(labels, target))


def files_of(*paths: Path | None) -> Iterator[Path]:
    """The files that paths name, ``FILE.npz:KEY`` without its key; those left out are ``None``."""
    from shiftcal.scores_io import member_of

    for path in paths:
        if path is not None:
            yield member_of(path)[0]


def check_order(path: Path, found: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """Refuse classes of a target that are not those expected, in their order."""
    if found == expected:
        return
    column, is_here, was_there = next(
        (i, a, b) for i, a, b in zip(count(), found, expected) if a != b
    )
    reordered = set(found) == set(expected)
    raise FileError(
        f"{path} must have the classes of the surrogate sets in their order; it has "
        f"{'the same in another order' if reordered else 'others'}: column {column} is "
        f"{is_here!r} here and {was_there!r} there. "
        f"{'Reorder its columns.' if reordered else 'Both must come from one model.'}"
    )


def probabilities_of(scores: Scores) -> Probs:
    """Checked probabilities, whichever kind the scores are.

    Raises:
        FileError: If the values are not what the file says they are.
    """
    from shiftcal.checks import check_probs

    scores.logits()  # its errors name the file
    return check_probs(scores.as_kind("probabilities").values)


def adapt_to(method: Method, target: Scores) -> tuple[Floats, Floats]:
    """Adapt a fitted method to a target.

    Returns:
        The target's logits, and its scores of the kind the method takes.

    Raises:
        InputError: If the target's values cannot be used, or features or mixed images are lacking.
    """
    logits = target.logits()
    values = logits if method.input == "logits" else target.as_kind("probabilities").values
    if method.uses_mixed:
        raise InputError(f"{method.name} {NEEDS_MIXED}")
    if method.uses_features and (lacking := lacking_features(target=target.features)):
        raise InputError(
            f"{method.name} needs {lacking}. They must come from the same layer as those it "
            "was fitted with."
        )
    with naming(target.source):
        method.adapt(values, target.features)
    return logits, values


def check_output(output: Path, *, inputs: Sequence[Path]) -> None:
    """Refuse an output file that could not be written, before any work is done.

    Args:
        output: The file to be written.
        inputs: Files that are read, which it must not replace.

    Raises:
        FileError: Saying what is in the way.
    """
    if output.is_dir():
        raise FileError(f"{output} is a folder. Name the file to be written.")
    if not output.parent.is_dir():
        raise FileError(
            f"{output} cannot be written: there is no folder {output.parent}. Make it first."
        )
    if output.exists() and any(file.exists() and output.samefile(file) for file in inputs):
        raise FileError(
            f"{output} is read by this command and must not be replaced by it. "
            "Name another file to be written."
        )


def check_distinct(outputs: Mapping[str, Path]) -> None:
    """Refuse two outputs that are one file, of which one would be lost.

    Args:
        outputs: What an output is called -> its path.

    Raises:
        FileError: Naming both.
    """
    for (first, path), (second, other) in combinations(outputs.items(), 2):
        if path.resolve() == other.resolve() or (
            path.exists() and other.exists() and path.samefile(other)
        ):
            raise FileError(
                f"{first} and {second} must be two files; {path} and {other} are one. Name "
                "another for one of them."
            )


def written(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """The callback of every option that names an output: those of one command must differ."""
    if value is not None and str(value) != "-":
        outputs = context.meta.setdefault("shiftcal.outputs", {})
        outputs[param.opts[0]] = Path(value)
        check_distinct(outputs)
    return value


def check_replaced(output: Path | None, *, holds: str) -> None:
    """Refuse to replace a file that is there and is something else than what is to be written.

    Args:
        output: The file, if one is to be written.
        holds: ``"scores"`` or ``"statistics"``.

    Raises:
        FileError: Naming it.
    """
    if output is None or not output.is_file():
        return
    try:
        ours = _holds_statistics(output) if holds == "statistics" else _holds_scores(output)
    except InputError:
        ours = False
    if not ours:
        raise FileError(
            f"{output} is there already and holds no {holds}, so that it is not replaced. Name "
            "another file, or remove this one."
        )


def _holds_scores(path: Path) -> bool:
    if path.suffix.lower() == ".npz":  # may be large
        from shiftcal.scoring.merge import heads

        return not {"logits", "probabilities"}.isdisjoint(heads(path))
    from shiftcal.scores import read_scores

    return read_scores(path).n > 0


def _holds_statistics(path: Path) -> bool:
    from shiftcal.scoring.statistics import ScoreStatistics

    return ScoreStatistics.read(path).n > 0


# --------------------------------------------------------------------------------------
# Whether a target was scored by the model that a method was fitted for.
# --------------------------------------------------------------------------------------


def warn_of_another_model(fitted: Method, method: Path, target: Path) -> bool:
    """Warn if both files say which model they are of, and it is not one; gives whether it did.

    One network in two files, say as ONNX and as TorchScript, counts as two: hence no error.
    """
    from shiftcal.scores import model_digest_of_file

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


# --------------------------------------------------------------------------------------
# Metrics with their intervals, for the commands that have labels.
# --------------------------------------------------------------------------------------

# Draws from a single row are all the same, and would give an interval of no width.
_FEWEST = 2


@dataclass
class Judge:
    """How predictions are judged: bins, and the bootstrap behind intervals.

    Attributes:
        n_bins: Number of bins of binned metrics.
        binning: ``"size"`` or ``"width"``, or ``"quantile"`` or ``"uniform"`` for the same.
        level: Coverage of intervals.
        n_resamples: Bootstrap draws; 0 for no intervals.
        seed: Of the draws.
    """

    n_bins: int
    binning: str
    level: float
    n_resamples: int
    seed: int

    def check(self) -> None:
        """Refuse what cannot be meant, before files are read; ``binning`` gets its plain name.

        Raises:
            InputError: Naming the option.
        """
        from shiftcal.checks import check_fraction
        from shiftcal.metrics import check_binning

        self.binning = check_binning(self.binning, name="--binning")
        check_fraction(self.level, name="--level")
        if self.n_resamples == 1:
            raise InputError(
                "--resamples must be 0 (no intervals) or at least 2; got 1. "
                "1000 gives ends that hardly depend on the seed."
            )

    def value(self, name: str, probs: Probs, labels: Labels) -> float:
        """The metric called ``name``, without an interval."""
        metric, arrays, options = self._call(name, probs, labels)
        return float(metric(*arrays, **options))

    def interval(self, name: str, probs: Probs, labels: Labels) -> dict[str, float | None]:
        """The metric called ``name``: ``value``, ``low`` and ``high``, which may be ``None``."""
        from shiftcal.metrics import bootstrap

        if self.n_resamples == 0 or len(labels) < _FEWEST:
            return {"value": self.value(name, probs, labels), "low": None, "high": None}
        metric, arrays, options = self._call(name, probs, labels)
        interval = bootstrap(
            metric,
            *arrays,
            n_resamples=self.n_resamples,
            level=self.level,
            seed=self.seed,
            **options,
        )
        return {"value": interval.value, "low": interval.low, "high": interval.high}

    def bin_table(self, probs: Probs, labels: Labels) -> BinTable:
        """The table behind ECE."""
        from shiftcal.metrics import bin_table

        return bin_table(*_top1(probs, labels), n_bins=self.n_bins, binning=self.binning)  # type: ignore[arg-type]

    def describe(self, n: int) -> str:
        """The definitions behind the numbers of ``n`` rows, in a sentence or two."""
        text = (
            "Accuracy, confidence and ECE are fractions, not percent; NLL is in nats. "
            f"ECE: {self.n_bins} bins of equal {self.binning}."
        )
        if self.n_resamples and n < _FEWEST:
            text += " No intervals: one row cannot tell how much rows differ."
        elif self.n_resamples:
            text += (
                f" Intervals: {100 * self.level:g}% bootstrap, {self.n_resamples} draws, "
                f"seed {self.seed}."
            )
        return text

    def _call(
        self, name: str, probs: Probs, labels: Labels
    ) -> tuple[Any, tuple[Any, Any], dict[str, Any]]:
        from shiftcal import metrics
        from shiftcal.metrics import facts_of

        metric = metrics.get(name)
        arrays = _top1(probs, labels) if facts_of(metric).reads == "top1" else (probs, labels)
        takes_bins = "n_bins" in inspect.signature(metric).parameters
        return (
            metric,
            arrays,
            {"n_bins": self.n_bins, "binning": self.binning} if takes_bins else {},
        )


def _top1(probs: Probs, labels: Labels) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return probs.max(axis=1), probs.argmax(axis=1) == labels


# --------------------------------------------------------------------------------------
# How right and how sure a model is on scores that are in a file, read in bounded memory.
# --------------------------------------------------------------------------------------

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
    from shiftcal.scores_io import read_member
    from shiftcal.scoring.merge import heads, stretches

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
        from shiftcal.scoring.statistics import ScoreStatistics

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


# --------------------------------------------------------------------------------------
# The order in which methods are shown.
# --------------------------------------------------------------------------------------

# As in the paper, from the least to the most informed; methods added later follow by name.
_FIRST = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac")


def method_names() -> list[str]:
    """Every method's name, in the order of a table."""
    from shiftcal import methods

    names = methods.names()
    return sorted(names, key=lambda name: (name not in _FIRST, _rank(name), name))


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else 0

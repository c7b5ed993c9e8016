"""Reading and checking the files that options name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal._types import Floats, Probs
    from shiftcal.methods import Method
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank

_WHOSE = {
    "source": "the training samples (--source-train FILE)",
    "clean": "the clean set (in its scores file)",
    "target": "the target (in its scores file)",
}

# Such a method runs the model once more for every target, which files of scores cannot do.
NEEDS_MIXED = (
    "needs the model run over mixed target images, in Python: shiftcal.scoring.score_mixed."
)


def read_bank(bank: Path | None, surrogates: Sequence[Path] | None) -> SurrogateBank:
    """The surrogate bank that either ``--bank`` or ``--surrogate`` names.

    Raises:
        InputError: If both are given, or neither.
    """
    if bank is not None and surrogates:
        raise InputError("--bank and --surrogate exclude one another. Leave one of them out.")
    from shiftcal.surrogates import SurrogateBank

    if bank is not None:
        return SurrogateBank.load(bank)
    if not surrogates:
        raise InputError(
            "surrogate sets are missing. Give --surrogate FILE for every set, the clean "
            "calibration set first, or --bank DIR."
        )
    return SurrogateBank.from_files(surrogates)


def lacking_features(**features: Floats | None) -> str:
    """Whose features a method would need and does not have, in words; empty if none are lacking.

    Args:
        **features: Those there are, by the keys of ``_WHOSE``.
    """
    lacking = [_WHOSE[key] for key, given in features.items() if given is None]
    *others, last = lacking or [""]
    return f"features of {', '.join(others)}{' and ' * bool(others)}{last}" if lacking else ""


def read_target(path: Path, *, n_classes: int, classes: Sequence[str] | None) -> Scores:
    """The scores of a target whose classes must be those of the surrogate sets.

    Args:
        path: A scores file.
        n_classes: Number of classes there must be.
        classes: Their names in order, if known; not compared if the target has none.

    Raises:
        FileError: If the classes are others, or in another order.
    """
    from shiftcal.scores import read_scores

    target = read_scores(path)
    if target.k != n_classes:
        raise FileError(
            f"{path} must have the classes of the surrogate sets: they have {n_classes}, and "
            f"this one has {target.k}. Both must come from one model."
        )
    if classes is not None and target.classes is not None:
        check_order(path, target.classes, tuple(classes))
    return target


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
    from shiftcal._checks import check_probs

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
        raise InputError(f"{method.name()} {NEEDS_MIXED}")
    if method.uses_features and (lacking := lacking_features(target=target.features)):
        raise InputError(
            f"{method.name()} needs {lacking}. They must come from the same layer as those it "
            "was fitted with."
        )
    with naming(target.source):
        method.adapt(values, target.features)
    return logits, values


@contextmanager
def naming(source: str | Path) -> Iterator[None]:
    """Put the name of a file before an error about what is in it."""
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise FileError(f"{source}: {error}") from error


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
        from shiftcal.scoring.merging.npz import heads

        return not {"logits", "probabilities"}.isdisjoint(heads(path))
    from shiftcal.scores import read_scores

    return read_scores(path).n > 0


def _holds_statistics(path: Path) -> bool:
    from shiftcal.scoring.statistics.score_statistics import ScoreStatistics

    return ScoreStatistics.read(path).n > 0

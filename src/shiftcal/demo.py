"""``shiftcal demo``: a real network, real corruptions, all methods and a report, in a minute.

:func:`run_demo` leaves files for every other command to try.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions import corrupt
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.datasets.labels import calibration_split
from shiftcal.errors import FileError
from shiftcal.files import make_folder, sha256_of, write_document
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.models import Model, as_model
from shiftcal.progress import Reporting
from shiftcal.report.facts import Judging, Provenance, make_facts
from shiftcal.report.render import write_report
from shiftcal.scores import Scores, read_scores
from shiftcal.scoring import score_file
from shiftcal.scoring.shards import one_blas_thread
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.bank import set_name
from shiftcal.surrogates.build import build_bank, conditions_of
from shiftcal.types import Floats, Images, Labels

STEPS = 5
# What demo.json keeps of the facts of a target.
_KEPT = ("target", "estimate", "verdict", "methods", "missing")
# A third of the 1,797 digits each; the rest is new.
_TRAINED_ON, _CALIBRATED_ON, _EPOCHS = 600, 598, 40
# Strokes four pixels wide need more than photographs of 32 pixels do.
_TABLE = "imagenet"


@dataclass(frozen=True)
class Target:
    """New digits with a corruption, or with every second one corrupted if it is a mixture."""

    name: str
    title: str
    corruption: str
    severity: int
    mixture: bool = False


# Fog, since the network is far overconfident in it; blur, since calibration hurts there.
TARGETS = (
    Target("fog", "new digits in fog, which the bank does not have", "fog", 1),
    Target("mixture", "a mixture: every second digit in fog", "fog", 1, mixture=True),
    Target("blur", "new digits, slightly blurred: calibration hurts", "gaussian_blur", 3),
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A network that gives features, and the digits it was trained on, calibrated on and not."""

    model: Model
    train: ImageSet
    calibration: ImageSet
    new: Images
    new_labels: Labels
    corruptions: tuple[str, ...] = ("brightness", "gaussian_noise", "impulse_noise", "motion_blur")
    n_resamples: int = 400


class Network:
    """A trained ``MLPClassifier`` as a function from pixels to logits and features."""

    def __init__(self, classifier: Any) -> None:
        self.layers = list(zip(classifier.coefs_, classifier.intercepts_, strict=True))

    def __call__(self, images: NDArray[Any]) -> tuple[Floats, Floats]:
        """Logits ``(n, 10)`` and features ``(n, 64)`` of grey images uint8 ``(n, 32, 32, 3)``."""
        hidden = rows_of(images[..., 0])
        for weights, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        weights, bias = self.layers[-1]
        return hidden @ weights + bias, hidden


def digits_subject() -> Subject:
    """A network of two hidden layers, trained on a third of scikit-learn's digits."""
    import joblib  # type: ignore[import-untyped]
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    bunch = load_digits()
    images, labels = enlarged(bunch.images), np.asarray(bunch.target, np.intp)
    train, rest = calibration_split(labels, n=_TRAINED_ON)
    first, second = calibration_split(labels[rest], n=_CALIBRATED_ON, seed=1)
    steps = {"learning_rate_init": 0.003, "batch_size": 100, "tol": 0.0, "random_state": 0}
    classifier = MLPClassifier((128, 64), max_iter=_EPOCHS, n_iter_no_change=_EPOCHS, **steps)
    # One thread multiplies such small matrices faster than several.
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(rows_of(images[train]), labels[train])
    names, network = [str(i) for i in range(10)], Network(classifier)
    key = f"digits-{joblib.hash(network.layers)}"
    everything = as_image_set(images, labels=labels, classes=names)
    return Subject(
        model=as_model(network, raw=True, key=key, classes=names, batch_size=256),
        train=everything.subset(train, name="digits trained on"),
        calibration=everything.subset(rest[first], name="digits to calibrate on"),
        new=images[rest[second]],
        new_labels=labels[rest[second]],
    )


def load_example() -> tuple[SurrogateBank, dict[str, Scores]]:
    """A surrogate bank and nine labelled targets of a ResNet-20 on CIFAR-10.

    The bank has 1,000 test images: clean, and with eight corruptions at severities 1, 3 and 5. Each
    target has 1,000 other test images: ``"clean"``, or one of eight other corruptions, such as
    ``"fog"``, at severity 4. Logits are stored in 8 bits. ``benchmarks/accuracy/example.py`` made
    them; the network is github.com/akamaster/pytorch_resnet_cifar10 (BSD 2-Clause).

    Returns:
        The bank, and the targets by name.
    """
    with (
        (files("shiftcal") / "example.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        # Roots of the distances to the largest logit of a row; the mean of a row is 0.
        logits = -np.square(stored["roots"] * stored["scales"][:, None, None])
        logits -= logits.mean(axis=2, keepdims=True)
        labels, about = stored["labels"].astype(np.intp), json.loads(str(stored["about"]))
    sets = [
        SurrogateSet(logits[j], labels[0], set_name(j, name, level), name, level)
        for j, (name, level) in enumerate(about["bank"])
    ]
    classes = tuple(about["classes"])
    targets = {
        name: Scores(values, labels=truth, classes=classes)
        for name, values, truth in zip(
            about["targets"], logits[len(sets) :], labels[1:], strict=True
        )
    }
    origin = {key: about[key] for key in ("source", "network", "licence")}
    return SurrogateBank(sets, classes=classes, origin=origin), targets


def enlarged(images: NDArray[np.float64]) -> Images:
    """Digits ``(n, 8, 8)`` from 0 to 16 as grey images ``(n, 32, 32)``, bilinear."""
    from scipy.ndimage import zoom

    large = zoom(images * (255 / 16.0), (1, 4, 4), order=1, mode="nearest", grid_mode=True)
    return np.clip(np.rint(large), 0, 255).astype(np.uint8)


def rows_of(images: Images) -> Floats:
    """Grey images as rows from 0 to 1."""
    return np.asarray(images.reshape(len(images), -1), np.float64) / 255.0


def run_demo(
    folder: Path,
    *,
    step: Callable[..., AbstractContextManager[None]],
    reporting: Reporting,
    command: str = "shiftcal demo",
) -> dict[str, Any]:
    """Run the demo: network, bank, targets, comparison, report. Run again, it resumes.

    Args:
        folder: For all files; created if missing.
        step: Called with a description of every step, :data:`STEPS` in all, and ``own_bar=True``
            if the step shows a progress bar.
        reporting: How the progress of scoring is shown.
        command: The command line, for the report.

    Returns:
        What ``demo.json`` holds: the numbers of every target, and commands to try next.

    Raises:
        FileError: If the folder holds something else, or a file cannot be written.
    """
    start = time.perf_counter()
    train, document = folder / "train.npz", folder / "demo.json"
    # A page in HTML needs the extra "report".
    suffix = ".html" if find_spec("jinja2") and find_spec("matplotlib") else ".md"
    page = folder / f"report{suffix}"
    if folder.exists() and any(folder.iterdir()) and not document.is_file():
        raise FileError(f"{folder} is not empty and has no demo. Name a new folder with -o.")
    with step("training a small network"):
        subject = digits_subject()
    make_folder(folder)
    write_document(document, {}, format="shiftcal-demo", version=1)
    n_sets = 1 + 5 * len(subject.corruptions)
    with step(f"building a bank of {n_sets} sets in {folder / 'bank'}", own_bar=True):
        build_bank(
            subject.model,
            subject.calibration,
            folder / "bank",
            conditions=conditions_of(list(subject.corruptions), None),
            table=_TABLE,
            reporting=reporting,
        )
        bank = SurrogateBank.load(folder / "bank")
    silent = Reporting(shown=False)
    with step(f"new data arrives: {', '.join(target.name for target in TARGETS)}"):
        for target in TARGETS:
            images = np.array(
                corrupt(subject.new, target.corruption, severity=target.severity, table=_TABLE)
            )
            if target.mixture:
                images[::2] = subject.new[::2]
            scores_file, labels = folder / f"{target.name}.npz", subject.new_labels
            score_file(subject.model, images, scores_file, labels=labels, reporting=silent)
        score_file(subject.model, subject.train, train, reporting=silent)
    results, facts = [], []
    with step("calibrating by every method, without labels"), one_blas_thread():
        Rehearsal().fit(bank).save(folder / "rehearsal.json")
        for target in TARGETS:
            scores_file = folder / f"{target.name}.npz"
            digests = {
                str(file): sha256_of(file) for file in (folder / "bank" / "bank.json", scores_file)
            }
            made = make_facts(
                bank,
                read_scores(scores_file),
                source_features=read_scores(train).features,
                title=f"shiftcal demo: {target.title}",
                judging=Judging(n_resamples=subject.n_resamples),
                provenance=Provenance(command=command, files=digests),
            )
            facts.append(made)
            stated = made.to_dict()
            kept = {key: stated[key] for key in _KEPT}
            results.append({**asdict(target), "scores": str(scores_file), **kept})
    with step(f"writing the report, {page}"):
        write_report(facts[0], page)
    clean = bank.clean.summary()
    result = {
        "folder": str(folder),
        "model": f"a network trained on {len(subject.train)} digits",
        "n_calibration": clean.n,
        "n_sets": len(bank),
        "corruptions": list(subject.corruptions),
        "clean_accuracy": clean.accuracy,
        "clean_confidence": clean.mean_confidence,
        "targets": results,
        "report": str(page),
        "next": _next_commands(folder, folder / f"mixture{suffix}"),
        "seconds": time.perf_counter() - start,
    }
    write_document(document, result, format="shiftcal-demo", version=1, indent=1)
    return result


def _next_commands(folder: Path, page: Path) -> list[list[str]]:
    """Commands to try, as words: each works by itself."""
    first, second, third = (str(folder / f"{target.name}.npz") for target in TARGETS)
    bank, train = str(folder / "bank"), str(folder / "train.npz")
    method, calibrated = str(folder / "rehearsal.json"), str(folder / "calibrated.npz")
    return [
        ["shiftcal", "apply", method, first, "-o", calibrated],
        ["shiftcal", "compare", bank, second, "--source-train", train],
        ["shiftcal", "estimate", bank, third],
        ["shiftcal", "report", bank, second, "-o", str(page)],
    ]

"""``shiftcal demo``: what calibration under shift does to a real network, in seconds.

:func:`run_demo` works on the example that ships with the package and needs no training;
:func:`run_digits` does the whole job: it trains a network, corrupts images and builds a bank. Both
leave files for every other command to try.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shiftcal import methods
from shiftcal.corruptions import corrupt
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.datasets.labels import calibration_split
from shiftcal.errors import FileError
from shiftcal.estimates import Rehearsed
from shiftcal.files import make_folder, read_document, sha256_of, write_document
from shiftcal.methods import Method
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.metrics import ece
from shiftcal.models import Model, as_model
from shiftcal.numerics.blocks import one_blas_thread
from shiftcal.progress import Reporting, track
from shiftcal.report.facts import Judging, Provenance, make_facts
from shiftcal.report.render import write_report
from shiftcal.scores import Scores, read_scores, write_scores
from shiftcal.scoring import score_file
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.bank import set_name
from shiftcal.surrogates.build import build_bank, conditions_of
from shiftcal.types import Floats, Images, Labels

# The methods of the table, and the one that the report is about.
METHODS = ("vanilla", "ts", "sts", "sac", "rehearsal", "realign")
MAIN = "rehearsal"
# The target that the report is about.
SHOWN = "fog"

# Steps of the digits, and what demo.json keeps of the facts of a target.
STEPS = 5
_KEPT = ("target", "estimate", "verdict", "methods", "missing")
# A third of the 1,797 digits each; the rest is new.
_TRAINED_ON, _CALIBRATED_ON, _EPOCHS = 600, 598, 40
# Strokes four pixels wide need more than photographs of 32 pixels do.
_TABLE = "imagenet"


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


def run_demo(folder: Path) -> dict[str, Any]:
    """Calibrate every target of the example by every method of :data:`METHODS`, and write a report.

    Args:
        folder: For all files; created if missing.

    Returns:
        What ``demo.json`` holds: the numbers of every target, and commands to try next.

    Raises:
        FileError: If the folder holds something else, or a file cannot be written.
    """
    start = time.perf_counter()
    document, page = _prepare(folder, "cifar10")
    bank, targets = load_example()
    fitted = {name: methods.get(name)().fit(bank) for name in track(METHODS, "methods")}
    shutil.rmtree(folder / "bank", ignore_errors=True)
    bank.save(folder / "bank")
    fitted[MAIN].save(folder / f"{MAIN}.json")
    results = []
    for name, target in track(targets.items(), "targets"):
        write_scores(folder / f"{name}.npz", target)
        results.append({"target": name, "n": target.n, **_measured(fitted, target)})
    file, saved = folder / f"{SHOWN}.npz", folder / f"{MAIN}.json"
    command = ["shiftcal", "report", str(folder / "bank"), str(file), "-o", str(page)]
    usage = ["shiftcal", "apply", str(saved), str(file), "-o", str(folder / "calibrated.npz")]
    read = (folder / "bank" / "bank.json", file)
    facts = make_facts(
        bank,
        read_scores(file),
        method=fitted[MAIN],
        title="ResNet-20 on CIFAR-10 in fog",
        provenance=Provenance(
            command=shlex.join(command),
            usage=shlex.join(usage),
            files={str(one): sha256_of(one) for one in read},
        ),
    )
    write_report(facts, page)
    hardest = max(results, key=lambda one: one["ece"][MAIN])["target"]
    words = [str(folder / "bank"), str(folder / f"{hardest}.npz")]
    result = {
        "example": "cifar10",
        "folder": str(folder),
        "n_sets": len(bank),
        "n_calibration": len(bank.clean),
        "corruptions": sorted({one.corruption for one in bank if one.corruption}),
        "methods": {name: methods.get(name).__name__ for name in METHODS} | {"vanilla": "raw"},
        "targets": results,
        "mean": {
            **{key: fmean(one[key] for one in results) for key in ("accuracy", "realigned")},
            "ece": {name: fmean(one["ece"][name] for one in results) for name in METHODS},
        },
        "report": str(page),
        "next": [
            usage,
            ["shiftcal", "compare", *words],
            ["shiftcal", "report", *words, "-o", str(folder / f"{hardest}{page.suffix}")],
        ],
        "seconds": time.perf_counter() - start,
    }
    write_document(document, result, format="shiftcal-demo", version=1, indent=1)
    return result


def _prepare(folder: Path, example: str) -> tuple[Path, Path]:
    """The folder, made for this example: its document and the report to write."""
    document = folder / "demo.json"
    if folder.exists() and any(folder.iterdir()):
        kind = "what a demo left"
        try:
            before = read_document(document, kind, format="shiftcal-demo", version=1, fix="")
        except FileError:
            before = {}
        if before.get("example") != example:
            raise FileError(f"{folder} is not empty and has no such demo. Name a new folder: -o.")
    make_folder(folder)
    write_document(document, {"example": example}, format="shiftcal-demo", version=1)
    # A page in HTML needs the extra "report".
    suffix = ".html" if find_spec("jinja2") and find_spec("matplotlib") else ".md"
    return document, folder / f"report{suffix}"


def _measured(fitted: dict[str, Method], target: Scores) -> dict[str, Any]:
    """Accuracy as it is and after Realign, and ECE and mean confidence by every method."""
    estimate = Rehearsed.of(cast(Rehearsal, fitted["rehearsal"])).estimate(target)
    correct = target.logits().argmax(axis=1) == target.labels
    found: dict[str, Any] = {"ece": {}, "mean_confidence": {}}
    for name, method in fitted.items():
        method.adapt(target)
        probs = method.predict_proba(target)
        confidence = probs.max(axis=1)
        predicted = probs.argmax(axis=1) == target.labels
        found["ece"][name] = ece(confidence, predicted)
        found["mean_confidence"][name] = float(confidence.mean())
        if name == "realign":  # the one that changes predictions
            found["realigned"] = float(predicted.mean())
    between = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {"accuracy": float(correct.mean()), "estimated_accuracy": between, **found}


# --- the digits -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class DigitsTarget:
    """New digits with a corruption, or with every second one corrupted if it is a mixture."""

    name: str
    title: str
    corruption: str
    severity: int
    mixture: bool = False


# Fog, since the network is far overconfident in it; blur, since calibration hurts there.
TARGETS = (
    DigitsTarget("fog", "new digits in fog, which the bank does not have", "fog", 1),
    DigitsTarget("mixture", "a mixture: every second digit in fog", "fog", 1, mixture=True),
    DigitsTarget("blur", "new digits, slightly blurred: calibration hurts", "gaussian_blur", 3),
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A network, the digits it is calibrated on, and new ones."""

    model: Model
    calibration: ImageSet
    new: Images
    new_labels: Labels
    corruptions: tuple[str, ...] = ("brightness", "gaussian_noise", "impulse_noise", "motion_blur")
    n_resamples: int = 400


class DigitsNetwork:
    """A trained ``MLPClassifier`` as a function from pixels to logits."""

    def __init__(self, classifier: Any) -> None:
        self.layers = list(zip(classifier.coefs_, classifier.intercepts_, strict=True))

    def __call__(self, images: NDArray[Any]) -> Floats:
        """Logits ``(n, 10)`` of grey images uint8 ``(n, 32, 32, 3)``."""
        hidden = rows_of(images[..., 0])
        for weights, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        weights, bias = self.layers[-1]
        logits: Floats = hidden @ weights + bias
        return logits


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
    names, network = [str(i) for i in range(10)], DigitsNetwork(classifier)
    key = f"digits-{joblib.hash(network.layers)}"
    everything = as_image_set(images, labels=labels, classes=names)
    return Subject(
        model=as_model(network, raw=True, key=key, classes=names, batch_size=256),
        calibration=everything.subset(rest[first], name="digits to calibrate on"),
        new=images[rest[second]],
        new_labels=labels[rest[second]],
    )


def enlarged(images: NDArray[np.float64]) -> Images:
    """Digits ``(n, 8, 8)`` from 0 to 16 as grey images ``(n, 32, 32)``, bilinear."""
    from scipy.ndimage import zoom

    large = zoom(images * (255 / 16.0), (1, 4, 4), order=1, mode="nearest", grid_mode=True)
    return np.clip(np.rint(large), 0, 255).astype(np.uint8)


def rows_of(images: Images) -> Floats:
    """Grey images as rows from 0 to 1."""
    return np.asarray(images.reshape(len(images), -1), np.float64) / 255.0


def run_digits(
    folder: Path,
    *,
    step: Callable[..., AbstractContextManager[None]],
    reporting: Reporting,
    command: str = "shiftcal demo --digits",
) -> dict[str, Any]:
    """Train a network on digits, build a bank, calibrate new digits, report. Resumes if run again.

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
    document, page = _prepare(folder, "digits")
    with step("training a small network"):
        subject = digits_subject()
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
        "example": "digits",
        "folder": str(folder),
        "model": f"a network trained on {_TRAINED_ON} digits",
        "n_calibration": clean.n,
        "n_sets": len(bank),
        "corruptions": list(subject.corruptions),
        "clean_accuracy": clean.accuracy,
        "clean_confidence": clean.mean_confidence,
        "targets": results,
        "report": str(page),
        "next": _next_commands(folder, folder / f"mixture{page.suffix}"),
        "seconds": time.perf_counter() - start,
    }
    write_document(document, result, format="shiftcal-demo", version=1, indent=1)
    return result


def _next_commands(folder: Path, page: Path) -> list[list[str]]:
    """Commands to try, as words: each works by itself."""
    first, second, third = (str(folder / f"{target.name}.npz") for target in TARGETS)
    bank = str(folder / "bank")
    method, calibrated = str(folder / "rehearsal.json"), str(folder / "calibrated.npz")
    return [
        ["shiftcal", "apply", method, first, "-o", calibrated],
        ["shiftcal", "compare", bank, second],
        ["shiftcal", "estimate", bank, third],
        ["shiftcal", "report", bank, second, "-o", str(page)],
    ]

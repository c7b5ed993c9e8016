"""``shiftcal demo``: a real model, real corruptions, all methods and a report, in a minute.

:func:`run_demo` takes a :class:`Subject`, made by :func:`digits_subject` or :func:`cifar_subject`,
and leaves files for every other command to try.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal import datasets
from shiftcal.corruptions import corrupt
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.datasets.catalog.cifar import CLASSES
from shiftcal.datasets.image_files import mosaic
from shiftcal.datasets.splits import calibration_split
from shiftcal.errors import FileError, MissingData, MissingExtra, require
from shiftcal.files import atomic_write, make_folder
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.models import Model, as_model
from shiftcal.models.model import digest
from shiftcal.models.resolve import Spec
from shiftcal.report import facts as report_facts
from shiftcal.report.render import write_report
from shiftcal.scores import model_digest_of_file, read_scores
from shiftcal.scoring import score_file
from shiftcal.scoring.run import Reporting
from shiftcal.scoring.work import one_blas_thread
from shiftcal.surrogates import SurrogateBank
from shiftcal.surrogates.build import Options, build_bank, conditions_of
from shiftcal.surrogates.folder import digest_of
from shiftcal.types import Floats, Images, Labels

FORMAT, VERSION = "shiftcal-demo", 1
STEPS = 5
# Images of CIFAR-10's test set to calibrate on, and as many new ones.
CALIBRATED_ON = 1000
# A third of the 1,797 digits each; the rest is new.
_TRAINED_ON, _DIGITS_CALIBRATED_ON = 600, 598
_EPOCHS = 40
_EXAMPLE = "An example, not a measurement: bank and targets were picked with labels in sight"


@dataclass(frozen=True)
class Target:
    """New data: every image corrupted, or every second one if it is a mixture."""

    name: str
    title: str
    corruption: str
    severity: int
    mixture: bool = False

    def images(self, new: Images, *, table: str) -> Images:
        """The images with the corruption, at the strengths of ``table``."""
        corrupted = np.array(corrupt(new, self.corruption, severity=self.severity, table=table))
        if self.mixture:
            corrupted[::2] = new[::2]
        return corrupted


@dataclass(frozen=True, eq=False)
class Subject:
    """A model with its images, and the plan of the demo.

    Attributes:
        data: ``"digits"`` or ``"cifar10"``; a folder holds one of them.
        things: What the images show.
        model: With the features of its last layer but one.
        made: Where the model comes from, in a few words.
        calibration: Labelled images that it was not trained on.
        new: Other images, ``(n, height, width[, 3])``, for the targets.
        new_labels: Theirs, for measuring only.
        train: Images that it was trained on, for methods that weight by features, if available.
        corruptions: Those of the bank.
        table: Whose strengths, as for :func:`shiftcal.corrupt`.
        targets: The report is about the first.
        remark: How these were picked.
        n_resamples: Bootstrap draws behind every interval of ECE.
    """

    data: str
    things: str
    model: Model
    made: str
    calibration: ImageSet
    new: Images
    new_labels: Labels
    train: ImageSet | None
    corruptions: tuple[str, ...]
    table: str
    targets: tuple[Target, Target, Target]
    remark: str
    n_resamples: int = 400


def cifar_subject(folder: Path) -> Subject:
    """A published ResNet-20, and test images of CIFAR-10.

    Args:
        folder: Has CIFAR-10, as ``cifar-10-batches-py`` or as a mosaic ``test.webp`` with
            ``labels.npz``, itself or in ``cifar10``; and a file ``resnet20*`` of weights, itself or
            in ``cifar10-resnet-weights``. Training images are used if they are there.

    Raises:
        MissingData: If something is missing; the message says how to get it.
        MissingExtra: If torch is not installed, or Pillow for a mosaic.
        FileError: If a file cannot be used.
    """
    images, weights = None, None
    if folder.is_dir():
        images = _cifar_images(folder, "test", "test")
        kinds = ("th", "pt", "pth", "safetensors")
        places = [folder / "cifar10-resnet-weights", folder]
        found = [f for p in places for k in kinds for f in sorted(p.glob(f"resnet20*.{k}"))]
        weights = found[0] if found else None
    if images is None or weights is None:
        missing = []
        if images is None:
            missing.append(f"CIFAR-10 (shiftcal data get cifar10 --to {folder})")
        if weights is None:
            missing.append(
                "weights (resnet20-12fca82f.th of https://github.com/akamaster/"
                f"pytorch_resnet_cifar10, pretrained_models, into {folder})"
            )
        what = "lacks" if folder.is_dir() else "must be a folder with"
        raise MissingData(f"--data {folder} {what} {' and '.join(missing)}.")
    options = {"weights": str(weights), "features_from": "layer3"}
    model = as_model(str(Spec("cifar-resnet", "20", options)))
    model.classes = CLASSES
    assert images.labels is not None
    calibration, rest = calibration_split(images.labels, n=CALIBRATED_ON)
    picked, _ = calibration_split(images.labels[rest], n=CALIBRATED_ON, seed=1)
    new = rest[picked]
    try:
        train = _cifar_images(folder, "train", "train_batch_1")
    except FileError:  # test images are enough
        train = None
    if train is not None and train.labels is not None and len(train) > CALIBRATED_ON:
        chosen, _ = calibration_split(train.labels, n=CALIBRATED_ON)
        train = train.subset(chosen, name="CIFAR-10 trained on")
    return Subject(
        data="cifar10",
        things="images",
        model=model,
        made=f"ResNet-20 of {weights.name}",
        calibration=images.subset(calibration, name="CIFAR-10 to calibrate on"),
        new=images.read(new).images,
        new_labels=images.labels[new],
        train=train,
        corruptions=("brightness", "contrast", "gaussian_noise", "pixelate"),
        table="cifar",
        targets=(
            Target("frost", "new images under frost, which the bank does not have", "frost", 5),
            Target(
                "mixture", "a mixture: every second image under frost", "frost", 5, mixture=True
            ),
            Target("warped", "new images, slightly warped: a mild shift", "elastic_transform", 1),
        ),
        remark=f"{_EXAMPLE}. shiftcal reproduce synthetic measures all corruptions.",
    )


def _cifar_images(folder: Path, split: str, member: str) -> ImageSet | None:
    """The images of a split, in one of the places; ``None`` if they are in none."""
    for place in (folder / "cifar10", folder):
        picture, labels = place / f"{member}.webp", place / "labels.npz"
        try:
            return datasets.load("cifar10", place, split=split)
        except MissingData:
            if picture.is_file() and labels.is_file():
                images = mosaic(picture, tile=32, labels=f"{labels}:{member}")
                return images.relabelled(images.labels, classes=CLASSES)
    return None


class Network:
    """A trained ``MLPClassifier`` as a function from pixels to logits and features."""

    def __init__(self, classifier: Any) -> None:
        self.weights = [np.asarray(w, np.float64) for w in classifier.coefs_]
        self.biases = [np.asarray(b, np.float64) for b in classifier.intercepts_]

    @property
    def key(self) -> str:
        """A digest of all weights."""
        layers = (*self.weights, *self.biases)
        return f"digits-{digest(np.ascontiguousarray(w).tobytes() for w in layers)[:32]}"

    def __call__(self, images: NDArray[Any]) -> tuple[Floats, Floats]:
        """Logits ``(n, 10)`` and features ``(n, 64)`` of grey images uint8 ``(n, 32, 32, 3)``."""
        hidden = rows_of(images[..., 0])
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        return hidden @ self.weights[-1] + self.biases[-1], hidden


def digits_subject() -> Subject:
    """A network of two hidden layers, trained on a third of scikit-learn's digits."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    bunch = load_digits()
    images, labels = enlarged(bunch.images), np.asarray(bunch.target, np.intp)
    train, rest = calibration_split(labels, n=_TRAINED_ON)
    first, second = calibration_split(labels[rest], n=_DIGITS_CALIBRATED_ON, seed=1)
    calibration, new = rest[first], rest[second]
    classifier = MLPClassifier(
        (128, 64),
        learning_rate_init=0.003,
        batch_size=100,
        max_iter=_EPOCHS,
        tol=0.0,
        n_iter_no_change=_EPOCHS,
        random_state=0,
    )
    # One thread multiplies such small matrices faster than several.
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(rows_of(images[train]), labels[train])
    names = [str(i) for i in range(10)]
    everything = as_image_set(images, labels=labels, classes=names)
    return Subject(
        data="digits",
        things="digits",
        model=model_of(Network(classifier)),
        made=f"a network trained on {len(train)} digits",
        calibration=everything.subset(calibration, name="digits to calibrate on"),
        new=images[new],
        new_labels=labels[new],
        train=everything.subset(train, name="digits trained on"),
        corruptions=("brightness", "gaussian_noise", "impulse_noise", "motion_blur"),
        # Strokes four pixels wide need more than photographs of 32 pixels do.
        table="imagenet",
        targets=(
            Target("fog", "new digits in fog, which the bank does not have", "fog", 1),
            Target("mixture", "a mixture: every second digit in fog", "fog", 1, mixture=True),
            Target("blur", "new digits, slightly blurred: calibration hurts", "gaussian_blur", 3),
        ),
        remark=f"{_EXAMPLE}; fog, since the network is far overconfident in it, and blur, since "
        "calibration hurts there.",
    )


def model_of(network: Network) -> Model:
    """The network as a model, identified by its weights."""
    names = [str(i) for i in range(10)]
    return as_model(network, raw=True, key=network.key, classes=names, batch_size=256)


def enlarged(images: NDArray[np.float64]) -> Images:
    """Digits ``(n, 8, 8)`` from 0 to 16 as grey images ``(n, 32, 32)``, bilinear."""
    from scipy.ndimage import zoom

    large = zoom(images * (255 / 16.0), (1, 4, 4), order=1, mode="nearest", grid_mode=True)
    return np.clip(np.rint(large), 0, 255).astype(np.uint8)


def rows_of(images: Images) -> Floats:
    """Grey images as rows from 0 to 1."""
    return np.asarray(images.reshape(len(images), -1), np.float64) / 255.0


@dataclass(frozen=True)
class TargetResult:
    """A target, the file of its scores, and its facts."""

    target: Target
    scores: Path
    facts: report_facts.ReportFacts

    def to_dict(self) -> dict[str, Any]:
        """What ``demo.json`` keeps of it."""
        facts = self.facts.to_dict()
        keys = ("name", "temperature", "mean_confidence", "ece")
        return {
            **asdict(self.target),
            "scores": str(self.scores),
            **{key: facts["target"][key] for key in ("n", "mean_confidence", "accuracy")},
            "estimate": facts["estimate"],
            "verdict": facts["verdict"]["kind"],
            "methods": [{key: one[key] for key in keys} for one in facts["methods"]],
            "missing": facts["missing"],
        }


@dataclass(frozen=True)
class DemoResult:
    """The outcome of a demo; ``no_report`` says why ``report`` is ``None``."""

    folder: Path
    subject: Subject
    n_calibration: int
    n_sets: int
    clean_accuracy: float
    clean_confidence: float
    targets: tuple[TargetResult, ...]
    report: Path | None
    no_report: str
    next: tuple[tuple[str, ...], ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The outcome in JSON's types."""
        return {
            "folder": str(self.folder),
            "model": self.subject.made,
            "n_calibration": self.n_calibration,
            "n_sets": self.n_sets,
            "corruptions": list(self.subject.corruptions),
            "clean_accuracy": self.clean_accuracy,
            "clean_confidence": self.clean_confidence,
            "targets": [one.to_dict() for one in self.targets],
            "report": None if self.report is None else str(self.report),
            "no_report": self.no_report,
            "next": [list(words) for words in self.next],
            "seconds": self.seconds,
        }


def run_demo(
    make_subject: Callable[[], Subject],
    data: str,
    folder: Path,
    *,
    step: Callable[..., AbstractContextManager[None]],
    reporting: Reporting,
    command: str,
) -> DemoResult:
    """Run the demo: model, bank, targets, comparison, report. Run again, it resumes.

    Args:
        make_subject: Makes the subject.
        data: ``"digits"`` or ``"cifar10"``.
        folder: For all files; created if missing.
        step: Called with a description of every step, :data:`STEPS` in all, and ``own_bar=True``
            if the step shows a progress bar.
        reporting: How the progress of scoring is shown.
        command: The command line, for the report.

    Raises:
        FileError: If the folder holds something else, or a file cannot be written.
    """
    start = time.perf_counter()
    _check_folder(folder, data)
    with step("training a small network" if data == "digits" else "reading images and network"):
        subject = make_subject()
    make_folder(folder)
    if not (folder / "demo.json").exists():
        _write(folder, data, {})
    n_sets = 1 + 5 * len(subject.corruptions)
    with step(f"building a bank of {n_sets} sets in {folder / 'bank'}", own_bar=True):
        bank = _bank(folder / "bank", subject, reporting)
    silent = Reporting(shown=False)
    train, images = folder / "train.npz", {}
    with step(f"new data arrives: {', '.join(one.name for one in subject.targets)}"):
        for target in subject.targets:
            arrived = target.images(subject.new, table=subject.table)
            images[target.name] = arrived
            images_file = folder / f"{target.name}-images.npy"
            with atomic_write(images_file) as temporary, temporary.open("wb") as file:
                np.save(file, arrived)
            scores_file, labels = folder / f"{target.name}.npz", subject.new_labels
            score_file(subject.model, arrived, scores_file, labels=labels, reporting=silent)
        source_features = None
        if subject.train is None:
            train.unlink(missing_ok=True)
        else:
            score_file(subject.model, subject.train, train, reporting=silent)
            source_features = read_scores(train).features
    try:
        require("PIL.Image", extra="images", needed_by="pictures on a report")
    except MissingExtra:
        images.clear()
    results = []
    with step("calibrating by every method, without labels"), one_blas_thread():
        Rehearsal().fit(bank).save(folder / "rehearsal.json")
        for target in subject.targets:
            scores_file = folder / f"{target.name}.npz"
            files = (folder / "bank" / "bank.json", scores_file)
            facts = report_facts.make_facts(
                bank,
                read_scores(scores_file),
                images=images.get(target.name),
                source_features=source_features,
                target_model=model_digest_of_file(scores_file),
                title=f"shiftcal demo: {target.title}",
                judging=report_facts.Judging(n_resamples=subject.n_resamples),
                provenance=report_facts.Provenance(
                    command=command, files={str(file): digest_of(file) for file in files}
                ),
            )
            results.append(TargetResult(target, scores_file, facts))
    report: Path | None = folder / "report.html"
    no_report = ""
    with step(f"writing the report, {folder / 'report.html'}"):
        try:
            write_report(results[0].facts, folder / "report.html")
        except MissingExtra as error:
            (folder / "report.html").unlink(missing_ok=True)  # it would be of an earlier run
            report, no_report = None, str(error)
    clean = bank.clean.summary()
    result = DemoResult(
        folder=folder,
        subject=subject,
        n_calibration=clean.n,
        n_sets=len(bank),
        clean_accuracy=clean.accuracy,
        clean_confidence=clean.mean_confidence,
        targets=tuple(results),
        report=report,
        no_report=no_report,
        next=_next_commands(folder, subject, with_report=report is not None),
        seconds=time.perf_counter() - start,
    )
    _write(folder, data, result.to_dict())
    return result


def _bank(folder: Path, subject: Subject, reporting: Reporting) -> SurrogateBank:
    """The bank, built, resumed or loaded; one of another network is built again."""

    def build() -> None:
        build_bank(
            subject.model,
            subject.calibration,
            folder,
            conditions=conditions_of(list(subject.corruptions), None),
            options=Options(table=subject.table, reporting=reporting),
        )

    try:
        build()
    except FileError as error:
        # Another release of scikit-learn trains another network; a full disk is another matter.
        if isinstance(error.__cause__, OSError) or not (folder / "bank.json").exists():
            raise
        shutil.rmtree(folder)
        build()
    return SurrogateBank.load(folder)


def _check_folder(folder: Path, data: str) -> None:
    """Raise FileError unless the folder is new, empty, or of the same demo."""
    try:
        names = sorted(
            entry.name
            for entry in folder.iterdir()
            if not (entry.name.startswith(".shiftcal-") and entry.name.endswith(".tmp"))
        )
    except FileNotFoundError:
        return
    except OSError as error:
        reason = error.strerror or error
        raise FileError(
            f"{folder} is not usable: {reason}. Name another folder with -o."
        ) from error
    earlier = None
    try:
        document = json.loads((folder / "demo.json").read_text("utf-8"))
        earlier = str(document["data"]) if document["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    if names and earlier is None:
        raise FileError(
            f"{folder} holds {names[0]!r} and is no folder of a demo. Name a new one with -o."
        )
    if earlier not in (None, data):
        raise FileError(
            f"{folder} holds the demo with {earlier}, not {data}. Name a new folder with -o."
        )


def _write(folder: Path, data: str, document: dict[str, Any]) -> None:
    by = f"shiftcal {version('shiftcal')}"
    head = {"format": FORMAT, "version": VERSION, "written_by": by, "data": data}
    text = json.dumps({**head, **document}, indent=1, allow_nan=False)
    with atomic_write(folder / "demo.json") as temporary:
        temporary.write_text(f"{text}\n", "utf-8")


def _next_commands(
    folder: Path, subject: Subject, *, with_report: bool
) -> tuple[tuple[str, ...], ...]:
    """Commands to try, as words: each works by itself."""
    first, second, third = (str(folder / f"{target.name}.npz") for target in subject.targets)
    bank = str(folder / "bank")
    compare = ["shiftcal", "compare", "--bank", bank, "--target", second]
    if subject.train is not None:
        compare += ["--source-train", str(folder / "train.npz")]
    calibrated = str(folder / "calibrated.npz")
    page = str(Path(second).with_suffix(".html"))
    commands = [
        ("shiftcal", "apply", str(folder / "rehearsal.json"), first, "-o", calibrated),
        tuple(compare),
        ("shiftcal", "estimate", bank, third),
        ("shiftcal", "report", "--bank", bank, "--target", second, "-o", page),
    ]
    return tuple(commands if with_report else commands[:3])

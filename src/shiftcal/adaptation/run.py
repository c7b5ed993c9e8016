"""One task from images to what calibration needs: features, training, outputs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.augment import Pipeline, training_transform
from shiftcal.adaptation.backbones import Backbone, make_backbone, stored_backbone
from shiftcal.adaptation.features import (
    FeatureModel,
    Frozen,
    HeadedModel,
    as_feature_model,
    frozen_features,
    headed_fingerprint,
    run_heads,
)
from shiftcal.adaptation.feeds import ArrayFeed, Feed, image_feed
from shiftcal.adaptation.inputs import Choice, Task, TaskSplit, choose, content_digest
from shiftcal.adaptation.loop import (
    CHECKPOINT_FILE,
    HISTORY_FILE,
    Course,
    Row,
    differences,
    plain_json,
    read_checkpoint,
    read_history,
    resolve_device,
    seeded,
    train,
    weights_digest,
)
from shiftcal.adaptation.losses import torch
from shiftcal.adaptation.network import Classifier, make_objective
from shiftcal.adaptation.trainer import Settings, Trainer
from shiftcal.checks import check_count
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import FileError, FitError, InputError, InputWarning, MissingData, UnknownName
from shiftcal.files import (
    NpzStream,
    atomic_write,
    make_folder,
    npz_array,
    open_npz,
    parsing,
    read_json,
)
from shiftcal.models import Model, Preprocessing, TorchModel, load_weights
from shiftcal.registry import TRAINERS
from shiftcal.scores import Scores, read_features, read_scores
from shiftcal.scoring import score, score_file
from shiftcal.scoring.engines import LocalEngine
from shiftcal.scoring.run import Reporting, text_of
from shiftcal.scoring.store import alone_in
from shiftcal.scoring.work import digest_of_labels, names_of
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.bank import set_name
from shiftcal.surrogates.build import Options, build_bank, conditions_of
from shiftcal.surrogates.folder import save_bank
from shiftcal.types import Floats, Labels

FILE, FORMAT, VERSION = "adapt.json", "shiftcal-adapted", 1
BANK, SOURCE_TRAIN, TARGET = "bank", "source-train.npz", "target.npz"
WEIGHTS, SPLIT = "classifier.safetensors", "split.npz"
# Of a run that is not finished: the checkpoint, and features unless they have a folder.
TRAINING, FEATURES = "training", "features"
# In the former, after a training diverged: what adapt.json would hold, and why it is not there.
_DIVERGED = "diverged.json"
_LABELS = "target_labels"
_NO_BACKBONE = (
    "backbone must name what gives the features: a name such as 'resnet50', the text of a model or "
    "a torch module; got nothing."
)


@dataclass(frozen=True, eq=False)
class Adapted:
    """A finished run of :func:`adapt`, read from its folder on demand.

    Attributes:
        folder: Where it is.
        document: Content of its ``adapt.json``.
        finished_before: Whether the run was finished before the call that returned this.
    """

    folder: Path
    document: dict[str, Any]
    finished_before: bool = False

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Adapted:
        """A finished run.

        Raises:
            FileError: If it is not finished, or there is none.
        """
        return cls(Path(folder), read_about(Path(folder)))

    def __repr__(self) -> str:
        target = self.accuracy
        known = "" if target is None else f", accuracy {target:.4f} on the held-out target"
        return f"<Adapted: {self.trainer.label} in {self.folder}{known}>"

    @cached_property
    def bank(self) -> SurrogateBank:
        """The surrogate bank of the calibration images; its clean set has features."""
        return SurrogateBank.load(self.folder / BANK)

    @cached_property
    def source_features(self) -> Floats:
        """Bottleneck features ``(n, d)`` of the source images that were trained on."""
        return read_features(self.folder / SOURCE_TRAIN)

    @cached_property
    def target(self) -> Scores:
        """Logits and features of the held-out target images, and their labels if known."""
        return read_scores(self.folder / TARGET)

    @cached_property
    def split(self) -> TaskSplit:
        """Which images were used for what."""
        with parsing(self.folder / SPLIT, "a split", fix="Remove the folder, and run again."):
            return TaskSplit(**_read_arrays(self.folder / SPLIT))

    @cached_property
    def history(self) -> list[Row]:
        """How the losses developed."""
        return read_history(self.folder)

    @property
    def trainer(self) -> Trainer:
        """What it was trained with."""
        with self._reading("trainer and options"):
            kind = TRAINERS.saved(self.document["trainer"])
            trainer: Trainer = kind(**self.document["options"])
            return trainer

    @property
    def settings(self) -> Settings:
        """How it was trained."""
        with self._reading("settings"):
            return Settings(**self.document["settings"])

    @property
    def accuracy(self) -> float | None:
        """On the held-out target, if its labels are known."""
        with self._reading("accuracy"):
            accuracy: float | None = self.document["accuracy"]["target"]
            return accuracy

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except UnknownName:
            raise
        except (KeyError, TypeError, InputError) as error:
            raise FileError(
                f"{self.folder / FILE} is damaged, or of another version of shiftcal, in its "
                f"{what}: {error}. Remove the folder, and run again."
            ) from error

    def classifier(self, backbone: object = None) -> Classifier:
        """The trained network, from images to logits; from features, if they were frozen.

        Args:
            backbone: The torch module that was trained, if it was passed as one: its weights are
                replaced in a copy.

        Raises:
            InputError: If the backbone cannot be rebuilt without it.
            FileError: If the weights are damaged, or of another network.
        """
        network = _new_classifier(self, backbone)
        load_weights(network, self.folder / WEIGHTS, what=f"the network of {self.folder}")
        return network.eval()

    def model(self, backbone: object = None) -> Model:
        """A model of images: backbone, bottleneck and head, which gives bottleneck features too.

        The bank and the target were scored with it; use it for more images or more corruptions:
        ``sc.score(adapted.model(), images)``. With a frozen backbone the two may differ in the
        last digits.

        Args:
            backbone: What was passed to :func:`adapt`, if that was not a text.

        Raises:
            InputError: If the backbone cannot be rebuilt without it.
        """
        classes, about = self.document["classes"], self.document["backbone"]
        if not self.document["frozen"]:
            preprocessing = Preprocessing.from_dict(about["preprocessing"])
            return _network_model(self.classifier(backbone), preprocessing, classes)
        features = as_feature_model(_stored_backbone(self, backbone))
        if features.fingerprint != about["fingerprint"]:
            raise InputError(
                f"{self.folder} was made with another backbone (fingerprint "
                f"{about['fingerprint'][:12]}...; this one has {str(features.fingerprint)[:12]}"
                "...). Pass the same: adapted.model(backbone)."
            )
        return HeadedModel(features, self.classifier(), classes=classes)


def _stored_backbone(run: Adapted, backbone: object) -> object:
    if backbone is not None:
        return backbone
    return stored_backbone(
        run.document["backbone"]["spec"],
        pretrained=bool(run.document["frozen"]),
        where=run.folder,
        name_it="adapted.model({})",
    )


def _new_classifier(run: Adapted, backbone: object) -> Classifier:
    """A network with the layers of a run; the weights are still to be loaded."""
    about, module = run.document["backbone"], None
    with torch.random.fork_rng(devices=[]):
        if not run.document["frozen"]:
            module = make_backbone(
                _stored_backbone(run, backbone),
                pretrained=False,
                preprocessing=Preprocessing.from_dict(about["preprocessing"]),
            ).module
        return Classifier(
            module,
            about["n_features"],
            run.document["n_classes"],
            trainer=run.trainer,
            width=run.settings.bottleneck,
        )


def _network_model(
    classifier: Classifier, preprocessing: Preprocessing, classes: Any
) -> TorchModel:
    return TorchModel(
        classifier, features_from="bottleneck", preprocessing=preprocessing, classes=classes
    )


def adapt(
    source: object,
    target: object,
    folder: str | os.PathLike[str],
    *,
    trainer: str = "cdan",
    backbone: object = None,
    frozen: bool = False,
    recipe: str | None = None,
    changes: Mapping[str, Any] | None = None,
    transform: str | None = None,
    seed: int = 0,
    corruption: object = "pixelate",
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    select: Literal["last", "source-validation"] = "last",
    device: str = "auto",
    precision: str | None = None,
    checkpoint_every: int = 500,
    workers: int = 0,
    features: str | os.PathLike[str] | tuple[Frozen, Frozen] | None = None,
    reporting: Reporting | None = None,
) -> Adapted:
    """Train a network on labelled source and unlabelled target images, and store its outputs.

    Four fifths of the source are trained on and the rest is for calibration; one half of the target
    is trained on without labels, and the other is held out. Stored are a surrogate bank of the
    calibration images, scores of the source images that were trained on and of the held-out target,
    all with bottleneck features. Labels of the target only serve to report the accuracy. The same
    call resumes after an interruption, to the same result.

    Args:
        source: Images with labels: a set, or what :func:`shiftcal.datasets.as_image_set` takes.
        target: Images of the same classes; labels, if there are any, judge the result.
        folder: Folder of the run; created if missing.
        trainer: One of :func:`shiftcal.adaptation.names`.
        backbone: What :func:`make_backbone` takes: ``"resnet50"``, the text of a model, a torch
            module. A frozen one may be any model that gives features.
        frozen: Whether the backbone stays as it is: features are computed once, and heads trained
            on them.
        recipe: One of the trainer's, such as ``"office-home"``, or ``"default"``, the reference
            library's defaults. Default: ``"frozen"`` for a frozen backbone, ``"digits"`` for
            ``"digits-cnn"``, else ``"default"``.
        changes: Options of the trainer and settings of the training, by name.
        transform: What is done to training images, as for :func:`training_transform`. Default: that
            of the recipe's data set in the reference library. Not for a frozen backbone.
        seed: Decides splits, initial weights, the order of images and whatever else is random.
        corruption: Makes the surrogate sets, after images are resized and cropped.
        severities: Its severities.
        select: Which weights are kept: the last, or those with the best accuracy on the calibration
            images, which is measured some twenty times.
        device: As torch names it; ``"auto"`` is the GPU if there is one.
        precision: ``"bfloat16"`` or ``"float16"`` trains in mixed precision, on a GPU.
        checkpoint_every: Steps between two checkpoints, from which an interrupted training
            resumes; there is one every five minutes too.
        workers: Processes that read training images, or that compute frozen features; 0 is this
            process.
        features: Folder for frozen features, to share between runs. Default: inside the folder of
            the run, with only calibration images corrupted. Or the features themselves, of source
            and target, so that no backbone is needed.
        reporting: How progress is shown.

    Raises:
        InputError: If an argument cannot be used.
        FileError: If the folder holds something else, or another run.
        FitError: If the training diverges; the message names the remedy.
    """
    where = Path(folder)
    _check_free(where)
    frozen = frozen or isinstance(features, tuple)
    if features is not None and not isinstance(features, tuple):
        _check_features_folder(Path(features), where, frozen=frozen)
    chosen = choose(
        trainer,
        recipe=recipe,
        changes=changes,
        transform=transform,
        frozen=frozen,
        backbone=backbone,
    )
    surrogate = as_corruption(corruption)
    levels = {check_count(x, name="severity", most=surrogate.severities) for x in severities}
    if not levels:
        raise InputError("severities must name at least one, such as 1, 2, 3, 4, 5.")
    check_count(workers, name="workers", least=0)
    if backbone is None and not isinstance(features, tuple):
        raise InputError(_NO_BACKBONE)
    course = Course(
        seed=seed,
        device=device,
        precision=precision,
        checkpoint_every=checkpoint_every,
        select=select,
        reporting=reporting or Reporting(),
    )
    resolve_device(device)
    task = Task(as_image_set(source), as_image_set(target))
    run = _Run(
        where, chosen, task, task.split(seed), surrogate, tuple(sorted(levels)), course, workers
    )
    # A stream of its own, apart from that of the heads; torch's generator is restored at the end.
    stream = hashlib.blake2b(f"backbone {seed}".encode(), digest_size=8).digest()
    with seeded(int.from_bytes(stream, "big")):
        model = network = None
        if not frozen:
            network = make_backbone(backbone)
        elif not isinstance(features, tuple):
            model = as_feature_model(backbone)
        make_folder(where)
        with alone_in(where):
            before = run.frozen(model, features) if network is None else run.network(network)
    return replace(Adapted.open(where), finished_before=before)


def _check_features_folder(features: Path, run: Path, *, frozen: bool) -> None:
    if not frozen:
        raise InputError("features are those of a frozen backbone: pass frozen=True, or leave out.")
    place, ours = features.resolve(), run.resolve()
    if ours in (place, *place.parents) and ours / FEATURES not in (place, *place.parents):
        raise InputError(
            f"features must have a folder outside that of the run, {run}; got {features}. Leave it "
            f"out to have them in {run / FEATURES}."
        )


@dataclass(frozen=True, eq=False)
class _Run:
    """A run with checked arguments: a whole network, or heads on frozen features."""

    folder: Path
    chosen: Choice
    task: Task
    split: TaskSplit
    corruption: Corruption
    severities: tuple[int, ...]
    course: Course
    workers: int

    def network(self, backbone: Backbone) -> bool:
        """Train a whole network; returns whether the run was finished before."""
        preprocessing, reporting = backbone.preprocessing, self.course.reporting
        task, split, settings = self.task, self.split, self.chosen.settings
        identity = self._identity(
            {
                "backbone": weights_digest(backbone.module),
                "preprocessing": preprocessing.to_dict(),
                "transform": self.chosen.transform,
                "source": content_digest(task.source, reporting),
                "target": content_digest(task.target, reporting),
            }
        )
        if self._finished(identity):
            return True
        about = {
            "spec": backbone.spec,
            "n_features": backbone.n_features,
            "preprocessing": preprocessing.to_dict(),
        }
        seen = task.target.subset(split.seen).relabelled(None)
        feed = image_feed(
            task.source.subset(split.train),
            seen if self.chosen.trainer.adapts else None,
            transform=_pipeline(backbone, self.chosen.transform),
            side=backbone.side,
            preprocessing=preprocessing,
            workers=self.workers,
            batch_size=settings.batch_size,
            seed=self.course.seed,
        )
        calibration = task.source.subset(split.calibration)

        def accuracy(classifier: Classifier) -> float:
            model = _network_model(classifier, preprocessing, task.classes)
            scores = score(model, calibration, progress=False)
            return float((scores.values.argmax(axis=1) == scores.labels).mean())

        def write_scores(classifier: Classifier) -> None:
            model = _network_model(classifier, preprocessing, task.classes)
            build_bank(
                model,
                calibration,
                self.folder / BANK,
                conditions=conditions_of(self.corruption, list(self.severities)),
                options=Options(reporting=reporting),
            )
            for name, images in (
                (SOURCE_TRAIN, task.source.subset(split.train)),
                (TARGET, task.target.subset(split.held_out)),
            ):
                score_file(model, images, self.folder / name, reporting=reporting)

        self._train(backbone.module, about, identity, feed, accuracy, write_scores, frozen=False)
        return False

    def frozen(self, model: FeatureModel | None, features: Any) -> bool:
        """Train heads on frozen features; returns whether the run was finished before."""
        task, split, course = self.task, self.split, self.course
        digests = [
            content_digest(images, course.reporting) for images in (task.source, task.target)
        ]
        if model is None:
            self._check_features(features, digests)
            inputs = [frozen.identity for frozen in features]
        else:
            of_model = {
                "fingerprint": model.fingerprint,
                "preprocessing": model.preprocessing.to_dict(),
            }
            inputs = [{**of_model, "images": digest} for digest in digests]
        identity = self._identity(dict(zip(("source", "target"), inputs, strict=True)))
        if self._finished(identity):
            return True
        # Of the calibration images; with features to share, rows of the source's.
        harder: Frozen | None = None
        if model is None:
            source, target = features
        else:
            shared = features is not None
            folder = Path(features) if shared else self.folder / FEATURES
            source = self._features(model, task.source, folder, self.severities if shared else ())
            target = self._features(model, task.target, folder, ())
            if not shared:
                calibration = task.source.subset(split.calibration)
                harder = self._features(model, calibration, folder, self.severities)
        labels = task.source.labels
        assert labels is not None
        feed = ArrayFeed(
            _rows(source, 0, split.train),
            labels[split.train],
            _rows(target, 0, split.seen) if self.chosen.trainer.adapts else None,
            batch_size=self.chosen.settings.batch_size,
            seed=course.seed,
        )
        of_backbone = source.document["origin"]["model"]
        about = {
            **{name: of_backbone[name] for name in ("spec", "fingerprint", "preprocessing")},
            "n_features": source.n_features,
            "features": [str(frozen.folder.absolute()) for frozen in (source, target)],
        }

        def accuracy(classifier: Classifier) -> float:
            logits = run_heads(classifier, _rows(source, 0, split.calibration)).logits
            return float((logits.argmax(axis=1) == labels[split.calibration]).mean())

        def write_scores(classifier: Classifier) -> None:
            self._write_frozen(classifier, source, target, harder)

        self._train(None, about, identity, feed, accuracy, write_scores, frozen=True)
        return False

    def _check_features(self, features: tuple[Frozen, Frozen], digests: list[str]) -> None:
        source, target = features
        if source.corruption != self.corruption.name:
            raise InputError(
                f"the source's features must be of the corruption {self.corruption.name}; "
                f"they are of {source.corruption}. Name the same."
            )
        if source.identity["fingerprint"] != target.identity["fingerprint"]:
            raise InputError(
                f"{source.folder} and {target.folder} must hold features of one backbone; they are "
                "of two. Compute both with the same."
            )
        sets = (self.task.source, self.task.target)
        for images, frozen, digest in zip(sets, features, digests, strict=True):
            if digest != frozen.identity["images"]:
                raise InputError(
                    f"{frozen.folder} must hold features of the images of {images.name}; it holds "
                    "those of other images, or in another order. Compute the features of these."
                )

    def _features(
        self, model: FeatureModel, images: ImageSet, folder: Path, severities: Sequence[int]
    ) -> Frozen:
        reporting = self.course.reporting
        content = content_digest(images, reporting)
        key = json.dumps([model.fingerprint, model.preprocessing.to_dict(), content])
        plain = re.sub(r"[^a-z0-9]+", "-", images.name.lower())[-40:].strip("-")
        name = f"{plain}-{hashlib.blake2b(key.encode(), digest_size=6).hexdigest()}".strip("-")
        return frozen_features(
            model,
            images,
            folder / name,
            corruption=self.corruption,
            severities=severities,
            engine=LocalEngine(workers=self.workers) if self.workers else None,
            reporting=reporting,
        )

    def _identity(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Everything that decides the result of the run, as JSON."""
        chosen, task, course = self.chosen, self.task, self.course
        training = {
            "trainer": chosen.name,
            "options": chosen.trainer.to_dict(),
            "settings": chosen.settings.to_dict(),
            "seed": course.seed,
            "select": course.select,
            "precision": course.precision,
            "classes": task.classes or task.n_classes,
            "labels": digest_of_labels(task.source.labels),
            "inputs": inputs,
        }
        identity = {
            "training": training,
            "corruption": self.corruption.name,
            "severities": self.severities,
        }
        return plain_json(identity)

    def _finished(self, identity: dict[str, Any]) -> bool:
        """Whether the run is finished; its accuracy then follows from the labels of now."""
        if not (self.folder / FILE).exists():
            return False
        document = read_about(self.folder)
        before = document["identity"]
        # Another trainer has other options and settings: naming those says nothing more.
        trainers = [{"trainer": each["training"]["trainer"]} for each in (before, identity)]
        differ = differences(*trainers) or differences(before, identity)
        if differ:
            raise FileError(
                f"{self.folder} holds another run: {differ}. Pass the same, or name a new folder."
            )
        renew_labels(self.folder, document, self._held_out_labels)
        _tidy(self.folder)
        return True

    @property
    def _held_out_labels(self) -> Any:
        labels = self.task.target.labels
        return None if labels is None else labels[self.split.held_out]

    def _train(
        self,
        module: Any,
        backbone: dict[str, Any],
        identity: dict[str, Any],
        feed: Feed,
        accuracy: Any,
        write_scores: Any,
        *,
        frozen: bool,
    ) -> None:
        """Train, and write everything; the last file marks the run as finished."""
        folder, chosen, task, course = self.folder, self.chosen, self.task, self.course
        inputs = identity["training"]["inputs"]
        if inputs["source"] == inputs["target"]:
            warnings.warn(
                f"source and target are the same images, those of {task.source.name}: most of what "
                "is held out is trained on with its label. Name images of another domain as the "
                "target.",
                InputWarning,
                stacklevel=4,
            )
        document = {
            "trainer": chosen.name,
            "options": chosen.trainer.to_dict(),
            "settings": chosen.settings.to_dict(),
            "recipe": chosen.recipe,
            "seed": course.seed,
            "frozen": frozen,
            "backbone": backbone,
            "source": task.source.name,
            "target": task.target.name,
            "images": {name: len(part) for name, part in vars(self.split).items()},
            "classes": task.classes,
            "n_classes": task.n_classes,
            "identity": identity,
        }
        with seeded(course.seed):
            objective = make_objective(
                chosen.trainer,
                module,
                backbone["n_features"],
                task.n_classes,
                width=chosen.settings.bottleneck,
            )
        note = folder / TRAINING / _DIVERGED
        note.unlink(missing_ok=True)
        try:
            trained = train(
                objective,
                feed,
                chosen.settings,
                folder / TRAINING,
                course,
                identity=identity["training"],
                validate=accuracy if course.select == "source-validation" else None,
            )
        except FitError as error:
            with suppress(FileError):
                _write_json(note, {**document, "reason": str(error)}, durable=False)
            raise
        # Outputs of frozen features are computed again in no time, and need not wait for the disk.
        durable = not frozen
        write_scores(objective.classifier)
        write_weights(folder / WEIGHTS, objective.classifier, durable=durable)
        _write_arrays(folder / SPLIT, vars(self.split), durable=durable)
        with atomic_write(folder / HISTORY_FILE, durable=durable) as temporary:
            temporary.write_bytes((folder / TRAINING / HISTORY_FILE).read_bytes())
        calibration = SurrogateBank.load(folder / BANK).clean.summary().accuracy
        document |= {
            "trained": {**asdict(trained), "losses": trained.losses._asdict()},
            "accuracy": {"calibration": calibration, "target": _target_accuracy(folder)},
            _LABELS: digest_of_labels(self._held_out_labels),
        }
        _write_about(folder, document, durable=durable)
        _tidy(folder)

    def _write_frozen(
        self, classifier: Classifier, source: Frozen, target: Frozen, harder: Frozen | None
    ) -> None:
        """The bank, and scores of source-train and target, from heads on stored features."""
        task, split, folder = self.task, self.split, self.folder
        labels = task.source.labels
        assert labels is not None
        fingerprint = headed_fingerprint(source.identity["fingerprint"], classifier)
        sets = []
        for level in (0, *self.severities):
            if level and harder is not None:
                features = np.asarray(harder.features(level), np.float32)
            else:
                features = _rows(source, level, split.calibration)
            outputs = run_heads(classifier, features)
            corruption = self.corruption.name if level else None
            sets.append(
                SurrogateSet(
                    outputs.logits,
                    labels[split.calibration],
                    set_name(level, corruption, level),
                    corruption=corruption,
                    severity=level,
                    features=None if level else outputs.features,
                )
            )
        shutil.rmtree(folder / BANK, ignore_errors=True)
        origin = _origin(task.source, source, fingerprint)
        bank = SurrogateBank(sets, classes=task.classes, origin=origin)
        save_bank(bank, folder / BANK, durable=False)
        for name, images, frozen, rows in (
            (SOURCE_TRAIN, task.source, source, split.train),
            (TARGET, task.target, target, split.held_out),
        ):
            outputs = run_heads(classifier, _rows(frozen, 0, rows))
            arrays = {
                "logits": outputs.logits,
                "labels": None if images.labels is None else images.labels[rows].astype(np.int64),
                "features": outputs.features,
                "ids": names_of(images, rows),
                "classes": None if task.classes is None else np.array(task.classes),
                "origin": text_of(_origin(images, frozen, fingerprint)),
            }
            _write_arrays(folder / name, arrays, durable=False)


def _pipeline(backbone: Backbone, transform: str) -> Pipeline:
    if backbone.side is not None:
        return training_transform(transform, backbone.side)
    if transform != "none":
        raise InputError(
            f"transform {transform!r} needs the size of images, and the backbone's preprocessing "
            "does not name it. Name resize and crop there, or pass transform='none'."
        )
    return Pipeline(backbone.preprocessing.framing)


def _rows(features: Frozen, which: int, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    return np.asarray(features.features(which)[rows], np.float32)


def _origin(images: ImageSet, features: Frozen, fingerprint: str) -> dict[str, Any]:
    backbone = features.document["origin"]
    model = {
        **backbone["model"],
        "spec": None,
        "adapter": HeadedModel.__name__,
        "fingerprint": fingerprint,
    }
    return {
        "model": model,
        "images": {"name": images.name, "digest": backbone["images"]["digest"]},
        "dtype": "float32",
    }


def write_weights(path: Path, module: Any, *, durable: bool) -> None:
    """Write all parameters and buffers of a module to a ``.safetensors`` file, atomically."""
    from safetensors.torch import save

    # Copies: layers that share a tensor have it twice in the file.
    state = {
        name: value.detach().cpu().clone().contiguous()
        for name, value in module.state_dict().items()
    }
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_bytes(save(state))


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with open_npz(path) as archive:
        return {name: npz_array(archive, name) for name in archive.files}


def _write_arrays(path: Path, arrays: Mapping[str, Any], *, durable: bool) -> None:
    with atomic_write(path, durable=durable) as temporary, NpzStream(temporary) as archive:
        for name, values in arrays.items():
            if values is not None:
                archive.array(name, values)


def _write_json(path: Path, document: Mapping[str, Any], *, durable: bool) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False)
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_text(f"{text}\n", "utf-8")


def _write_about(folder: Path, document: Mapping[str, Any], *, durable: bool) -> None:
    head = {"format": FORMAT, "version": VERSION, "written_by": f"shiftcal {version('shiftcal')}"}
    _write_json(folder / FILE, {**head, **document}, durable=durable)


def read_about(folder: Path) -> dict[str, Any]:
    """What a finished run says of itself.

    Raises:
        FileError: If there is none, or it is damaged or from a newer version.
    """
    file = folder / FILE
    try:
        document = read_json(file, "a run", fix="Remove the folder, and run again.")
    except MissingData as error:
        if not any((folder / name).exists() for name in (TRAINING, FEATURES)):
            raise FileError(f"{folder} holds no run: there is no {FILE} in it.") from error
        note = _read_note(folder)
        if note is None:
            what = "holds a run that is not finished. The same call, or command, resumes it."
        else:
            what = f"holds no finished run: {note['reason']}"
            if (folder / TRAINING / CHECKPOINT_FILE).exists():
                what += " adaptation.last_checkpoint(folder) gives the network as it was then."
        raise FileError(f"{folder} {what}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(f"{file} does not describe a run: it has no format {FORMAT!r}.")
    written = document.get("version")
    if not isinstance(written, int) or written > VERSION:
        raise FileError(
            f"{file} has format version {written!r}, written by {document.get('written_by')}; this "
            f"is shiftcal {version('shiftcal')}, which reads up to version {VERSION}. Upgrade "
            "shiftcal to read it."
        )
    return document


def _read_note(folder: Path) -> dict[str, Any] | None:
    with suppress(FileError):
        note = read_json(folder / TRAINING / _DIVERGED, "a note")
        if isinstance(note, dict) and isinstance(note.get("reason"), str):
            return note
    return None


def _check_free(folder: Path) -> None:
    """Reject a folder that holds something other than a run, finished or begun."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        what = "is a file" if folder.is_file() else f"cannot be read ({error.strerror or error})"
        raise FileError(f"{folder} {what}. Name a folder for the run.") from error
    if names and not {FILE, TRAINING, FEATURES} & set(names):
        raise FileError(
            f"{folder} holds {names[0]!r} and is no run. Name a new folder for the run."
        )


def _tidy(folder: Path) -> None:
    """Remove the checkpoint of a finished run, and half-written files of killed processes."""
    shutil.rmtree(folder / TRAINING, ignore_errors=True)
    for leftover in folder.glob(".shiftcal-*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _target_accuracy(folder: Path) -> float | None:
    target = read_scores(folder / TARGET)
    if target.labels is None:
        return None
    return float((target.values.argmax(axis=1) == target.labels).mean())


def renew_labels(folder: Path, document: Mapping[str, Any], labels: Labels | None) -> None:
    """Judge a finished run by the labels that the target has now.

    Nothing is written if they are the same. Scores and features stay as they are.

    Args:
        folder: Of the run.
        document: Content of its ``adapt.json``.
        labels: Of all held-out images, if known.

    Raises:
        FileError: If the scores of the target cannot be read or written.
    """
    path, now = folder / TARGET, digest_of_labels(labels)
    if document[_LABELS] == now:
        return
    arrays: dict[str, Any] = _read_arrays(path)
    # Images that could not be read have no row.
    left_out = json.loads(str(arrays["origin"])).get("left_out", [])
    rows = None if labels is None else np.delete(labels, [image["index"] for image in left_out])
    arrays["labels"] = None if rows is None else rows.astype(np.int64)
    _write_arrays(path, arrays, durable=True)
    accuracy = {**document["accuracy"], "target": _target_accuracy(folder)}
    _write_about(folder, {**document, "accuracy": accuracy, _LABELS: now}, durable=True)


def last_checkpoint(folder: str | os.PathLike[str], backbone: object = None) -> Classifier:
    """The network of the last checkpoint of a run whose training diverged, in evaluation mode.

    From images to logits; from features, if they were frozen.

    Args:
        folder: Of the run.
        backbone: The torch module that was trained, if it was passed as one.

    Raises:
        FileError: If no training diverged there, or it had no checkpoint yet.
        InputError: If the backbone cannot be rebuilt without it.
    """
    where = Path(folder)
    note = _read_note(where)
    if note is None:
        raise FileError(
            f"{where} holds no training that diverged. A finished run is opened by Adapted.open."
        )
    path = where / TRAINING / CHECKPOINT_FILE
    if not path.exists():
        raise FileError(f"{where} holds no checkpoint: {note['reason']}")
    classifier = _new_classifier(Adapted(where, note), backbone)
    _, tensors = read_checkpoint(path)
    prefix = "classifier."
    weights = {n.removeprefix(prefix): one for n, one in tensors.items() if n.startswith(prefix)}
    with parsing(path, "a checkpoint of this network"):
        classifier.load_state_dict(weights)
    return classifier.eval()

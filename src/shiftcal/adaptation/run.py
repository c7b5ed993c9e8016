"""One task from images to what calibration needs: split, train, score, store.

Features of a frozen backbone are computed once, and heads are trained on top of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal import files
from shiftcal.adaptation import loop
from shiftcal.adaptation.loop import ArrayFeed, Feed, ImageFeed, Transform, training_transform
from shiftcal.adaptation.network import (
    NAMES,
    Backbone,
    Classifier,
    Features,
    Objective,
    make_backbone,
    stored_backbone,
    torch,
    weights_digest,
)
from shiftcal.adaptation.trainers import Choice, Pass, Settings, Trainer, choose
from shiftcal.checks import check_count
from shiftcal.corruptions import as_corruption
from shiftcal.datasets import ImageSet, as_image_set, source_split, target_split
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.models import Model, Preprocessing, TorchModel, as_model, load_weights
from shiftcal.models.model import WrappedModel, as_features, digest
from shiftcal.models.resolve import Spec
from shiftcal.numerics.blocks import thread_count
from shiftcal.progress import Reporting, showing
from shiftcal.registry import TRAINERS
from shiftcal.scores import Scores, read_features, read_scores
from shiftcal.scoring import score_file
from shiftcal.scoring.engines import Engine, LocalEngine
from shiftcal.scoring.shards import (
    CLEAN,
    SHARD_SIZE,
    Condition,
    digest_of_labels,
    may_give_features,
    names_of,
    text_of,
)
from shiftcal.surrogates import SurrogateBank
from shiftcal.surrogates.bank import read_description
from shiftcal.surrogates.build import build_bank, conditions_of
from shiftcal.types import Floats

FILE, FORMAT, VERSION = "adapt.json", "shiftcal-adapted", 3
BANK, SOURCE_TRAIN, TARGET = "bank", "source-train.npz", "target.npz"
WEIGHTS, SPLIT = "classifier.safetensors", "split.npz"
# Of a run that is not finished: the checkpoint, and features unless they have a folder.
TRAINING, FEATURES = "training", "features"
_AGAIN = "Remove the folder, and run again."
# Rows that go through the heads at once.
_ROWS = 4096
# An image set keeps its digest in this attribute, which travels to other processes with it.
_DIGEST = "_content_digest"


@dataclass(frozen=True, eq=False)
class TaskSplit:
    """The paper's four parts, as sorted indices.

    Attributes:
        train: Of the source: labelled, trained on.
        calibration: The rest of the source: labelled, calibrated on.
        seen: Of the target: trained on, without labels.
        held_out: The rest of the target, which training never sees: tested on.
    """

    train: NDArray[np.intp]
    calibration: NDArray[np.intp]
    seen: NDArray[np.intp]
    held_out: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Task:
    """Source and target images of the same classes in the same order.

    Attributes:
        source: Images with labels.
        target: Images; labels, if there are any, only judge the result.

    Raises:
        InputError: If the source has no labels, or the two differ in their classes.
    """

    source: ImageSet
    target: ImageSet

    def __post_init__(self) -> None:
        source, target = self.source, self.target
        if source.labels is None:
            raise InputError(f"{source.name} has no labels, and the source needs them.")
        if source.classes and target.classes and source.classes != target.classes:
            raise InputError(f"{target.name} must have the classes of {source.name}, in order.")
        if self.n_classes < 2:
            raise InputError(f"{source.name} must have two classes or more; it has one.")
        for images in (source, target):
            if images.labels is not None and images.labels.max() >= self.n_classes:
                raise InputError(f"labels of {images.name} must be below {self.n_classes}.")

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Their names, if one of the two sets has them."""
        return self.source.classes or self.target.classes

    @property
    def n_classes(self) -> int:
        """How many there are; without names, one more than the largest label of the source."""
        if self.classes is not None:
            return len(self.classes)
        return int(np.asarray(self.source.labels).max()) + 1

    def split(self, seed: int = 0) -> TaskSplit:
        """Four fifths of the source to train on, class by class; one half of the target.

        Args:
            seed: Decides which.

        Raises:
            InputError: If there are too few images.
        """
        for images, least in ((self.source, 3), (self.target, 2)):
            if len(images) < least:
                raise InputError(f"{images.name} must have {least} images; it has {len(images)}.")
        train, calibration = source_split(self.source.labels, train=0.8, seed=seed)
        return TaskSplit(train, calibration, *target_split(len(self.target), first=0.5, seed=seed))


def content_digest(images: ImageSet, reporting: Reporting) -> str:
    """The digest of all images that scoring stores; computed once per set.

    Args:
        images: The images; they must not change from now on.
        reporting: How progress is shown.
    """
    if _DIGEST not in vars(images):
        digests, n, doing = [], len(images), f"reading {images.name}"
        with showing(doing, n, shown=reporting.shown, line=reporting.line) as advance:
            for start in range(0, n, SHARD_SIZE):
                rows = np.arange(start, min(start + SHARD_SIZE, n))
                digests.append(images.digest(rows, threads=thread_count()))
                advance(len(rows), kept=False)
        vars(images)[_DIGEST] = files.checksum_of({"images": digests})
    return str(vars(images)[_DIGEST])


def as_feature_model(backbone: object) -> Model:
    """A model that gives features along with its logits, or in place of them.

    Args:
        backbone: A model of any kind that gives features, or the text of one, such as
            ``"net.onnx?features_from=pool"``; or what :func:`make_backbone` takes.

    Raises:
        InputError: If it gives no features.
    """
    if isinstance(backbone, str | Path | Spec) and backbone not in NAMES:
        backbone = as_model(backbone)
    if isinstance(backbone, Model):
        if may_give_features(backbone) or isinstance(getattr(backbone, "module", None), Features):
            return backbone
        if not isinstance(backbone, TorchModel):
            raise InputError(
                "a frozen backbone must give features. Name the layer: ?features_from=LAYER."
            )
    network = make_backbone(backbone)
    key = network.fingerprint
    model = TorchModel(network.module, preprocessing=network.preprocessing, key=key)
    model.spec = network.spec
    return model


class HeadedModel(WrappedModel):
    """From images to logits by way of frozen features; its features are the bottleneck's.

    Args:
        model: The backbone.
        classifier: The heads, from features to logits.
        classes: Names of the classes, if known.
    """

    def __init__(
        self, model: Model, classifier: Classifier, *, classes: Sequence[str] | None = None
    ) -> None:
        super().__init__(model, classes=classes)
        self.classifier = classifier

    def _identity(self) -> Iterable[str] | None:
        inner = self.model.fingerprint
        return None if inner is None else _headed_identity(inner, self.classifier)

    def _forward(self, batch: NDArray[Any]) -> Any:
        outputs = self.model._forward(batch)
        features = outputs[1] if isinstance(outputs, tuple) else outputs
        heads = run_heads(self.classifier, as_features(features, name="the backbone"))
        return heads.logits, heads.features


def _headed_identity(backbone: str, classifier: Classifier) -> list[str]:
    """What decides the outputs of a :class:`HeadedModel`, from the fingerprint of its backbone."""
    return ["adapted", backbone, str(classifier), weights_digest(classifier.state_dict())]


def run_heads(classifier: Classifier, features: NDArray[Any]) -> Pass:
    """Bottleneck features and logits of frozen features, float32; in evaluation mode."""
    device = next(classifier.parameters()).device
    rows = torch.from_numpy(np.array(features, np.float32))  # a copy: torch takes no read-only one
    with torch.inference_mode():
        parts = [classifier.both(part.to(device)) for part in rows.split(_ROWS)]
    return Pass(*(torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Frozen:
    """Features of all images of a set, in a folder, clean and at some severities.

    Attributes:
        folder: Where they are.
        document: Content of its ``bank.json``.
        corruption: Name of the corruption whose severities are meant.
    """

    folder: Path
    document: dict[str, Any]
    corruption: str = "pixelate"

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, corruption: str = "pixelate") -> Frozen:
        """Features that :func:`frozen_features` stored.

        Raises:
            FileError: If there are none.
        """
        return cls(Path(folder), read_description(Path(folder)), corruption)

    @property
    def identity(self) -> dict[str, Any]:
        """What decides them: the backbone, its preprocessing and the images."""
        origin = self.document["origin"]
        return {
            "fingerprint": origin["model"]["fingerprint"],
            "preprocessing": origin["model"]["preprocessing"],
            "images": origin["images"]["digest"],
        }

    def features(self, severity: int = 0) -> NDArray[Any]:
        """Features ``(n, d)`` at a severity, memory-mapped; 0 is the clean images.

        Raises:
            FileError: If there are none of it.
        """
        wanted = (self.corruption if severity else None, severity)
        for entry in self.document["sets"]:
            if (entry["corruption"], entry["severity"]) == wanted:
                arrays = files.read_npz(self.folder / entry["file"], mapped=True)
                return arrays.get("features", arrays["logits"])
        raise FileError(
            f"{self.folder} has no features of {self.corruption} at severity {severity}. "
            "frozen_features adds them in the same folder."
        )

    def rows(self, rows: NDArray[np.intp], severity: int = 0) -> NDArray[np.float32]:
        """Some of them, in memory."""
        return np.asarray(self.features(severity)[rows], np.float32)


def frozen_features(
    model: object,
    images: object,
    folder: str | os.PathLike[str],
    *,
    corruption: object = "pixelate",
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    reporting: Reporting | None = None,
) -> Frozen:
    """Compute the features of images into a folder, also of each corrupted version.

    The same call resumes after an interruption, and adds severities to those already there;
    processes that run it at the same time share the work. Labels play no part.

    Args:
        model: What :func:`as_feature_model` takes: a model that gives features, or a backbone.
        images: A set of images, or what :func:`shiftcal.datasets.as_image_set` takes.
        folder: The folder; created if missing.
        corruption: Applied after images are resized and cropped.
        severities: Its severities; none is the clean images only.
        engine: Where the work is done. Default: one worker in this process.
        cache: Folder of finished shards, shared between sets. Default: the environment variable
            ``SHIFTCAL_CACHE``, or none.
        reporting: How progress is shown.

    Raises:
        InputError: If an image cannot be read, or the model gives no features.
        FileError: If the folder holds something else, or features of another model or other images.
    """
    opened, made, levels = as_image_set(images), as_corruption(corruption), list(severities)
    built = build_bank(
        as_feature_model(model),
        # Banks need labels; the features depend on none.
        opened.relabelled(np.zeros(len(opened), np.intp)),
        folder,
        conditions=conditions_of(made, levels) if levels else [CLEAN],
        features="all",
        engine=engine,
        cache=cache,
        reporting=reporting,
    )
    if built.left_out:
        first = built.left_out[0]
        raise InputError(
            f"every image of {opened.name} must be readable to be trained on; {first['id']} is "
            f"not: {first['reason']} Remove it from the set."
        )
    frozen = Frozen.open(folder, corruption=made.name)
    vars(opened)[_DIGEST] = frozen.identity["images"]  # saves reading the images again
    return frozen


@dataclass(frozen=True, eq=False)
class Adapted:
    """A finished run of :func:`adapt`, read from its folder on demand.

    Attributes:
        folder: Where it is.
        document: Content of its ``adapt.json``.
        finished_before: Whether the run was finished before the call that returned this.
        resumed_at: Steps of the training that were done before that call.
    """

    folder: Path
    document: dict[str, Any]
    finished_before: bool = False
    resumed_at: int = 0

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Adapted:
        """A finished run.

        Raises:
            FileError: If it is not finished, or there is none.
        """
        where = Path(folder)
        read = partial(files.read_document, format=FORMAT, version=VERSION, fix=_AGAIN)
        try:
            return cls(where, read(where / FILE, "a run"))
        except MissingData as error:
            what = f"no run: there is no {FILE} in it."
            if any((where / name).exists() for name in (TRAINING, FEATURES)):
                what = "a run that is not finished. The same call, or command, resumes it."
            raise FileError(f"{where} holds {what}") from error

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
        with files.parsing(self.folder / SPLIT, "a split", fix=_AGAIN):
            return TaskSplit(**files.read_npz(self.folder / SPLIT))

    @property
    def history(self) -> list[loop.HistoryRow]:
        """Losses over the steps."""
        return [loop.HistoryRow(*row) for row in self.document["history"]]

    @property
    def trainer(self) -> Trainer:
        """What it was trained with."""
        trainer: Trainer = TRAINERS.saved(self.document["trainer"])(**self.document["options"])
        return trainer

    @property
    def settings(self) -> Settings:
        """How it was trained."""
        return Settings(**self.document["settings"])

    @property
    def accuracy(self) -> float | None:
        """On the held-out target, if its labels are known."""
        accuracy: float | None = self.document["accuracy"]["target"]
        return accuracy

    def classifier(self, module: Any = None) -> Classifier:
        """Bottleneck and head, from features to logits, with their trained weights.

        Args:
            module: The backbone, of a network that was trained whole; its weights are replaced.

        Raises:
            FileError: If the weights are damaged, or of another network.
        """
        n_features, n_classes = self.document["backbone"]["n_features"], self.document["n_classes"]
        trainer, width = self.trainer, self.settings.bottleneck
        with torch.random.fork_rng(devices=[]):
            network = Classifier(module, n_features, n_classes, trainer=trainer, width=width)
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
        about, classes, frozen = (self.document[x] for x in ("backbone", "classes", "frozen"))
        if backbone is None:
            text, name_it = about["spec"], "adapted.model({})"
            backbone = stored_backbone(text, pretrained=frozen, where=self.folder, name_it=name_it)
        if frozen:
            features = as_feature_model(backbone)
            if features.fingerprint != about["fingerprint"]:
                raise InputError(f"{self.folder} was made with another backbone. Pass the same.")
            return HeadedModel(features, self.classifier(), classes=classes)
        own = Preprocessing.from_dict(about["preprocessing"])
        with torch.random.fork_rng(devices=[]):
            module = make_backbone(backbone, pretrained=False, preprocessing=own).module
        return _network_model(self.classifier(module), own, classes)


def _network_model(classifier: Classifier, own: Preprocessing, classes: Any) -> TorchModel:
    key = weights_digest(classifier.state_dict())
    return TorchModel(
        classifier, features_from="bottleneck", preprocessing=own, classes=classes, key=key
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
    device: str = "auto",
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
        trainer: One of :func:`shiftcal.adaptation.names`, or ``package.module:Class``.
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
        device: As torch names it; ``"auto"`` is the GPU if there is one.
        checkpoint_every: Steps between two checkpoints, from which an interrupted training
            resumes; there is one every five minutes too.
        workers: Processes that read training images, or that compute frozen features; 0 is this
            process.
        features: Folder for frozen features, to share between runs. Default: inside the folder of
            the run. Or the features themselves, of source and target, so that no backbone is
            needed.
        reporting: How progress is shown.

    Raises:
        InputError: If an argument cannot be used.
        FileError: If the folder holds something else, or another run.
        FitError: If the training diverges; the message names the remedy.
    """
    where, given = Path(folder), features if isinstance(features, tuple) else None
    frozen = frozen or given is not None
    _check_free(where)
    if features is not None and not frozen:
        raise InputError("features are those of a frozen backbone: pass frozen=True, or leave out.")
    if backbone is None and given is None:
        raise InputError("backbone must be a name such as 'resnet50', a model's text or a module.")
    chosen = choose(trainer, recipe, changes, transform=transform, frozen=frozen, backbone=backbone)
    conditions = conditions_of(as_corruption(corruption), list(severities))
    check_count(workers, name="workers", least=0)
    check_count(seed, name="seed", least=0, most=2**64 - 1)
    check_count(checkpoint_every, name="checkpoint_every")
    loop.resolve_device(device)
    task = Task(as_image_set(source), as_image_set(target))
    if given is not None:
        network, model = None, given[0].document["origin"]["model"]
    else:
        # A stream of its own, apart from that of the heads.
        stream = hashlib.blake2b(f"backbone {seed}".encode(), digest_size=8).digest()
        with loop.seeded(int.from_bytes(stream, "big")):
            network = as_feature_model(backbone) if frozen else make_backbone(backbone)
        model = {"spec": network.spec, "fingerprint": network.fingerprint}
        model["preprocessing"] = network.preprocessing.to_dict()
    backbone = {name: model[name] for name in ("spec", "fingerprint", "preprocessing")}
    reporting = reporting or Reporting()
    run = _Run(
        where, task, chosen, network, backbone, features, conditions, seed, workers, reporting
    )
    identity = run.identity()
    files.make_folder(where)
    with files.lock(where):
        before, resumed_at = (where / FILE).exists(), 0
        if before:
            loop.check_same(where, Adapted.open(where).document["identity"], identity)
        else:
            resumed_at = run.train(identity, device=device, checkpoint_every=checkpoint_every)
        _tidy(where)
    return replace(Adapted.open(where), finished_before=before, resumed_at=resumed_at)


@dataclass(frozen=True, eq=False)
class _Run:
    """A run with checked arguments; ``network`` is ``None`` if frozen features are given."""

    folder: Path
    task: Task
    chosen: Choice
    network: Backbone | Model | None
    backbone: dict[str, Any]
    features: str | os.PathLike[str] | tuple[Frozen, Frozen] | None
    conditions: list[Condition]
    seed: int
    workers: int
    reporting: Reporting

    @cached_property
    def split(self) -> TaskSplit:
        return self.task.split(self.seed)

    @property
    def corruption(self) -> Any:
        return self.conditions[-1].corruption

    @property
    def severities(self) -> list[int]:
        return [condition.severity for condition in self.conditions[1:]]

    def identity(self) -> dict[str, Any]:
        """Everything that decides the result of the run, as JSON."""
        chosen, task, given = self.chosen, self.task, self.features
        images = [content_digest(each, self.reporting) for each in (task.source, task.target)]
        backbone = {name: self.backbone[name] for name in ("fingerprint", "preprocessing")}
        if isinstance(given, tuple):
            wanted = [{**backbone, "images": content} for content in images]
            name = self.corruption.name
            if [features.identity for features in given] != wanted or given[0].corruption != name:
                raise InputError(
                    f"features must be of the source and target images in their order, of one "
                    f"backbone, with the corruption {name}. Compute them with frozen_features."
                )
        document = {
            "trainer": chosen.name,
            "options": chosen.trainer.to_dict(),
            "settings": chosen.settings.to_dict(),
            "transform": chosen.transform,
            "seed": self.seed,
            "classes": task.classes or task.n_classes,
            "labels": [digest_of_labels(each.labels) for each in (task.source, task.target)],
            "images": images,
            "backbone": backbone,
            "corruption": self.corruption.name,
            "severities": self.severities,
        }
        return dict(json.loads(json.dumps(document)))  # as it is read again

    def train(self, identity: dict[str, Any], **options: Any) -> int:
        """Train, score and write everything; the last file marks the run as finished.

        Returns:
            Steps that were done before.
        """
        from safetensors.torch import save_file

        task, split, network, settings = self.task, self.split, self.network, self.chosen.settings
        trainer, labels = self.chosen.trainer, np.asarray(task.source.labels)
        sampling: dict[str, Any] = {"batch_size": settings.batch_size, "seed": self.seed}
        module: Any = None
        feed: Feed
        if isinstance(network, Backbone):
            module, n_features, side = network.module, network.n_features, network.side
            transform = Transform("none", 0, network.preprocessing.framing)
            if side is not None:
                transform = training_transform(self.chosen.transform, side)
            feed = ImageFeed(
                task.source.subset(split.train),
                task.target.subset(split.seen).relabelled(None) if trainer.adapts else None,
                transform=transform,
                preprocessing=network.preprocessing,
                workers=self.workers,
                **sampling,
            )
        else:
            source, target, corrupted = self._frozen()
            n_features = source.features().shape[1]
            feed = ArrayFeed(
                source.rows(split.train),
                labels[split.train],
                target.rows(split.seen) if trainer.adapts else None,
                **sampling,
            )
        with loop.seeded(self.seed):
            objective = Objective(
                trainer, module, n_features, task.n_classes, width=settings.bottleneck
            )
        history, resumed_at = loop.train(
            objective,
            feed,
            settings,
            self.folder / TRAINING,
            identity=identity,
            seed=self.seed,
            reporting=self.reporting,
            **options,
        )
        classifier = objective.classifier
        if isinstance(network, Backbone):
            self._score_images(_network_model(classifier, network.preprocessing, task.classes))
        else:
            self._score_features(classifier, source, target, corrupted)
        with files.atomic_write(self.folder / WEIGHTS) as temporary:
            # Copies: safetensors stores no tensor twice, and layers may share one.
            state = classifier.state_dict()
            save_file({name: x.cpu().clone().contiguous() for name, x in state.items()}, temporary)
        _write_arrays(self.folder / SPLIT, vars(split))
        clean = SurrogateBank.load(self.folder / BANK).clean
        scores = read_scores(self.folder / TARGET)
        correct = None if scores.labels is None else scores.values.argmax(axis=1) == scores.labels
        document = {
            **{name: identity[name] for name in ("trainer", "options", "settings", "seed")},
            "recipe": self.chosen.recipe,
            "frozen": module is None,
            "backbone": {**self.backbone, "n_features": n_features},
            "source": task.source.name,
            "target": task.target.name,
            "images": {name: len(part) for name, part in vars(split).items()},
            "classes": task.classes,
            "n_classes": task.n_classes,
            "identity": identity,
            "history": history,
            "accuracy": {
                "calibration": clean.summary().accuracy,
                "target": None if correct is None else float(correct.mean()),
            },
        }
        files.write_document(self.folder / FILE, document, format=FORMAT, version=VERSION)
        return resumed_at

    def _score_images(self, model: TorchModel) -> None:
        """The bank, and scores of source-train and target, of a whole network."""
        task, split = self.task, self.split
        build_bank(
            model,
            task.source.subset(split.calibration),
            self.folder / BANK,
            conditions=self.conditions,
            reporting=self.reporting,
        )
        for name, images in (
            (SOURCE_TRAIN, task.source.subset(split.train)),
            (TARGET, task.target.subset(split.held_out)),
        ):
            score_file(model, images, self.folder / name, reporting=self.reporting)

    def _frozen(self) -> tuple[Frozen, Frozen, Callable[[int], NDArray[Any]]]:
        """Features of source and target, and of corrupted calibration images by severity."""
        model: Any = self.network
        task, calibration = self.task, self.split.calibration
        if isinstance(self.features, tuple):
            source, target = self.features
            return source, target, partial(source.rows, calibration)
        folder = self.folder / FEATURES if self.features is None else Path(self.features)

        def computed(images: ImageSet, severities: Sequence[int] = ()) -> Frozen:
            content = content_digest(images, self.reporting)
            key = json.dumps([model.fingerprint, model.preprocessing.to_dict(), content])
            return frozen_features(
                model,
                images,
                folder / hashlib.blake2b(key.encode(), digest_size=8).hexdigest(),
                corruption=self.corruption,
                severities=severities,
                engine=LocalEngine(workers=self.workers) if self.workers else None,
                reporting=self.reporting,
            )

        corrupted = computed(task.source.subset(calibration), self.severities)
        return computed(task.source), computed(task.target), corrupted.features

    def _score_features(
        self,
        classifier: Classifier,
        source: Frozen,
        target: Frozen,
        corrupted: Callable[[int], NDArray[Any]],
    ) -> None:
        """The same as :meth:`_score_images`, from heads on frozen features."""
        task, split = self.task, self.split
        identity = _headed_identity(self.backbone["fingerprint"], classifier)
        own = {"spec": None, "fingerprint": digest(["logits", *identity])}
        origin = {"model": {**source.document["origin"]["model"], **own}}
        clean = run_heads(classifier, source.rows(split.calibration))
        harder = (run_heads(classifier, corrupted(level)).logits for level in self.severities)
        bank = SurrogateBank.from_arrays(
            [clean.logits, *harder],
            np.asarray(task.source.labels)[split.calibration],
            features=clean.features,
            corruption=self.corruption.name,
            severities=self.severities,
            classes=task.classes,
        )
        shutil.rmtree(self.folder / BANK, ignore_errors=True)
        bank = SurrogateBank(list(bank), classes=bank.classes, origin=origin)
        bank.save(self.folder / BANK)
        for name, images, frozen, rows in (
            (SOURCE_TRAIN, task.source, source, split.train),
            (TARGET, task.target, target, split.held_out),
        ):
            outputs = run_heads(classifier, frozen.rows(rows))
            arrays = {
                "logits": outputs.logits,
                "labels": None if images.labels is None else images.labels[rows].astype(np.int64),
                "features": outputs.features,
                "ids": names_of(images, rows),
                "classes": None if task.classes is None else np.array(task.classes),
                "origin": text_of(origin),
            }
            _write_arrays(self.folder / name, arrays)


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    with files.atomic_write(path) as temporary, files.NpzStream(temporary) as archive:
        for name, values in arrays.items():
            if values is not None:
                archive.array(name, values)


def _check_free(folder: Path) -> None:
    """Reject a folder that holds something other than a run, finished or begun."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Name a folder for the run.")
    names = sorted(one.name for one in folder.glob("[!.]*"))  # a killed process leaves its lock
    if names and not {FILE, TRAINING, FEATURES} & set(names):
        raise FileError(f"{folder} holds {names[0]!r} and is not a run. Name a new folder.")


def _tidy(folder: Path) -> None:
    """Remove the checkpoint of a finished run, and half-written files of killed processes."""
    shutil.rmtree(folder / TRAINING, ignore_errors=True)
    files.remove_orphans(folder)

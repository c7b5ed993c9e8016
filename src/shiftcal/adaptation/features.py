"""Frozen backbones: their features, computed once, and models with trained heads on top."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.losses import torch
from shiftcal.adaptation.network import NAMES, Classifier, Features, make_backbone, weights_digest
from shiftcal.adaptation.trainers import Pass
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.files import checksum_of, read_npz
from shiftcal.models import Model, TorchModel, as_model
from shiftcal.models.model import WrappedModel, as_features, digest
from shiftcal.models.resolve import Spec
from shiftcal.numerics.jit import thread_count
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.progress import Reporting, showing
from shiftcal.scoring.shards import SHARD_SIZE, Condition, may_give_features
from shiftcal.surrogates.bank import read_description
from shiftcal.surrogates.build import build_bank, conditions_of

# Rows that go through the heads at once.
_ROWS = 4096
# An image set keeps its digest in this attribute, which travels to other processes with it.
_DIGEST = "_content_digest"


def content_digest(images: ImageSet, reporting: Reporting) -> str:
    """The digest of all images that scoring stores; computed once per set.

    Args:
        images: The images; they must not change from now on.
        reporting: How progress is shown.
    """
    if _DIGEST not in vars(images):
        digests = []
        doing, n = f"reading {images.name}", len(images)
        with showing(doing, n, shown=reporting.shown, line=reporting.line) as advance:
            for start in range(0, n, SHARD_SIZE):
                rows = np.arange(start, min(start + SHARD_SIZE, n))
                digests.append(images.digest(rows, threads=thread_count()))
                advance(len(rows), kept=False)
        vars(images)[_DIGEST] = checksum_of({"images": digests})
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
                "a frozen backbone must give features, and this model gives none. Name the layer "
                "they are taken from: features_from=..., in a text ?features_from=LAYER."
            )
    network = make_backbone(backbone)
    model = TorchModel(network.module, preprocessing=network.preprocessing)
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
        return None if inner is None else headed_identity(inner, self.classifier)

    def _forward(self, batch: NDArray[Any]) -> Any:
        outputs = self.model._forward(batch)
        features = outputs[1] if isinstance(outputs, tuple) else outputs
        heads = run_heads(self.classifier, as_features(features, name="the backbone"))
        return heads.logits, heads.features


def headed_identity(backbone: str, classifier: Classifier) -> list[str]:
    """What decides the outputs of a :class:`HeadedModel`, from the fingerprint of its backbone."""
    return ["adapted", backbone, str(classifier), weights_digest(classifier.state_dict())]


def headed_fingerprint(backbone: str, classifier: Classifier) -> str:
    """The fingerprint of a :class:`HeadedModel`, from that of its backbone."""
    return digest(["logits", *headed_identity(backbone, classifier)])


def run_heads(classifier: Classifier, features: NDArray[Any]) -> Pass:
    """Bottleneck features and logits of frozen features, float32 arrays, in evaluation mode."""
    device = next(classifier.parameters()).device
    before = classifier.training
    classifier.eval()
    with torch.inference_mode():
        parts = [
            # A copy: torch takes no read-only array.
            classifier.both(torch.from_numpy(np.array(rows, np.float32)).to(device))
            for start in range(0, len(features), _ROWS)
            for rows in (features[start : start + _ROWS],)
        ]
    classifier.train(before)
    return Pass(*(torch.cat(part).float().cpu().numpy() for part in zip(*parts, strict=True)))


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
    def n_features(self) -> int:
        """Columns."""
        return int(self.features().shape[1])

    @property
    def identity(self) -> dict[str, Any]:
        """What decides them: the backbone, its preprocessing and the images."""
        origin = self.document["origin"]
        return {
            "fingerprint": origin["model"]["fingerprint"],
            "preprocessing": origin["model"]["preprocessing"],
            "images": origin["images"]["digest"],
        }

    def features(self, which: str | int = "clean") -> NDArray[Any]:
        """Features ``(n, d)``, memory-mapped.

        Args:
            which: ``"clean"``, which is also severity 0, or a severity.

        Raises:
            FileError: If there are none of it.
        """
        arrays = read_npz(self.folder / self._entry(which)["file"], mapped=True)
        return arrays.get("features", arrays["logits"])

    def _entry(self, which: str | int) -> dict[str, Any]:
        corruption, severity = (None, 0) if which in ("clean", 0) else (self.corruption, which)
        for entry in self.document["sets"]:
            if (entry["corruption"], entry["severity"]) == (corruption, severity):
                return dict(entry)
        raise FileError(
            f"{self.folder} has no features of {corruption} at severity {severity}. "
            "frozen_features adds them in the same folder."
        )


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
    opened = as_image_set(images)
    levels = list(severities)
    conditions = conditions_of(corruption, levels) if levels else [Condition()]
    built = build_bank(
        as_feature_model(model),
        # Banks need labels; the features depend on none.
        opened.relabelled(np.zeros(len(opened), np.intp)),
        folder,
        conditions=conditions,
        features="all",
        engine=engine,
        cache=cache,
        reporting=reporting,
    )
    if built.left_out:
        first = built.left_out[0]
        raise InputError(
            f"every image of {opened.name} must be readable to be trained on; "
            f"{len(built.left_out):,} are not, such as {first['id']}: {first['reason']} Remove "
            "them from the set."
        )
    last = conditions[-1].corruption
    frozen = Frozen.open(folder, corruption="pixelate" if last is None else last.name)
    vars(opened)[_DIGEST] = frozen.identity["images"]  # saves reading the images again
    return frozen

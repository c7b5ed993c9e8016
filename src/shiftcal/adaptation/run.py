"""One task from images to what calibration needs: features, training, outputs; each goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from shiftcal._checks import check_count
from shiftcal._files import atomic_write, make_folder
from shiftcal.adaptation._about import FILE, check_free, read_about, refuse_other, write_about
from shiftcal.adaptation._npz_arrays import write_arrays
from shiftcal.adaptation.adapted import SPLIT, Adapted
from shiftcal.adaptation.choice import Choice, choose
from shiftcal.adaptation.devices import Group, distributed, resolve_device
from shiftcal.adaptation.frozen import Frozen
from shiftcal.adaptation.mode import BANK, TARGET, Mode
from shiftcal.adaptation.modes import frozen_mode, network_mode
from shiftcal.adaptation.network import Objective
from shiftcal.adaptation.surrogate_choice import SurrogateChoice
from shiftcal.adaptation.task import Task
from shiftcal.adaptation.training.history import FILE as HISTORY
from shiftcal.adaptation.training.loop import Course, Trained, train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.adaptation.weights import FILE as WEIGHTS
from shiftcal.adaptation.weights import write_weights
from shiftcal.datasets import as_image_set
from shiftcal.scores import read_scores
from shiftcal.scoring.labels import digest_of_labels
from shiftcal.scoring.run import Reporting
from shiftcal.scoring.sharing import alone_in
from shiftcal.surrogates import SurrogateBank

# Below the folder of a run, gone when it is finished; and the features, where nobody says where.
_TRAINING, _FEATURES = "training", "features"


def adapt(  # noqa: PLR0913 (all but the first three are options)
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
    workers: int = 0,
    features: str | os.PathLike[str] | tuple[Frozen, Frozen] | None = None,
    reporting: Reporting | None = None,
) -> Adapted:
    """Train a network on labelled source and unlabelled target images, and store what it gives.

    Four fifths of the source are trained on and the rest is for calibration; one half of the target
    is trained on without labels, and the other is held out. Stored are a surrogate bank of the
    calibration images, scores of the source images that were trained on and of the held-out target,
    all with bottleneck features. No label of the target has a part in anything but the accuracy
    that is told at the end. The same call goes on where it was broken off, to the same result.

    Args:
        source: Images with labels: a set, or what :func:`shiftcal.datasets.as_image_set` makes one
            of.
        target: Images of the same classes; labels, if there are any, judge the result.
        folder: Folder of the run; made if it is not there.
        trainer: One of :func:`shiftcal.adaptation.names`.
        backbone: What :func:`make_backbone` takes: ``"resnet50"``, the text of a model, a torch
            module. A frozen one may be any model that gives features.
        frozen: Whether the backbone stays as it is: features are computed once, and heads trained
            on them.
        recipe: One of the trainer's, such as ``"office-home"``; ``"default"`` is the reference
            library's defaults, which are taken too if nothing is said, but for a frozen backbone,
            which has the recipe ``"frozen"``.
        changes: Options of the trainer and settings of the training that shall be otherwise.
        transform: What is done to training images, as for :func:`training_transform`; by default
            as the recipe's data set has it in the reference library.
        seed: Decides splits, initial weights, the order of images and whatever else is random.
        corruption: What makes the surrogate sets, after images are resized and cropped.
        severities: How much of it.
        select: Which weights are kept: the last, or those of the checkpoint with the best accuracy
            on the calibration images.
        device: As torch names it; ``"auto"`` is the GPU if there is one.
        precision: ``"bfloat16"`` or ``"float16"`` trains in mixed precision, on a GPU.
        workers: Processes that read training images; 0 reads them in this one.
        features: Folder for frozen features, to be shared between runs; by default in that of the
            run. Or the features themselves, of source and target, which saves looking at images
            and backbone at all.
        reporting: How progress is told.

    Raises:
        InputError: If something given cannot be used.
        FileError: If the folder holds something else, or another run.
        FitError: If the training diverges; what is to be done is said.
    """
    where = Path(folder)
    check_free(where)
    frozen = frozen or isinstance(features, tuple)
    chosen = choose(trainer, recipe=recipe, changes=changes, transform=transform, frozen=frozen)
    surrogates = SurrogateChoice.of(corruption, severities)
    task = Task(as_image_set(source), as_image_set(target))
    told = reporting or Reporting()
    course = Course(
        seed=check_count(seed, name="seed", least=0, most=2**64 - 1),
        device=device,
        precision=precision,
        select=select,
        reporting=told,
    )
    split = task.split(seed)
    resolve_device(device)
    with distributed(device) as group, seeded(seed):
        if frozen:
            place = where / _FEATURES if features is None else features
            mode: Mode = frozen_mode(
                task, split, backbone, features=place, surrogates=surrogates, reporting=told
            )
        else:
            mode = network_mode(
                task,
                split,
                backbone,
                transform=chosen.transform,
                surrogates=surrogates,
                workers=workers,
                reporting=told,
            )
        run = _Run(where, chosen, mode, surrogates, course, frozen)
        make_folder(where)
        with alone_in(where) if group.main else nullcontext():
            run.finish(group)
    return Adapted.open(where)


@dataclass(frozen=True, eq=False)
class _Run:
    """A run with everything settled that decides its result."""

    folder: Path
    chosen: Choice
    mode: Mode
    surrogates: SurrogateChoice
    course: Course
    frozen: bool

    def finish(self, group: Group) -> None:
        """Have it finished, whatever was done before."""
        identity = self._identity(group.world)
        # Asked of one for all: the first process may have waited for another run to finish it.
        if group.told((self.folder / FILE).exists()):
            refuse_other(self.folder, read_about(self.folder)["identity"], identity)
            if group.main:
                _tidy(self.folder)
            return
        objective = self.mode.network(self.chosen.trainer, self.chosen.settings)
        trained = self._trained(objective, identity["training"], group)
        if group.main:
            self._write(objective.classifier, trained, identity)

    def _trained(self, objective: Objective, identity: dict[str, Any], group: Group) -> Trained:
        trainer, settings = self.chosen.trainer, self.chosen.settings
        # Goes with this call, and so do the processes that read images for it.
        feed = self.mode.feed(
            trainer, settings, seed=self.course.seed, rank=group.rank, world=group.world
        )
        return train(
            objective,
            feed,
            settings,
            self.folder / _TRAINING,
            self.course,
            identity=identity,
            validate=self.mode.accuracy if self.course.select == "source-validation" else None,
        )

    def _identity(self, world: int) -> dict[str, Any]:
        chosen, task, course = self.chosen, self.mode.task, self.course
        training = {
            "trainer": chosen.name,
            "options": chosen.trainer.to_dict(),
            "settings": chosen.settings.to_dict(),
            "seed": course.seed,
            "select": course.select,
            "precision": course.precision,
            "processes": world,
            "classes": task.classes or task.n_classes,
            "labels": digest_of_labels(task.source.labels),
            "inputs": self.mode.identity,
        }
        made = self.surrogates
        return {
            "training": training,
            "corruption": made.corruption.name,
            "severities": list(made.severities),
        }

    def _write(self, classifier: Any, trained: Trained, identity: dict[str, Any]) -> None:
        """Store everything; the last file says that all is there, and checkpoints go then."""
        folder, mode, chosen = self.folder, self.mode, self.chosen
        # What takes no time is made again after a power cut, and need not wait for the disk.
        durable = not self.frozen
        mode.write(folder, classifier)
        write_weights(folder / WEIGHTS, classifier, durable=durable)
        write_arrays(folder / SPLIT, vars(mode.split), durable=durable)
        with atomic_write(folder / HISTORY, durable=durable) as temporary:
            temporary.write_bytes((folder / _TRAINING / HISTORY).read_bytes())
        document = {
            "trainer": chosen.name,
            "options": chosen.trainer.to_dict(),
            "settings": chosen.settings.to_dict(),
            "recipe": chosen.recipe,
            "seed": self.course.seed,
            "frozen": self.frozen,
            "backbone": mode.backbone,
            "source": mode.task.source.name,
            "target": mode.task.target.name,
            "images": {name: len(part) for name, part in vars(mode.split).items()},
            "classes": mode.task.classes,
            "n_classes": mode.task.n_classes,
            "trained": {**asdict(trained), "losses": trained.losses._asdict()},
            "accuracy": _accuracy(folder),
            "identity": identity,
        }
        write_about(folder, document, durable=durable)
        _tidy(folder)


def _tidy(folder: Path) -> None:
    """Remove checkpoints from a finished run, and what killed processes left half-written."""
    shutil.rmtree(folder / _TRAINING, ignore_errors=True)
    for left in folder.glob(".shiftcal-*.tmp"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _accuracy(folder: Path) -> dict[str, float | None]:
    target = read_scores(folder / TARGET)
    right = None if target.labels is None else target.values.argmax(axis=1) == target.labels
    return {
        "calibration": SurrogateBank.load(folder / BANK).clean.summary().accuracy,
        "target": None if right is None else float(right.mean()),
    }

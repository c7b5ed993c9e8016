"""One run: trained and stored, whatever was done before."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.adaptation._about import FILE, read_about, refuse_other, write_about
from shiftcal.adaptation._divergence_note import TRAINING, remove_note, write_note
from shiftcal.adaptation._npz_arrays import write_arrays
from shiftcal.adaptation._target_labels import KEY, renew_labels, target_accuracy
from shiftcal.adaptation.adapted import SPLIT
from shiftcal.adaptation.choice import Choice
from shiftcal.adaptation.devices import Group
from shiftcal.adaptation.inputs import Inputs
from shiftcal.adaptation.mode import BANK, Mode
from shiftcal.adaptation.network import Objective
from shiftcal.adaptation.surrogate_choice import SurrogateChoice
from shiftcal.adaptation.task import Task, TaskSplit
from shiftcal.adaptation.training.history import FILE as HISTORY
from shiftcal.adaptation.training.loop import Course, Trained, train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.adaptation.weights import FILE as WEIGHTS
from shiftcal.adaptation.weights import write_weights
from shiftcal.errors import FitError, InputWarning
from shiftcal.scoring.labels import digest_of_labels
from shiftcal.surrogates import SurrogateBank


@dataclass(frozen=True, eq=False)
class OneRun:
    """A run with everything settled that decides its result.

    Attributes:
        folder: Where it is.
        chosen: The trainer.
        task: The images.
        split: Which of them are used for what.
        inputs: What is trained on.
        surrogates: Which harder sets are made.
        course: How the training is run.
        frozen: Whether the backbone is.
    """

    folder: Path
    chosen: Choice
    task: Task
    split: TaskSplit
    inputs: Inputs
    surrogates: SurrogateChoice
    course: Course
    frozen: bool

    def finish(self, group: Group) -> bool:
        """Have it finished, whatever was done before; tells whether it was already.

        Raises:
            FileError: If the folder holds another run, or something cannot be written.
            FitError: If the training diverges.
        """
        # Asked of one for all: the first process may have waited for another run to finish it.
        there = group.main and (self.folder / FILE).exists()
        found: dict[str, Any] | None = group.told(read_about(self.folder) if there else None)
        if found is not None:
            self._look_over(found, group)
            return True
        mode = self.inputs.mode()
        identity = self._identity(mode.identity, group.world)
        if group.main:
            _warn_of_same_images(mode.identity, self.task)
        # In a block of its own: these numbers must not depend on what a backbone has drawn.
        with seeded(self.course.seed):
            objective = mode.network(self.chosen.trainer, self.chosen.settings)
        trained = self._trained(objective, mode, identity, group)
        if group.main:
            self._write(objective.classifier, mode, trained, identity)
        return False

    def _look_over(self, found: Mapping[str, Any], group: Group) -> None:
        before = found["identity"]
        now = self._identity(self.inputs.identity(before["training"]["inputs"]), group.world)
        refuse_other(self.folder, before, now)
        if group.main:
            renew_labels(self.folder, found, self._held_out_labels)
            _tidy(self.folder)

    @property
    def _held_out_labels(self) -> Any:
        labels = self.task.target.labels
        return None if labels is None else labels[self.split.held_out]

    def _trained(
        self, objective: Objective, mode: Mode, identity: dict[str, Any], group: Group
    ) -> Trained:
        trainer, settings = self.chosen.trainer, self.chosen.settings
        # Goes with this call, and so do the processes that read images for it.
        feed = mode.feed(
            trainer, settings, seed=self.course.seed, rank=group.rank, world=group.world
        )
        if group.main:
            remove_note(self.folder)
        try:
            return train(
                objective,
                feed,
                settings,
                self.folder / TRAINING,
                self.course,
                identity=identity["training"],
                validate=mode.accuracy if self.course.select == "source-validation" else None,
            )
        except FitError as error:
            if group.main:
                write_note(self.folder, self._document(mode, identity), str(error))
            raise

    def _identity(self, inputs: dict[str, Any], world: int) -> dict[str, Any]:
        chosen, task, course = self.chosen, self.task, self.course
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
            "inputs": inputs,
        }
        made = self.surrogates
        return {
            "training": training,
            "corruption": made.corruption.name,
            "severities": list(made.severities),
        }

    def _document(self, mode: Mode, identity: dict[str, Any]) -> dict[str, Any]:
        """What is known of the run before it is finished."""
        chosen, task = self.chosen, self.task
        return {
            "trainer": chosen.name,
            "options": chosen.trainer.to_dict(),
            "settings": chosen.settings.to_dict(),
            "recipe": chosen.recipe,
            "seed": self.course.seed,
            "frozen": self.frozen,
            "backbone": mode.backbone,
            "source": task.source.name,
            "target": task.target.name,
            "images": {name: len(part) for name, part in vars(self.split).items()},
            "classes": task.classes,
            "n_classes": task.n_classes,
            "identity": identity,
        }

    def _write(
        self, classifier: Any, mode: Mode, trained: Trained, identity: dict[str, Any]
    ) -> None:
        """Store everything; the last file says that all is there, and checkpoints go then."""
        folder = self.folder
        # What takes no time is made again after a power cut, and need not wait for the disk.
        durable = not self.frozen
        mode.write(folder, classifier)
        write_weights(folder / WEIGHTS, classifier, durable=durable)
        write_arrays(folder / SPLIT, vars(self.split), durable=durable)
        with atomic_write(folder / HISTORY, durable=durable) as temporary:
            temporary.write_bytes((folder / TRAINING / HISTORY).read_bytes())
        calibration = SurrogateBank.load(folder / BANK).clean.summary().accuracy
        document = {
            **self._document(mode, identity),
            "trained": {**asdict(trained), "losses": trained.losses._asdict()},
            "accuracy": {"calibration": calibration, "target": target_accuracy(folder)},
            KEY: digest_of_labels(self._held_out_labels),
        }
        write_about(folder, document, durable=durable)
        _tidy(folder)


def _warn_of_same_images(inputs: Mapping[str, Any], task: Task) -> None:
    if inputs["source"] == inputs["target"]:
        warnings.warn(
            f"source and target are the same images, those of {task.source.name}: most of what is "
            "held out is trained on with its label. Name images of another domain as the target.",
            InputWarning,
            stacklevel=4,
        )


def _tidy(folder: Path) -> None:
    """Remove checkpoints from a finished run, and what killed processes left half-written."""
    shutil.rmtree(folder / TRAINING, ignore_errors=True)
    for left in folder.glob(".shiftcal-*.tmp"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)

"""Whether what networks were trained on, and are judged by, is what is there now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiftcal.adaptation._about import read_about
from shiftcal.adaptation._target_labels import renew_labels
from shiftcal.adaptation.frozen import Frozen
from shiftcal.adaptation.image_content import content_digest
from shiftcal.adaptation.task import Task
from shiftcal.adaptation.training.identity import plain_json
from shiftcal.errors import FileError
from shiftcal.scoring.labels import digest_of_labels
from shiftcal.scoring.run import Reporting
from shiftcal.studies.adapting.plan import DomainPlan
from shiftcal.studies.adapting.sources import Domains
from shiftcal.studies.adapting.trainings import Training
from shiftcal.studies.again import repair


@dataclass(frozen=True, eq=False)
class Content:
    """What the domains of a study hold, looked at once for all trainings.

    Attributes:
        domains: The images.
        features: By name of the domain, if the backbone is frozen.
        reporting: How progress is told, where all images have to be read.
    """

    domains: Domains
    features: Mapping[str, Frozen]
    reporting: Reporting = field(default_factory=Reporting)
    _digests: dict[str, str] = field(default_factory=dict)

    def of(self, training: Training) -> dict[str, Any]:
        """What a training is made of that a plan does not say, by what it is called."""
        pair, task = training.pair, self._task(training)
        told = {
            **self._inputs(pair.source),
            **self._inputs(pair.target),
            f"labels of {pair.source.title}": digest_of_labels(task.source.labels),
            "classes": task.classes or task.n_classes,
        }
        return plain_json(told)

    def bring_up(self, trainings: Sequence[Training], run: Path) -> None:
        """Have trainings judged by the labels that targets have now.

        Those of other images, or with other labels of the source, are refused: what is new would be
        mixed with them.

        Args:
            trainings: Those that are finished.
            run: Folder of the run.

        Raises:
            FileError: Naming the first, and what is another; nothing is written then.
        """
        documents = [self._same(training, run) for training in trainings]
        for training, document in zip(trainings, documents, strict=True):
            task = self._task(training)
            assert task.target.labels is not None
            held_out = task.split(training.seed).held_out
            renew_labels(run / training.place, document, task.target.labels[held_out])

    def _same(self, training: Training, run: Path) -> dict[str, Any]:
        """What a finished training says of itself, if it is of what is there now."""
        document = _about(training, run)
        before, now = _stored(training, document), self.of(training)
        changed = [name for name, value in before.items() if value != now.get(name)]
        if changed:
            raise FileError(
                f"{run / training.place} holds {training.title}, made of other data than there is "
                f"now: changed are the {', the '.join(changed)}. Put back what was there, or name "
                "a new folder for the run with -o; or remove those trainings to have them made "
                f"again: {repair(run)}"
            )
        return document

    def _task(self, training: Training) -> Task:
        pair = training.pair
        return Task(*(self.domains.images[each.name] for each in (pair.source, pair.target)))

    def _inputs(self, domain: DomainPlan) -> dict[str, Any]:
        if domain.name in self.features:
            return _of_features(domain, self.features[domain.name].identity)
        if domain.name not in self._digests:
            images = self.domains.images[domain.name]
            self._digests[domain.name] = content_digest(images, self.reporting)
        return {f"images of {domain.title}": self._digests[domain.name]}


def _about(training: Training, run: Path) -> dict[str, Any]:
    """What a finished training says of itself.

    Raises:
        FileError: If that is damaged.
    """
    folder = run / training.place
    try:
        document = read_about(folder)
        _stored(training, document)
    except (FileError, KeyError, TypeError) as error:
        raise FileError(
            f"{folder} does not say what it was trained on: {error}. Remove it and have it made "
            f"again: {repair(run)}"
        ) from error
    return document


def _stored(training: Training, document: Mapping[str, Any]) -> dict[str, Any]:
    """What a finished training was made of, by the names of :meth:`Content.of`."""
    identity, pair = document["identity"]["training"], training.pair
    found = {f"labels of {pair.source.title}": identity["labels"], "classes": identity["classes"]}
    for domain, side in ((pair.source, "source"), (pair.target, "target")):
        given = identity["inputs"][side]
        if isinstance(given, str):
            found[f"images of {domain.title}"] = given
        else:
            found |= _of_features(domain, given)
    return found


def _of_features(domain: DomainPlan, identity: Mapping[str, Any]) -> dict[str, Any]:
    made_by = {name: value for name, value in identity.items() if name != "images"}
    return {
        f"images of {domain.title}": identity["images"],
        f"backbone of the features of {domain.title}": made_by,
    }

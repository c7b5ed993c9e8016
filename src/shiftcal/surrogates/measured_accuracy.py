"""The accuracy of a model on labelled images, as they are and corrupted."""

from __future__ import annotations

import numpy as np

from shiftcal._checks import check_count
from shiftcal.corruptions import Corruption
from shiftcal.scoring.gather import gathered
from shiftcal.scoring.job import Job
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.run import Finished, run_job, warn_of_bad
from shiftcal.scoring.setup import as_engine, cache_folder
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import Store, passing_store
from shiftcal.surrogates.synthesize import Options, labelled_work, labels_of


class MeasuredAccuracy:
    """Runs a model over the same images again and again, and counts what is right.

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        labels: As for :meth:`SurrogateBank.synthesize`.
        options: How they are scored.

    Attributes:
        n_classes: Columns of the model's logits, once it has run.
    """

    n_classes: int

    def __init__(self, model: object, images: object, labels: object, options: Options) -> None:
        self._folder = cache_folder(options.cache)
        self._options = options
        work = labelled_work(model, images, labels, options, notes=Notes(cache=self._folder))
        size = check_count(options.shard_size, name="shard_size")
        # One job for all, since it knows the digests of the images.
        self._job = Job(work, (Condition(),), shard_size=size, lasting=self._folder is not None)
        self._engine = as_engine(options.engine)
        self._told_of_bad = False

    def clean(self) -> float:
        """On the images as they are."""
        return self._measured((Condition(),))[0]

    def of(self, corruption: Corruption) -> list[float]:
        """At every severity of a corruption, from 1 on."""
        severities = range(1, corruption.severities + 1)
        return self._measured(tuple(Condition(corruption, severity) for severity in severities))

    def _measured(self, conditions: tuple[Condition, ...]) -> list[float]:
        job = self._job
        job.conditions = conditions
        with passing_store(self._folder) as store:
            done = run_job(job, store, self._engine, self._options.reporting)
            if not self._told_of_bad:
                warn_of_bad(job, done.outlines[conditions[0]].bad)
                self._told_of_bad = True
            return [self._accuracy(condition, store, done) for condition in conditions]

    def _accuracy(self, condition: Condition, store: Store, done: Finished) -> float:
        logits, _ = gathered(self._job, condition, store)
        labels = labels_of(done)[done.outlines[condition].rows]
        self.n_classes = int(logits.shape[1])
        return float(np.mean(logits.argmax(axis=1) == labels))

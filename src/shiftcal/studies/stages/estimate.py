"""How long a study will take, said before it starts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shiftcal.scoring.job import Job
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.pending import measured_rate, pending
from shiftcal.scoring.setup import cache_folder, first_images
from shiftcal.scoring.store import FolderStore
from shiftcal.studies.archive import Stored
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.plan.reading import ORACLE
from shiftcal.studies.stages.outcome import Fitted, judged
from shiftcal.studies.stages.scoring import (
    TRAIN,
    Means,
    Wanted,
    condition_name,
    digest_of,
    options_of,
)
from shiftcal.studies.stages.sources import Sources
from shiftcal.studies.variant import Variant
from shiftcal.surrogates import SurrogateBank
from shiftcal.surrogates.build import WORKSHOP
from shiftcal.surrogates.folder import read_document
from shiftcal.surrogates.synthesize import labelled_work

# Rows that an evaluation is timed with; more take longer in proportion.
_TIMED_ROWS = 2000
# Figures and tables, in seconds; they do not depend on the size of the data.
_REPORT_SECONDS = 15.0


@dataclass(frozen=True)
class Estimate:
    """What is to be done, and how long it takes.

    Attributes:
        images: To be scored; those that are stored already do not count.
        rate: Images a second, as measured.
        evaluations: Variants times targets times splits, at most.
        evaluation_seconds: What they take.
        bytes: What the scores take on disk.
    """

    images: int
    rate: float
    evaluations: int
    evaluation_seconds: float
    bytes: int

    @property
    def seconds(self) -> float:
        """All of it."""
        scoring = self.images / self.rate if self.images else 0.0
        return scoring + self.evaluation_seconds + _REPORT_SECONDS

    def __str__(self) -> str:
        scoring = "all images are scored already"
        if self.images:
            took = in_words(self.images / self.rate)
            scoring = (
                f"{self.images:,} images to score at about {self.rate:,.0f} a second ({took}), "
                f"{self.bytes / 1e6:,.0f} MB on disk"
            )
        evaluating = f"{self.evaluations:,} evaluations ({in_words(self.evaluation_seconds)})"
        return f"{scoring}; {evaluating}. About {in_words(self.seconds)} in all."


def in_words(seconds: float) -> str:
    """A time to two digits or so: nobody knows it better beforehand."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3600:.1f} h"


def estimate(
    sources: Sources,
    wanted: Wanted,
    variants: Sequence[Variant],
    folder: Path,
    *,
    means: Means,
    workers: int = 1,
) -> Estimate:
    """Measure model and methods for some seconds, and count what is left to be done."""
    plan = sources.plan
    options = options_of(sources, means)
    notes = Notes(cache=cache_folder(means.cache))
    work = labelled_work(sources.model, sources.images, None, options, notes=notes)
    job = Job(work, wanted.conditions, lasting=False)
    rate = measured_rate(job)
    images = _source_left(sources, job, folder, means) + _others_left(sources, wanted, folder)
    made = work.model.outputs(first_images(work.images, work.model, 1))
    n, k = len(work.images), made.logits.shape[1]
    d = 0 if made.features is None else made.features.shape[1]
    per_row = (k + d) * (2 if plan.model.dtype == "float16" else 4)
    counts = [len(v.targets) * v.draws * len(plan.seeds) for v in variants]
    return Estimate(
        images=images,
        rate=rate,
        evaluations=sum(counts),
        evaluation_seconds=float(np.dot(counts, _seconds(plan, variants, n, (k, d)))) / workers,
        bytes=images * per_row,
    )


def _source_left(sources: Sources, job: Job, folder: Path, means: Means) -> int:
    """Images of the source under all conditions that are not scored yet."""
    bank = folder / "scores" / f"source-{digest_of(sources)}"
    there = set()
    if (bank / "bank.json").exists():
        there = {Path(entry["file"]).stem for entry in read_document(bank)["sets"]}
    job.conditions = tuple(c for c in job.conditions if condition_name(c) not in there)
    cache = cache_folder(means.cache)
    if not (bank / WORKSHOP).is_dir() and (cache is None or not cache.is_dir()):
        return job.n_images
    store = FolderStore(bank / WORKSHOP / "shards", cache=cache)
    try:
        return pending(job, store)
    finally:
        store.close()


def _others_left(sources: Sources, wanted: Wanted, folder: Path) -> int:
    """The same of sets with files of their own; one that is begun counts in full."""
    done = folder / "scores" / f"sets-{digest_of(sources)}"
    sizes = dict.fromkeys(wanted.made, len(sources.images))
    sizes |= {name: len(sources.sets[name]) for name in wanted.own}
    if sources.train is not None:
        sizes[TRAIN] = len(sources.train)
    return sum(n for name, n in sizes.items() if not (done / f"{name}.npz").exists())


def _seconds(
    plan: Plan, variants: Sequence[Variant], n: int, shape: tuple[int, int]
) -> list[float]:
    """What one evaluation of each variant takes, on random numbers of the right shape."""
    k, d = shape
    rows = max(2 * k, min(_TIMED_ROWS, n))
    scale = max(1.0, (n - plan.calibration.images) / rows)
    target = _random(rows, k, max(1, d))
    took: dict[str, float] = {}
    for variant in variants:
        if variant.method not in took:
            made = _fitted(variant, target)
            judged(made, target, bins=plan.bins)  # loads kernels
            began = time.perf_counter()
            judged(made, target, bins=plan.bins)
            took[variant.method] = scale * (time.perf_counter() - began)
    return [took[variant.method] for variant in variants]


def _random(rows: int, k: int, d: int) -> Stored:
    rng = np.random.default_rng(0)
    labels = np.arange(rows) % k
    logits = rng.normal(size=(rows, k)).astype(np.float32)
    logits[np.arange(rows), labels] += 3
    return Stored(logits, labels, rng.normal(size=(rows, d)).astype(np.float32))


def _fitted(variant: Variant, some: Stored) -> Fitted:
    if variant.method == ORACLE:
        return Fitted(None, 1, len(some.logits))
    from shiftcal import methods

    bank = SurrogateBank.from_arrays([some.logits], some.labels, features=some.features)
    method = methods.get(variant.method)(**variant.settings)
    return Fitted(method.fit(bank, source_features=some.features), 1, len(some.logits))

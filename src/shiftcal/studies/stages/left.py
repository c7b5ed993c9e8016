"""What is left to be scored of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftcal.scoring._score_file import to_be_scored
from shiftcal.scoring.job import Job
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.pending import pending
from shiftcal.scoring.setup import cache_folder
from shiftcal.scoring.store import FolderStore
from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.stages.digests import TRAIN, digest_of
from shiftcal.studies.stages.ready_made import open_made, taking_as_stored
from shiftcal.studies.stages.scoring import Means, Wanted, condition_name, options_of, which
from shiftcal.studies.stages.sources import Sources
from shiftcal.studies.stages.stored import known_digest, read_bank
from shiftcal.surrogates.build import WORKSHOP
from shiftcal.surrogates.synthesize import labelled_work


@dataclass(frozen=True, eq=False)
class Left:
    """What is left to be scored.

    Attributes:
        images: How many, over all sets.
        job: Of the source images under all conditions.
        archive: All sets by the keys they have, or will have; those that nothing is there of, by
            keys that nothing has.
    """

    images: int
    job: Job
    archive: Archive

    @classmethod
    def of(cls, sources: Sources, wanted: Wanted, folder: Path, means: Means) -> Left:
        """Look at what is there; nothing is written."""
        bank = folder / "scores" / f"source-{digest_of(sources)}"
        document = read_bank(bank)
        before = None if document is None else document["origin"]["model"]["batch_size"]
        job = _job(sources, wanted, bank, means=means, before=before)
        there = {} if document is None else {_key(entry): entry for entry in document["sets"]}
        entries = {}
        for condition in wanted.conditions:
            found = there.get(which(condition), {})
            name = condition_name(condition)
            entries[name] = _entry(name, found.get("key"), found.get("sha256"))
        missing = tuple(c for c in wanted.conditions if which(c) not in there)
        images = pending_in(Job(job.work, missing, lasting=False), bank, means) if missing else 0
        others = dict(open_made(sources, wanted.made))
        others |= {name: sources.sets[name] for name in wanted.own}
        others |= {} if sources.train is None else {TRAIN: sources.train}
        for name, each in others.items():
            file = bank.with_name(f"sets-{digest_of(sources)}") / f"{name}.npz"
            model, dtype = taking_as_stored(sources.model, each), sources.plan.model.dtype
            n, key = to_be_scored(model, each, file, dtype=dtype, cache=means.cache)
            images += n
            entries[name] = _entry(name, key, known_digest(file))
        train = entries.pop(TRAIN, None)
        return cls(images, job, Archive(folder, entries, train))


def _entry(name: str, key: str | None, sha256: str | None) -> Entry:
    return Entry("", key or f"not scored: {name}", sha256=sha256 or "")


def _key(entry: dict[str, Any]) -> tuple[str | None, int]:
    return entry["corruption"], entry["severity"]


def _job(sources: Sources, wanted: Wanted, bank: Path, *, means: Means, before: int | None) -> Job:
    begun = bank / WORKSHOP
    work = labelled_work(
        sources.model,
        sources.images,
        None,
        options_of(sources, means),
        notes=Notes(begun if begun.is_dir() else None, cache_folder(means.cache)),
        before=before,
    )
    return Job(work, wanted.conditions, lasting=False)


def pending_in(job: Job, bank: Path, means: Means) -> int:
    """Images of a job that no finished part of a bank has."""
    cache = cache_folder(means.cache)
    if not (bank / WORKSHOP).is_dir() and (cache is None or not cache.is_dir()):
        return job.n_images
    store = FolderStore(bank / WORKSHOP / "shards", cache=cache)
    try:
        return pending(job, store)
    finally:
        store.close()

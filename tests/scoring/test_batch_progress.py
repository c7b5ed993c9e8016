"""Progress goes batch by batch, and counts every image once."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from exact_model import Exact, exact, labelled

from shiftcal.corruptions import as_corruption
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.errors import InputError
from shiftcal.scoring import LocalEngine, progress
from shiftcal.scoring.complete import complete
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.job import Job
from shiftcal.scoring.run import Reporting, run_job
from shiftcal.scoring.setup import make_work
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import MemoryStore

IMAGES, LABELS = labelled(20, seed=4)
CONDITIONS = (Condition(), Condition(as_corruption("pixelate"), 3))
# Shards of 8, 8 and 4 images under each of two conditions, in batches of 3.
BATCHES = [3, 3, 2] * 4 + [3, 1] * 2


class Told:
    def __init__(self):
        self.done, self.kept = [], []

    def __call__(self, images, *, kept):
        (self.kept if kept else self.done).append(images)


def job(function=None, images=IMAGES, labels=LABELS):
    work = make_work(exact(function, batch_size=3), images, labels)
    return Job(work, CONDITIONS, shard_size=8)


def test_one_worker_tells_of_a_batch_before_the_next_one_is_run():
    told, before = Told(), []

    class Looks(Exact):
        def __call__(self, batch):
            before.append(sum(told.done))
            return super().__call__(batch)

    complete(job(Looks()), MemoryStore(), LocalEngine(), step=told)
    assert told.done == BATCHES
    assert before == [0, *np.cumsum(BATCHES)[:-1]]
    assert told.kept == []


def test_threads_tell_of_batches_too():
    told = Told()
    made = job()
    complete(made, MemoryStore(), LocalEngine(workers=2, kind="threads"), step=told)
    assert sorted(told.done) == sorted(BATCHES)


def test_processes_tell_of_shards():
    told = Told()
    complete(job(), MemoryStore(), LocalEngine(workers=2), step=told)
    assert sorted(told.done) == [4, 4, 8, 8, 8, 8]


@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_what_is_computed_is_counted_once(kind):
    store = MemoryStore()
    finished = run_job(job(), store, LocalEngine(workers=2, kind=kind), Reporting(False))
    assert finished.computed == 40
    assert run_job(job(), store, LocalEngine(), Reporting(False)).computed == 0


def test_a_failure_within_a_shard_has_told_of_what_was_run():
    class Fails(Exact):
        def __call__(self, batch):
            if len(self.calls) == 5:
                raise RuntimeError("out of order")
            return super().__call__(batch)

    told, store = Told(), MemoryStore()
    with pytest.raises(InputError, match="out of order"):
        complete(job(Fails()), store, LocalEngine(), step=told)
    assert told.done == BATCHES[:5]
    again = Told()
    complete(job(), store, LocalEngine(), step=again)
    assert again.kept == [8]  # the second shard was not finished, whatever was told of it
    assert sum(again.done) == 32


class Twice(Engine):
    """Does half of a shard in vain, as if its worker had been lost."""

    def map_shards(self, work, shards):
        for shard in shards:
            half = replace(shard, stop=shard.start + 3)
            list(work([half]))
            yield from work([shard])


def test_a_shard_that_is_begun_anew_is_told_of_once():
    told = Told()
    complete(job(), MemoryStore(), Twice(), step=told)
    assert told.done == BATCHES


class SomeBad(ArrayImages):
    """Has images that cannot be read: a whole batch, and one of another."""

    def read(self, indices, **options):
        batch = super().read(indices, **options)
        bad = {int(i): "damaged" for i in batch.indices if i in (3, 4, 5, 10)}
        good = np.array([int(i) not in bad for i in batch.indices])
        return replace(batch, images=batch.images[good], indices=batch.indices[good], bad=bad)


def test_images_that_cannot_be_read_are_told_of_with_their_batch():
    told = Told()
    complete(job(images=SomeBad(IMAGES), labels=None), MemoryStore(), LocalEngine(), step=told)
    assert told.done == BATCHES


def test_lines_advance_within_a_shard(monkeypatch):
    monkeypatch.setattr(progress, "_BETWEEN", 0.0)
    lines = []
    run_job(job(), MemoryStore(), LocalEngine(), Reporting(False, lines.append))
    assert [int(line.split(": ")[1].split()[0]) for line in lines] == np.cumsum(BATCHES).tolist()


def test_who_is_told_stays_in_this_process():
    work = replace(job().work, tell=print)
    there = pickle.loads(pickle.dumps(work))
    assert there.tell is None
    assert (there.batch_size, there.seed, there.threads) == (3, 0, None)
    assert work.with_threads(2).tell is work.tell

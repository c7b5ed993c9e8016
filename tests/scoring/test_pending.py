"""What is left of a job, and how fast it will go: counts exactly, times as ratios only."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from exact_model import Exact, exact, labelled
from stored_images import write_images

from shiftcal.corruptions import Custom, as_corruption
from shiftcal.errors import InputError
from shiftcal.scoring import LocalEngine
from shiftcal.scoring.job import Job
from shiftcal.scoring.pending import measured_rate, pending
from shiftcal.scoring.run import Reporting, run_job
from shiftcal.scoring.setup import make_work
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import FolderStore, MemoryStore

IMAGES, LABELS = labelled(52, seed=6)
CLEAN, BLOCKS = Condition(), Condition(as_corruption("pixelate"), 3)


class Slow(Exact):
    """Takes so many seconds a batch, and more for the first."""

    def __init__(self, seconds, *, first=0.0):
        super().__init__()
        self.seconds, self.first = seconds, first

    def __call__(self, batch):
        time.sleep(self.seconds if self.calls else self.seconds + self.first)
        return super().__call__(batch)


def job(model=None, *conditions, images=IMAGES, span=None, shard_size=20):
    work = make_work(model or exact(), images)
    return Job(work, conditions or (CLEAN, BLOCKS), shard_size=shard_size, span=span)


def finished(made, store):
    run_job(made, store, LocalEngine(), Reporting(shown=False))


class Unread(MemoryStore):
    def get(self, key):
        raise AssertionError(f"{key} was read")


@pytest.mark.parametrize("span", [None, (20, 52)])
def test_all_images_of_a_new_job_are_pending(span):
    made = job(span=span)
    assert pending(made, Unread()) == made.n_images == 2 * (52 if span is None else 32)
    assert made.work.model.function.seen == 0


def test_finished_shards_are_not_pending(tmp_path):
    store = FolderStore(tmp_path)
    finished(job(None, CLEAN), store)
    assert pending(job(None, CLEAN), store) == 0
    assert pending(job(), store) == 52
    last = list(job(None, CLEAN).shards())[-1]
    file = next(tmp_path.rglob(f"{last.key}.shard"))
    file.write_bytes(file.read_bytes()[:-1])
    assert pending(job(None, CLEAN), store) == 12
    file.unlink()
    assert pending(job(None, CLEAN), store) == 12
    store.close()


def test_a_model_five_times_as_slow_has_a_fifth_of_the_rate():
    slow, fast = (measured_rate(job(exact(Slow(s))), seconds=0.3) for s in (0.05, 0.01))
    # A busy machine adds the same to both, which draws the ratio towards 1.
    assert 2 < fast / slow < 7


def test_twice_as_many_images_a_batch_are_twice_the_rate():
    one, two = (
        measured_rate(job(exact(Slow(0.03), batch_size=size)), seconds=0.3) for size in (5, 10)
    )
    assert 1.3 < two / one < 3


def test_the_first_batch_is_not_measured():
    plain = measured_rate(job(exact(Slow(0.02))), seconds=0.1)
    late = measured_rate(job(exact(Slow(0.02, first=1.0))), seconds=0.1)
    # With its second the first batch alone would make it ten times as slow.
    assert late > plain / 4


def test_what_corrupting_takes_counts():
    def slowly(image):
        time.sleep(0.01)
        return image

    clean = measured_rate(job(None, CLEAN), seconds=0.1)
    both = measured_rate(job(None, CLEAN, Condition(Custom(slowly), 1)), seconds=0.2)
    # 8 images take 0.08 s in every other batch: 200 images a second if nothing else takes time.
    assert both < clean / 2
    assert both < 400


def test_conditions_are_taken_from_all_over_the_job_and_their_kernels_are_loaded_before():
    used = []

    def noting(severity):
        def step(image):
            used.append((severity, threading.current_thread() is threading.main_thread()))
            return image

        return step

    steps = Custom([noting(s) for s in range(1, 101)], name="noting")
    conditions = [Condition(steps, s) for s in range(1, 101)]
    measured_rate(job(exact(Slow(0.001)), *conditions), seconds=0.2)
    before = [severity for severity, here in used if here]
    assert sorted(before) == [1, 15, 29, 43, 58, 72, 86, 100]
    assert before == [severity for severity, _ in used[:8]]
    # Of the batches, too, the first four are from both halves.
    assert {severity > 50 for severity in before[:4]} == {True, False}
    assert {severity for severity, here in used if not here} == set(before)


@pytest.mark.parametrize("n", [3, 8, 52])
def test_few_images_are_measured_in_batches_as_they_come(n):
    made = job(images=IMAGES[:n])
    assert measured_rate(made, seconds=1e-6) > 0
    assert set(made.work.model.function.calls) == {min(n, 8)}
    assert len(made.work.model.function.calls) >= 4


def test_images_that_cannot_be_read_are_passed_over(tmp_path):
    write_images(tmp_path, IMAGES[:16], [f"{i:02d}.png" for i in range(16)])
    (tmp_path / "00.png").write_bytes(b"gone")
    made = job(images=str(tmp_path), shard_size=8)
    assert measured_rate(made, seconds=0.05) > 0
    assert set(made.work.model.function.calls) <= {7, 8}


def test_a_failing_model_is_named_and_no_thread_is_left():
    def fails(batch):
        raise RuntimeError("no more")

    with pytest.raises(InputError, match=r"images, clean: .*no more"):
        measured_rate(job(exact(fails)), seconds=0.1)
    measured_rate(job(), seconds=0.01)
    assert "shiftcal-ahead" not in {thread.name for thread in threading.enumerate()}


def test_nothing_of_the_job_is_changed():
    images = IMAGES.copy()
    made = job(images=images)
    keys = [shard.key for shard in made.shards()]
    measured_rate(made, seconds=0.01)
    assert [shard.key for shard in made.shards()] == keys
    np.testing.assert_array_equal(images, IMAGES)

"""A job is done once: what is there is left alone, what others do is waited for."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from exact_model import Exact, exact, labelled, logits_of

from shiftcal.corruptions import as_corruption
from shiftcal.errors import FileError, InputError
from shiftcal.scoring import LocalEngine
from shiftcal.scoring.run import (
    DamagedShard,
    Reporting,
    gathered,
    make_work,
    outline,
    run_job,
)
from shiftcal.scoring.store import FolderStore
from shiftcal.scoring.work import Condition, Job

IMAGES, LABELS = labelled(20, seed=4)
CLEAN, BLOCKS = Condition(), Condition(as_corruption("pixelate"), 3)


def job(model=None, *conditions, images=IMAGES, labels=LABELS):
    work = make_work(model or exact(), images, labels)
    return Job(work, conditions or (CLEAN, BLOCKS), shard_size=8)


def done(made, store):
    return run_job(made, store, LocalEngine(), Reporting(False))


@pytest.fixture
def store(tmp_path):
    made = FolderStore(tmp_path)
    yield made
    made.close()


def test_only_what_is_missing_is_scored(tmp_path, store):
    made = job()
    assert done(made, store).computed == made.work.model.function.seen == 40
    assert done(made, store).computed == 0
    gone = sorted(tmp_path.rglob("*.shard"))[:2]
    lengths = {s.key: len(s) for s in made.shards()}
    for file in gone:
        file.unlink()
    assert done(made, store).computed == sum(lengths[file.stem] for file in gone)


def test_labels_that_are_none_of_the_classes_are_an_error_after_the_first_shard(store):
    made = job(labels=np.full(20, 9))
    with pytest.raises(InputError, match="from 0 to 3"):
        done(made, store)
    assert made.work.model.function.seen < 40


def test_a_shard_that_another_process_scores_is_waited_for(tmp_path, store):
    made, other = job(), FolderStore(tmp_path)
    first = next(iter(made.shards()))
    assert other.claim(first.key)
    working = threading.Thread(target=done, args=(made, store))
    working.start()
    working.join(1.0)
    assert working.is_alive()
    assert made.work.model.function.seen == 32  # all the rest is scored
    other.close()
    working.join(20)
    assert made.work.model.function.seen == 40
    assert store.has(first.key)


def test_a_failure_keeps_finished_shards(tmp_path):
    class Fails(Exact):
        def __call__(self, batch):
            if len(self.calls) == 3:
                raise RuntimeError("out of order")
            return super().__call__(batch)

    store = FolderStore(tmp_path)
    with pytest.raises(
        InputError, match=r"images 8 to 15, given uint8.*RuntimeError: out of order"
    ):
        done(job(exact(Fails())), store)
    store.close()
    assert done(job(), FolderStore(tmp_path)).computed == 16


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_results_are_put_together_in_the_order_of_the_images(store, dtype):
    made = Job(make_work(exact(), IMAGES, LABELS, dtype=dtype), (CLEAN,), shard_size=8)
    done(made, store)
    z, features = gathered(made, CLEAN, store)
    np.testing.assert_array_equal(z, logits_of(IMAGES).astype(dtype), strict=True)
    assert features is None
    about = outline(made, CLEAN, store)
    assert (about.rows.tolist(), about.k, about.d, about.bad) == (list(range(20)), 4, 0, {})


def test_a_damaged_shard_is_made_again_by_the_same_run(tmp_path, store):
    made = job()
    done(made, store)
    file = sorted(tmp_path.rglob("*.shard"))[0]
    content = bytearray(file.read_bytes())
    content[-2] ^= 8
    file.write_bytes(content)
    finished = run_job(made, store, LocalEngine(), Reporting(False))
    assert finished.computed == {s.key: len(s) for s in made.shards()}[file.stem]
    np.testing.assert_array_equal(gathered(made, CLEAN, store)[0], logits_of(IMAGES))


def test_a_disk_that_damages_everything_is_given_up(tmp_path, monkeypatch):
    store = FolderStore(tmp_path)
    monkeypatch.setattr(store, "get", lambda _: None)
    with pytest.raises(FileError, match="damaged again and again"):
        run_job(job(), store, LocalEngine(), Reporting(False))


def test_a_shard_that_is_gone_when_it_is_needed_is_a_clear_error(tmp_path, store):
    made = job()
    done(made, store)
    key = next(iter(made.shards_of(BLOCKS))).key
    next(tmp_path.rglob(f"{key}.shard")).unlink()
    gathered(made, CLEAN, store)
    with pytest.raises(DamagedShard, match="The same command computes it again"):
        gathered(made, BLOCKS, store)


def test_two_models_under_one_key_are_not_mixed(store):
    done(job(None, CLEAN, images=IMAGES[:8], labels=None), store)
    wider = exact(lambda batch: np.repeat(logits_of(batch), 2, axis=1))
    with pytest.raises(InputError, match=r"4 classes .* 8 classes .*give it another key"):
        run_job(job(wider, CLEAN, labels=None), store, LocalEngine(), Reporting(False))


def test_float16_that_cannot_hold_the_logits_is_refused(store):
    big = exact(lambda batch: 1e6 * logits_of(batch))
    made = Job(make_work(big, IMAGES, dtype="float16"), (CLEAN,), shard_size=8)
    with pytest.raises(InputError, match=r"images 0 to 7 \(clean\) reach .*Store them as float32"):
        done(made, store)

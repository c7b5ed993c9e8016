"""A job is done once: what is there is left alone, what others do is waited for."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from exact_model import Exact, exact, labelled, logits_of
from holder import holder

from shiftcal.corruptions import as_corruption
from shiftcal.errors import FileError, InputError
from shiftcal.scoring import LocalEngine
from shiftcal.scoring.complete import complete
from shiftcal.scoring.gather import DamagedShard, gathered, outline
from shiftcal.scoring.job import Job
from shiftcal.scoring.run import Reporting, run_job
from shiftcal.scoring.setup import make_work
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import FolderStore, MemoryStore

IMAGES, LABELS = labelled(20, seed=4)
CLEAN, BLOCKS = Condition(), Condition(as_corruption("pixelate"), 3)


def job(model=None, *conditions, images=IMAGES, labels=LABELS):
    work = make_work(model or exact(), images, labels)
    return Job(work, conditions or (CLEAN, BLOCKS), shard_size=8)


class Told:
    def __init__(self):
        self.done, self.kept = [], []

    def __call__(self, images, *, kept):
        (self.kept if kept else self.done).append(images)


def done(made, store, **options):
    told = Told()
    complete(made, store, LocalEngine(), step=told, **options)
    return told


@pytest.fixture
def store(tmp_path):
    made = FolderStore(tmp_path)
    yield made
    made.close()


def test_nothing_is_done_twice(store):
    made = job()
    told = done(made, store)
    assert (sum(told.done), told.kept) == (40, [])
    assert made.work.model.function.seen == 40
    again = done(made, store)
    assert (again.done, sum(again.kept)) == ([], 40)
    assert made.work.model.function.seen == 40


def test_only_what_is_missing_is_done(tmp_path, store):
    made = job()
    done(made, store)
    gone = sorted(tmp_path.rglob("*.shard"))[:2]
    lengths = {s.key: len(s) for s in made.shards()}
    lost = sum(lengths[file.stem] for file in gone)
    for file in gone:
        file.unlink()
    told = done(made, store)
    assert sum(told.done) == lost
    assert sum(told.kept) == 40 - lost


def test_no_claim_is_left(tmp_path, store):
    done(job(), store)
    assert list((tmp_path / "claims").iterdir()) == []


def test_the_number_of_classes_is_told_after_the_first_shard(store):
    seen = []

    def refuse(k):
        seen.append(k)
        raise InputError("no such labels")

    made = job()
    with pytest.raises(InputError, match="no such labels"):
        done(made, store, first=refuse)
    assert seen == [4]
    assert made.work.model.function.seen < 40


def test_a_shard_that_another_process_has_is_waited_for_and_done_when_it_dies(tmp_path, store):
    made = job()
    key = next(iter(made.shards())).key
    with holder("claim", tmp_path / "claims", key) as other:
        working = threading.Thread(target=done, args=(made, store))
        working.start()
        working.join(1.0)
        assert working.is_alive()
        assert not store.has(key)
        assert made.work.model.function.seen == 32  # all the rest was done
        other.kill()
        working.join(20)
    assert not working.is_alive()
    assert made.work.model.function.seen == 40
    assert store.has(key)


def test_a_shard_that_another_process_finishes_is_not_done_here(tmp_path, store):
    made = job()
    first = next(iter(made.shards()))
    whole = MemoryStore()
    done(job(), whole)
    told = []
    with holder("claim", tmp_path / "claims", first.key) as other:
        working = threading.Thread(target=lambda: told.append(done(made, store)))
        working.start()
        working.join(0.5)
        assert working.is_alive()
        FolderStore(tmp_path).put(whole.get(first.key))
        other.kill()
        working.join(20)
    assert made.work.model.function.seen == 32
    assert (sum(told[0].done), told[0].kept) == (32, [8])


def test_a_failure_keeps_what_was_done_and_lets_go_of_the_rest(tmp_path):
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
    assert list((tmp_path / "claims").iterdir()) == []
    told = done(job(), FolderStore(tmp_path))
    assert sum(told.kept) == 24
    assert sum(told.done) == 16


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
    with pytest.raises(DamagedShard, match="The same command makes it again"):
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

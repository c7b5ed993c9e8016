"""A cache that several share: nothing is done twice, and nothing half-done stays in it."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from exact_model import Exact, exact, labelled, logits_of
from holder import holder

from shiftcal.scoring import score, score_file
from shiftcal.scoring.store import FolderStore, passing_store

pytest.importorskip("fcntl")

IMAGES, _ = labelled(30, seed=7)
KEY = "ab" * 20
DAY = 24 * 3600


class Slow(Exact):
    def __call__(self, batch):
        time.sleep(0.1)
        return super().__call__(batch)


def at_once(*works):
    working = [threading.Thread(target=work) for work in works]
    for each in working:
        each.start()
    for each in working:
        each.join(30)


def test_two_files_with_one_cache_share_the_work(tmp_path):
    models = [exact(Slow()), exact(Slow())]

    def work(i):
        out, cache = tmp_path / f"{i}.npz", tmp_path / "cache"
        score_file(models[i], IMAGES, out, shard_size=8, cache=cache)

    at_once(lambda: work(0), lambda: work(1))
    seen = [model.function.seen for model in models]
    assert sum(seen) == 30
    assert max(seen) < 30
    assert (tmp_path / "0.npz").read_bytes() == (tmp_path / "1.npz").read_bytes()


def test_calls_in_memory_with_one_cache_share_the_work(tmp_path):
    models, found = [exact(Slow()), exact(Slow())], []

    def work(i):
        found.append(score(models[i], IMAGES, shard_size=8, cache=tmp_path / "cache"))

    at_once(lambda: work(0), lambda: work(1))
    assert sum(model.function.seen for model in models) == 30
    for scores in found:
        np.testing.assert_array_equal(scores.values, logits_of(IMAGES))


def test_what_another_process_has_claimed_in_the_cache_is_not_to_be_had(tmp_path):
    store = FolderStore(tmp_path / "work", cache=tmp_path / "cache")
    with holder("claim", tmp_path / "cache" / "claims", KEY):
        assert not store.claim(KEY)
        # and it is not kept from those who work in this folder without a cache
        other = FolderStore(tmp_path / "work")
        assert other.claim(KEY)
        other.close()
    assert store.claim(KEY)
    assert not store.claim(KEY)  # it is ours, and stays so
    with passing_store(tmp_path / "cache") as other:
        assert not other.claim(KEY)
        store.release(KEY)
        assert other.claim(KEY)
    store.close()


def test_without_claims_in_the_cache_those_in_the_folder_hold(tmp_path):
    (tmp_path / "cache").write_text("not a folder")
    one, two = (FolderStore(tmp_path / "work", cache=tmp_path / "cache") for _ in range(2))
    assert one.claim(KEY)
    assert not two.claim(KEY)
    one.close()
    assert two.claim(KEY)
    two.close()


def left_behind(file, *, age):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"half a shard")
    then = time.time() - age
    os.utime(file, (then, then))
    return file


def closed(tmp_path, **options):
    FolderStore(tmp_path / "work", cache=tmp_path / "cache", **options).close()


def test_what_was_never_finished_goes_from_the_cache_after_a_day(tmp_path):
    cache = tmp_path / "cache"
    old = [
        left_behind(cache / place, age=DAY + 60)
        for place in (".shiftcal-1.tmp", "ab/.shiftcal-2.tmp", f"claims/{KEY}")
    ]
    kept = [
        left_behind(cache / "ab" / ".shiftcal-3.tmp", age=DAY - 60),
        left_behind(cache / "claims" / "fresh", age=60),
        left_behind(cache / "ab" / f"{KEY}.shard", age=9 * DAY),
        left_behind(cache / "mine.txt", age=9 * DAY),
    ]
    closed(tmp_path)
    assert [file for file in old if file.exists()] == []
    assert [file for file in kept if not file.exists()] == []


def test_a_claim_that_is_held_is_not_swept(tmp_path):
    taken = tmp_path / "cache" / "claims"
    with holder("claim", taken, KEY):
        os.utime(taken / KEY, (0, 0))
        closed(tmp_path)
        assert (taken / KEY).exists()


def test_a_cache_is_swept_once_a_day(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    closed(tmp_path)
    late = left_behind(cache / "ab" / ".shiftcal-1.tmp", age=2 * DAY)
    closed(tmp_path)
    assert late.exists()
    for stamp in cache.glob(".swept"):
        os.utime(stamp, (0, 0))
    closed(tmp_path)
    assert not late.exists()


def test_a_cache_that_cannot_be_swept_is_let_be(tmp_path, monkeypatch):
    left_behind(tmp_path / "cache" / "ab" / ".shiftcal-1.tmp", age=2 * DAY)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    for name in ("touch", "unlink"):
        with monkeypatch.context() as patch:
            patch.setattr(type(tmp_path), name, refuse)
            closed(tmp_path)
    FolderStore(tmp_path / "work", cache=tmp_path / "none").close()
    assert not (tmp_path / "none").exists()

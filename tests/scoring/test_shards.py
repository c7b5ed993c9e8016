"""Shards: keys by content, finished ones on disk, progress."""

from __future__ import annotations

import os

import numpy as np
import pytest
from exact_model import exact, labelled
from stored_images import write_images

from shiftcal import progress
from shiftcal.corruptions import as_corruption
from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError, InputWarning
from shiftcal.models import Preprocessing, as_model
from shiftcal.scoring import shards
from shiftcal.scoring.shards import CLEAN, Condition, Job, ShardResult, ShardStore

IMAGES, LABELS = labelled(20, seed=3)
NOISE = Condition(as_corruption("gaussian_noise"), 2)
BLOCKS = Condition(as_corruption("pixelate"), 2)


def keys(*conditions, model=None, images=IMAGES, labels=LABELS, **settings):
    settings = {"conditions": conditions or (CLEAN, BLOCKS, NOISE), "shard_size": 8, **settings}
    return [shard.key for shard in Job(model or exact(), images, labels, **settings).shards()]


def brighter():
    other = IMAGES.copy()
    other[[0, 8, 16], 5, 5, 1] ^= 1
    return other


DECIDES = {
    "model": {"model": exact(key="exact-v2")},
    "output": {"model": exact(output="probabilities")},
    "preprocessing": {"model": exact(preprocessing=Preprocessing(crop=8))},
    "batch size": {"model": exact(batch_size=4)},
    "one bit of a pixel": {"images": brighter()},
    "order of the images": {"images": IMAGES[::-1].copy()},
    "dtype": {"dtype": "float16"},
    "shard size": {"shard_size": 7},
}


@pytest.mark.parametrize("name", DECIDES)
@pytest.mark.parametrize("condition", [CLEAN, BLOCKS, NOISE], ids=lambda c: c.name)
def test_what_decides_the_result_changes_the_key(name, condition):
    assert not set(keys(condition)) & set(keys(condition, **DECIDES[name]))


@pytest.mark.parametrize(
    ("condition", "setting", "counts"),
    [
        (CLEAN, {"seed": 1}, False),
        (BLOCKS, {"seed": 1}, False),
        (NOISE, {"seed": 1}, True),
        (CLEAN, {"table": "cifar"}, False),
        (BLOCKS, {"table": "cifar"}, True),
        (CLEAN, {"features": "all"}, False),
        (CLEAN, {"features": "none"}, True),
        (NOISE, {"features": "all"}, True),
        (NOISE, {"labels": None}, False),
        (NOISE, {"labels": LABELS[::-1].copy()}, False),
        (NOISE, {"model": exact(classes=["a", "b", "c", "d"])}, False),
    ],
)
def test_settings_count_where_they_matter(condition, setting, counts):
    assert (keys(condition) != keys(condition, **setting)) is counts


def test_versions_and_engines_change_the_key(monkeypatch):
    before = keys()
    with monkeypatch.context() as patch:
        patch.setattr(shards, "version", lambda _: "99.0")
        assert not set(keys()) & set(before)
    with monkeypatch.context() as patch:
        patch.setattr(type(exact()), "engine", "another 2.0")
        assert not set(keys()) & set(before)
    monkeypatch.setattr(shards, "GENERATOR", "another")
    assert keys(CLEAN) == before[::3]
    assert keys(NOISE) != before[2::3]


def test_names_times_and_other_parts_do_not_count(tmp_path):
    write_images(tmp_path / "one", IMAGES, [f"{i:02d}.png" for i in range(20)])
    write_images(tmp_path / "two", IMAGES, [f"other{i:02d}.png" for i in range(20)])
    for file in (tmp_path / "two").iterdir():
        os.utime(file, (1, 1))
    one, two = (keys(images=str(tmp_path / name), labels=None) for name in ("one", "two"))
    assert one == two
    named = as_image_set(IMAGES, labels=LABELS)
    named.name = "something else"
    assert keys(images=named) == keys()
    assert keys(NOISE, part=(2, 2)) == keys(NOISE)[1:]


def test_place_and_content_decide_for_each_shard_alone():
    other = IMAGES.copy()
    other[9, 0, 0, 0] ^= 128
    same = [a == b for a, b in zip(keys(CLEAN), keys(CLEAN, images=other), strict=True)]
    assert same == [True, False, True]
    # The random numbers of an image are those of its place.
    first, second = keys(NOISE, images=np.concatenate([IMAGES[:8]] * 2), labels=None)
    assert first != second
    assert len(set(keys())) == 9


def test_a_model_without_a_key_is_never_found_again():
    nameless = as_model(lambda batch: np.zeros((len(batch), 2)))
    with pytest.warns(InputWarning, match="key='my-model-v1'"):
        one, two = (keys(model=nameless) for _ in range(2))
    assert not set(one) & set(two)


def test_two_models_under_one_key_are_not_mixed(tmp_path):
    def run(model, images):
        job = Job(model, images, shard_size=8)
        return shards.run_job(job, ShardStore(tmp_path), None, progress.Reporting(False))

    assert run(exact(), IMAGES[:8]).computed == 8
    wider = exact(lambda batch: np.ones((len(batch), 8)))
    with pytest.raises(InputError, match=r"4 classes and 8.*give it another key"):
        run(wider, IMAGES)


# The store.

KEY = "ab" * 20


def result(key=KEY, *, dtype="float32", features=True, n=4):
    rng = np.random.default_rng(5)
    return ShardResult(
        key,
        np.arange(10, 10 + n, dtype=np.int64),
        rng.standard_normal((n, 3)).astype(dtype),
        rng.standard_normal((n, 2)).astype(dtype) if features else None,
        {14: "cut short: ümläut", 17: "gone"},
    )


def assert_same(found, given):
    for name in ("rows", "logits", "features"):
        a, b = getattr(found, name), getattr(given, name)
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_array_equal(a, b, strict=True)
    assert (found.key, found.bad) == (given.key, given.bad)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("features", [True, False])
def test_what_is_put_is_got(tmp_path, dtype, features):
    given = result(dtype=dtype, features=features)
    for store in (ShardStore(tmp_path), ShardStore()):
        assert store.get(KEY) is None
        store.put(given)
        assert_same(store.get(KEY), given)
    assert_same(ShardStore(tmp_path).get(KEY), given)


def test_a_damaged_file_is_never_believed(tmp_path):
    store, given = ShardStore(tmp_path), result()
    store.put(given)
    (file,) = tmp_path.rglob("*.shard")
    whole = file.read_bytes()
    for place in range(0, len(whole), 5):
        file.write_bytes(whole[:place])
        assert store.get(KEY) is None
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        if (found := store.get(KEY)) is not None:  # the bit meant nothing
            assert_same(found, given)
    store.put(given)
    assert file.read_bytes() == whole


# Reading ahead, and progress.


def test_lines_come_every_15_seconds_with_the_rate_of_what_was_computed(monkeypatch):
    now, lines = [100.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.showing("scoring", 1000, shown=False, line=lines.append) as step:
        step(400, kept=True)
        for _ in range(60):
            now[0] += 1
            step(10, kept=False)
    assert len(lines) == 4
    assert lines[0] == "scoring: 550 of 1,000 images, 10 images/s, 00:45 left"

"""A shard's key: everything that decides a bit of the result, and nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from exact_model import exact, labelled
from sklearn.linear_model import LogisticRegression
from stored_images import write_images

from shiftcal.corruptions import as_corruption
from shiftcal.datasets import as_image_set
from shiftcal.errors import InputWarning
from shiftcal.models import Preprocessing, as_model
from shiftcal.scoring import work as job_module
from shiftcal.scoring.run import make_work
from shiftcal.scoring.work import Condition, Job

IMAGES, LABELS = labelled(20, seed=3)
NOISE = Condition(as_corruption("gaussian_noise"), 2)
BLOCKS = Condition(as_corruption("pixelate"), 2)
CLEAN = Condition()


def job(*conditions, model=None, images=IMAGES, labels=LABELS, shard_size=8, span=None, **settings):
    work = make_work(model or exact(), images, labels, **settings)
    return Job(work, conditions or (CLEAN, BLOCKS, NOISE), shard_size=shard_size, span=span)


def keys(made):
    return [shard.key for shard in made.shards()]


def changed(*, of=NOISE, **other):
    """Whether the keys of all shards of a condition change, if all or none do."""
    before, after = keys(job(of)), keys(job(of, **other))
    same = set(before) & set(after)
    assert len(same) in (0, len(before))
    return not same


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
    assert changed(of=condition, **DECIDES[name])


def test_the_engine_of_the_model_changes_the_key(monkeypatch):
    before = keys(job())
    monkeypatch.setattr(type(exact()), "engine", "another 2.0")
    assert not set(before) & set(keys(job()))


def test_the_version_of_shiftcal_changes_the_key(monkeypatch):
    before = keys(job())
    monkeypatch.setattr(job_module, "version", lambda _: "99.0")
    assert not set(before) & set(keys(job()))


def test_the_version_of_pillow_counts_where_it_makes_the_pixels(monkeypatch, tmp_path):
    folder = tmp_path / "files"
    write_images(folder, IMAGES, [f"{i:02}.png" for i in range(len(IMAGES))])
    larger = exact(preprocessing=Preprocessing(resize=48))

    def all_keys():
        pixels = keys(job())
        return pixels, keys(job(images=folder, labels=LABELS)), keys(job(model=larger))

    pixels, files, resized = all_keys()
    real = job_module.version
    monkeypatch.setattr(job_module, "version", lambda p: "99.0" if p == "pillow" else real(p))
    after = all_keys()
    assert after[0] == pixels
    assert not set(after[1]) & set(files)
    assert not set(after[2]) & set(resized)


def test_condition_and_severity_change_the_key():
    some = [
        CLEAN,
        *(Condition(as_corruption("pixelate"), s) for s in (1, 2, 3)),
        *(Condition(as_corruption("gaussian_noise"), s) for s in (1, 2)),
    ]
    all_keys = keys(job(*some))
    assert len(set(all_keys)) == len(all_keys) == 3 * len(some)


@pytest.mark.parametrize(
    ("condition", "counts"), [(CLEAN, False), (BLOCKS, False), (NOISE, True)], ids=str
)
def test_the_seed_counts_for_random_corruptions_only(condition, counts):
    assert changed(of=condition, seed=1) is counts


@pytest.mark.parametrize(("condition", "counts"), [(CLEAN, False), (BLOCKS, True)], ids=str)
def test_the_table_counts_for_corruptions_only(condition, counts):
    assert changed(of=condition, table="cifar") is counts


def featured(features, *, model=None):
    """Keys of all sets where these keep features."""
    made = job(model=model)
    made.work = replace(made.work, features=features)
    return [made.set_key(condition) for condition in made.conditions]


@pytest.mark.parametrize(
    ("features", "changes"), [("clean", []), ("all", [1, 2]), ("none", [0])], ids=str
)
def test_features_count_where_a_set_keeps_other_than_the_usual_ones(features, changes):
    usual, other = [job().set_key(c) for c in job().conditions], featured(features)
    assert [i for i in range(3) if usual[i] != other[i]] == changes


def test_features_do_not_count_for_a_model_that_gives_none():
    classifier = LogisticRegression().fit(IMAGES.reshape(20, -1), LABELS)

    def model(**options):
        return as_model(classifier, key="lr", batch_size=8, **options)

    assert featured("clean", model=model()) == featured("all", model=model())
    assert featured("clean", model=model()) == featured("none", model=model())
    giving = (featured(which, model=model(return_features=True)) for which in ("clean", "all"))
    assert len(set(next(giving)) & set(next(giving))) == 1


@pytest.mark.parametrize("condition", [CLEAN, NOISE], ids=lambda c: c.name)
def test_labels_classes_and_names_do_not_count(condition):
    named = as_image_set(IMAGES, labels=LABELS)
    named.name = "something else"
    assert not changed(of=condition, labels=LABELS[::-1].copy())
    assert not changed(of=condition, labels=None)
    assert not changed(of=condition, images=named, labels=None)
    assert not changed(of=condition, model=exact(classes=["a", "b", "c", "d"]))


def test_names_and_times_of_files_do_not_count(tmp_path):
    write_images(tmp_path / "one", IMAGES, [f"{i:02d}.png" for i in range(20)])
    write_images(tmp_path / "two", IMAGES, [f"other{i:02d}.png" for i in range(20)])
    for file in (tmp_path / "two").iterdir():
        os.utime(file, (1, 1))
    one, two = (job(images=str(tmp_path / name), labels=None) for name in ("one", "two"))
    assert keys(one) == keys(two)


def test_a_shard_of_a_part_has_the_key_it_has_in_the_whole():
    whole, part = keys(job(NOISE)), keys(job(NOISE, span=(8, 20)))
    assert part == whole[1:]


def test_one_changed_image_concerns_its_shard_only():
    other = IMAGES.copy()
    other[9, 0, 0, 0] ^= 128
    before, after = keys(job(CLEAN)), keys(job(CLEAN, images=other))
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]


def test_the_same_images_are_done_under_all_conditions_before_the_next():
    shards = list(job().shards())
    assert [(s.start, s.stop) for s in shards[::3]] == [(0, 8), (8, 16), (16, 20)]
    assert [s.condition for s in shards] == [CLEAN, BLOCKS, NOISE] * 3
    assert all(a.start <= b.start for a, b in pairwise(shards))
    assert job().n_images == sum(map(len, shards)) == 60


def test_the_origin_says_how_it_was_made():
    told = job().origin()
    assert told["model"]["adapter"] == "CallableModel"
    assert told["model"]["batch_size"] == 8
    assert told["model"]["preprocessing"]["dtype"] == "uint8"
    assert told["shard_size"] == 8
    assert told["dtype"] == "float32"
    assert told["images"]["digest"] == job(CLEAN).images_digest()
    assert told["images"]["digest"] != job(CLEAN, images=brighter()).images_digest()


def test_a_model_that_cannot_be_known_again_is_warned_of_and_never_found():
    nameless = as_model(lambda batch: np.zeros((len(batch), 2)))
    with pytest.warns(InputWarning, match="cannot be told whether this model is the same"):
        one = job(model=nameless)
    with pytest.warns(InputWarning, match="key='my-model-v1'"):
        two = job(model=nameless)
    assert not set(keys(one)) & set(keys(two))
    assert keys(one) == keys(one)


def held(value):
    return lambda image: image if value is None else image[::-1]


def test_where_the_images_stand_changes_the_key():
    # The random numbers of an image are those of its place, and results name it by it.
    twice = np.concatenate([IMAGES[:8], IMAGES[:8]])
    one, other = keys(job(NOISE, images=twice, labels=None))
    assert one != other


@pytest.mark.parametrize(("condition", "counts"), [(CLEAN, False), (NOISE, True)], ids=str)
def test_the_generator_of_random_numbers_counts_for_corruptions(monkeypatch, condition, counts):
    before = keys(job(condition))
    monkeypatch.setattr(job_module, "GENERATOR", "another")
    assert (keys(job(condition)) != before) is counts

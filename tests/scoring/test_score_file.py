"""Scores in a file, whole or in parts, gone on with where they stopped."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
from exact_model import Exact, exact, features_of, labelled, logits_of
from stored_images import write_images

from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.scores import read_scores
from shiftcal.scoring import run as module
from shiftcal.scoring import score, score_file

IMAGES, LABELS = labelled(30, seed=7)


class Fails(Exact):
    def __init__(self, after):
        super().__init__()
        self.after = after

    def __call__(self, batch):
        if len(self.calls) == self.after:
            raise RuntimeError("no more")
        return super().__call__(batch)


def written(target, model=None, images=IMAGES, **options):
    model = model or exact()
    scored = score_file(model, images, target, **{"shard_size": 8, **options})
    return scored, model.function.seen


def only(folder, *names):
    """Nothing else is in the folder."""
    return sorted(file.name for file in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize("name", ["a.npz", "a.csv", "a.parquet"])
def test_the_file_holds_the_models_logits(tmp_path, name):
    model = exact()
    scored, seen = written(tmp_path / name, model, labels=LABELS)
    assert (scored.n, scored.k, scored.labels, scored.computed, seen) == (30, 4, True, 30, 30)
    found = read_scores(tmp_path / name)
    np.testing.assert_array_equal(found.values.astype("f4"), model.logits(IMAGES))
    np.testing.assert_array_equal(found.labels, LABELS)
    assert only(tmp_path, name)


def test_it_equals_score_in_memory_in_every_part(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{'abcd'[i % 4]}/{i:02d}.png" for i in range(30)])
    model = exact(lambda b: (logits_of(b), features_of(b)), classes=["d", "c", "b", "a"])
    score_file(model, str(tmp_path / "images"), tmp_path / "a.npz", shard_size=8)
    found, memory = read_scores(tmp_path / "a.npz"), score(model, str(tmp_path / "images"))
    for part in ("values", "labels", "features", "ids"):
        np.testing.assert_array_equal(getattr(found, part), getattr(memory, part), strict=True)
    assert found.classes == memory.classes == ("d", "c", "b", "a")


def test_the_same_file_is_written_again_to_the_byte(tmp_path):
    for name in ("a.npz", "b.npz"):
        written(tmp_path / name, labels=LABELS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_finished_file_is_left_as_it_is(tmp_path):
    target = tmp_path / "a.npz"
    written(target, labels=LABELS)
    before = target.stat().st_mtime_ns, target.read_bytes()
    scored, seen = written(target, labels=LABELS)
    assert (scored.n, scored.k, scored.labels, scored.computed, seen) == (30, 4, True, 0, 0)
    assert (target.stat().st_mtime_ns, target.read_bytes()) == before
    assert only(tmp_path, "a.npz")


OTHERWISE = {
    "another model": {"model": lambda: exact(key="exact-v2")},
    "other images": {"images": IMAGES[::-1].copy()},
    "another dtype": {"dtype": "float16"},
    "other labels": {"labels": LABELS[::-1].copy()},
    "no labels": {"labels": None},
    "names of classes": {"model": lambda: exact(classes=["a", "b", "c", "d"])},
    "a part": {"part": (1, 1)},
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_file_that_was_made_otherwise_is_replaced(tmp_path, what):
    written(tmp_path / "a.npz", labels=LABELS)
    changed = dict(OTHERWISE[what])
    model = changed.pop("model", exact)()
    options = {"labels": LABELS, **changed}
    scored, _ = written(tmp_path / "a.npz", model, **options)
    assert scored.computed == 30
    fresh = tmp_path / "fresh.npz"
    written(fresh, model, **options)
    assert (tmp_path / "a.npz").read_bytes() == fresh.read_bytes()


def test_labels_that_come_later_are_put_into_the_file(tmp_path):
    written(tmp_path / "a.npz")
    assert read_scores(tmp_path / "a.npz").labels is None
    scored, _ = written(tmp_path / "a.npz", labels=LABELS)
    assert scored.labels
    np.testing.assert_array_equal(read_scores(tmp_path / "a.npz").labels, LABELS)


@pytest.mark.parametrize("content", [b"", b"PK\3\4 nonsense", b"text"])
def test_a_foreign_file_is_replaced(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    scored, _ = written(tmp_path / "a.npz")
    assert scored.computed == 30


def test_a_run_that_failed_is_gone_on_with(tmp_path):
    with pytest.raises(InputError, match="images 16 to 23"):
        written(tmp_path / "a.npz", exact(Fails(2)))
    assert only(tmp_path, "a.npz.parts")
    scored, seen = written(tmp_path / "a.npz")
    assert (scored.computed, seen) == (14, 14)
    np.testing.assert_array_equal(read_scores(tmp_path / "a.npz").values, logits_of(IMAGES))
    assert only(tmp_path, "a.npz")


def test_a_run_that_failed_before_anything_was_finished_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="images 0 to 7"):
        written(tmp_path / "a.npz", exact(Fails(0)))
    assert only(tmp_path)


def test_a_batch_size_that_was_found_once_is_kept(tmp_path, monkeypatch):
    target, sizes = tmp_path / "a.npz", iter([4, 16, 32])
    monkeypatch.setattr("shiftcal.models.model.find_batch_size", lambda *_: next(sizes))
    with pytest.raises(InputError, match="no more"):
        written(target, exact(Fails(3), batch_size=None))
    scored, seen = written(target, exact(batch_size=None))
    assert (scored.computed, seen) == (22, 22)
    scored, seen = written(target, exact(batch_size=None))
    assert (scored.computed, seen) == (0, 0)
    origin = json.loads(str(np.load(target)["origin"]))
    assert origin["model"]["batch_size"] == 4
    written(target, exact(key="other", batch_size=None))
    assert json.loads(str(np.load(target)["origin"]))["model"]["batch_size"] == 16


def test_images_left_out_are_listed_and_remembered(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{i:02d}.png" for i in range(30)])
    for index in (0, 13):
        (tmp_path / "images" / f"{index:02d}.png").write_bytes(b"\x89PNG no more")
    with pytest.warns(InputWarning, match="left out 2 of 30 images"):
        scored, _ = written(tmp_path / "a.npz", images=str(tmp_path / "images"), labels=LABELS)
    assert [(bad["index"], bad["id"]) for bad in scored.left_out] == [(0, "00.png"), (13, "13.png")]
    assert all("png" in bad["reason"] for bad in scored.left_out)
    assert (scored.n, scored.computed) == (28, 28)
    found = read_scores(tmp_path / "a.npz")
    good = np.delete(np.arange(30), [0, 13])
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[good]))
    np.testing.assert_array_equal(found.labels, LABELS[good])
    assert found.ids.tolist() == [f"{i:02d}.png" for i in good]
    again, seen = written(tmp_path / "a.npz", images=str(tmp_path / "images"), labels=LABELS)
    assert (again.left_out, again.computed, seen) == (scored.left_out, 0, 0)


@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_a_kind_of_file_that_cannot_be_written_is_refused_at_once(tmp_path, name):
    model = exact()
    with pytest.raises(InputError):
        written(tmp_path / name, model)
    assert model.function.seen == 0
    assert only(tmp_path)


def test_a_full_disk_at_the_end_keeps_what_is_done(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_set", full)
        with pytest.raises(FileError, match=r"No space left on device\. Finished shards are kept"):
            written(tmp_path / "a.npz")
    scored, seen = written(tmp_path / "a.npz")
    assert (scored.computed, seen) == (0, 0)
    assert only(tmp_path, "a.npz")


def test_a_cache_serves_other_files(tmp_path):
    written(tmp_path / "a.npz", cache=tmp_path / "cache")
    scored, seen = written(tmp_path / "b.npz", cache=tmp_path / "cache", part=(2, 2))
    assert (scored.n, scored.computed, seen) == (14, 0, 0)


def test_two_at_once_share_the_work_on_one_file(tmp_path):
    class Slow(Exact):
        def __call__(self, batch):
            time.sleep(0.1)
            return super().__call__(batch)

    models = [exact(Slow()), exact(Slow())]
    working = [
        threading.Thread(target=written, args=(tmp_path / "a.npz", model)) for model in models
    ]
    for each in working:
        each.start()
    for each in working:
        each.join(30)
    seen = [model.function.seen for model in models]
    assert 30 <= sum(seen) <= 38
    assert max(seen) < 30
    np.testing.assert_array_equal(read_scores(tmp_path / "a.npz").values, logits_of(IMAGES))
    assert only(tmp_path, "a.npz")

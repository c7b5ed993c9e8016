"""Parts that were scored one by one and merged: the file of one run over all images, or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exact_model import exact, features_of, labelled, logits_of
from stored_images import write_images

from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.scores import read_scores
from shiftcal.scoring import ScoreStatistics, score_file
from shiftcal.scoring.merge import find_parts, merge_scores, merge_statistics

IMAGES, LABELS = labelled(30, seed=7)


def scored(target, images=IMAGES, *, model=None, **options):
    return score_file(model or exact(), images, target, **{"shard_size": 4, **options})


def parts_of(folder, of, images=IMAGES, **options):
    folder.mkdir(exist_ok=True)
    for i in range(1, of + 1):
        scored(folder / f"{i}.npz", images, part=(i, of), **options)
    return [folder / f"{i}.npz" for i in range(1, of + 1)]


def origin_of(file):
    with np.load(file) as archive:
        return json.loads(str(archive["origin"]))


def with_features(batch):
    return logits_of(batch), features_of(batch)


@pytest.fixture
def stored(tmp_path):
    """Images with names of different lengths, of which two are damaged."""
    names = [f"{'abcd'[i % 4]}/{'x' * (i // 5)}{i:02d}.png" for i in range(30)]
    write_images(tmp_path / "images", IMAGES, names)
    for index in (5, 22):
        (tmp_path / "images" / names[index]).write_bytes(b"\x89PNG no more")
    return str(tmp_path / "images")


@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_merged_parts_are_the_file_of_one_run_to_the_byte(tmp_path, stored, of):
    model = exact(with_features, classes=["d", "c", "b", "a"])
    scored(tmp_path / "once.npz", stored, model=model)
    parts = parts_of(tmp_path / "parts", of, stored, model=model)
    merge_scores(find_parts(parts), tmp_path / "all.npz")
    assert (tmp_path / "all.npz").read_bytes() == (tmp_path / "once.npz").read_bytes()
    assert len(origin_of(tmp_path / "all.npz")["left_out"]) == 2


@pytest.mark.parametrize("labels", [LABELS, None], ids=["labels", "none"])
def test_a_run_over_all_images_finds_what_was_merged_finished(tmp_path, labels):
    merge_scores(find_parts(parts_of(tmp_path / "parts", 3, labels=labels)), tmp_path / "all.npz")
    model = exact()
    done = scored(tmp_path / "all.npz", model=model, labels=labels)
    assert (done.n, done.computed, model.function.seen) == (30, 0, 0)
    assert scored(tmp_path / "all.npz", labels=LABELS[::-1].copy()).computed == 30


def test_parts_run_otherwise_are_merged_and_say_what_they_have_in_common(tmp_path):
    parts = parts_of(tmp_path / "parts", 2)
    scored(parts[1], model=exact(batch_size=2), part=(2, 2))
    merge_scores(find_parts(parts), tmp_path / "all.npz")
    np.testing.assert_array_equal(read_scores(tmp_path / "all.npz").values, logits_of(IMAGES))
    told, once = origin_of(tmp_path / "all.npz"), origin_of(parts[0])
    assert not {"key", "around"} & set(told)
    assert "batch_size" not in told["model"]
    assert told["model"]["fingerprint"] == once["model"]["fingerprint"]
    assert (told["dtype"], told["shard_size"], told["n"]) == ("float32", 4, 30)
    assert scored(tmp_path / "all.npz").computed == 30


def test_an_origin_that_cannot_be_read_is_done_without(tmp_path):
    parts = parts_of(tmp_path / "parts", 2)
    with np.load(parts[1]) as archive:
        arrays = {**archive, "shard_keys": np.arange(3)}
    np.savez(parts[1], **arrays)
    merge_scores(find_parts(parts), tmp_path / "all.npz")
    with np.load(tmp_path / "all.npz") as archive:
        assert archive.files == ["logits"]


def changed(array):
    other = array.copy()
    other[29] = 255 - other[29]
    return other


OTHERS = {
    "other images": (IMAGES[::-1].copy(), None),
    "one other image": (changed(IMAGES), None),
    "fewer images": (IMAGES[:29], None),
    "other labels": (IMAGES, LABELS[::-1].copy()),
    "labels": (IMAGES, LABELS),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_parts_of_other_images_are_refused_by_name(tmp_path, what, suffix):
    images, labels = OTHERS[what]
    mine = LABELS if what == "other labels" else None
    for i, (images_of, labels_of) in enumerate([(IMAGES, mine), (images, labels)], start=1):
        out, statistics = tmp_path / f"{i}.npz", tmp_path / f"{i}.json"
        scored(out, images_of, labels=labels_of, part=(i, 2), statistics=statistics)
    with pytest.raises(InputError, match=rf"1.{suffix} and .*2.{suffix} differ in the model"):
        find_parts([tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"])


def test_the_same_images_in_another_place_are_the_same_images(tmp_path):
    for i, folder in enumerate(("one", "two"), start=1):
        write_images(tmp_path / folder, IMAGES, [f"{j:02d}.png" for j in range(30)])
        scored(tmp_path / f"{i}.npz", str(tmp_path / folder), part=(i, 2))
    merge_scores(find_parts([tmp_path / "1.npz", tmp_path / "2.npz"]), tmp_path / "all.npz")
    np.testing.assert_array_equal(read_scores(tmp_path / "all.npz").values, logits_of(IMAGES))


@pytest.fixture
def half(tmp_path):
    """Images of which the first half cannot be read."""
    write_images(tmp_path / "images", IMAGES, [f"{i:02d}.png" for i in range(30)])
    for i in range(16):
        (tmp_path / "images" / f"{i:02d}.png").write_bytes(b"\x89PNG no more")
    return str(tmp_path / "images")


@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize("batch_size", [8, None])
def test_a_part_of_which_no_image_can_be_read_is_merged_with_the_others(
    tmp_path, half, batch_size, monkeypatch
):
    monkeypatch.setattr("shiftcal.models.model.find_batch_size", lambda *_: 8)
    model = exact(batch_size=batch_size)
    scored(tmp_path / "once.npz", half, model=model, labels=LABELS)
    parts = parts_of(tmp_path / "parts", 2, half, model=model, labels=LABELS)
    assert len(origin_of(parts[0])["left_out"]) == 16
    merge_scores(find_parts(parts), tmp_path / "all.npz")
    assert (tmp_path / "all.npz").read_bytes() == (tmp_path / "once.npz").read_bytes()
    assert merge_statistics(find_parts(parts)).n == 14


@pytest.mark.filterwarnings("ignore:left out")
def test_statistics_of_a_part_without_a_row_add_nothing(tmp_path, half):
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    for i, file in enumerate(files, start=1):
        scored(None, half, part=(i, 2), labels=LABELS, statistics=file)
    total = merge_statistics(find_parts(files))
    assert total == ScoreStatistics.of_rows(logits_of(IMAGES[16:]), LABELS[16:])
    with pytest.raises(FileError, match=r"1.json is of a part without any readable image"):
        ScoreStatistics.read(files[0])


def test_a_run_without_a_readable_image_is_an_error(tmp_path, half):
    bad = as_image_set(half).subset(range(16))
    for options in ({}, {"part": (1, 1)}):
        with pytest.raises(InputError, match=r"none of the 16 images of .* could be read"):
            scored(tmp_path / "a.npz", bad, **options)
    with pytest.raises(InputError, match=r"none of the 16 images of .* could be read"):
        scored(tmp_path / "a.csv", half, part=(1, 2))

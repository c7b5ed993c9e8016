"""Scores in a file, whole or in parts, which a killed run resumes to the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from exact_model import Fails, exact, features_of, labelled, logits_of
from filelock import FileLock
from stored_images import write_images

from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.scores import read_scores
from shiftcal.scoring import ScoreStatistics, score, score_file
from shiftcal.scoring.statistics import find_parts, merge_scores, merge_statistics, read_statistics

IMAGES, LABELS = labelled(30, seed=7)


def written(target, model=None, images=IMAGES, **options):
    model = model or exact()
    scored = score_file(model, images, target, **{"shard_size": 8, **options})
    return scored, model.function.seen


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("name", ["a.npz", "a.csv"])
def test_the_file_holds_the_models_logits(tmp_path, name):
    scored, seen = written(tmp_path / name, labels=LABELS)
    assert (scored.n, scored.k, scored.labels, scored.computed, seen) == (30, 4, True, 30, 30)
    np.testing.assert_array_equal(
        read_scores(tmp_path / name).values.astype("f4"), logits_of(IMAGES)
    )
    assert names(tmp_path) == [name]


def test_it_equals_score_in_memory_in_every_part(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{'abcd'[i % 4]}/{i:02d}.png" for i in range(30)])
    model = exact(lambda b: (logits_of(b), features_of(b)), classes=["d", "c", "b", "a"])
    score_file(model, str(tmp_path / "images"), tmp_path / "a.npz", shard_size=8)
    found, memory = read_scores(tmp_path / "a.npz"), score(model, str(tmp_path / "images"))
    for part in ("values", "labels", "features", "ids"):
        np.testing.assert_array_equal(getattr(found, part), getattr(memory, part), strict=True)
    assert found.classes == memory.classes == ("d", "c", "b", "a")


def test_a_finished_file_is_left_as_it_is(tmp_path):
    target = tmp_path / "a.npz"
    written(target, labels=LABELS)
    before = target.stat().st_mtime_ns, target.read_bytes()
    scored, seen = written(target, labels=LABELS)
    assert (scored.n, scored.k, scored.labels, scored.computed, seen) == (30, 4, True, 0, 0)
    assert (target.stat().st_mtime_ns, target.read_bytes()) == before


OTHERWISE = {
    "another model": {"model": lambda: exact(key="exact-v2")},
    "other images": {"images": IMAGES[::-1].copy()},
    "other labels": {"labels": LABELS[::-1].copy()},
    "no labels": {"labels": None},
    "names of classes": {"model": lambda: exact(classes=["a", "b", "c", "d"])},
    "a part": {"part": (1, 1)},
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_file_made_in_another_way_is_replaced(tmp_path, what):
    written(tmp_path / "a.npz", labels=LABELS)
    changed = dict(OTHERWISE[what])
    model = changed.pop("model", exact)()
    options = {"labels": LABELS, **changed}
    assert written(tmp_path / "a.npz", model, **options)[0].computed == 30
    written(tmp_path / "fresh.npz", model, **options)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "fresh.npz").read_bytes()


def test_a_run_that_failed_is_resumed(tmp_path):
    with pytest.raises(InputError, match="images 16 to 23"):
        written(tmp_path / "a.npz", exact(Fails(2)))
    assert names(tmp_path) == ["a.npz.parts"]
    (damaged, *_) = (tmp_path / "a.npz.parts").rglob("*.shard")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert written(tmp_path / "a.npz")[1] == 22
    np.testing.assert_array_equal(read_scores(tmp_path / "a.npz").values, logits_of(IMAGES))
    assert names(tmp_path) == ["a.npz"]


KILLED = """
import os, sys, time
from exact_model import exact, labelled, logits_of
from shiftcal.scoring import score_file
def slow(batch):
    time.sleep(0.05)
    return logits_of(batch)
images, labels = labelled(120, seed=7)
score_file(exact(slow), images, sys.argv[1], labels=labels, shard_size=8)
"""


def test_a_killed_process_is_resumed_to_the_same_bytes(tmp_path):
    support = Path(sys.modules["exact_model"].__file__).parent
    paths = os.pathsep.join([str(support), os.environ.get("PYTHONPATH", "")])
    target = tmp_path / "a.npz"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target)], env={**os.environ, "PYTHONPATH": paths}
    )
    while len(list(tmp_path.rglob("*.shard"))) < 3:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    images, labels = labelled(120, seed=7)
    done, seen = written(target, images=images, labels=labels)
    assert 0 < done.computed == seen <= 120 - 2 * 8
    written(tmp_path / "whole.npz", images=images, labels=labels)
    assert target.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert names(tmp_path) == ["a.npz", "whole.npz"]


def test_images_left_out_are_listed_and_remembered(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{i:02d}.png" for i in range(30)])
    for index in (0, 13):
        (tmp_path / "images" / f"{index:02d}.png").write_bytes(b"\x89PNG no more")
    with pytest.warns(InputWarning, match="left out 2 of 30 images"):
        scored, _ = written(tmp_path / "a.npz", images=str(tmp_path / "images"), labels=LABELS)
    assert [(bad["index"], bad["id"]) for bad in scored.left_out] == [(0, "00.png"), (13, "13.png")]
    found = read_scores(tmp_path / "a.npz")
    good = np.delete(np.arange(30), [0, 13])
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[good]))
    np.testing.assert_array_equal(found.labels, LABELS[good])
    assert found.ids.tolist() == [f"{i:02d}.png" for i in good]
    again, seen = written(tmp_path / "a.npz", images=str(tmp_path / "images"), labels=LABELS)
    assert (again.left_out, again.computed, seen) == (scored.left_out, 0, 0)


def test_what_cannot_be_written_raises_before_the_model_runs(tmp_path):
    model = exact()
    with pytest.raises(InputError):
        written(tmp_path / "a.txt", model)
    with pytest.raises(InputError, match=r"30 images make 4 shards of 8, too few for 5 parts"):
        written(tmp_path / "a.npz", model, part=(1, 5))
    with pytest.raises(InputError, match=r"the part must be .* at most 2; got 3"):
        written(tmp_path / "a.npz", model, part=(3, 2))
    with (
        FileLock(tmp_path / ".a.npz.lock"),
        pytest.raises(FileError, match="in use by another"),
    ):
        written(tmp_path / "a.npz", model)
    assert model.function.seen == 0


def test_statistics_of_the_rows_can_be_written_with_the_file_or_alone(tmp_path):
    for _ in range(2):  # the second time the file is finished
        written(tmp_path / "a.npz", labels=LABELS, statistics=tmp_path / "a.json")
        found, part = read_statistics(tmp_path / "a.json")
        assert found == ScoreStatistics.of(read_scores(tmp_path / "a.npz"))
        assert part is None
        (tmp_path / "a.json").unlink()
    scored, _ = written(None, labels=LABELS, statistics=tmp_path / "b.json", part=(2, 2))
    found, part = read_statistics(tmp_path / "b.json")
    assert (part.shard, part.of, part.first, part.stop) == (2, 2, 16, 30)
    assert found.n == scored.n == 14


# Parts, scored one by one and merged.


def parts_of(folder, of, images=IMAGES, **options):
    folder.mkdir(exist_ok=True)
    files = [folder / f"{i}.npz" for i in range(1, of + 1)]
    for i, file in enumerate(files, start=1):
        written(file, images=images, part=(i, of), **{"shard_size": 4, **options})
    return files


@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize("of", [1, 3, 7])
def test_merged_parts_are_the_file_of_one_run_to_the_byte(tmp_path, of):
    stored = [f"{'abcd'[i % 4]}/{'x' * (i // 5)}{i:02d}.png" for i in range(30)]
    write_images(tmp_path / "images", IMAGES, stored)
    for index in (5, 22):
        (tmp_path / "images" / stored[index]).write_bytes(b"\x89PNG no more")
    images = str(tmp_path / "images")

    def model():
        return exact(lambda b: (logits_of(b), features_of(b)), classes=["d", "c", "b", "a"])

    def run(target, **options):
        return score_file(model(), images, target, shard_size=4, **options)

    run(tmp_path / "once.npz")
    for i in range(1, of + 1):
        run(tmp_path / f"{i}.npz", part=(i, of), statistics=tmp_path / f"{i}.json")
    parts = find_parts([tmp_path / f"{i}.npz" for i in range(1, of + 1)])
    merge_scores(parts, tmp_path / "all.npz")
    assert (tmp_path / "all.npz").read_bytes() == (tmp_path / "once.npz").read_bytes()
    assert run(tmp_path / "all.npz").computed == 0
    total = merge_statistics(find_parts([tmp_path / f"{i}.json" for i in range(1, of + 1)]))
    assert total == ScoreStatistics.of(read_scores(tmp_path / "once.npz"))


def test_parts_scored_in_different_ways_merge_without_an_origin(tmp_path):
    parts = parts_of(tmp_path / "parts", 2)
    written(parts[1], exact(batch_size=2), part=(2, 2), shard_size=4)
    merge_scores(find_parts(parts), tmp_path / "all.npz")
    np.testing.assert_array_equal(read_scores(tmp_path / "all.npz").values, logits_of(IMAGES))
    with np.load(tmp_path / "all.npz") as archive:
        assert archive.files == ["logits"]
    with np.load(parts[0]) as archive:
        assert json.loads(str(archive["origin"]))["model"]["batch_size"] == 8


def changed(array):
    other = array.copy()
    other[29] = 255 - other[29]
    return other


@pytest.mark.parametrize(
    ("images", "labels"),
    [(changed(IMAGES), None), (IMAGES[:29], None), (IMAGES, LABELS)],
    ids=["another image", "fewer images", "labels"],
)
@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_parts_of_other_images_raise_by_name(tmp_path, images, labels, suffix):
    for i, (images_of, labels_of) in enumerate([(IMAGES, None), (images, labels)], start=1):
        out, statistics = tmp_path / f"{i}.npz", tmp_path / f"{i}.json"
        options = {"labels": labels_of, "part": (i, 2), "statistics": statistics, "shard_size": 4}
        written(out, images=images_of, **options)
    with pytest.raises(InputError, match=rf"1.{suffix} and .*2.{suffix} differ in the model"):
        find_parts([tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"])

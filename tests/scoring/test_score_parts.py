"""Parts of the images, and statistics of their scores, each in a file of its own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exact_model import exact, labelled

from shiftcal.errors import InputError
from shiftcal.scores import read_scores
from shiftcal.scoring import ScoreStatistics, score_file
from shiftcal.scoring.statistics import read_statistics

IMAGES, LABELS = labelled(30, seed=7)


def written(target, **options):
    model = exact()
    scored = score_file(model, IMAGES, target, shard_size=8, **options)
    return scored, model.function.seen


def only(folder, *names):
    """Nothing else is in the folder."""
    return sorted(file.name for file in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize("of", [1, 2, 3, 4])
def test_parts_cover_every_image_once_with_the_rows_of_the_whole(tmp_path, of):
    written(tmp_path / "whole.npz", labels=LABELS)
    whole, rows, at, computed, keys = read_scores(tmp_path / "whole.npz"), [], 0, 0, set()
    for i in range(1, of + 1):
        scored, seen = written(tmp_path / f"{i}.npz", labels=LABELS, part=(i, of))
        part = json.loads(str(np.load(tmp_path / f"{i}.npz")["part"]))
        assert (part["shard"], part["of"], part["n_images"]) == (i, of, 30)
        assert part["first"] == at
        at = part["stop"]
        keys.add(part["key"])
        found = read_scores(tmp_path / f"{i}.npz")
        assert len(found.values) == scored.n == part["stop"] - part["first"] == seen
        rows.append(found)
        computed += scored.computed
    assert at == computed == 30
    assert len(keys) == 1
    np.testing.assert_array_equal(np.concatenate([r.values for r in rows]), whole.values)
    np.testing.assert_array_equal(np.concatenate([r.labels for r in rows]), whole.labels)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ((1, 5), "30 images make 4 shards of 8, too few for 5 parts.*at most 6"),
        ((0, 2), "the part must be a whole number of at least 1"),
        ((3, 2), "the part .*at most 2"),
        ((1, 0), "the number of parts"),
    ],
)
def test_parts_that_cannot_be_are_refused(tmp_path, part, message):
    with pytest.raises(InputError, match=message):
        written(tmp_path / "a.npz", part=part)
    assert only(tmp_path)


def test_statistics_are_those_of_the_rows(tmp_path):
    written(tmp_path / "a.npz", labels=LABELS, statistics=tmp_path / "a.json")
    rows = ScoreStatistics.of(read_scores(tmp_path / "a.npz"))
    told, part = read_statistics(tmp_path / "a.json")
    assert part is None
    assert (told.n, told.accuracy()) == (rows.n, rows.accuracy())
    (tmp_path / "a.json").unlink()
    scored, seen = written(tmp_path / "a.npz", labels=LABELS, statistics=tmp_path / "a.json")
    assert (scored.computed, seen) == (0, 0)
    assert read_statistics(tmp_path / "a.json")[0].accuracy() == rows.accuracy()


def test_statistics_alone_can_be_wanted(tmp_path):
    scored, _ = written(None, labels=LABELS, statistics=tmp_path / "a.json", part=(2, 2))
    told, part = read_statistics(tmp_path / "a.json")
    assert (part.shard, part.of, part.first, part.stop) == (2, 2, 16, 30)
    assert told.n == scored.n == 14
    assert only(tmp_path, "a.json")

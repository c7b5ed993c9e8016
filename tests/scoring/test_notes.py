"""Batch sizes that were found are the same for all who share a folder."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import suppress

import numpy as np
import pytest
from exact_model import exact, labelled

from shiftcal.errors import FileError
from shiftcal.scoring import score, score_file
from shiftcal.scoring.notes import Notes
from shiftcal.surrogates import SurrogateBank

IMAGES, LABELS = labelled(30, seed=7)


@pytest.fixture
def found(monkeypatch):
    """What every search for a batch size gives: another number each."""
    sizes, given = itertools.count(4), []

    def find(*_):
        given.append(next(sizes))
        return given[-1]

    monkeypatch.setattr("shiftcal.models.batch_size.find_batch_size", find)
    return given


def never():
    raise AssertionError("it is known")


def size_in(file):
    with np.load(file) as archive:
        return json.loads(str(archive["origin"]))["model"]["batch_size"]


def test_a_number_is_found_once(tmp_path):
    assert Notes(tmp_path).settled("a", lambda: 5) == 5
    assert Notes(tmp_path).settled("a", never) == 5
    assert Notes(tmp_path).settled("b", lambda: 6) == 6
    assert Notes().settled("a", lambda: 7) == 7


def test_the_workshop_learns_from_the_cache_and_the_cache_from_the_workshop(tmp_path):
    one, two, cache = (tmp_path / name for name in ("one", "two", "cache"))
    Notes(one).settled("a", lambda: 5)
    assert Notes(one, cache).settled("a", never) == 5
    assert Notes(two, cache).settled("a", never) == 5
    assert Notes(two).settled("a", never) == 5


def test_what_the_workshop_says_counts_first(tmp_path):
    Notes(tmp_path / "one").settled("a", lambda: 5)
    Notes(cache=tmp_path / "cache").settled("a", lambda: 6)
    assert Notes(tmp_path / "one", tmp_path / "cache").settled("a", never) == 5
    assert Notes(cache=tmp_path / "cache").settled("a", never) == 6


def test_who_asks_while_it_is_found_waits_and_gets_the_same(tmp_path):
    begun, numbers = threading.Event(), []

    def find():
        begun.set()
        assert not second.join(0.3)
        assert second.is_alive()
        return 5

    def ask():
        begun.wait(20)
        numbers.append(Notes(tmp_path).settled("a", lambda: 6))

    second = threading.Thread(target=ask)
    second.start()
    assert Notes(tmp_path).settled("a", find) == 5
    second.join(20)
    assert numbers == [5]


def test_a_cache_that_cannot_be_used_is_done_without(tmp_path):
    (tmp_path / "cache").write_text("not a folder")
    assert Notes(tmp_path / "one", tmp_path / "cache").settled("a", lambda: 5) == 5


@pytest.mark.parametrize("content", ["{", "[3]", '{"a": 0}', '{"a": "many"}', "3"])
def test_damaged_notes_are_named_in_the_workshop_and_made_anew_in_a_cache(tmp_path, content):
    (tmp_path / "notes.json").write_text(content)
    with pytest.raises(FileError, match=r"notes.json is damaged .*Remove it"):
        Notes(tmp_path).settled("a", lambda: 5)
    assert Notes(cache=tmp_path).settled("a", lambda: 5) == 5
    assert Notes(tmp_path).settled("a", never) == 5


def test_a_shared_cache_is_not_missed_for_want_of_the_batch_size(tmp_path, found):
    cache = tmp_path / "cache"
    score_file(exact(batch_size=None), IMAGES, tmp_path / "a.npz", shard_size=8, cache=cache)
    again = exact(batch_size=None)
    done = score_file(again, IMAGES, tmp_path / "b.npz", shard_size=8, cache=cache)
    assert (done.computed, again.function.seen) == (0, 0)
    score(again, IMAGES, shard_size=8, cache=cache)
    assert again.function.seen == 0
    assert found == [4]


def test_banks_in_memory_with_one_cache_have_one_batch_size(tmp_path, found):
    models = [exact(batch_size=None), exact(batch_size=None)]
    for model in models:
        SurrogateBank.synthesize(model, IMAGES, LABELS, severities=1, cache=tmp_path / "cache")
    assert found == [4]
    assert [model.function.seen for model in models] == [60, 0]


def test_a_batch_size_is_for_images_of_one_size(tmp_path, found):
    cache = tmp_path / "cache"
    score(exact(batch_size=None), IMAGES, cache=cache)
    score(exact(batch_size=None), np.ascontiguousarray(IMAGES[:, :9]), cache=cache)
    score(exact(batch_size=None), IMAGES[:20], cache=cache)
    assert found == [4, 5]


def test_two_who_begin_at_once_use_the_same(tmp_path, monkeypatch):
    meeting = threading.Barrier(2, timeout=1.5)
    sizes = itertools.count(4)

    def find(*_):
        with suppress(threading.BrokenBarrierError):
            meeting.wait()  # both search at once, if nothing keeps them apart
        return next(sizes)

    monkeypatch.setattr("shiftcal.models.batch_size.find_batch_size", find)
    models = [exact(batch_size=None), exact(batch_size=None)]
    target = tmp_path / "a.npz"
    working = [
        threading.Thread(target=score_file, args=(m, IMAGES, target), kwargs={"shard_size": 8})
        for m in models
    ]
    for each in working:
        each.start()
    for each in working:
        each.join(30)
    assert size_in(target) == 4
    assert sum(m.function.seen for m in models) <= 38

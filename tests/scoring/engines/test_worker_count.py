"""How many workers are started: as many as there is work for."""

from __future__ import annotations

import os
import tempfile
import threading

import engine_work as ew
import pytest

from shiftcal.errors import InputWarning
from shiftcal.scoring.engines import _executors
from shiftcal.scoring.engines.local import LocalEngine


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def begun(monkeypatch):
    """The places in which threads are begun."""
    places, begin = [], _executors.Threads.begin
    monkeypatch.setattr(
        _executors.Threads, "begin", lambda self, place: places.append(place) or begin(self, place)
    )
    return places


@pytest.mark.filterwarnings("ignore:workers should be at most")
@pytest.mark.parametrize(("workers", "shards"), [(20, 2), (20, 1), (3, 6), (6, 6)])
def test_no_more_workers_are_started_than_there_are_shards(begun, workers, shards):
    taken = ew.Taken(ew.shards()[:shards])
    engine = LocalEngine(workers=workers, kind="threads")
    assert len(ew.by_key(engine.map_shards(ew.work_of(ew.Linear()), taken))) == shards
    assert begun == list(range(min(workers, shards)))
    assert taken.count == shards


@pytest.mark.filterwarnings("ignore:workers should be at most")
def test_only_as_many_shards_are_taken_at_first_as_workers_are_started(begun):
    taken = ew.Taken(ew.shards("pixelate"))
    results = LocalEngine(workers=3, kind="threads").map_shards(ew.work_of(ew.Linear()), taken)
    next(results)
    assert begun == [0, 1, 2]
    assert taken.count <= 1 + 3
    results.close()


@pytest.mark.filterwarnings("ignore:workers should be at most")
def test_an_error_of_the_shards_while_workers_are_started_is_raised(begun):
    def shards():
        yield ew.shards()[0]
        raise OSError("the disk is gone")

    engine = LocalEngine(workers=4, kind="threads")
    with pytest.raises(OSError, match="the disk is gone"):
        list(engine.map_shards(ew.work_of(ew.Linear()), shards()))
    assert begun == [0]
    assert [t for t in threading.enumerate() if t.name.startswith("shiftcal-")] == []


def test_more_workers_than_processors_are_warned_of():
    processors = os.cpu_count()
    engine = LocalEngine(workers=processors + 1, kind="threads")
    with pytest.warns(
        InputWarning, match=rf"at most {processors}, .*got {processors + 1}. Each takes"
    ):
        list(engine.map_shards(ew.work_of(ew.Linear()), ew.shards()[:1]))
    list(LocalEngine(workers=processors).map_shards(ew.work_of(ew.Linear()), []))

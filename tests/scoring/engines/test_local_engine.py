"""Workers on this machine: the same bytes, whoever computes them, and whatever dies meanwhile."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import engine_work as ew
import numpy as np
import pytest

from shiftcal import errors
from shiftcal.errors import FileError, InputError, MissingExtra, ShiftcalError, UnknownName
from shiftcal.scoring.engines import Engine, engine_of, get, names
from shiftcal.scoring.engines._parcel import Parcel, opened
from shiftcal.scoring.engines._worker import Worker, portable
from shiftcal.scoring.engines.local import LocalEngine

TWO = [LocalEngine(workers=2), LocalEngine(workers=2, kind="threads")]
kinds = pytest.mark.parametrize("engine", TWO, ids=["processes", "threads"])


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []
    assert [t for t in threading.enumerate() if t.name.startswith("shiftcal-")] == []


@kinds
@pytest.mark.parametrize(
    "work",
    [
        lambda: ew.work_of(ew.Linear()),
        lambda: ew.work_of(ew.Linear(), dtype="float16"),
        ew.onnx_work,
        ew.torch_work,
    ],
    ids=["numpy", "numpy16", "onnx", "torch"],
)
def test_two_workers_give_the_bytes_of_one(engine, work):
    shards = ew.shards("gaussian_noise")[::3]
    one = ew.by_key(LocalEngine().map_shards(work(), shards))
    assert set(one) == {shard.key for shard in shards}
    assert len(set(one.values())) == len(shards)  # all of them different
    assert ew.by_key(engine.map_shards(work(), shards)) == one


def test_one_worker_is_this_process_and_keeps_the_order():
    shards = ew.shards()
    results = list(LocalEngine().map_shards(ew.work_of(ew.Who()), shards))
    assert [result.key for result in results] == [shard.key for shard in shards]
    assert {row[0] for result in results for row in result.logits} == {np.float32(os.getpid())}


def test_a_function_of_a_script_can_be_sent():
    secret = np.arange(3.0)
    results = TWO[0].map_shards(ew.work_of(lambda batch: batch[:, :3, 0, 0] + secret), ew.shards())
    assert sum(len(result.rows) for result in results) == ew.N


def test_no_shard_starts_no_worker(monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", None)
    assert list(TWO[0].map_shards(ew.work_of(ew.Linear()), [])) == []


@kinds
def test_shards_are_taken_as_workers_become_free(engine):
    shards = ew.Taken(ew.shards("pixelate"))
    given = 0
    for result in engine.map_shards(ew.work_of(ew.Linear()), shards):
        given += 1
        assert shards.count <= given + engine.workers
        assert len(result.rows) == ew.SIZE
    assert given == shards.count == len(shards.items)


@kinds
def test_an_iteration_that_is_given_up_ends_the_workers(engine):
    shards = ew.Taken(ew.shards("pixelate"))
    results = engine.map_shards(ew.work_of(ew.Linear()), shards)
    next(results)
    results.close()
    assert shards.count <= 1 + engine.workers


def test_processes_are_two_and_use_their_share_of_the_processors(monkeypatch):
    monkeypatch.setattr("shiftcal.scoring.engines.local.thread_count", lambda: 6)
    work = ew.work_of(ew.Who(), dtype="float64")
    results = list(TWO[0].map_shards(work, ew.shards("pixelate")))
    seen = {tuple(row) for result in results for row in result.logits}
    assert {limit for _, limit, _ in seen} == {3}
    assert os.getpid() not in {pid for pid, _, _ in seen}
    assert len(seen) <= 2


def test_torch_has_its_threads_back_after_threads():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        list(TWO[1].map_shards(ew.torch_work(), ew.shards()[:2]))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_killed_worker_costs_its_shard_only(tmp_path):
    shards = ew.Taken(ew.shards("pixelate"))
    wanted = ew.by_key(LocalEngine().map_shards(ew.work_of(ew.Linear()), shards.items))
    work = ew.work_of(ew.Dies(tmp_path, times=2))
    assert ew.by_key(TWO[0].map_shards(work, shards)) == wanted
    assert (tmp_path / "died-1").exists()
    assert shards.count == len(shards.items)


def test_a_worker_that_is_killed_while_it_waits_is_replaced():
    shards = ew.shards("pixelate")
    pids, found = set(), {}
    for result in TWO[0].map_shards(ew.work_of(ew.Who(), dtype="float64"), shards):
        found[result.key] = result
        pid = int(result.logits[0, 0])
        pids.add(pid)
        if len(found) == 3:
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)  # so that it is known before the next shard is given
    assert len(found) == len(shards)
    assert all(not Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_shard_that_ends_three_workers_is_named(tmp_path):
    work = ew.work_of(ew.Dies(tmp_path, times=9))
    done = {}

    def collect():
        for result in TWO[0].map_shards(work, ew.shards()):
            done[result.key] = result

    with pytest.raises(
        ShiftcalError, match=r"3 workers.*images 60 to 89 \(clean\).*memory.*fewer workers.*SIGKILL"
    ):
        collect()
    assert len(list(tmp_path.glob("died-*"))) == 3
    assert "clean 60" not in done  # its neighbours are not lost with it
    assert "clean 0" in done
    assert "clean 30" in done


@kinds
def test_the_error_of_a_model_arrives_as_it_is(engine):
    work = ew.work_of(ew.Fails())
    with pytest.raises(InputError) as alone:
        list(LocalEngine().map_shards(work, ew.shards()))
    with pytest.raises(InputError, match=r"images 76 to 89.*RuntimeError: no image of mine") as two:
        list(engine.map_shards(work, ew.shards()))
    assert str(two.value) == str(alone.value)


@kinds
def test_what_others_have_done_comes_before_the_error(engine):
    done = []

    def collect():
        for result in engine.map_shards(ew.work_of(ew.Fails()), ew.shards()):
            done.append(result.key)

    with pytest.raises(InputError, match="no image of mine"):
        collect()
    assert {"clean 0", "clean 30"} <= set(done)


@kinds
def test_an_error_of_the_shards_comes_after_what_is_done(engine):
    def shards():
        yield from ew.shards()[:3]
        raise FileError("claims cannot be written")

    done = []

    def collect():
        for result in engine.map_shards(ew.work_of(ew.Linear()), shards()):
            done.append(result.key)

    with pytest.raises(FileError, match="claims cannot be written"):
        collect()
    assert sorted(done) == ["clean 0", "clean 30", "clean 60"]


@kinds
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (ew.Locked, r"can be sent to other processes.*cannot pickle '_thread.lock'.*one local"),
        (ew.Unloadable, r"another process can load them.*ValueError: invalid literal.*one local"),
    ],
)
def test_a_model_that_cannot_travel_is_refused(engine, function, message):
    with pytest.raises(InputError, match=message):
        list(engine.map_shards(ew.work_of(function()), ew.shards()))


def test_no_room_for_the_work_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(FileError, match=r"none must have room.*No such file.*TMPDIR"):
        list(TWO[0].map_shards(ew.work_of(ew.Linear()), ew.shards()))


def test_large_arrays_are_mapped_and_may_be_written_to():
    work = ew.work_of(ew.Linear())
    parcel = Parcel(work)
    try:
        there, again = opened(parcel.folder), opened(parcel.folder)
    finally:
        parcel.remove()
    weights = there.model.function.weights
    np.testing.assert_array_equal(weights, ew.WEIGHTS)
    assert not weights.flags.owndata
    weights += 1  # seen by nobody else
    np.testing.assert_array_equal(again.model.function.weights, ew.WEIGHTS)


def test_a_worker_reads_images_once_for_all_conditions(monkeypatch):
    work = ew.work_of(ew.Linear())
    reads = []
    images = type(work.images)
    monkeypatch.setattr(images, "_images", lambda self, i: reads.append(i[0]) or self._array[i])
    worker = Worker(work, threads=1)
    for shard in ew.shards("pixelate", "brightness"):
        worker.do(shard)
    worker.close()
    assert len(reads) == len(set(reads)) == 12


class Odd(Exception):
    """Cannot be loaded: its arguments are not those it is made of."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize("name", [name for name in errors.__all__ if "Warning" not in name])
def test_our_errors_travel_as_they_are(name):
    error = getattr(errors, name)("what went wrong")
    there = pickle.loads(pickle.dumps(error))
    assert type(there) is type(error)
    assert str(there) == "what went wrong"
    assert portable(error) is error


def test_errors_that_cannot_travel_are_told():
    told = portable(Odd(1, 2))
    assert type(told) is ShiftcalError
    assert str(told) == "Odd in a worker: 1 and 2"


@pytest.mark.slow
def test_a_killed_parent_leaves_neither_workers_nor_files(tmp_path):
    code = (
        "import engine_work as ew, os, signal\n"
        "from shiftcal.scoring.engines.local import LocalEngine\n"
        "work = ew.work_of(ew.Who(), dtype='float64')\n"
        "for result in LocalEngine(workers=2).map_shards(work, ew.shards('pixelate')):\n"
        "    print(int(result.logits[0, 0]), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    support = str(Path(ew.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": support, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() or any((tmp_path / "temporary").iterdir()):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_engines_are_found_by_name():
    assert names() == ["local", "ray"]
    assert get("local") is LocalEngine
    engine = engine_of("local", workers=3, address=None)
    assert isinstance(engine, LocalEngine)
    assert (engine.workers, engine.kind) == (3, "processes")
    assert engine_of("local", workers=None).workers == 1
    assert engine_of(engine) is engine


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: engine_of("lokal"), UnknownName, "no engine is called 'lokal'.*'local'"),
        (
            lambda: engine_of("local", address="10.0.0.1:6379"),
            InputError,
            "address must be left out for the local engine.*workers, kind.*say engine ray",
        ),
        (lambda: engine_of("local", size=3), InputError, r"size must be left out.*kind\.$"),
        (lambda: engine_of(LocalEngine(), workers=2), InputError, "workers must be left out.*made"),
        (lambda: engine_of("local", workers=0), InputError, "workers must be a whole number"),
        (lambda: LocalEngine(kind="fibres"), UnknownName, "kind must be one of 'processes'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_ray_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"the Ray engine needs ray.*shiftcal\[ray\]"):
        engine_of("ray", workers=2)


def test_a_new_engine_is_one_method():
    class Backwards(Engine):
        def map_shards(self, work, shards):
            return work(list(shards)[::-1])

    results = list(Backwards().map_shards(replace(ew.work_of(ew.Linear()), seed=1), ew.shards()))
    assert results[0].key == "clean 150"

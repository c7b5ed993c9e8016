"""Engines: the same bytes whoever computes them, deaths, errors, a clean end."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import engine_work as ew
import numpy as np
import pytest

from shiftcal import errors
from shiftcal.errors import (
    FileError,
    InputError,
    InputWarning,
    MissingExtra,
    ShiftcalError,
    UnknownName,
)
from shiftcal.models import as_model
from shiftcal.scoring.engines import Engine, LocalEngine, Worker, engine_of, get, names, portable

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
    [lambda: ew.work_of(ew.Linear(), dtype="float16"), ew.onnx_work, ew.torch_work],
    ids=["numpy16", "onnx", "torch"],
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


def test_a_local_function_can_be_sent_to_processes():
    secret = np.arange(3.0)
    results = TWO[0].map_shards(ew.work_of(lambda batch: batch[:, :3, 0, 0] + secret), ew.shards())
    assert sum(len(result.rows) for result in results) == ew.N


@kinds
def test_shards_are_taken_as_workers_become_free_and_workers_end_with_the_iteration(engine):
    shards = ew.Taken(ew.shards("pixelate"))
    results = engine.map_shards(ew.work_of(ew.Linear()), shards)
    for done, _ in enumerate(results, start=1):
        assert shards.count <= done + engine.workers
        if done == 4:
            results.close()
    assert shards.count <= 6
    assert list(engine.map_shards(ew.work_of(ew.Linear()), [])) == []


@pytest.mark.filterwarnings("ignore:workers should be at most")
def test_no_more_workers_than_shards(monkeypatch):
    loads = []
    monkeypatch.setattr(
        "shiftcal.scoring.engines._unpacked", lambda load: loads.append(1) or load()
    )
    for workers, shards in ((20, 2), (3, 6)):
        loads.clear()
        engine = LocalEngine(workers=workers, kind="threads")
        results = engine.map_shards(ew.work_of(ew.Linear()), ew.shards()[:shards])
        assert len(ew.by_key(results)) == shards
        assert len(loads) == min(workers, shards)


def test_processes_use_their_share_of_the_processors(monkeypatch):
    monkeypatch.setattr("shiftcal.scoring.engines.thread_count", lambda: 6)
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


def test_a_killed_worker_is_replaced(tmp_path):
    shards = ew.Taken(ew.shards("pixelate"))
    wanted = ew.by_key(LocalEngine().map_shards(ew.work_of(ew.Linear()), shards.items))
    work = ew.work_of(ew.Dies(tmp_path, times=2))
    assert ew.by_key(TWO[0].map_shards(work, shards)) == wanted
    assert (tmp_path / "died-1").exists()
    assert shards.count == len(shards.items)


def test_a_shard_that_ends_three_workers_is_an_error(tmp_path):
    work = ew.work_of(ew.Dies(tmp_path, times=9))
    with pytest.raises(ShiftcalError, match=r"3 workers died at images .*memory.*fewer workers"):
        list(TWO[0].map_shards(work, ew.shards()))
    assert len(list(tmp_path.glob("died-*"))) == 3


@kinds
def test_the_error_of_a_model_comes_as_it_is_after_finished_shards(engine):
    work, done = ew.work_of(ew.Fails()), []
    with pytest.raises(InputError) as alone:
        list(LocalEngine().map_shards(work, ew.shards()))
    with pytest.raises(InputError, match=r"images 76 to 89.*RuntimeError: no image of mine") as two:
        done += [result.key for result in engine.map_shards(work, ew.shards())]
    assert str(two.value) == str(alone.value)


@kinds
@pytest.mark.parametrize("good", [1, 3])
def test_an_error_of_the_shards_comes_after_what_is_done(engine, good):
    done = []

    def shards():
        yield from ew.shards()[:good]
        raise FileError("the disk is gone")

    def collect():
        for result in engine.map_shards(ew.work_of(ew.Linear()), shards()):
            done.append(result.key)

    with pytest.raises(FileError, match="the disk is gone"):
        collect()
    assert len(done) == good


@kinds
@pytest.mark.parametrize("name", ["InputError", "FileError", "MissingExtra"])
def test_an_error_of_ours_at_loading_keeps_class_message_and_notes(engine, name):
    with pytest.raises(ShiftcalError) as caught:
        list(engine.map_shards(ew.work_of(ew.Refused(name)), ew.shards()[:3]))
    assert type(caught.value) is getattr(errors, name)
    assert (str(caught.value), caught.value.__notes__) == ("what went wrong", ["and where"])


@pytest.mark.parametrize("engine", [LocalEngine(), *TWO], ids=["one", "processes", "threads"])
def test_a_model_that_exits_has_failed(engine):
    with pytest.raises(InputError, match=r"the model failed on images 76 to 89.*SystemExit: 3"):
        list(engine.map_shards(ew.work_of(ew.Raises(SystemExit(3))), ew.shards()[:3]))


@kinds
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (ew.Locked, r"must be picklable.*cannot pickle '_thread.lock'.*one local"),
        (ew.Unloadable, r"a worker can load them.*ValueError: invalid literal.*one local"),
        (ew.ExitsAtLoading, r"a worker can load them.*SystemExit: 0"),
    ],
)
def test_a_model_that_cannot_travel_raises(engine, function, message):
    with pytest.raises(InputError, match=message):
        list(engine.map_shards(ew.work_of(function()), ew.shards()))


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
    """Cannot be unpickled: its arguments are not those it is made of."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def test_errors_travel_or_are_described():
    for name in errors.__all__:
        error = getattr(errors, name)("what went wrong")
        assert type(pickle.loads(pickle.dumps(error))) is type(error)
        assert portable(error) is error
    for error, text in ((Odd(1, 2), "Odd in a worker: 1 and 2"), (SystemExit(0), "SystemExit in")):
        assert type(portable(error)) is ShiftcalError
        assert str(portable(error)).startswith(text)


@pytest.mark.slow
def test_a_killed_parent_leaves_neither_workers_nor_files(tmp_path):
    code = (
        "import engine_work as ew, os, signal\n"
        "from shiftcal.scoring.engines import LocalEngine\n"
        "work = ew.work_of(ew.Who(), dtype='float64')\n"
        "for result in LocalEngine(workers=2).map_shards(work, ew.shards('pixelate')):\n"
        "    print(int(result.logits[0, 0]), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    paths = [str(Path(ew.__file__).parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TMPDIR": str(tmp_path / "temporary"),
        },
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() or any((tmp_path / "temporary").iterdir()):
        assert time.monotonic() < end
        time.sleep(0.1)


# Which module path workers have.

PLACE = """
import os, sys
import numpy as np

def place(batch):
    here = os.getcwd()
    found = sys.path.index(here) == len(sys.path) - 1 if here in sys.path else False
    return np.tile(np.array([5 + float(found), float("" in sys.path)]), (len(batch), 1))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder that is not on the path."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield folder
    sys.modules.pop("model_of_here", None)


@pytest.mark.parametrize("first", [(), ("",)], ids=["not on the path", "first on the path"])
def test_the_current_folder_is_the_last_that_workers_import_from(here, first):
    (here / "model_of_here.py").write_text(PLACE)
    model = as_model("python:model_of_here:place")
    sys.path[:0] = first
    for result in TWO[0].map_shards(ew.work_of(model), ew.shards()[:2]):
        assert (result.logits == [6, 0]).all()
    assert sys.path[: len(first)] == list(first)


def test_workers_do_not_import_from_a_current_folder_that_nothing_came_from(here, tmp_path):
    (tmp_path / "model_of_here.py").write_text(PLACE)
    sys.path[:0] = ["", str(tmp_path)]
    model = as_model("python:model_of_here:place")
    for result in TWO[0].map_shards(ew.work_of(model), ew.shards()[:2]):
        assert (result.logits == [5, 0]).all()


def test_engines_by_name():
    assert names() == ["local", "ray"]
    assert get("local") is LocalEngine
    engine = engine_of("local", workers=3, address=None)
    assert (type(engine), engine.workers, engine.kind) == (LocalEngine, 3, "processes")
    assert engine_of(engine) is engine


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: engine_of("lokal"), UnknownName, "no engine is called 'lokal'.*'local'"),
        (lambda: engine_of("local", address="a:1"), InputError, "address must be.*engine ray"),
        (lambda: engine_of("local", size=3), InputError, r"size must be left out.*kind\.$"),
        (lambda: engine_of(LocalEngine(), workers=2), InputError, "workers must be left out"),
        (lambda: engine_of("local", workers=0), InputError, "workers must be a whole number"),
        (lambda: LocalEngine(kind="fibres"), UnknownName, "kind must be one of 'processes'"),
    ],
)
def test_settings_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_more_workers_than_processors_are_warned_of():
    engine = LocalEngine(workers=os.cpu_count() + 1, kind="threads")
    with pytest.warns(InputWarning, match=rf"at most {os.cpu_count()}, .*Each takes"):
        list(engine.map_shards(ew.work_of(ew.Linear()), ew.shards()[:1]))


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"the Ray engine needs ray.*shiftcal\[ray\]"):
        engine_of("ray", workers=2)


def test_a_new_engine_is_one_method():
    class Backwards(Engine):
        def map_shards(self, work, shards):
            return work(list(shards)[::-1])

    results = list(Backwards().map_shards(ew.work_of(ew.Linear()), ew.shards()))
    assert results[0].key == "clean 150"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.4, 3.0])  # while workers import, and while they score
def test_ctrl_c_ends_all_processes_quietly(tmp_path, seconds):
    code = (
        "import engine_work as ew, time\n"
        "from shiftcal.scoring.engines import LocalEngine\n"
        "work = ew.work_of(lambda batch: time.sleep(9) or batch[:, :3, 0, 0])\n"
        "print('begun', flush=True)\n"
        "try:\n"
        "    list(LocalEngine(workers=2).map_shards(work, ew.shards('pixelate')))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    paths = [str(Path(ew.__file__).parent), os.environ.get("PYTHONPATH", "")]
    temporary = tmp_path / "temporary"
    environment = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,  # a group of its own, all of which a terminal would interrupt
    ) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    end = time.monotonic() + 20
    while any(temporary.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.1)

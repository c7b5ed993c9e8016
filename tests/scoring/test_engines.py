"""Engines: the same bytes whoever computes them, deaths, errors, a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import engine_work as ew
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from shiftcal.errors import FileError, InputError, MissingExtra, ShiftcalError
from shiftcal.models import as_model
from shiftcal.scoring import score
from shiftcal.scoring.engines import LocalEngine, engine_of, in_processes

TWO = LocalEngine(workers=2)


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert [t for t in threading.enumerate() if t.name.startswith("shiftcal-")] == []


@pytest.mark.parametrize(
    "work",
    [
        lambda: ew.work_of(ew.Linear(), dtype="float16"),
        ew.onnx_work,
        pytest.param(ew.torch_work, marks=pytest.mark.slow),
    ],
    ids=["numpy16", "onnx", "torch"],
)
def test_two_workers_give_the_bytes_of_one(work):
    shards = ew.shards("gaussian_noise")[::3]
    one = ew.by_key(LocalEngine().map_shards(work(), shards))
    assert set(one) == {shard.key for shard in shards}
    assert len(set(one.values())) == len(shards)  # all of them different
    assert ew.by_key(TWO.map_shards(work(), shards)) == one


def test_float_products_are_the_same_with_one_worker_and_with_two():
    weights = np.random.default_rng(1).standard_normal((3072, 10)).astype(np.float32)
    images = np.random.default_rng(0).integers(0, 256, (600, 32, 32, 3), np.uint8)
    model = as_model(lambda b: b.reshape(len(b), -1) @ weights, key="linear", batch_size=300)
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        one, two = (score(model, images, shard_size=300, engine=e) for e in (None, TWO))
        assert threadpool_info() == before  # as many threads as before
    np.testing.assert_array_equal(one.values, two.values)


def test_one_worker_is_this_process_keeps_the_order_and_reads_images_once(monkeypatch):
    work, reads = ew.work_of(ew.Who()), []
    monkeypatch.setattr(
        type(work.images), "_images", lambda self, i: reads.append(i[0]) or self._array[i]
    )
    shards = sorted(ew.shards("pixelate", "brightness"), key=lambda shard: shard.start)
    results = list(LocalEngine().map_shards(work, shards))
    assert [result.key for result in results] == [shard.key for shard in shards]
    assert {row[0] for result in results for row in result.logits} == {np.float32(os.getpid())}
    assert len(reads) == len(set(reads)) == 12


def test_workers_share_the_processors_take_shards_when_free_and_end_with_the_iteration(
    monkeypatch,
):
    monkeypatch.setattr("shiftcal.scoring.engines.thread_count", lambda: 6)
    shards, seen = ew.Taken(ew.shards("pixelate")), set()
    results = TWO.map_shards(ew.work_of(ew.Who()), shards)
    for done, result in enumerate(results, start=1):
        assert shards.count <= done + 2
        seen |= {tuple(row) for row in result.logits}
        if done == 4:
            results.close()
    assert shards.count <= 6
    assert {limit for _, limit, _ in seen} == {3}
    assert 1 <= len(seen) <= 2
    for pid, *_ in seen:
        assert pid != os.getpid()
        assert not Path(f"/proc/{int(pid)}").exists()
    assert list(TWO.map_shards(ew.work_of(ew.Linear()), [])) == []


def test_functions_of_a_script_and_what_they_print_reach_processes(capfd):
    secret = np.arange(3)

    def add(number):
        os.write(1, b"not a result")
        return number + secret

    found = sorted(in_processes(add, range(5), 2), key=lambda array: array[0])
    np.testing.assert_array_equal(found, np.arange(5)[:, None] + secret)
    assert capfd.readouterr().out == ""


def test_a_killed_worker_is_replaced(tmp_path):
    shards = ew.Taken(ew.shards())
    wanted = ew.by_key(LocalEngine().map_shards(ew.work_of(ew.Linear()), shards.items))
    work = ew.work_of(ew.Dies(tmp_path, times=2))
    assert ew.by_key(TWO.map_shards(work, shards)) == wanted
    assert (tmp_path / "died-1").exists()
    assert shards.count == len(shards.items)


def test_a_shard_that_ends_three_workers_is_an_error(tmp_path):
    work = ew.work_of(ew.Dies(tmp_path, times=9))
    with pytest.raises(ShiftcalError, match=r"3 workers died at images .*memory.*fewer workers"):
        list(TWO.map_shards(work, ew.shards()))
    assert len(list(tmp_path.glob("died-*"))) == 3


def test_the_error_of_a_model_comes_as_it_is():
    found = []
    for engine in (LocalEngine(), TWO):
        with pytest.raises(InputError, match=r"images 76 to 89.*no image of mine") as caught:
            list(engine.map_shards(ew.work_of(ew.Fails()), ew.shards()[:3]))
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_an_error_of_ours_at_loading_keeps_class_message_and_notes():
    with pytest.raises(FileError, match="what went wrong") as caught:
        list(TWO.map_shards(ew.work_of(ew.Refused()), ew.shards()[:3]))
    assert caught.value.__notes__ == ["and where"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (ew.Locked, r"must be picklable.*cannot pickle '_thread.lock'.*one local"),
        (ew.ExitsAtLoading, r"a worker can load them.*SystemExit: 0"),
    ],
)
def test_a_model_that_cannot_travel_raises(function, message):
    with pytest.raises(InputError, match=message):
        list(TWO.map_shards(ew.work_of(function()), ew.shards()))


# Which folders workers import from.

PLACE = """
import os, sys
import numpy as np

def place(batch):
    here = os.getcwd()
    found = sys.path.index(here) == len(sys.path) - 1 if here in sys.path else False
    return np.tile(np.array([5 + float(found), float("" in sys.path)]), (len(batch), 1))
"""


@pytest.mark.parametrize("used", [True, False])
def test_workers_import_from_the_current_folder_last_and_only_if_it_was_used(
    tmp_path, monkeypatch, used
):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", ["", *sys.path, *([] if used else [str(tmp_path)])])
    ((here if used else tmp_path) / "model_of_here.py").write_text(PLACE)
    try:
        model = as_model("python:model_of_here:place")
        for result in TWO.map_shards(ew.work_of(model), ew.shards()[:2]):
            assert (result.logits == [6 if used else 5, 0]).all()
    finally:
        sys.modules.pop("model_of_here", None)


def test_engines_by_name(monkeypatch):
    engine = engine_of("local", workers=3, address=None)
    assert (type(engine), engine.workers) == (LocalEngine, 3)
    assert engine_of(engine) is engine
    for call, error, words in (
        (lambda: engine_of("lokal"), InputError, "no engine is called 'lokal'.*'local'"),
        (lambda: engine_of("local", address="a:1"), InputError, "address must be.*engine ray"),
        (lambda: engine_of("local", workers=0), InputError, "workers must be a whole number"),
    ):
        with pytest.raises(error, match=words):
            call()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"the Ray engine needs ray.*shiftcal\[ray\]"):
        engine_of("ray", workers=2)


SLOW = """
import engine_work as ew, os, time
from shiftcal.scoring.engines import LocalEngine
work = ew.work_of(ew.Who())
print('begun', flush=True)
try:
    for result in LocalEngine(workers=2).map_shards(work, ew.shards('pixelate')):
        print(int(result.logits[0, 0]), flush=True)
        time.sleep(9)
except KeyboardInterrupt:
    print('interrupted')
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT", "SIGINT at the start"])
def test_workers_end_with_a_process_that_is_stopped(how):
    paths = [str(Path(ew.__file__).parent), os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # a group of its own, all of which a terminal would interrupt
    ) as process:
        assert process.stdout.readline() == "begun\n"
        pid = None
        if how == "SIGINT at the start":
            time.sleep(0.3)
        else:
            pid = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGKILL if how == "SIGKILL" else signal.SIGINT)
        rest = process.communicate(timeout=60)[0]
    assert "Traceback" not in rest
    assert how == "SIGKILL" or rest.endswith("interrupted\n")
    end = time.monotonic() + 20
    while pid is not None and Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.1)

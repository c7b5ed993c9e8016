"""A Ray for real: two workers of this machine, the same bytes, deaths, errors, a clean end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import engine_work as ew
import pytest

from shiftcal.errors import InputError
from shiftcal.scoring.engines import LocalEngine, RayEngine

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and log files to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
    # Of Ray 2.5x, at every start without a graphics processor.
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]


def processes_of_ray():
    """Processes of a Ray that run, by number."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        is_ray = any(name in words[0] for name in (b"raylet", b"gcs_server", b"ray::"))
        if is_ray and state != "Z":
            found.add(int(folder.name))
    return found


@pytest.fixture(scope="module")
def address():
    """One Ray for all tests that need none of their own: starting one takes seconds."""
    before = processes_of_ray()
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
    assert processes_of_ray() <= before


@pytest.fixture
def two(address):
    yield RayEngine(workers=2)
    assert ray.is_initialized()  # it was there before, and is left


@pytest.fixture
def single(address):
    """One worker, for what does not take two: each is a process that has to be started."""
    return RayEngine(workers=1)


def test_two_workers_of_ray_give_the_bytes_of_one_local(two):
    work, shards = ew.work_of(ew.Linear(), dtype="float16"), ew.shards("gaussian_noise")
    results = list(two.map_shards(work, shards))
    assert ew.by_key(results) == ew.by_key(LocalEngine().map_shards(work, shards))
    for result in results:  # in memory of this process
        assert result.logits.flags.writeable
        assert result.rows.flags.owndata


def test_workers_are_other_processes_that_take_what_they_can_do_and_end_with_it(two):
    shards, seen = ew.Taken(ew.shards("pixelate")), set()
    results = two.map_shards(ew.work_of(ew.Who()), shards)
    for given, result in enumerate(results, start=1):
        assert shards.count <= given + 2
        seen |= {tuple(row) for row in result.logits}
        if given == 4:
            results.close()
    assert shards.count <= 6
    assert 1 <= len(seen) <= 2
    assert {limit for _, limit, _ in seen} == {1}
    pids = {int(pid) for pid, _, _ in seen}
    assert os.getpid() not in pids
    end = time.monotonic() + 30  # Ray ends them when it comes to it
    while pids & processes_of_ray():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_killed_actor_costs_its_shard_only(two, tmp_path):
    shards = ew.Taken(ew.shards())
    wanted = ew.by_key(LocalEngine().map_shards(ew.work_of(ew.Linear()), shards.items))
    work = ew.work_of(ew.Dies(tmp_path, times=1))
    assert ew.by_key(two.map_shards(work, shards)) == wanted
    assert (tmp_path / "died-0").exists()
    assert shards.count == len(shards.items)


def test_the_error_of_a_model_comes_back_as_it_is(single):
    work = ew.work_of(ew.Fails())
    with pytest.raises(InputError) as alone:
        list(LocalEngine().map_shards(work, ew.shards()))
    with pytest.raises(InputError) as there:
        list(single.map_shards(work, ew.shards()))
    assert type(there.value) is InputError
    assert str(there.value) == str(alone.value)


def test_what_does_not_fit_raises(address):
    with pytest.raises(InputError, match=r"1 GPUs must fit into the cluster, which has 2 and 0"):
        list(RayEngine(gpus_per_worker=1).map_shards(ew.work_of(ew.Linear()), ew.shards()))
    with pytest.raises(InputError, match=r"must fit.*2 would. Ask for less"):
        list(RayEngine(workers=3).map_shards(ew.work_of(ew.Linear()), ew.shards()))


# Another process, since a process knows one Ray at a time.
ELSEWHERE = """
import sys, engine_work as ew, ray
from shiftcal.scoring.engines import LocalEngine
from shiftcal.scoring.engines import RayEngine
work = ew.work_of(ew.Linear())
shards = ew.shards()[:2]
wanted = ew.by_key(LocalEngine().map_shards(work, shards))
assert ew.by_key(RayEngine(**{settings}).map_shards(work, shards)) == wanted
assert not ray.is_initialized()
print("done")
"""


def elsewhere(settings, environment):
    paths = [str(Path(ew.__file__).parent), environment.get("PYTHONPATH")]
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE.replace("{settings}", repr(settings))],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.stdout == "done\n", done.stderr


def test_a_cluster_that_runs_is_used_and_left_running(address):
    elsewhere({"address": address, "workers": 1}, dict(os.environ))
    assert ray.get(ray.put(1)) == 1


def test_a_ray_of_our_own_is_ended(address):
    before = processes_of_ray()
    elsewhere({"workers": 1}, dict(os.environ))
    assert processes_of_ray() <= before


def test_what_cannot_be_used_raises_soon(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(InputError, match=r"running Ray cluster; got '127.0.0.1:1'.*refused"):
        list(RayEngine(address="127.0.0.1:1").map_shards(ew.work_of(ew.Linear()), ew.shards()))
    with pytest.raises(InputError, match="cpus_per_worker must be a whole number or below 1"):
        RayEngine(cpus_per_worker=1.5)

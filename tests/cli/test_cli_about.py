"""``shiftcal list``, ``doctor`` and ``data``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import pytest
from toy_sets import Turn, about_toys, serving, source_of, toy_archive, use_toys, write_toys

from shiftcal import adaptation, corruptions, estimates, maps, methods, metrics
from shiftcal.datasets.catalog import Download

REGISTRIES = {
    "methods": methods,
    "maps": maps,
    "metrics": metrics,
    "corruptions": corruptions,
    "estimators": estimates,
    "trainers": adaptation,
}


def test_everything_there_is_has_its_line(shiftcal, shiftcal_json):
    for kind, registry in REGISTRIES.items():
        document = shiftcal_json(f"list {kind}")
        names = [entry["name"] for entry in document[kind]]
        assert sorted(names) == sorted(registry.names())
        assert all(entry["summary"] for entry in document[kind])
        lines = shiftcal(f"list {kind}").out.splitlines()[1:]
        assert [line.split(" ")[0] for line in lines] == names
    document = shiftcal_json("list")
    sac = next(m for m in document["methods"] if m["name"] == "sac")
    assert (sac["uses_target"], sac["uses_features"], sac["uses_mixed"]) == (True, False, False)
    assert sac["settings"] == {"map": "temperature", "distance": "mean", "peek": None, "seed": 0}


PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def names(requirements):
    return {one.partition(">")[0].partition("[")[0] for one in requirements}


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that a package has another version, or is not installed."""
    true = metadata.version

    def set_version(name, version):
        def looked_up(asked):
            if asked == name and version is None:
                raise metadata.PackageNotFoundError(name)
            return version if asked == name else true(asked)

        monkeypatch.setattr(metadata, "version", looked_up)

    return set_version


def test_the_core_and_every_extra_are_listed(shiftcal_json, shiftcal):
    document, extras = shiftcal_json("doctor"), PROJECT["optional-dependencies"]
    assert {p["name"] for p in document["core"]} == names(PROJECT["dependencies"])
    assert set(document["extras"]) == set(extras) - {"all", "dev"}
    for extra in set(document["extras"]) - {"report"}:
        listed = {p["name"] for p in document["extras"][extra]["packages"]}
        assert listed == names(extras[extra])
    assert document["problems"] == []
    done = shiftcal("doctor")
    assert (done.status, done.err) == (0, "")
    for words in ("no problems found", sys.executable, metadata.version("scipy")):
        assert words in done.out


def test_a_missing_extra_is_no_problem_and_comes_with_what_to_install(shiftcal, pretend):
    pretend("onnxruntime", None)
    done = shiftcal("doctor")
    assert (done.status, done.err) == (0, "")
    line = next(line for line in done.out.splitlines() if "onnxruntime" in line)
    assert line.startswith("onnx ")
    assert "not installed" in line
    advice = next(line for line in done.out.splitlines() if line.startswith("pip install"))
    assert "onnx" in advice  # and other extras that are not here


@pytest.mark.parametrize(
    ("name", "version", "problem"),
    [
        ("scipy", None, "scipy: not installed"),
        ("scipy", "1.2", "scipy: older than"),
        ("matplotlib", "3.0.1", "matplotlib (extra plot): older than 3.8"),
    ],
)
def test_packages_that_cannot_be_used_are_problems(shiftcal, pretend, name, version, problem):
    pretend(name, version)
    done = shiftcal("doctor")
    assert done.status == 1
    assert problem in done.err
    assert problem in done.out


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A complete copy in ``copy``, and the toys in the place of the published sets."""
    use_toys(monkeypatch)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.chdir(tmp_path)
    return write_toys(tmp_path / "copy")


@pytest.fixture
def server(toys, tmp_path, monkeypatch):
    """An address that the toys can be fetched from."""
    (tmp_path / "made").mkdir()
    body = toy_archive(tmp_path / "made")
    with serving() as toy:
        toy.body = body
        toy.source = source_of(toy.offer("/toys.tar.gz", Turn(body)), body)
        about_toys(monkeypatch, downloads=(toy.source,))
        yield toy


def test_a_complete_copy(toys, shiftcal, shiftcal_json):
    assert shiftcal("data check toys copy").status == 0
    document = shiftcal_json("data check TOYS copy --part test")
    assert (document["name"], document["path"], document["complete"]) == ("toys", "copy", True)
    (part,) = document["parts"]
    assert (part["name"], part["state"], part["found"]) == ("test", "complete", 6)


def test_a_copy_that_is_not_complete_has_status_2_and_says_what_to_do(
    toys, shiftcal, shiftcal_json
):
    (toys / "toys" / "test" / "car" / "1.png").unlink()
    (toys / "toys" / "train").rename(toys / "elsewhere")
    done = shiftcal("data check toys copy")
    assert done.status == 2
    assert "train  missing        12      0        0" in done.out
    assert "test: there must be 6 images; there are 5." in done.out
    assert "To download it: shiftcal data get toys -o copy" in done.err
    document = shiftcal_json("data check toys copy", status=2)
    assert document["complete"] is False
    assert [part["state"] for part in document["parts"]] == ["missing", "wrong"]


def test_another_checksum_is_told(toys, shiftcal, monkeypatch):
    about_toys(monkeypatch, downloads=(Download("https://example.org/list.txt", "md5:00"),))
    (toys / "list.txt").write_text("toys")
    done = shiftcal("data check toys copy")
    assert done.status == 2
    assert "list.txt: md5 00, got " in done.out


def test_a_set_is_fetched_and_the_second_time_is_there(server, shiftcal, shiftcal_json):
    done = shiftcal("data get toys")
    assert done.status == 0
    assert "toys.tar.gz  yes  yes" in done.out
    assert shiftcal("data check toys toys").status == 0
    again = shiftcal("data get toys")
    assert (again.status, again.err) == (0, "")
    assert "toys.tar.gz  no   yes" in again.out
    assert len(server.asked) == 1
    document = shiftcal_json("data get toys --again")
    assert len(server.asked) == 2
    url = server.source.url
    assert document["files"] == [{"file": "toys.tar.gz", "url": url, "new": True, "verified": True}]


def test_a_failure_is_one_line_with_status_2(server, shiftcal):
    server.offer("/toys.tar.gz", Turn(b"no", status=404))
    done = shiftcal("data get toys --to new")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(
        f"error: {server.source.url} could not be downloaded: HTTP Error 404"
    )
    assert done.err.count("\n") == 1


PROGRAM = """
import json, sys
from dataclasses import replace
import toy_sets
from shiftcal.registry import DATA_SETS
from shiftcal.cli.main import run
from shiftcal.datasets.catalog import Download

DATA_SETS.entries = toy_sets.ENTRIES
source = Download(**json.loads(sys.argv[1]))
toy_sets.TOYS = replace(toy_sets.TOYS, downloads=(source,))
sys.exit(run(["data", "get", "toys", "--to", "new"]))
"""


def test_kill_9_keeps_the_part_and_the_next_run_resumes(server, shiftcal, request):
    release, half = threading.Event(), len(server.body) // 2
    server.offer(
        "/toys.tar.gz", Turn(server.body, cut_after=half, stall=release), Turn(server.body)
    )
    support = str(request.config.rootpath / "tests" / "support")
    words = [sys.executable, "-c", PROGRAM, json.dumps(asdict(server.source))]
    paths = os.pathsep.join(filter(None, [support, os.environ.get("PYTHONPATH")]))
    partial, deadline = Path("new/toys.tar.gz.partial"), time.monotonic() + 180
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": paths}) as process:
        while not partial.exists() or partial.stat().st_size < half:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    release.set()
    assert partial.read_bytes() == server.body[:half]
    assert shiftcal("data get toys --to new").status == 0
    assert server.ranges() == [None, f"bytes={half}-"]
    assert shiftcal("data check toys new").status == 0

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

from shiftcal import corruptions, datasets, maps, methods, metrics
from shiftcal.datasets.catalog import Download


def test_everything_there_is_has_its_line(shiftcal):
    done = shiftcal("list")
    assert (done.status, done.err) == (0, "")
    first_words = [line.split(" ")[0] for line in done.out.splitlines()]
    registries = (methods, maps, metrics, corruptions)
    for name in (name for registry in registries for name in registry.names()):
        assert name in first_words
    assert "``" not in done.out


def test_the_json_document(shiftcal_json):
    document = shiftcal_json("list")
    kinds = {"methods", "maps", "metrics", "corruptions"}
    assert set(document) == {"shiftcal", "command", "warnings", *kinds}
    assert {m["name"] for m in document["methods"]} == set(methods.names())
    assert [m["name"] for m in document["maps"]] == maps.names()
    assert [m["name"] for m in document["metrics"]] == metrics.names()
    assert [c["name"] for c in document["corruptions"]] == corruptions.names()
    sac = next(m for m in document["methods"] if m["name"] == "sac")
    assert sac["uses_target"] is True
    assert sac["uses_features"] is False
    assert sac["uses_mixed"] is False
    assert sac["settings"] == {"map": "temperature", "distance": "mean", "peek": None, "seed": 0}
    temperature = next(m for m in document["maps"] if m["name"] == "temperature")
    assert temperature["preserves_accuracy"] is True
    histogram = next(m for m in document["maps"] if m["name"] == "histogram")
    assert histogram["settings"] == {"n_bins": 15}
    accuracy = next(m for m in document["metrics"] if m["name"] == "accuracy")
    assert accuracy["better"] == "higher"
    contrast = next(c for c in document["corruptions"] if c["name"] == "contrast")
    assert contrast["summary"].startswith("Every channel drawn towards its mean")
    assert (contrast["group"], contrast["random"]) == ("digital", False)
    assert contrast["severities"] == 5
    for entry in (entry for kind in kinds for entry in document[kind]):
        assert entry["summary"], entry["name"]


@pytest.mark.parametrize("kind", ["methods", "maps", "metrics", "corruptions", "estimators"])
def test_one_kind_is_listed_alone(shiftcal, shiftcal_json, kind):
    document = shiftcal_json(f"list {kind}")
    assert set(document) == {"shiftcal", "command", "warnings", kind}
    names = [entry["name"] for entry in document[kind]]
    assert [line.split(" ")[0] for line in shiftcal(f"list {kind}").out.splitlines()[1:]] == names
    assert shiftcal("list nothing").status == 2


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
    assert "pip install 'shiftcal[onnx]'" in done.out


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


def test_a_package_that_cannot_be_imported_is_a_problem_if_asked(shiftcal, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    assert shiftcal("doctor").status == 0
    assert "skops (extra skops): import fails" in shiftcal("doctor --imports").err


DOCS = Path(__file__).parents[2] / "docs" / "command-line.md"


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


def test_the_list_has_every_set(shiftcal):
    done = shiftcal("data list")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].split() == ["name", "data", "set", "classes", "images", "download", "licence"]
    assert [line.split()[0] for line in lines[1:]] == datasets.names()


def test_a_complete_copy(toys, shiftcal, shiftcal_json):
    done = shiftcal("data check toys copy")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "part   state     must be  there are  looked at",
        "train  complete       12         12         12",
        "test   complete        6          6          6",
    ]
    document = shiftcal_json("data check TOYS copy --part test")
    assert (document["command"], document["name"], document["path"]) == (
        "data check",
        "toys",
        "copy",
    )
    assert document["complete"] is True
    assert document["parts"] == [
        {
            "name": "test",
            "state": "complete",
            "expected": 6,
            "found": 6,
            "decoded": 6,
            "problems": [],
        }
    ]


def test_a_copy_that_is_not_complete_has_status_2_and_says_what_to_do(
    toys, shiftcal, shiftcal_json
):
    (toys / "toys" / "test" / "car" / "1.png").unlink()
    (toys / "toys" / "train").rename(toys / "elsewhere")
    done = shiftcal("data check toys copy")
    assert done.status == 2
    assert done.out.splitlines() == [
        "part   state    must be  there are  looked at",
        "train  missing       12          0          0",
        "test   wrong          6          5          5",
        "train: copy/toys/train does not exist.",
        "test: there must be 6 images; there are 5.",
        "test: every class must have 2 images; not so: car (1).",
    ]
    assert done.err == (
        "error: the copy is not complete: train, test. "
        "To download it: shiftcal data get toys --to copy\n"
    )
    document = shiftcal_json("data check toys copy", status=2)
    assert document["complete"] is False
    assert [part["state"] for part in document["parts"]] == ["missing", "wrong"]


def test_another_checksum_is_told(toys, shiftcal, monkeypatch):
    about_toys(monkeypatch, downloads=(Download("https://example.org/list.txt", "md5:00"),))
    (toys / "list.txt").write_text("toys")
    done = shiftcal("data check toys copy")
    assert done.status == 2
    assert "list.txt: md5 00, got " in done.out
    assert "1 files have another checksum" in done.err


def test_without_a_command_the_help_comes(shiftcal):
    done = shiftcal("data")
    assert (done.status, done.out) == (2, "")
    assert "check  Say whether" in done.err
    assert done.err.endswith("error: no command was given. Choose one of those above.\n")


def test_a_set_is_fetched_and_the_second_time_is_there(server, shiftcal, shiftcal_json):
    done = shiftcal("data get toys")
    assert done.status == 0
    assert done.out.splitlines() == [
        "file                     checksum",
        "toys.tar.gz  downloaded  verified",
        "",
        "in        toys",
        "licence   free",
        "check     shiftcal data check toys toys",
    ]
    assert shiftcal("data check toys toys").status == 0
    again = shiftcal("data get toys")
    assert (again.status, again.err) == (0, "")
    assert "toys.tar.gz  was there already  verified" in again.out
    assert len(server.asked) == 1
    document = shiftcal_json("data get toys --again")
    assert len(server.asked) == 2
    assert (document["name"], document["folder"], document["licence"]) == ("toys", "toys", "free")
    assert document["files"] == [
        {
            "file": "toys.tar.gz",
            "url": server.source.url,
            "new": True,
            "verified": True,
        }
    ]


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


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("data list", "data list"),
        ("data check", "data check toys copy"),
        ("data get", "data get toys --to new"),
    ],
)
def test_the_docs_name_every_key(server, shiftcal_json, command, words):
    text = DOCS.read_text("utf-8")
    section = text.partition(f"### `shiftcal {command}`")[2].partition("\n##")[0]
    common = text.partition("## JSON")[2]
    document = shiftcal_json(words)
    inner = next((value[0] for value in document.values() if _rows(value)), {})
    for key in (*document, *inner):
        assert f"`{key}`" in section or f"`{key}`" in common, key


def _rows(value):
    return isinstance(value, list) and value and isinstance(value[0], dict)

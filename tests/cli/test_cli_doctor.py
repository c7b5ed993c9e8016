"""``shiftcal doctor`` lists what is installed and what is not, and never fails itself."""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

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
    for words in ("no problems found", sys.executable, metadata.version("numba")):
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

"""``shiftcal doctor``: it tells what is there and what is not, and never falls over."""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from shiftcal.cli import _doctor_machine, _doctor_packages
from shiftcal.cli.doctor import _FOR

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def bare(requirement):
    return requirement.partition(">")[0].partition("[")[0]


def test_the_core_and_every_extra_are_listed(shiftcal_json):
    document = shiftcal_json("doctor")
    assert {p["name"] for p in document["core"]} == {bare(r) for r in PROJECT["dependencies"]}
    extras = PROJECT["optional-dependencies"]
    shown = set(extras) - {"all", "dev"}
    assert set(document["extras"]) == shown == set(_FOR)
    for extra in shown - {"report"}:
        listed = {p["name"] for p in document["extras"][extra]["packages"]}
        assert listed == {bare(r) for r in extras[extra]}
    assert document["problems"] == []
    numpy = next(p for p in document["core"] if p["name"] == "numpy")
    assert numpy["installed"] == metadata.version("numpy")


def test_the_text_says_that_nothing_is_wrong(shiftcal):
    done = shiftcal("doctor")
    assert (done.status, done.err) == (0, "")
    assert "nothing is wrong" in done.out
    assert sys.executable in done.out
    assert metadata.version("numba") in done.out


@pytest.fixture
def without(monkeypatch):
    """Pretend that a package is at another version, or not there at all."""
    true = metadata.version

    def pretend(name, version):
        def looked_up(asked):
            if asked != name:
                return true(asked)
            if version is None:
                raise metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(metadata, "version", looked_up)

    return pretend


def test_a_missing_extra_is_no_problem_and_comes_with_what_to_install(shiftcal, without):
    without("onnxruntime", None)
    done = shiftcal("doctor")
    assert (done.status, done.err) == (0, "")
    line = next(line for line in done.out.splitlines() if line.startswith("onnx "))
    assert "onnxruntime not installed" in line
    assert "pip install 'shiftcal[onnx]'" in line


@pytest.mark.parametrize(("version", "reason"), [(None, "not installed"), ("1.2", "older than")])
def test_a_core_package_that_cannot_be_used_is_a_problem(shiftcal, without, version, reason):
    without("scipy", version)
    done = shiftcal("doctor")
    assert done.status == 1
    assert f"scipy: {reason}" in done.err
    assert f"scipy: {reason}" in done.out


def test_an_old_package_of_an_extra_is_a_problem(shiftcal_json, without):
    without("matplotlib", "3.0.1")
    document = shiftcal_json("doctor", status=1)
    assert "matplotlib (extra plot): older than 3.8" in document["problems"]
    assert document["extras"]["plot"]["complete"] is False


@pytest.mark.parametrize(
    ("here", "least", "older"),
    [
        ("2.13.0+cpu", "2.4", False),
        ("2.4", "2.4.0", False),
        ("1.26.4", "1.26", False),
        ("1.9", "1.26", True),
        ("2.0.0rc1", "2.0", False),
    ],
)
def test_versions_are_compared_as_numbers(without, here, least, older):
    without("numpy", here)
    found = _doctor_packages._package("numpy", least, imported=False)
    assert bool(found.problem) is older


def test_a_package_that_cannot_be_imported_is_found_if_asked(tmp_path, monkeypatch):
    (tmp_path / "brokenpackage.py").write_text("raise OSError('libbroken.so: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    told = _doctor_packages._import_problem("brokenpackage")
    assert told == "import fails: OSError: libbroken.so: no such file"
    assert _doctor_packages._import_problem("json") == ""


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written to" in _doctor_machine.unwritable(tmp_path / "file" / "cache")
    assert _doctor_machine.unwritable(tmp_path / "new") == ""


def test_a_cache_that_cannot_be_kept_is_told_and_no_problem(shiftcal, monkeypatch):
    problem = {"path": None, "problem": "no locator available"}
    monkeypatch.setattr(_doctor_machine, "kernel_cache", lambda: problem)
    done = shiftcal("doctor")
    assert done.status == 0
    assert "compiled anew in each process: no locator available" in done.out


def test_the_cache_is_where_numba_keeps_it(tmp_path, monkeypatch):
    import numba

    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    found = _doctor_machine.kernel_cache()
    assert found["problem"] == ""
    assert Path(found["path"]).is_relative_to(tmp_path)


def test_threads_of_the_environment_are_shown(shiftcal_json, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    threads = shiftcal_json("doctor")["threads"]
    assert threads["environment"]["OMP_NUM_THREADS"] == "3"
    assert 1 <= threads["usable"] <= threads["processors"]


def test_a_cache_of_shards_that_cannot_be_used_is_a_problem(shiftcal, tmp_path, monkeypatch):
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    assert "not set (no shards are shared)" in shiftcal("doctor").out
    monkeypatch.setenv("SHIFTCAL_CACHE", str(tmp_path / "made" / "later"))
    done = shiftcal("doctor")
    assert done.status == 0
    assert str(tmp_path / "made" / "later") in done.out
    assert not (tmp_path / "made").exists()
    (tmp_path / "file").touch()
    monkeypatch.setenv("SHIFTCAL_CACHE", str(tmp_path / "file"))
    done = shiftcal("doctor")
    assert done.status == 1
    assert f"SHIFTCAL_CACHE: {tmp_path / 'file'} cannot be written to" in done.err

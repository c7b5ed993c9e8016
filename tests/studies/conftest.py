"""The toy study: its data, and a finished run of it."""

from __future__ import annotations

import shutil

import pytest
import toy_adaptation
from toy_study import ALL, toy_plan, write_data

from shiftcal import studies
from shiftcal.studies import run


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The folder of the toy's images."""
    return write_data(tmp_path_factory.mktemp("toy") / "data")


@pytest.fixture(scope="session")
def once(tmp_path_factory, data):
    """A finished run with all methods, which no test may change; and what was said of it."""
    folder = tmp_path_factory.mktemp("once") / "run"
    return studies.reproduce(toy_plan(data, methods=ALL), folder)


@pytest.fixture
def finished(tmp_path, once):
    """The folder of a copy of it."""
    return shutil.copytree(once.folder, tmp_path / "run")


@pytest.fixture(scope="session")
def times_of_day(tmp_path_factory):
    """The folder of the toy domains."""
    return toy_adaptation.write_domains(tmp_path_factory.mktemp("adapting") / "data")


@pytest.fixture(scope="session")
def adapted_once(tmp_path_factory, times_of_day):
    """A finished run of domain adaptation, which no test may change."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("adapted") / "run"
    return studies.reproduce(toy_adaptation.toy_plan(times_of_day), folder)


@pytest.fixture
def adapted_run(tmp_path, adapted_once):
    """The folder of a copy of it."""
    return shutil.copytree(adapted_once.folder, tmp_path / "run")


@pytest.fixture
def undrawn(monkeypatch):
    """No figures, which take seconds."""
    monkeypatch.setattr(run, "write_figure", lambda *_: [])

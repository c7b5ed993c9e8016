"""The toy study of domain adaptation: its images, and a finished run of it."""

from __future__ import annotations

import shutil

import pytest
from toy_adaptation import toy_plan, write_domains

from shiftcal import studies


@pytest.fixture(scope="session")
def times_of_day(tmp_path_factory):
    """The folder of the toy's images."""
    return write_domains(tmp_path_factory.mktemp("adapting") / "data")


@pytest.fixture(scope="session")
def adapted_once(tmp_path_factory, times_of_day):
    """A finished run, which no test may change; and what was said of it."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("adapted") / "run"
    return studies.reproduce(toy_plan(times_of_day), folder)


@pytest.fixture
def adapted_run(tmp_path, adapted_once):
    """The folder of a copy of it."""
    return shutil.copytree(adapted_once.folder, tmp_path / "run")

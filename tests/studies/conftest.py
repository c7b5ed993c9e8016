"""The toy study: its data, and a finished run of it."""

from __future__ import annotations

import shutil

import pytest
from toy_study import ALL, toy_plan, write_data

from shiftcal import studies


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

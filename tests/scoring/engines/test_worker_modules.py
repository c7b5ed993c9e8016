"""Workers find the modules that this process has found, in its current folder too."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

import engine_work as ew
import pytest

from shiftcal.scoring.engines._search_path import extend_search_path, search_path
from shiftcal.scoring.engines.local import LocalEngine

MODEL = """
import numpy as np

class Constant:
    def __call__(self, batch):
        return np.tile(np.array([{value}, 0.0]), (len(batch), 1))
"""
FACTORY = """
import torch

class Net(torch.nn.Module):
    def forward(self, batch):
        return batch.mean((2, 3))

def make():
    return Net()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder that is not on the path."""
    folder = tmp_path / "here"
    folder.mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield folder
    for name in ("model_of_here", "factory_of_here"):
        sys.modules.pop(name, None)


def imported_as_a_spec_does(folder, name):
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def test_a_model_of_the_current_folder_reaches_workers_and_wins(here, tmp_path):
    (here / "model_of_here.py").write_text(MODEL.format(value=3))
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "model_of_here.py").write_text(MODEL.format(value=4))
    module = imported_as_a_spec_does(here, "model_of_here")
    sys.path.insert(0, str(installed))
    work = ew.work_of(module.Constant())
    results = list(LocalEngine(workers=2).map_shards(work, ew.shards()[:2]))
    assert {row[0] for result in results for row in result.logits} == {3}
    assert str(here) not in sys.path


@pytest.mark.slow
def test_a_network_of_a_factory_in_the_current_folder_reaches_workers(here):
    from shiftcal.models import as_model

    (here / "factory_of_here.py").write_text(FACTORY)
    work = ew.work_of(as_model("torch:factory_of_here:make"))
    one, two = (
        ew.by_key(LocalEngine(workers=workers).map_shards(work, ew.shards()[:2]))
        for workers in (1, 2)
    )
    assert two == one
    assert len(one) == 2


def test_the_current_folder_is_first_if_modules_came_from_it_and_else_last(here):
    assert search_path() == [*_absolute(sys.path), str(here)]
    package = here / "model_of_here"
    package.mkdir()
    (package / "__init__.py").write_text("")
    imported_as_a_spec_does(here, "model_of_here")
    assert search_path() == [str(here), *_absolute(sys.path)]
    sys.path.append("")  # the current folder in other words
    assert search_path() == _absolute(sys.path)


def test_a_current_folder_that_is_gone_is_left_out(here):
    before = _absolute(sys.path)
    here.rmdir()
    assert search_path() == before


def test_a_path_is_extended_by_what_is_there(here, monkeypatch):
    names = [str(here / name) for name in ("known", "first", "second", "absent")]
    known, first, second, absent = names
    for name in (known, first, second):
        Path(name).mkdir()
    monkeypatch.setattr(sys, "path", [known])
    extend_search_path([first, known, absent, second, second])
    assert sys.path == [first, known, second]
    monkeypatch.setattr(sys, "path", [known])
    extend_search_path([known, second, first])
    assert sys.path == [known, second, first]
    extend_search_path([])
    assert sys.path == [known, second, first]


def _absolute(paths):
    return [str(Path(path).absolute()) for path in paths]

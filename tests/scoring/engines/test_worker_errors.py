"""Errors of workers arrive as what they are; a model cannot end the command."""

from __future__ import annotations

import tempfile

import engine_work as ew
import numpy as np
import pytest

from shiftcal import errors
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.models.base import Model
from shiftcal.scoring.engines._worker import Worker, portable
from shiftcal.scoring.engines.local import LocalEngine

TWO = [LocalEngine(workers=2), LocalEngine(workers=2, kind="threads")]
kinds = pytest.mark.parametrize("engine", TWO, ids=["processes", "threads"])


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def caught(engine, function):
    with pytest.raises(ShiftcalError) as found:
        list(engine.map_shards(ew.work_of(function), ew.shards()[:3]))
    return found.value


@kinds
@pytest.mark.parametrize("name", ["InputError", "UnknownName", "FileError", "MissingExtra"])
def test_a_refusal_at_loading_keeps_class_message_and_notes(engine, name):
    error = caught(engine, ew.Refused(name))
    assert type(error) is getattr(errors, name)
    assert (str(error), error.__notes__) == ("what went wrong", ["and where"])


@pytest.mark.parametrize("engine", [LocalEngine(), *TWO], ids=["one", "processes", "threads"])
def test_a_package_that_is_missing_at_work_keeps_class_message_and_notes(engine):
    error = caught(engine, ew.Raises(ew.refusal("MissingExtra")))
    assert type(error) is errors.MissingExtra
    assert (str(error), error.__notes__) == ("what went wrong", ["and where"])


@pytest.mark.parametrize("engine", [LocalEngine(), *TWO], ids=["one", "processes", "threads"])
@pytest.mark.parametrize("status", [0, 3])
def test_a_model_that_exits_has_failed(engine, status):
    error = caught(engine, ew.Raises(SystemExit(status)))
    assert type(error) is InputError
    assert "the model failed on images 76 to 89, given float32" in str(error)
    assert f"SystemExit: {status}" in str(error)


class Exiting(Model):
    """Exits while its batch size is looked for."""

    measured_memory = "process"

    def _forward(self, batch):
        raise SystemExit(0)


def test_a_model_that_exits_at_the_search_for_a_batch_size_fails_on_images():
    with pytest.raises(InputError, match=r"failed on images 0 to \d+.*SystemExit: 0"):
        Exiting(batch_size=None).logits(np.zeros((2, 8, 8, 3), np.uint8))


def test_a_module_that_exits_when_a_worker_loads_it_is_refused():
    error = caught(TWO[1], ew.ExitsAtLoading())
    assert "another process can load them; that failed with SystemExit: 0" in str(error)


def test_images_that_exit_do_not_end_a_worker(monkeypatch):
    work = ew.work_of(ew.Linear())

    def leave(self, indices):
        raise SystemExit(5)

    monkeypatch.setattr(type(work.images), "_images", leave)
    with pytest.raises(ShiftcalError, match="SystemExit in a worker: 5"):
        Worker(work, threads=1).do(ew.shards()[0])


def test_an_exit_is_no_error_to_be_raised_elsewhere():
    assert type(portable(SystemExit(0))) is ShiftcalError

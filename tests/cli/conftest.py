"""Scores files of a known ladder, and the program run in this process."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from ladder_data import STEPS, draw

from shiftcal.cli.main import run

CLASSES = np.array(["ant", "bee", "cat", "dog", "elk", "fox"])


def features(n, shift, *, seed):
    return np.random.default_rng(seed).standard_normal((n, 4)) + shift


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Clean and two harder sets, a target, source-train; read-only for tests."""
    folder = tmp_path_factory.mktemp("scores")
    for j, name in enumerate(("clean", "s1", "s2")):
        logits, labels = draw(400, STEPS[2 * j], seed=11)
        extra = {"features": features(400, 0.0, seed=1)} if j == 0 else {}
        np.savez(folder / f"{name}.npz", logits=logits, labels=labels, classes=CLASSES, **extra)
    logits, labels = draw(500, STEPS[4], seed=5)
    ids = np.array([f"row {i}" for i in range(500)])
    np.savez(
        folder / "target.npz",
        logits=logits,
        labels=labels,
        ids=ids,
        classes=CLASSES,
        features=features(500, 0.3, seed=2),
    )
    np.savez(folder / "unlabelled.npz", logits=logits, ids=ids)
    np.savez(folder / "train.npz", logits=logits, features=features(500, 0.0, seed=3))
    return folder


@pytest.fixture
def files(written, tmp_path, monkeypatch):
    """The same files in a folder of the test's own, which is the current one."""
    for file in written.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shiftcal(capsys):
    """``shiftcal("fit --method sac", "-o", path)``: exit status, stdout and stderr."""

    def call(*arguments):
        words = [word for text in arguments for word in str(text).split()]
        capsys.readouterr()
        status = run(words)
        printed = capsys.readouterr()
        return SimpleNamespace(status=status, out=printed.out, err=printed.err)

    return call


@pytest.fixture
def shiftcal_json(shiftcal):
    """The same with ``--json``: the document, after checking that it is one and well-formed."""

    def call(*arguments, status=0):
        done = shiftcal(*arguments, "--json")
        assert done.status == status, done.err
        return json.loads(done.out, parse_constant=pytest.fail)

    return call


BANK = "--surrogate clean.npz --surrogate s1.npz --surrogate s2.npz"


@pytest.fixture
def bank():
    """The options that name the surrogate sets."""
    return BANK


@pytest.fixture
def fitted(files, shiftcal, bank):
    """``sac.json``, fitted."""
    assert shiftcal("fit --method sac -o sac.json", bank).status == 0
    return files / "sac.json"


@pytest.fixture
def refused(shiftcal):
    """``refused("fit ...")``: the reason, after checking status 2 and one line on stderr alone."""

    def call(*arguments):
        done = shiftcal(*arguments)
        assert done.status == 2, done.err
        assert done.out == ""
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
        return done.err

    return call


@pytest.fixture(scope="session")
def monitors(tmp_path_factory):
    """A folder with the bank ``bank`` and the monitors ``sac.json`` and ``rehearsal.json``."""
    from ladder_data import make_bank

    from shiftcal.monitoring import Monitor, Sliding

    folder = tmp_path_factory.mktemp("monitors")
    bank = make_bank(600)
    bank.save(folder / "bank")
    window = Sliding(rows=200, blocks=5)
    Monitor("sac", estimator=None, window=window).fit(bank).save(folder / "sac.json")
    Monitor(window=window).fit(bank).save(folder / "rehearsal.json")
    return folder


@pytest.fixture
def watched(monitors, tmp_path, monkeypatch):
    """The same in a folder of the test's own, which is the current one."""
    import shutil

    shutil.copytree(monitors, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""Trainings that are killed, interrupted, or have no room, and are gone on with."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import final

import pytest
import torch
import training_disk
from bank_process import kill, wait_for
from training_process import Moments, begin, same, training, weights

from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.training import checkpoint, ledger
from shiftcal.adaptation.training import interrupts as module
from shiftcal.adaptation.training.history import FILE, History, Row
from shiftcal.errors import FileError, FitWarning


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A training that nothing happened to, and its history."""
    folder = tmp_path_factory.mktemp("straight")
    objective, _ = training(folder)
    return objective, (folder / FILE).read_text()


def same_files(folder, straight):
    return (folder / FILE).read_text() == straight[1]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("kind", ["features", "images"])
def test_a_killed_process_is_gone_on_with_to_the_same_weights(tmp_path, kind):
    whole, _ = training(tmp_path / "whole", kind=kind)
    log = tmp_path / "log"
    process = begin(tmp_path / "parts", kind=kind, log=log, sleep=0.01)
    wait_for(lambda: log.exists() and len(log.read_text().split()) >= 30, process)
    assert kill(process)[0] == -signal.SIGKILL
    killed_at = len(log.read_text().split())
    assert killed_at < 60
    log.unlink()
    process = begin(tmp_path / "parts", kind=kind, log=log)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    resumed_at, _, compiler = json.loads(out)
    assert not compiler  # which takes as long to import as all the rest
    assert 24 <= resumed_at <= killed_at
    assert log.read_text().split()[0] == str(resumed_at)
    stored = torch.load(tmp_path / "parts.weights", weights_only=True)
    expected = weights(whole)
    assert stored.keys() == expected.keys()
    assert all(torch.equal(stored[name], expected[name]) for name in stored)
    assert (tmp_path / "parts" / FILE).read_bytes() == (tmp_path / "whole" / FILE).read_bytes()


class Copies:
    """Copies of a folder at every moment at which its files change."""

    def __init__(self, folder, to):
        self.folder, self._to = folder, to
        self.made = {}

    def watch(self, name, monkeypatch):
        real = getattr(Path, name)

        def call(path, *arguments, **options):
            if self.folder not in path.parents:
                return real(path, *arguments, **options)
            self._copy()
            done = real(path, *arguments, **options)
            self._copy()
            return done

        monkeypatch.setattr(Path, name, call)

    def _copy(self):
        files = {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}
        seen = repr([(name if name[0] != "." else "", files[name]) for name in sorted(files)])
        if seen not in self.made:
            self.made[seen] = shutil.copytree(self.folder, self._to / str(len(self.made)))


def test_whenever_a_checkpoint_is_cut_short_the_training_goes_on(tmp_path, monkeypatch):
    def stop(step):
        if step == 17:
            raise RuntimeError("far enough")

    options = {"changes": {"iterations": 24}}
    whole, _ = training(tmp_path / "whole", **options)
    copies = Copies(tmp_path / "run", tmp_path)
    for name in ("touch", "write_bytes", "write_text", "replace", "unlink"):
        copies.watch(name, monkeypatch)
    with pytest.raises(RuntimeError, match="far enough"):
        training(copies.folder, before=stop, **options)
    monkeypatch.undo()
    begun = []
    for folder in copies.made.values():
        objective, done = training(folder, **options)
        begun.append(done.resumed_at)
        assert same(objective, whole)
        assert (folder / FILE).read_text() == (tmp_path / "whole" / FILE).read_text()
        kept = sorted(path.name for path in folder.iterdir() if path.suffix != ".tmp")
        assert kept == ["checkpoint-24.safetensors", "checkpoint.json", FILE]
    # Of each checkpoint: a new file, its content, its name, the same of the document, old weights.
    assert [begun.count(step) >= 5 for step in (0, 8)] == [True, True]
    assert begun == sorted(begun)
    assert begun[-1] == 16


@final
@dataclass(frozen=True, kw_only=True)
class Interrupting(Trainer):
    """As Moments, but in the middle of an iteration Ctrl-C is pressed."""

    label = "Interrupting"
    at: int = 29
    times: int = 1

    bottleneck = Moments.bottleneck
    extra = Moments.extra
    dropout = Moments.dropout
    norm = Moments.norm

    def transfer(self, source, target, extra, step):
        for _ in range(self.times if step == self.at else 0):
            signal.raise_signal(signal.SIGINT)
        return Moments.transfer(self, source, target, extra, step)


@pytest.mark.parametrize("at", [29, 23, 59, 0], ids=["between", "at a checkpoint", "last", "first"])
def test_ctrl_c_waits_for_the_end_of_the_iteration_and_keeps_it(tmp_path, straight, at):
    with pytest.raises(KeyboardInterrupt):
        training(tmp_path, trainer=Interrupting(at=at))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    objective, done = training(tmp_path)
    assert done.resumed_at == at + 1
    assert same(objective, straight[0])
    assert same_files(tmp_path, straight)


def test_ctrl_c_between_two_iterations_is_obeyed_at_once(tmp_path, straight):
    def press(step):
        if step == 29:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        training(tmp_path, before=press)
    objective, done = training(tmp_path)
    assert done.resumed_at == 29
    assert same(objective, straight[0])
    assert same_files(tmp_path, straight)


def test_ctrl_c_during_validation_loses_none(tmp_path):
    def press(classifier):
        asked.append(1)
        if len(asked) == 3:
            signal.raise_signal(signal.SIGINT)
        return 0.5 + len(asked) / 100

    def quiet(classifier):
        asked.append(1)
        return 0.5 + len(asked) / 100

    options = {"select": "source-validation"}
    asked = []
    whole, _ = training(tmp_path / "whole", validate=quiet, **options)
    asked = []
    with pytest.raises(KeyboardInterrupt):
        training(tmp_path / "parts", validate=press, **options)
    asked = [1, 1]
    parts, done = training(tmp_path / "parts", validate=quiet, **options)
    assert done.resumed_at == 9  # of 60 iterations it is every third
    assert same(whole, parts)
    assert (tmp_path / "parts" / FILE).read_text() == (tmp_path / "whole" / FILE).read_text()


def test_ctrl_c_twice_does_not_wait(tmp_path, straight):
    with pytest.raises(KeyboardInterrupt):
        training(tmp_path, trainer=Interrupting(times=2))
    objective, done = training(tmp_path)
    # Of that iteration nothing is kept: its batch statistics were counted already.
    assert done.resumed_at == 24
    assert same(objective, straight[0])


def test_among_several_processes_ctrl_c_always_waits_and_comes_twice(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with module.interrupts(together=True) as told:
        signal.raise_signal(signal.SIGINT)  # between two iterations
        assert told.wanted
        told.busy = True
        now[0] += 1
        signal.raise_signal(signal.SIGINT)  # a launcher passes it on
        told.end_of_step()
        assert not told.busy
        now[0] += 2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def stopping(at, clock=None):
    def stop(step):
        if clock is not None:
            clock[0] += 100
        if step == at:
            raise RuntimeError("stop")

    return stop


def test_a_checkpoint_is_written_when_time_has_passed(tmp_path, straight, monkeypatch):
    seldom = {"checkpoint_every": 1000}
    now = [0.0]
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: now[0]))
        for folder, more in (("five", {}), ("seven", {"checkpoint_seconds": 700.0})):
            with pytest.raises(RuntimeError, match="stop"):
                training(tmp_path / folder, before=stopping(29, now), **seldom, **more)
    # A step takes 100 seconds: after 300 there is one, unless it is told otherwise.
    for folder, step in (("five", 27), ("seven", 28)):
        objective, done = training(tmp_path / folder, **seldom)
        assert done.resumed_at == step
        assert same(objective, straight[0])
        assert same_files(tmp_path / folder, straight)


def test_a_checkpoint_of_another_torch_is_gone_on_with_and_told(tmp_path, straight, monkeypatch):
    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path, before=stopping(29))
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "torch", SimpleNamespace(__version__="9.8.7"))
        with (
            pytest.warns(
                FitWarning, match=r"begun with torch 2.* goes on with 9\.8\.7.*may differ"
            ),
            pytest.raises(RuntimeError, match="stop"),
        ):
            training(tmp_path, before=stopping(36))
    with pytest.warns(FitWarning, match=r"begun with torch 9\.8\.7"):
        objective, done = training(tmp_path)
    assert done.resumed_at == 32
    assert same(objective, straight[0])


def test_other_threads_and_ignored_interrupts_are_left_alone():
    def there():
        with module.interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    seen = []
    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with module.interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.skipif("training_disk.way() is None", reason="no tmpfs can be mounted")
def test_a_full_disk_is_told_and_a_larger_one_gone_on_with(tmp_path):
    told = training_disk.play(tmp_path)
    errors, begun = told["errors"], told["begun"]
    assert len(errors) >= 5
    assert all("No space left on device" in error for error in errors)
    # There is always a checkpoint that is whole, and it is never an older one than before.
    assert begun == sorted(begun)
    assert len({step for step in begun if step}) >= 3
    assert told["half"] == 0
    assert told["same"]
    assert told["history"]


def test_a_row_that_cannot_be_written_is_told(tmp_path):
    history = History(tmp_path, [])
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    with pytest.raises(FileError, match=r"history\.csv could not be written: .*last checkpoint"):
        history.append(Row(1, 0.1, 1.0, 2.0, 3.0))

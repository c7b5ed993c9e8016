"""Two processes that train together: ``torchrun --nproc-per-node=2 training_pair.py FOLDER``.

The first prints, as JSON, what happened.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import torch

from shiftcal.adaptation.devices import current_group, distributed
from shiftcal.errors import FitError


def play(folder):
    """What happened."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, __file__, str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _main(folder):
    folder, told = Path(folder), {}
    # They meet three times, as they do for every run of several in one process.
    for part in (_together, _interrupted, _gone_on_with):
        with distributed("cpu") as group:
            told |= part(folder, group)
        told["between"] = current_group().world
    with distributed("cpu") as group:
        both = [None, None]
        torch.distributed.all_gather_object(both, told)
        if group.main:
            sys.stdout.write(json.dumps(both))


def _together(folder, group):
    from training_process import Additive, training, weights

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        options = {"trainer": Additive(), "changes": {"batch_size": 4}}
        additive, _ = training(folder / "additive", **options)
    return {
        "rank": group.rank,
        "world": group.world,
        "additive": {name: one.tolist() for name, one in weights(additive).items()},
        "warned": [str(one.message) for one in warned],
    }


def _gone_on_with(folder, group):
    from training_process import training, weights

    told = {}
    whole, _ = training(folder / "whole")
    told["stopped"] = _stopped(folder / "parts")
    parts, done = training(folder / "parts")
    told["resumed_at"] = done.resumed_at
    told["same"] = _equal(weights(whole), weights(parts))
    told["diverged"] = _diverged(folder / "diverged", group)

    accuracies = iter([0.5] * 14 + [0.9] * 2 + [0.3] * 4)  # every third iteration
    selecting = {"select": "source-validation"}
    best, done = training(folder / "best", validate=lambda _: next(accuracies), **selecting)
    told["selected"] = done.selected_step
    told["best"] = {name: one.tolist() for name, one in weights(best).items()}
    return told


def _interrupted(folder, group):
    """In iteration 29 the second process alone is interrupted, and again by a launcher."""
    from training_process import training, weights

    def press(step):
        if step == 28 and not group.main:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    options = {"changes": {"iterations": 240}, "checkpoint_every": 1000}
    obeyed = False
    try:
        training(folder / "interrupted", before=press, **options)
    except KeyboardInterrupt:
        obeyed = True
    parts, done = training(folder / "interrupted", **options)
    whole, _ = training(folder / "uninterrupted", **options)
    return {
        "interrupted": obeyed,
        "interrupted_at": done.resumed_at,
        "interrupted_same": _equal(weights(whole), weights(parts)),
    }


def _stopped(folder):
    from training_process import training

    def stop(step):
        if step == 30:
            raise RuntimeError("stop")

    try:
        training(folder, before=stop)
    except RuntimeError as error:
        return str(error)


def _diverged(folder, group):
    """Only the second process's loss is not a number, in iteration 13."""
    from training_process import Moments, training

    class Breaking(Moments.__base__):
        label = "Breaking"

        def transfer(self, source, target, extra, step):
            wrong = float("nan") if step == 12 and not group.main else 1.0
            return source.features.mean() * wrong

    try:
        training(folder, trainer=Breaking())
    except FitError as error:
        return str(error)


def _equal(one, two):
    return all(torch.equal(one[name], two[name]) for name in one)


if __name__ == "__main__":
    _main(*sys.argv[1:])

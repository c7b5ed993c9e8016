"""Two processes that train together: ``torchrun --nproc-per-node=2 training_pair.py FOLDER``.

The first prints, as JSON, what happened.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch

from shiftcal.adaptation.devices import distributed
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
    from training_process import Additive, training, weights

    folder = Path(folder)
    with distributed("cpu") as group:
        told = {"rank": group.rank, "world": group.world}
        options = {"trainer": Additive(), "changes": {"batch_size": 4}}
        additive, _ = training(folder / "additive", **options)
        told["additive"] = {name: one.tolist() for name, one in weights(additive).items()}

        whole, _ = training(folder / "whole")
        told["stopped"] = _stopped(folder / "parts")
        parts, done = training(folder / "parts")
        told["resumed_at"] = done.resumed_at
        told["same"] = _equal(weights(whole), weights(parts))
        told["diverged"] = _diverged(folder / "diverged", group)

        accuracies = iter([0.5, 0.9, 0.3])
        selecting = {"select": "source-validation", "checkpoint_every": 24}
        best, done = training(folder / "best", validate=lambda _: next(accuracies), **selecting)
        told["selected"] = done.selected_step
        told["best"] = {name: one.tolist() for name, one in weights(best).items()}
        both = [None, None]
        torch.distributed.all_gather_object(both, told)
        if group.main:
            sys.stdout.write(json.dumps(both))


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

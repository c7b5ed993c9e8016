"""A process that adapts and kills itself: ``python adapt_process.py FOLDER MODE PLACE NUMBER``.

MODE is ``frozen`` or ``network``. PLACE is where it is killed, the NUMBER-th time it comes there:
``model`` (a batch of frozen features), ``batch`` (of the training) or ``write`` (any file).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def adapted(folder, mode):
    """The run of all such processes, with a checkpoint every seven steps."""
    from one_layer import one_layer
    from two_domains import colour_features, colour_model, domains

    from shiftcal.adaptation import adapt
    from shiftcal.models.pytorch import torch_threads as cpu_threads

    frozen = mode == "frozen"
    with cpu_threads(1):
        return adapt(
            *domains(45),
            folder,
            trainer="jan",
            backbone=colour_model(lambda batch: _killing("model", colour_features(batch)))
            if frozen
            else one_layer(),
            frozen=frozen,
            severities=(1, 5),
            checkpoint_every=7,
            changes={"iterations": 20, "batch_size": 6, "bottleneck": 5},
        )


def killed(folder, mode, place, number):
    """Such a process, killed."""
    command = [sys.executable, __file__, str(folder), mode, place, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, (done.returncode, done.stderr[-2000:])


_COUNTS = {"model": 0, "batch": 0, "write": 0}
_WHERE: list[str | int] = ["", 0]


def _killing(place, value=None):
    if _WHERE[0] == place:
        _COUNTS[place] += 1
        if _COUNTS[place] == _WHERE[1]:
            os.kill(os.getpid(), signal.SIGKILL)
    return value


def _main(folder, mode, place, number):
    from shiftcal import files
    from shiftcal.adaptation.network import Objective

    _WHERE[:] = [place, int(number)]
    forward, replace = Objective.forward, Path.replace

    def stepping(self, *batch):
        _killing("batch")
        return forward(self, *batch)

    def replacing(self, target):
        _killing("write")
        return replace(self, target)

    Objective.forward = stepping
    files.Path.replace = replacing
    adapted(folder, mode)


if __name__ == "__main__":
    _main(*sys.argv[1:])

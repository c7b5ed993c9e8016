"""A process that builds a bank with a slow model: ``python bank_process.py FOLDER OPTIONS``.

Options, as JSON: ``log``, a file that gets a line for every call of the model, with the number of
images; ``sleep``, seconds a call takes; ``slow``, seconds that writing a set takes at the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from exact_model import exact, labelled, logits_of

N, SHARD, SETS = 48, 8, 3


def speckled(image, severity, rng):
    """A corruption that needs no compiler, so that processes start soon."""
    image[rng.random(image.shape[:2]) < 0.1 * severity] = 255
    return image


speckled.key = "speckled-v1"


def build(folder, function=None, **options):
    """The bank that all such processes build."""
    from shiftcal.surrogates.build import build_bank, conditions_of

    images, labels = labelled(N, seed=21)
    return build_bank(
        exact(function, batch_size=SHARD),
        images,
        folder,
        labels=labels,
        conditions=conditions_of(speckled, (1, 5)),
        shard_size=SHARD,
        **options,
    )


def begin(folder, **options):
    """Such a process."""
    return subprocess.Popen(
        [sys.executable, __file__, str(folder), json.dumps(options, default=str)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """What it says at the end: images it scored."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)


def calls(log):
    """How many times the model was called, by all processes together."""
    return len(log.read_text().splitlines()) if log.exists() else 0


def wait_for(condition, process):
    """Wait until something is so while a process runs."""
    until = time.monotonic() + 180
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.002)


def kill(process, number=signal.SIGKILL):
    """End a process: its status and what it printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def _main(folder, options):
    told = json.loads(options)
    log = os.open(told["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT) if "log" in told else None

    def slow(batch):
        if log is not None:
            os.write(log, f"{len(batch)}\n".encode())
        time.sleep(told.get("sleep", 0))
        return logits_of(batch)

    if "slow" in told:
        _slow_down(told["slow"])
    done = build(Path(folder), slow)
    sys.stdout.write(json.dumps({"computed": done.computed, "added": done.added}))


def _slow_down(seconds):
    from shiftcal.scoring.shards import Finished

    real = Finished.write_set

    def write(*arguments):
        real(*arguments)
        time.sleep(seconds)

    Finished.write_set = write


if __name__ == "__main__":
    _main(*sys.argv[1:])

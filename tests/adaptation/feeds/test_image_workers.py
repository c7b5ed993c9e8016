"""Processes that read images: the same batches, and clear ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from deadly_images import DeadlyImages
from stored_images import draw_images, write_images

from shiftcal.adaptation.feeds.augment.pipelines import training_transform
from shiftcal.adaptation.feeds.images import ImageFeed
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.datasets.containers.files import FileImages
from shiftcal.errors import FileError, InputError, ShiftcalError
from shiftcal.models import Preprocessing

IMAGES = draw_images(12, 30, 41, seed=1)


def feed_of(source, target=None, *, workers=2):
    return ImageFeed(
        source,
        np.arange(len(source)) % 3,
        source if target is None else target,
        transform=training_transform("default", 16),
        preprocessing=Preprocessing(),
        batch_size=4,
        seed=3,
        workers=workers,
    )


@pytest.fixture(scope="module")
def crew():
    """One feed with two processes for the tests that leave them alive."""
    feed = feed_of(ArrayImages(IMAGES))
    yield feed
    feed.close()


def alive(pids):
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        found += [pid] if state != "Z" else []
    return found


def test_batches_are_those_of_one_process_in_order(crew):
    alone = list(feed_of(ArrayImages(IMAGES), workers=0).batches(0, 15))
    together = list(crew.batches(0, 15))
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_processes_stay_when_batches_are_left_and_asked_for_again(crew):
    stream = crew.batches(0, 50)
    first = next(stream)
    pids = set(crew._started._executor._processes)
    stream.close()
    again = next(crew.batches(0, 1))
    assert torch.equal(first.source, again.source)
    assert set(crew._started._executor._processes) == pids


def test_closing_ends_the_processes_and_more_can_be_asked_for():
    feed = feed_of(ArrayImages(IMAGES), workers=1)
    before = next(feed.batches(0, 1))
    pids = list(feed._started._executor._processes)
    assert alive(pids) == pids
    feed.close()
    assert alive(pids) == []
    assert torch.equal(next(feed.batches(0, 1)).source, before.source)
    pids = list(feed._started._executor._processes)
    del feed
    end = time.monotonic() + 120
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert alive(pids) == []


def test_an_image_that_cannot_be_read_is_named_as_without_workers(tmp_path):
    names = [f"{i}.png" for i in range(4)]
    write_images(tmp_path, IMAGES[:4], names)
    (tmp_path / "2.png").write_bytes(b"no picture")
    feed = feed_of(FileImages(tmp_path, names, name="files"), workers=1)
    with pytest.raises(FileError, match=r"^\S*2\.png cannot be read as an image.*mend or remove"):
        list(feed.batches(0, 9))
    feed.close()


def test_a_worker_that_dies_is_told_with_what_to_do():
    feed = feed_of(DeadlyImages(IMAGES[:6]), workers=1)
    with pytest.raises(ShiftcalError, match=r"worker that reads images died.*fewer workers"):
        list(feed.batches(0, 9))
    feed.close()


def test_images_that_cannot_be_sent_are_refused_with_the_way_out():
    images = ArrayImages(IMAGES)
    images.held = open(os.devnull, "rb")  # noqa: PTH123, SIM115 (something that cannot be pickled)
    with images.held, pytest.raises(InputError, match=r"sent to other processes.*With workers=0"):
        next(feed_of(images).batches(0, 1))


def test_a_worker_imports_no_torch():
    code = (
        "import sys, shiftcal.adaptation.feeds._workers, shiftcal.adaptation.backbones\n"
        "print([name for name in ('torch', 'cv2', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SCRIPT = """
    import numpy as np, sys
    from shiftcal.adaptation.feeds.augment.pipelines import training_transform
    from shiftcal.adaptation.feeds.images import ImageFeed
    from shiftcal.datasets.containers.arrays import ArrayImages
    from shiftcal.models import Preprocessing

    images = ArrayImages(np.zeros((8, 20, 20, 3), np.uint8))
    feed = ImageFeed(
        images, [0] * 8, images, transform=training_transform("default", 16),
        preprocessing=Preprocessing(), batch_size=4, seed=0, workers=2,
    )
    for step, batch in enumerate(feed.batches(0, 10**9)):
        if step == 2:
            print(*feed._started._executor._processes, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of a terminal")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_script_without_a_guard_runs_and_no_process_outlives_it(tmp_path, how):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does it: all processes are told
    else:
        process.kill()
    _, told = process.communicate(timeout=300)
    assert process.returncode != 0
    if how == signal.SIGINT:
        # The workers and loky's threads say nothing.
        assert told.count("Traceback") == 1
        assert told.strip().endswith("KeyboardInterrupt")
    end = time.monotonic() + 120
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert alive(pids) == []

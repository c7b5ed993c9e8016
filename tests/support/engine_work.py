"""Work for engines: small models of three kinds, and models that fail, or end their process.

Workers import this file, so that it imports no more than they all need.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

from shiftcal.corruptions import as_corruption
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.errors import FileError
from shiftcal.models import CallableModel
from shiftcal.scoring.shards import Condition, Job, Shard

N, SIZE, BATCH = 180, 30, 16
# Whole numbers, so that sums are exact: those of BLAS differ in the last bits with its threads.
# Large enough to be mapped and not copied by processes of this machine: 1.1 MB.
WEIGHTS = np.random.default_rng(3).integers(-99, 100, (3 * 32 * 32, 45)).astype(np.float64)
MARKED = 77  # an image that something happens at


def pixels():
    images = np.random.default_rng(5).integers(0, 256, (N, 32, 32, 3), np.uint8)
    images[:, 0, 0, 0] = 0
    images[MARKED, 0, 0, 0] = 255
    return images


class Linear:
    """Logits that are linear in the pixels; its array travels with it."""

    def __init__(self):
        self.weights = WEIGHTS

    def __call__(self, batch):
        if (batch[:, 0, 0, 0] == 1).any():
            self.at_marked()
        whole = np.rint(batch.astype(np.float64) * 255)
        return whole.reshape(len(batch), -1) @ self.weights / 1024

    def at_marked(self):
        """What happens at the marked image."""


class Dies(Linear):
    """Kills its process at the marked image, as the system does for want of memory."""

    def __init__(self, folder, times):
        super().__init__()
        self.folder, self.times = str(folder), times

    def at_marked(self):
        for i in range(self.times):
            died = Path(self.folder) / f"died-{i}"
            if not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)


class Fails(Linear):
    def at_marked(self):
        raise RuntimeError("no image of mine")


def refuse():
    error = FileError("what went wrong")
    error.add_note("and where")
    raise error


class Refused(Linear):
    """Cannot be loaded, for a reason of ours."""

    def __reduce__(self):
        return refuse, ()


class ExitsAtLoading(Linear):
    """Ends its process, politely, when it is loaded."""

    def __reduce__(self):
        return sys.exit, (0,)


class Locked(Linear):
    """Cannot be pickled."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class Who(Linear):
    """Says which process it is in, and how many threads it was told to use."""

    def __call__(self, batch):
        limit = int(os.environ.get("OMP_NUM_THREADS", "0"))
        return np.tile(np.array([os.getpid(), limit, 0], np.float64), (len(batch), 1))


def work_of(function, **options):
    model = function if not callable(function) else CallableModel(function, batch_size=BATCH)
    images = ArrayImages(pixels())
    return Job(model, images, conditions=(), seed=4, lasting=False, **options)


def onnx_work():
    from onnx_resnet import resnet20_onnx

    from shiftcal.models import OnnxModel

    return work_of(OnnxModel(resnet20_onnx(_weights())))


def torch_work():
    from shiftcal.models import TorchModel

    return work_of(TorchModel(_network()))


def _network():
    import torch

    from shiftcal.models import cifar_resnet

    torch.manual_seed(6)
    return cifar_resnet(20).eval()


def _weights():
    return {name: value.numpy() for name, value in _network().state_dict().items()}


def shards(*corruptions):
    """The images in stretches, as they are and corrupted; every shard has a key of its own."""
    conditions = [Condition()] + [Condition(as_corruption(name), 3) for name in corruptions]
    return [
        Shard(f"{condition.name} {start}", condition, start, start + SIZE)
        for condition in conditions
        for start in range(0, N, SIZE)
    ]


def by_key(results):
    """Results by the key of their shard, each of which must come once, as digests."""
    found = {}
    for result in results:
        assert result.key not in found
        shape = f"{result.logits.dtype} {result.logits.shape} {dict(result.bad)}"
        content = result.rows.tobytes() + result.logits.tobytes()
        found[result.key] = f"{shape} {hashlib.sha256(content).hexdigest()}"
    return found


class Taken:
    """An iterable that knows how much of it was taken."""

    def __init__(self, items):
        self.items, self.count = items, 0

    def __iter__(self):
        for item in self.items:
            self.count += 1
            yield item

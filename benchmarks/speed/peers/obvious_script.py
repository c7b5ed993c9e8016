"""The script everyone writes first: imagecorruptions in a DataLoader, then the network.

Started as ``python obvious_script.py network.onnx images.npy workers``. A line of JSON in names a
corruption, how many images to take and the severities; a line of JSON out gives the seconds for
all of them, corrupting, normalising, running the network and keeping its logits.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import onnxruntime
import torch
from torch.utils.data import DataLoader, Dataset
from worker import patched

warnings.simplefilter("ignore")
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


class Corrupted(Dataset):
    """Images corrupted one by one as they are asked for."""

    def __init__(self, images, function):
        self.images, self.function = images, function

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.function(self.images[index]).astype(np.float32) / 255
        return torch.from_numpy(((image - MEAN) / STD).transpose(2, 0, 1).copy())


def main():
    network, images, workers = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3])
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    make = patched()
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        task = json.loads(line)
        start = time.perf_counter()
        logits = []
        for severity in task["severities"]:
            data = Corrupted(images[: task["n"]], make(task["name"], severity))
            loader = DataLoader(data, batch_size=256, num_workers=workers)
            logits += [session.run(None, {"images": batch.numpy()})[0] for batch in loader]
        assert sum(map(len, logits)) == task["n"] * len(task["severities"])
        print(json.dumps(time.perf_counter() - start), file=out, flush=True)


if __name__ == "__main__":
    main()

"""One of two processes that count their rows in a metric and join: ``RANK FOLDER``."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from shiftcal.integrations import CalibrationMetrics

rank, folder = int(sys.argv[1]), Path(sys.argv[2])
dist.init_process_group("gloo", init_method=(folder / "meeting").as_uri(), rank=rank, world_size=2)
logits, labels = (torch.from_numpy(x) for x in np.load(folder / "rows.npz").values())
metric = CalibrationMetrics(logits.shape[1])
mine = slice(0, 70) if rank == 0 else slice(70, None)  # not equally many
for z, y in zip(logits[mine].split(30), labels[mine].split(30), strict=True):
    metric.update(z, y)
before = metric.digits.clone()
values = metric.compute()
metric.statistics().write(folder / f"statistics-{rank}.json")
assert torch.equal(metric.digits, before), "after compute a process goes on with its own rows"
torch.save({name: float(x) for name, x in values.items()}, folder / f"values-{rank}.pt")
dist.destroy_process_group()

"""A study in miniature: striped images, a function that tells the stripes apart, a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.studies.plan import CalibrationPlan, DataPlan, ModelPlan, NamedPlan, Plan, ShiftPlan

N, CLASSES = 120, 3
SPEC = "python:toy_study:net?key=toy-v1&raw=true&batch_size=40"
PLAIN = ("vanilla", "ts", "sts", "sac", "oracle")
ALL = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac", "oracle")


def patterns():
    """Upright stripes, lying stripes and squares of a pixel or two: what blurring takes away."""
    rows, columns = np.mgrid[:32, :32] // 2 % 2
    return np.stack([columns, rows, columns ^ rows]).astype(np.float32) - 0.5


def drawn(n, seed):
    """Images (n, 32, 32, 3), some of them faint, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % CLASSES)
    strength = rng.uniform(0, 14, (n, 1, 1))
    grey = 128 + strength * patterns()[labels] + rng.normal(0, 60, (n, 32, 32))
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, axis=3), labels


def net(batch):
    """Logits: over-confident correlations with the patterns. Features: the same, and the mean."""
    grey = batch[..., 0].astype(np.float32) - 128
    match = np.stack([(grey * each).mean(axis=(1, 2)) for each in patterns()], axis=1)
    return 3 * match, np.hstack([match, grey.mean(axis=(1, 2))[:, None] / 10])


def write_data(folder: Path) -> Path:
    """Images to calibrate and to test on, training images, and a natural target."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, n, seed in (("test", N, 1), ("train", 90, 2), ("natural", 60, 3)):
        images, labels = drawn(n, seed)
        np.save(folder / f"{name}.npy", images)
        np.save(folder / f"{name}-labels.npy", labels)
    return folder


def toy_plan(data: Path, *, methods=PLAIN, **changes: Any) -> Plan:
    """A plan of the study synthetic; ``model__spec=...`` changes an entry of a table."""
    plan = Plan(
        study="synthetic",
        model=ModelPlan((SPEC,)),
        data=DataPlan(
            (str(data / "test.npy"),),
            labels=str(data / "test-labels.npy"),
            train=(str(data / "train.npy"),),
            train_labels=str(data / "train-labels.npy"),
        ),
        calibration=CalibrationPlan("pixelate", (1, 3), 60),
        shifts=ShiftPlan(("fog", "gaussian_noise"), (0, 1, 5)),
        methods=tuple(NamedPlan(name, name.upper()) for name in methods),
        seeds=(0, 1),
        bins=5,
    )
    for name, value in changes.items():
        table, _, entry = name.rpartition("__")
        part = replace(getattr(plan, table), **{entry: value}) if table else value
        plan = replace(plan, **{table or name: part})
    return plan

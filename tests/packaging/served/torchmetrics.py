"""A metric counts rows."""

import importlib

import numpy as np

import shiftcal as sc
from shiftcal.integrations import CalibrationMetrics

rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 60)
logits = rng.standard_normal((60, 3)) + np.eye(3)[labels]
torch = importlib.import_module("torch")
metric = CalibrationMetrics(3)
metric.update(torch.from_numpy(logits), torch.from_numpy(labels))
assert metric.statistics() == sc.ScoreStatistics.of_rows(logits, labels)

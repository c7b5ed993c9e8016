"""Scores go through a .parquet file."""

import numpy as np

import shiftcal as sc

logits = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
sc.write_scores("scores.parquet", sc.Scores(logits, labels=np.arange(50) % 4))
np.testing.assert_array_equal(sc.read_scores("scores.parquet").values, logits)

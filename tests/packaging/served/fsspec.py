"""Scores go to a remote storage and back."""

import numpy as np

import shiftcal as sc

logits = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
sc.write_scores("memory://bucket/scores.npz", sc.Scores(logits))
np.testing.assert_array_equal(sc.read_scores("memory://bucket/scores.npz").values, logits)

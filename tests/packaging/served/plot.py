"""A picture is drawn."""

import numpy as np

from shiftcal import plot

rng = np.random.default_rng(0)
confidence = rng.uniform(0.5, 1, 400)
axes = plot.reliability(confidence, rng.uniform(size=400) < confidence)
axes.figure.savefig("reliability.png")

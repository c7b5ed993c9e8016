"""A classifier of scikit-learn in a .skops file gives logits."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import shiftcal as sc
from shiftcal.models import as_model

rng = np.random.default_rng(0)
images = rng.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
classifier = LogisticRegression(C=1e-3).fit(images.reshape(60, -1) / 255, np.arange(60) % 3)
try:
    from skops.io import dump
except ModuleNotFoundError:
    with open("model.skops", "wb") as file:  # noqa: PTH123
        file.write(b"PK")  # what is in it does not matter where nothing can read it
else:
    dump(classifier, "model.skops")
assert sc.score(as_model("model.skops"), images).values.shape == (60, 3)

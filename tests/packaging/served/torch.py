"""A network of PyTorch gives logits for images, and gets its calibration."""

import numpy as np

import shiftcal as sc
from shiftcal.models import as_model, cifar_resnet

network = cifar_resnet(20)
images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
scores = sc.score(as_model(network), images, np.arange(40) % 10)
fitted = sc.maps.get("temperature")().fit(scores.values, scores.labels)
calibrated = sc.export.CalibratedModule(network, fitted)
assert calibrated is not None

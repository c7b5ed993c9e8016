"""A network in an ONNX file is run, and gets its calibration."""

import importlib

import numpy as np

import shiftcal as sc
from shiftcal.export import to_onnx

# A network in the bytes of the format: logits = scores, both of shape (n, 3).


def field(number: int, value: bytes | str | int) -> bytes:
    """A field of a message: a number, or text or a message with its length before it."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def tensor(name: str) -> bytes:
    """A description of an array of floats of shape (n, 3)."""
    shape = field(1, field(2, "n")) + field(1, field(1, 3))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


node = field(1, "scores") + field(2, "logits") + field(4, "Identity")
graph = field(1, node) + field(2, "one") + field(11, tensor("scores")) + field(12, tensor("logits"))
with open("model.onnx", "wb") as file:  # noqa: PTH123
    file.write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))

rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 300)
logits = 5 * (rng.standard_normal((300, 3)) + np.eye(3)[labels])
fitted = sc.maps.get("temperature")().fit(logits, labels)
to_onnx(fitted, "model.onnx", "calibrated.onnx", check=logits.astype(np.float32))
session = importlib.import_module("onnxruntime").InferenceSession("calibrated.onnx")
given = session.run(["confidence"], {"scores": logits.astype(np.float32)})[0]
np.testing.assert_allclose(given, fitted.predict_proba(logits).max(axis=1), rtol=1e-5)

"""What a new user brings: a network trained on digits, its ONNX file, its logits, its images."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from PIL import Image

import shiftcal as sc
from shiftcal.demo import enlarged, rows_of

N_TRAIN, N_CALIBRATION = 1200, 300


class OwnDigits:
    """A network of one hidden layer, and digits it has not seen: some to calibrate on, some new."""

    def __init__(self):
        from sklearn.datasets import load_digits
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        bunch = load_digits()
        order = np.random.default_rng(0).permutation(len(bunch.target))
        grey, labels = enlarged(bunch.images)[order], bunch.target[order]
        self.images = np.repeat(grey[..., None], 3, axis=-1)
        self.labels = labels
        network = MLPClassifier((64,), max_iter=60, tol=0, n_iter_no_change=60, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(rows_of(grey[:N_TRAIN]), labels[:N_TRAIN])
        self.weights, self.biases = network.coefs_, network.intercepts_
        self.calibration = slice(N_TRAIN, N_TRAIN + N_CALIBRATION)
        self.new = slice(N_TRAIN + N_CALIBRATION, None)

    def logits(self, images):
        """By numpy, as the ONNX file must give them too."""
        hidden = np.maximum(rows_of(images[..., 0]) @ self.weights[0] + self.biases[0], 0)
        return hidden @ self.weights[1] + self.biases[1]

    def arrived(self):
        """The new images, in fog."""
        return sc.corrupt(self.images[self.new], "fog", severity=1, table="imagenet")

    def write_logits(self, folder: Path):
        """``clean.npz``, ``s1.npz`` and ``s2.npz`` with labels, and ``target.npz`` in fog."""
        images, labels = self.images[self.calibration], self.labels[self.calibration]
        harder = [
            sc.corrupt(images, "brightness", severity=severity, table="imagenet")
            for severity in (2, 4)
        ]
        for name, each in zip(("clean", "s1", "s2"), (images, *harder), strict=True):
            np.savez(folder / f"{name}.npz", logits=self.logits(each), labels=labels)
        np.savez(
            folder / "target.npz", logits=self.logits(self.arrived()), labels=self.labels[self.new]
        )

    def write_images(self, folder: Path):
        """``calibration/<class>/<number>.png`` and ``new-images/<class>/<number>.png``."""
        sets = {
            "calibration": (self.images[self.calibration], self.labels[self.calibration]),
            "new-images": (self.arrived(), self.labels[self.new]),
        }
        for name, (images, labels) in sets.items():
            for i, (image, label) in enumerate(zip(images, labels, strict=True)):
                file = folder / name / str(label) / f"{i:04}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(image).save(file)

    def write_onnx(self, file: Path):
        """The network as a file: pixels from 0 to 1, ``(n, 3, 32, 32)``, to logits."""
        (w0, w1), (b0, b1) = self.weights, self.biases
        layers = {"w0": w0, "b0": b0, "w1": w1, "b1": b1}
        constants = [
            numpy_helper.from_array(np.asarray(value, np.float32), name)
            for name, value in layers.items()
        ]
        constants.append(numpy_helper.from_array(np.array([0], np.int64), "red"))
        nodes = [
            helper.make_node("Gather", ["images", "red"], ["grey"], axis=1),
            helper.make_node("Flatten", ["grey"], ["x"]),
            helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]),
            helper.make_node("Relu", ["h"], ["a"]),
            helper.make_node("Gemm", ["a", "w1", "b1"], ["logits"]),
        ]
        ends = [
            helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32]),
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10]),
        ]
        graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        checker.check_model(model)
        file.write_bytes(model.SerializeToString())

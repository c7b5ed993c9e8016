"""A model in one line."""

from __future__ import annotations

import numpy as np
from onnx_resnet import mean_colour_onnx

from shiftcal.models import Preprocessing, as_model


def test_a_file_is_said_with_its_classes_and_preprocessing(tmp_path):
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    model = as_model(f"{tmp_path}/net.onnx?resize=256&crop=224&mean=0.485,0.456,0.406&std=0.229")
    assert repr(model) == (
        f"<OnnxModel onnx:{tmp_path}/net.onnx?resize=256&crop=224&mean=0.485,0.456,0.406&std=0.229,"
        " classes: not named, preprocessing: resize 256, crop 224, mean 0.485 0.456 0.406, "
        "std 0.229 0.229 0.229>"
    )


def test_a_function_is_said_by_what_is_known_of_it():
    plain = as_model(np.asarray, classes=["a", "b"])
    assert repr(plain) == "<CallableModel, classes: 2 named, preprocessing: pixels from 0 to 1>"
    grey = as_model(np.asarray, preprocessing=Preprocessing(channels=1))
    assert repr(grey) == "<CallableModel, classes: not named, preprocessing: channels 1>"
    raw = as_model(np.asarray, raw=True, preprocessing=Preprocessing(resize=(32, 48)))
    assert repr(raw) == (
        "<CallableModel, classes: not named, preprocessing: resize 32 48, layout nhwc, dtype uint8>"
    )

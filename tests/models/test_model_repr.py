"""A model in one line."""

from __future__ import annotations

from onnx_resnet import mean_colour_onnx

from shiftcal.models import as_model


def test_a_file_is_said_with_its_classes_and_preprocessing(tmp_path):
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    model = as_model(f"{tmp_path}/net.onnx?resize=256&crop=224&mean=0.485,0.456,0.406&std=0.229")
    assert repr(model) == (
        f"<OnnxModel onnx:{tmp_path}/net.onnx?resize=256&crop=224&mean=0.485,0.456,0.406&std=0.229,"
        " classes: not named, preprocessing: resize 256, crop 224, mean 0.485 0.456 0.406, "
        "std 0.229 0.229 0.229>"
    )

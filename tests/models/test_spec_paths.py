"""The text that is kept of a model means the same from every folder."""

from __future__ import annotations

import numpy as np
from onnx_resnet import mean_colour_onnx

from shiftcal.models import as_model
from shiftcal.models.resolve import _with_absolute_paths, parse_spec

IMAGES = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), np.uint8)


def test_a_model_is_made_again_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "odd 100%?").mkdir()
    (tmp_path / "odd 100%?" / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "odd 100%?")
    made = [as_model(text) for text in ("net.onnx", "onnx:net.onnx?batch_size=2")]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for model in made:
        again = as_model(model.spec)
        assert (again.spec, again.batch_size) == (model.spec, model.batch_size)
        np.testing.assert_array_equal(again.logits(IMAGES), model.logits(IMAGES))


def test_weights_are_said_from_the_root_if_they_are_a_file(tmp_path, monkeypatch):
    (tmp_path / "a.th").touch()
    (tmp_path / "saved").mkdir()
    monkeypatch.chdir(tmp_path)
    for text, wanted in (
        ("cifar-resnet:20?weights=a.th&crop=8", f"cifar-resnet:20?weights={tmp_path}/a.th&crop=8"),
        ("torchvision:resnet50?weights=IMAGENET1K_V1", None),
        ("torch:nets:make?weights=a.th", f"torch:nets:make?weights={tmp_path}/a.th"),
        ("hf:saved", f"hf:{tmp_path}/saved"),
        ("hf:microsoft/resnet-50", None),
    ):
        assert str(_with_absolute_paths(parse_spec(text))) == (wanted or text)

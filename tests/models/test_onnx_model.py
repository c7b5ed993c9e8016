"""ONNX files through onnxruntime, against PyTorch and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cifar_net import cifar_images
from onnx import TensorProto
from onnx_resnet import mean_colour_onnx, resnet20_onnx

from shiftcal.errors import FileError, InputError
from shiftcal.models import OnnxModel, as_model, cifar_resnet

IMAGES = np.random.default_rng(13).integers(0, 256, (11, 32, 32, 3), np.uint8)


def weights_of(network):
    return {name: value.numpy() for name, value in network.state_dict().items()}


def test_onnx_and_pytorch_agree_on_the_published_resnet20(shared_data):
    file = shared_data / "cifar10-resnet-weights" / "resnet20-12fca82f.th"
    network = cifar_resnet(20, weights=file)
    images, _ = cifar_images(shared_data, 200)
    ours = as_model(network).logits(images)
    theirs = as_model(
        resnet20_onnx(weights_of(network)), preprocessing=network.preprocessing
    ).logits(images)
    assert np.ptp(ours) > 10  # real logits, so that the next line says something
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_batch_size_fixed_in_the_file_changes_nothing(batch):
    torch.manual_seed(2)
    weights = weights_of(cifar_resnet(20))
    free = OnnxModel(resnet20_onnx(weights)).logits(IMAGES)
    fixed = OnnxModel(resnet20_onnx(weights, batch=batch), batch_size=6).logits(IMAGES)
    np.testing.assert_allclose(fixed, free, atol=1e-5)  # kernels may differ with the batch


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        (["n", 3, "h", "w"], "nchw"),
        (["n", 3, 32, 32], "nchw"),
        (["n", "h", "w", 3], "nhwc"),
        (["n", 32, 32, 3], "nhwc"),
        (["n", "c", "h", "w"], "nchw"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "dtype", "scale"),
    [
        (TensorProto.FLOAT, "float32", 255),
        (TensorProto.FLOAT16, "float16", 255),
        (TensorProto.UINT8, "uint8", 1),
    ],
)
def test_layout_and_dtype_are_read_from_the_file(shape, layout, kind, dtype, scale):
    model = OnnxModel(mean_colour_onnx(shape, kind))
    assert (model.preprocessing.layout, model.preprocessing.dtype) == (layout, dtype)
    wanted = IMAGES.astype(np.float64).mean(axis=(1, 2)) / scale
    rounding = 1e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(model.logits(IMAGES), wanted, rtol=rounding)


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        (["n", 2, 28, 28], TensorProto.FLOAT, "must take images of three channels, or of one"),
        (["n", 3, 28], TensorProto.FLOAT, "must have one input, a batch of images; got images"),
        (["n", 3, 28, 28], TensorProto.INT64, r"must be tensor\(float\).*got tensor\(int64\)"),
    ],
)
def test_networks_that_take_no_images_are_refused(shape, kind, message):
    with pytest.raises(InputError, match=message):
        OnnxModel(mean_colour_onnx(shape, kind))


def test_files_that_are_no_onnx_are_refused(tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"\x80\x04 this is no network" * 9)
    with pytest.raises(FileError, match=r"bad.onnx could not be read as an ONNX model"):
        as_model(path)
    with pytest.raises(FileError, match="the ONNX model could not be read as an ONNX model"):
        as_model(mean_colour_onnx(["n", 3, 28, 28])[:-30])
    with pytest.raises(FileError, match="there is no file of that name"):
        as_model(tmp_path / "none.onnx")

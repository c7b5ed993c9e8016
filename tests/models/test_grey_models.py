"""Networks that take one channel, as those of MNIST do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from PIL import Image
from torch import nn

from shiftcal.models import OnnxModel, Preprocessing, TorchModel

RNG = np.random.default_rng(3)
GREY = RNG.integers(0, 256, (5, 28, 28), np.uint8)
COLOUR = RNG.integers(0, 256, (5, 28, 28, 3), np.uint8)
MNIST = Preprocessing(channels=1, mean=0.1307, std=0.3081)


def grey_onnx(shape):
    """Two logits: the mean over all of the image, and the pixel in its corner."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Flatten", ["images"], ["flat"]),
        helper.make_node("Split", ["flat", "sizes"], ["first", "rest"], axis=1),
        helper.make_node("Unsqueeze", ["mean", "one"], ["column"]),
        helper.make_node("Concat", ["column", "first"], ["logits"], axis=1),
    ]
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [2], [1, 28 * 28 - 1])
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])
    graph = helper.make_graph(nodes, "net", [images], [logits], [sizes, one])
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def normal(pixels):
    return (pixels.astype(np.float64) / 255 - 0.1307) / 0.3081


def luma(images):
    return np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in images])


@pytest.mark.parametrize(("images", "grey"), [(GREY, GREY), (COLOUR, luma(COLOUR))])
def test_a_module_of_one_channel(images, grey):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(2304, 10))
    made = TorchModel(network, preprocessing=MNIST, batch_size=2).logits(images)
    with torch.no_grad():
        wanted = network(torch.from_numpy(normal(grey)[:, None]).float()).numpy()
    np.testing.assert_allclose(made, wanted, atol=1e-5)  # other batches


@pytest.mark.parametrize(
    ("shape", "layout"), [(["n", 1, 28, 28], "nchw"), (["n", 28, 28, 1], "nhwc")]
)
@pytest.mark.parametrize(("images", "grey"), [(GREY, GREY), (COLOUR, luma(COLOUR))])
def test_an_onnx_file_says_that_it_takes_one(shape, layout, images, grey):
    model = OnnxModel(grey_onnx(shape))
    assert (model.preprocessing.channels, model.preprocessing.layout) == (1, layout)
    pixels = grey / 255
    wanted = np.column_stack([pixels.mean(axis=(1, 2)), pixels[:, 0, 0]])
    np.testing.assert_allclose(model.logits(images), wanted, atol=1e-6)
    normalised = OnnxModel(grey_onnx(shape), preprocessing=MNIST).logits(images)
    np.testing.assert_allclose(normalised, normal(wanted * 255), atol=1e-5)


def test_an_open_dimension_is_what_the_preprocessing_says():
    shape = ["n", "c", 28, 28]
    assert OnnxModel(grey_onnx(shape), preprocessing=MNIST).preprocessing.channels == 1
    assert OnnxModel(grey_onnx(shape)).preprocessing.channels == 3

"""ONNX files and scikit-learn classifiers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from cifar_net import cifar_images
from hostile_files import trap
from onnx import TensorProto, helper
from onnx_resnet import mean_colour_onnx, resnet20_onnx
from PIL import Image
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from torch import nn

from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.models import (
    OnnxModel,
    Preprocessing,
    SklearnModel,
    TorchModel,
    as_model,
    cifar_resnet,
)
from shiftcal.models.sklearn import read_skops

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
        (["n", 3, 28, 28], TensorProto.INT64, r"as tensor\(float\).*is tensor\(int64\)"),
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


DIGITS = load_digits()
GREY = (DIGITS.images * 15).astype(np.uint8)[:600]  # (n, 8, 8), grey
LABELS = DIGITS.target[:600]
ROWS = np.repeat(GREY[..., None], 3, axis=3).reshape(600, -1).astype(np.float32) / np.float32(255)


def one_channel(batch):
    return batch[..., 0].reshape(len(batch), -1)


def test_logistic_regression_gives_its_decision_function_on_flattened_pixels():
    fitted = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(ROWS, LABELS)
    model = as_model(fitted, batch_size=128)
    assert isinstance(model, SklearnModel)
    assert model.scores == "decision_function"
    assert model.classes == tuple("0123456789")
    z = model.logits(GREY)
    np.testing.assert_allclose(softmax(z, axis=1), fitted.predict_proba(ROWS), atol=1e-5)
    two = LABELS < 2
    fitted = LogisticRegression().fit(ROWS[two], LABELS[two])
    z = as_model(fitted).logits(GREY[two])
    np.testing.assert_allclose(softmax(z, axis=1), fitted.predict_proba(ROWS[two]), atol=1e-6)


def test_probabilities_become_logits_where_there_is_no_decision_function():
    fitted = GaussianNB(var_smoothing=0.1).fit(one_channel(ROWS.reshape(-1, 8, 8, 3)), LABELS)
    model = SklearnModel(fitted, features=one_channel)
    assert model.scores == "predict_proba"
    z = model.logits(GREY)
    wanted = fitted.predict_proba(one_channel(ROWS.reshape(-1, 8, 8, 3)))
    np.testing.assert_allclose(np.exp(z), wanted, atol=1e-5)  # float32 rows that sum to about 1


def test_one_against_one_scores_are_refused_since_they_are_no_classes():
    three = LABELS < 3  # and three pairs of them, so that counting columns does not tell
    for rows in (slice(200), three):
        fitted = SVC(decision_function_shape="ovo").fit(ROWS[rows], LABELS[rows])
        with pytest.raises(InputError, match=r'one for each pair.*\(decision_function_shape="ovr"'):
            as_model(fitted)
        wanted = fitted.set_params(decision_function_shape="ovr").decision_function(ROWS[:20])
        np.testing.assert_allclose(as_model(fitted).logits(GREY[:20]), wanted, atol=1e-4)


def test_classifiers_that_cannot_are_refused():
    with pytest.raises(InputError, match="must be a fitted classifier; LogisticRegression has no"):
        as_model(LogisticRegression())
    perceptron = Perceptron().fit(ROWS, LABELS)
    with pytest.raises(InputError, match="must have predict_proba; Perceptron has not"):
        as_model(perceptron, scores="predict_proba")
    with pytest.raises(UnknownName, match="scores must be one of"):
        as_model(perceptron, scores="predict")


skops = pytest.importorskip("skops.io")
SMALL = RNG.integers(0, 256, (40, 8, 8, 3), np.uint8)
TRUTH = np.arange(40) % 3
FLAT = SMALL.reshape(40, -1) / np.float32(255)


def doubled(rows):
    return rows * 2


@pytest.fixture
def fitted():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(FLAT, TRUTH)


def test_logits_are_those_of_the_classifier_that_was_dumped(fitted, tmp_path):
    skops.dump(fitted, tmp_path / "a.skops")
    for text in (tmp_path / "a.skops", f"sklearn:{tmp_path}/a.skops", str(tmp_path / "a.skops")):
        model = as_model(text)
        assert isinstance(model, SklearnModel)
        np.testing.assert_allclose(model.logits(SMALL), fitted.decision_function(FLAT), rtol=1e-5)
        assert model.classes == ("0", "1", "2")


def test_types_that_are_not_known_are_named_and_loaded_when_trusted(tmp_path):
    own = make_pipeline(FunctionTransformer(doubled), LogisticRegression(max_iter=500))
    skops.dump(own.fit(FLAT, TRUTH), tmp_path / "own.skops")
    name = f"{__name__}.doubled"
    with pytest.raises(
        FileError, match=rf"not known to be harmless: {name}.*not loaded.*\?trusted={name}"
    ):
        as_model(tmp_path / "own.skops")
    model = as_model(f"sklearn:{tmp_path}/own.skops?trusted={name}")
    np.testing.assert_allclose(model.logits(SMALL), own.decision_function(FLAT), rtol=1e-5)
    with pytest.raises(FileError, match="not known to be harmless"):
        read_skops(tmp_path / "own.skops", trusted=["another.thing"])


def test_nothing_in_a_file_that_is_no_skops_runs(fitted, tmp_path):
    mark, file = tmp_path / "mark", tmp_path / "bad.skops"
    file.write_bytes(trap(mark))
    with pytest.raises(FileError, match=r"bad.skops must be made by skops.io.dump.*not opened"):
        as_model(file)
    file.write_bytes(pickle.dumps(fitted))
    with pytest.raises(FileError, match="something else, such as a pickle"):
        as_model(file)
    assert not mark.exists()

"""What every model does, through the adapter for functions."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from shiftcal import models
from shiftcal.errors import InputError, InputWarning, MissingExtra, UnknownName
from shiftcal.models import CallableModel, Preprocessing, as_model

IMAGES = np.random.default_rng(3).integers(0, 256, (25, 16, 12, 3), np.uint8)
RESIZE = Preprocessing(resize=8)


def mean_colour(batch):
    return batch.mean(axis=(2, 3)) * 4 - 1


def test_logits_are_those_of_the_function_whatever_the_batch_size():
    whole = CallableModel(mean_colour, batch_size=100).logits(IMAGES)
    wanted = IMAGES.astype(np.float64).mean(axis=(1, 2)) / 255 * 4 - 1
    assert whole.shape == (25, 3)
    np.testing.assert_allclose(whole, wanted, atol=1e-5)  # float32 means of 192 pixels
    for size in (1, 7, 24, 25):
        np.testing.assert_array_equal(
            CallableModel(mean_colour, batch_size=size).logits(IMAGES), whole
        )


def test_raw_pixels_are_given_as_they_are():
    seen = []

    def function(batch):
        seen.append(batch)
        return batch.mean(axis=(1, 2))

    CallableModel(function, raw=True).logits(IMAGES)
    np.testing.assert_array_equal(seen[0], IMAGES)
    assert seen[0].dtype == np.uint8


def test_grey_images_have_three_equal_channels():
    grey = IMAGES[..., 0]
    wanted = CallableModel(mean_colour).logits(np.stack([grey] * 3, axis=-1))
    np.testing.assert_array_equal(CallableModel(mean_colour).logits(grey), wanted)
    np.testing.assert_array_equal(CallableModel(mean_colour).logits(grey[..., None]), wanted)


@pytest.mark.parametrize("raw", [False, True])
def test_a_function_that_writes_into_its_batch_writes_into_a_copy(raw):
    before = IMAGES.copy()

    def function(batch):
        batch[...] = 0
        return np.arange(len(batch) * 2.0).reshape(-1, 2)

    CallableModel(function, raw=raw).logits(IMAGES)
    np.testing.assert_array_equal(IMAGES, before)


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError, match="at least one image; this batch is empty"):
        CallableModel(mean_colour).logits(IMAGES[:0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_the_image_named(value):
    calls = []

    def function(batch):
        z = mean_colour(batch)
        calls.append(None)
        if len(calls) == 2:
            z[3, 1] = value
        return z

    with pytest.raises(InputError, match=r"images 10 to 19 must be finite; 1 of 10 .* image 13"):
        CallableModel(function, batch_size=10).logits(IMAGES)


def test_an_error_of_the_model_names_the_batch_and_keeps_its_cause():
    def function(batch):
        if len(batch) < 10:
            raise ZeroDivisionError("nothing left")
        return mean_colour(batch)

    message = r"failed on images 20 to 24, given float32 of shape \(5, 3, 16, 12\): ZeroDiv.*left"
    with pytest.raises(InputError, match=message) as caught:
        CallableModel(function, batch_size=10).logits(IMAGES)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory")])
def test_a_model_short_of_memory_is_told_what_to_do(error):
    def function(_):
        raise error

    with pytest.raises(InputError, match=r"images 0 to 24.*smaller batch_size"):
        CallableModel(function).logits(IMAGES)


def softmax(batch):
    z = np.exp(mean_colour(batch))
    return z / z.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [1, 10, 256])
def test_probabilities_are_refused_unless_said_and_then_become_logits(size):
    with pytest.raises(
        InputError, match=r'images 0 to .* are probabilities.*output="probabilities"'
    ):
        CallableModel(softmax, batch_size=size).logits(IMAGES)
    z = CallableModel(softmax, output="probabilities", batch_size=size).logits(IMAGES)
    logits = CallableModel(mean_colour).logits(IMAGES)
    np.testing.assert_allclose(z - z[:, :1], logits - logits[:, :1], atol=1e-5)  # float32 exp


def test_a_few_rows_that_look_like_probabilities_are_warned_of():
    with pytest.warns(InputWarning, match="look like probabilities"):
        CallableModel(softmax).logits(IMAGES[:3])


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_other_numbers_become_floats(dtype):
    z = CallableModel(lambda b: (mean_colour(b) * 8).astype(dtype)).logits(IMAGES)
    assert z.dtype in (np.float32, np.float64)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, InputError, "batch_size must be a whole number"),
        ({"output": "scores"}, UnknownName, "output must be one of"),
        ({"classes": ["a", "a"]}, InputError, "class"),
        ({"classes": "ab"}, InputError, "class"),
        ({"preprocessing": {"crop": 3}}, InputError, "must be a Preprocessing; got dict"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        CallableModel(mean_colour, **options)


class Absent:
    """An import hook for which one package is not installed."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("package", "make", "extra"),
    [
        ("onnxruntime", lambda: as_model(b"net"), "onnx"),
        ("torch", lambda: models.cifar_resnet(20), "torch"),
        ("PIL", lambda: as_model(mean_colour, preprocessing=RESIZE).logits(IMAGES), "images"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    package, make, extra, monkeypatch
):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(package), *sys.meta_path])
    with pytest.raises(MissingExtra, match=rf"needs {package}.*shiftcal\[{extra}\]"):
        make()

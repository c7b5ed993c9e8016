"""Preprocessing, against torch's own operations and Pillow's resizing."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from shiftcal.errors import InputError, UnknownName
from shiftcal.models import Preprocessing

IMAGES = np.random.default_rng(5).integers(0, 256, (4, 20, 30, 3), np.uint8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_pixels_are_scaled_as_torch_does(layout):
    made = Preprocessing(mean=MEAN, std=STD, layout=layout).apply(IMAGES)
    wanted = (torch.from_numpy(IMAGES).double() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    wanted = wanted.permute(0, 3, 1, 2) if layout == "nchw" else wanted
    assert made.dtype == np.float32
    assert made.flags.c_contiguous
    np.testing.assert_allclose(made, wanted.numpy(), atol=1e-6)  # float32 against float64


def test_resize_is_pillows_and_keeps_the_proportions():
    made = Preprocessing(resize=15, layout="nhwc", dtype="uint8").apply(IMAGES)
    wanted = [np.asarray(Image.fromarray(x).resize((22, 15), Image.BILINEAR)) for x in IMAGES]
    np.testing.assert_array_equal(made, wanted)  # 30 * 15 / 20 = 22.5, rounded down


def test_half_precision_is_that_of_the_whole_computation_rounded():
    half = Preprocessing(mean=MEAN, std=STD, dtype="float16").apply(IMAGES)
    full = Preprocessing(mean=MEAN, std=STD).apply(IMAGES)
    np.testing.assert_array_equal(half, full.astype(np.float16))


def test_it_goes_through_json_and_back():
    one = Preprocessing(resize=256, crop=224, mean=MEAN, std=STD, layout="nhwc")
    assert Preprocessing.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert Preprocessing.from_dict({}) == Preprocessing()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"resize": 0}, InputError, "resize must be a whole number of at least 1"),
        ({"crop": 2.5}, InputError, "crop must be a whole number"),
        ({"mean": 0.5}, InputError, "mean must be three finite numbers.*got 0.5"),
        ({"std": (1, 1)}, InputError, "std must be three finite numbers"),
        ({"mean": (0, np.nan, 0)}, InputError, "mean must be three finite numbers"),
        ({"std": (1, 0, 1)}, InputError, "std must be positive"),
        ({"channels": 2}, InputError, "channels must be 3, or 1 for grey; got 2"),
        ({"channels": 1, "mean": MEAN}, InputError, "mean must be one finite number"),
        ({"layout": "chw"}, UnknownName, "layout must be one of"),
        ({"dtype": "float64"}, UnknownName, "dtype must be one of"),
        ({"dtype": "uint8", "mean": MEAN}, InputError, "left out with dtype 'uint8'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        Preprocessing(**settings)


def test_unknown_settings_are_refused():
    with pytest.raises(InputError, match=r"has the settings resize.*got centre, zoom"):
        Preprocessing.from_dict({"zoom": 1, "centre": 2})


def test_images_smaller_than_the_crop_are_refused():
    with pytest.raises(InputError, match=r"at least 24 pixels.*got 20 x 30"):
        Preprocessing(crop=24).apply(IMAGES)


def test_grey_is_pillows_to_the_last_bit():
    ramp = np.arange(0, 256, 5, dtype=np.uint8)
    cube = np.stack(np.meshgrid(ramp, ramp, ramp), axis=-1).reshape(1, 52, 52 * 52, 3)
    made = Preprocessing(channels=1, layout="nhwc", dtype="uint8").apply(cube)
    np.testing.assert_array_equal(
        made[0, ..., 0], np.asarray(Image.fromarray(cube[0]).convert("L"))
    )

"""What every model promises: batches, checks, groups of classes, preprocessing."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.special import logsumexp, softmax

from shiftcal import SurrogateBank
from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError, InputWarning, UnknownName
from shiftcal.models import CallableModel, GroupedModel, Preprocessing

IMAGES = np.random.default_rng(3).integers(0, 256, (25, 16, 12, 3), np.uint8)


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


@pytest.mark.parametrize("raw", [False, True])
def test_a_function_that_writes_into_its_batch_writes_into_a_copy(raw):
    before = IMAGES.copy()

    def function(batch):
        assert not raw or (batch == IMAGES).all()
        batch[...] = 0
        return np.arange(len(batch) * 2.0).reshape(-1, 2)

    CallableModel(function, raw=raw).logits(IMAGES)
    np.testing.assert_array_equal(IMAGES, before)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory")])
def test_a_model_short_of_memory_is_told_what_to_do(error):
    def function(_):
        raise error

    with pytest.raises(InputError, match=r"images 0 to 24.*smaller batch_size"):
        CallableModel(function).logits(IMAGES)


def probabilities(batch):
    z = np.exp(mean_colour(batch))
    return z / z.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [1, 10, 256])
def test_probabilities_are_refused_unless_said_and_then_become_logits(size):
    with pytest.raises(
        InputError, match=r'images 0 to .* are probabilities.*output="probabilities"'
    ):
        CallableModel(probabilities, batch_size=size).logits(IMAGES)
    z = CallableModel(probabilities, output="probabilities", batch_size=size).logits(IMAGES)
    logits = CallableModel(mean_colour).logits(IMAGES)
    np.testing.assert_allclose(z - z[:, :1], logits - logits[:, :1], atol=1e-5)  # float32 exp


def test_a_few_rows_that_look_like_probabilities_are_warned_of():
    with pytest.warns(InputWarning, match="look like probabilities"):
        CallableModel(probabilities).logits(IMAGES[:3])


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


GROUPED = np.random.default_rng(12).integers(0, 256, (30, 8, 8, 3), np.uint8)
GROUPS = {"b": [4, 1], "a": [0], "c": [2, 6, 5]}
WEIGHTS = np.random.default_rng(13).normal(size=(192, 7))


def seven(batch):
    return batch.reshape(len(batch), -1) @ WEIGHTS * 0.5


def model(function=seven, **options):
    return CallableModel(function, key="v1", **options)


def test_probabilities_are_sums_on_the_condition_that_it_is_one_of_the_groups():
    inner = softmax(model().logits(GROUPED), axis=1)
    sums = np.column_stack([inner[:, members].sum(axis=1) for members in GROUPS.values()])
    made = GroupedModel(model(), GROUPS)
    assert made.classes == ("b", "a", "c")
    probs = softmax(made.logits(GROUPED), axis=1)
    # float64 throughout: only the order of the sums differs.
    np.testing.assert_allclose(probs, sums / sums.sum(axis=1, keepdims=True), rtol=1e-12)


def test_logits_are_the_logarithm_of_summed_exponentials_and_do_not_overflow():
    z = model().logits(GROUPED)
    made = GroupedModel(model(), GROUPS).logits(GROUPED)
    np.testing.assert_array_equal(made[:, 1], z[:, 0])
    np.testing.assert_allclose(made[:, 2], logsumexp(z[:, [2, 6, 5]], axis=1), rtol=1e-13)

    def large(batch):
        return np.tile([1e4, -1e4, 3e4, 3e4], (len(batch), 1)).astype(np.float32)

    made = GroupedModel(model(large), {"a": [0, 1], "b": [2, 3]}).logits(GROUPED)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made[0], np.float32([1e4, 3e4 + np.log(2)]))


def test_a_bank_of_groups_matches_images_by_the_names_of_the_groups():
    labels = np.arange(30) % 3
    images = as_image_set(GROUPED, labels=labels, classes=["a", "b", "c"])
    bank = SurrogateBank.synthesize(
        GroupedModel(model(), GROUPS), images, corruption="pixelate", severities=[1]
    )
    assert bank.classes == ("b", "a", "c")
    np.testing.assert_array_equal(bank.sets[0].labels, np.array([1, 0, 2])[labels])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GroupedModel(model(classes=list("tuvwx")), GROUPS), "'c' must be from 0 to 4"),
        (lambda: GroupedModel(model(), {"a": [1, 2]}), "groups must be two or more"),
    ],
)
def test_groups_that_do_not_fit_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


PIXELS = np.random.default_rng(5).integers(0, 256, (4, 20, 30, 3), np.uint8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_pixels_are_scaled_as_torch_does(layout):
    made = Preprocessing(mean=MEAN, std=STD, layout=layout).apply(PIXELS)
    wanted = (torch.from_numpy(PIXELS).double() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    wanted = wanted.permute(0, 3, 1, 2) if layout == "nchw" else wanted
    assert made.dtype == np.float32
    assert made.flags.c_contiguous
    np.testing.assert_allclose(made, wanted.numpy(), atol=1e-6)  # float32 against float64


def test_resize_is_pillows_and_keeps_the_proportions():
    made = Preprocessing(resize=15, layout="nhwc", dtype="uint8").apply(PIXELS)
    wanted = [np.asarray(Image.fromarray(x).resize((22, 15), Image.BILINEAR)) for x in PIXELS]
    np.testing.assert_array_equal(made, wanted)  # 30 * 15 / 20 = 22.5, rounded down


def test_it_goes_through_json_and_back():
    one = Preprocessing(resize=256, crop=224, mean=MEAN, std=STD, layout="nhwc")
    assert Preprocessing.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert Preprocessing.from_dict({}) == Preprocessing()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"resize": 0}, InputError, "resize must be a whole number of at least 1"),
        ({"resize": (8, 8, 8)}, InputError, "resize must be a whole number"),
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


def test_grey_is_pillows_to_the_last_bit():
    ramp = np.arange(0, 256, 5, dtype=np.uint8)
    cube = np.stack(np.meshgrid(ramp, ramp, ramp), axis=-1).reshape(1, 52, 52 * 52, 3)
    made = Preprocessing(channels=1, layout="nhwc", dtype="uint8").apply(cube)
    np.testing.assert_array_equal(
        made[0, ..., 0], np.asarray(Image.fromarray(cube[0]).convert("L"))
    )

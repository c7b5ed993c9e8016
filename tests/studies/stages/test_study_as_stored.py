"""Images that were resized when they were made are not resized again; others are."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.datasets import as_image_set
from shiftcal.models import Preprocessing, as_model
from shiftcal.studies.stages.ready_made import taking_as_stored


def corner(batch):
    """Two logits that tell which pixels arrived: a corner's colour, and the width."""
    return np.stack([batch[:, 0, 0, 0], np.full(len(batch), batch.shape[-1])], axis=1)


@pytest.fixture
def model():
    framed = Preprocessing(resize=16, crop=8)
    return as_model(corner, preprocessing=framed, key="corner")


@pytest.fixture
def images():
    pixels = np.random.default_rng(5).integers(0, 256, (3, 8, 8, 3)).astype(np.uint8)
    return as_image_set(pixels, labels=[0, 1, 0])


def test_ready_made_images_reach_the_model_as_they_are(model, images):
    images.ready_made = 8
    taken = taking_as_stored(model, images)
    pixels = np.stack([images[i] for i in range(3)])
    expected = pixels[:, 0, 0, 0] / 255
    np.testing.assert_allclose(taken.logits(pixels)[:, 0], expected, rtol=1e-6)
    # the model itself enlarges to 16 and cuts the middle out: another corner
    assert not np.allclose(model.logits(pixels)[:, 0], expected)
    assert model.preprocessing.resize == 16


def test_other_images_are_resized_as_ever(model, images):
    assert images.ready_made is None
    assert taking_as_stored(model, images) is model


def test_a_model_that_resizes_nothing_is_the_same_for_all(images):
    plain = as_model(corner, key="corner")
    images.ready_made = 8
    assert taking_as_stored(plain, images) is plain

"""Images that are stored at the size of a network, and networks that bring a resizing."""

from __future__ import annotations

import warnings

import pytest
from exact_model import Exact
from imagenet_copies import WNIDS, write_class_index
from PIL import Image
from stored_images import draw_images, write_images

from shiftcal.datasets import as_image_set, load
from shiftcal.errors import InputWarning
from shiftcal.models import Preprocessing, as_model
from shiftcal.scoring import score
from shiftcal.surrogates.image_sets import corrupt_files


def model(**framing):
    preprocessing = Preprocessing(layout="nhwc", **framing)
    return as_model(Exact(), preprocessing=preprocessing, key="exact", batch_size=4)


@pytest.fixture
def published(tmp_path):
    folder = tmp_path / "fog" / "3" / WNIDS[0]
    folder.mkdir(parents=True)
    for i, image in enumerate(draw_images(2, 224, 224)):
        Image.fromarray(image).save(folder / f"{i}.JPEG")
    write_class_index(tmp_path / "imagenet_class_index.json")
    return load("imagenet-c", tmp_path, corruption="fog", severity=3).relabelled(None)


def warned(net, images):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score(net, images)
    return [str(one.message) for one in caught if issubclass(one.category, InputWarning)]


def test_resizing_imagenet_c_again_is_warned_of_with_what_to_do(published):
    assert published.ready_made == 224
    (text,) = warned(model(resize=256, crop=224), published)
    assert "ImageNet-C fog 3 were resized and cut to 224 x 224" in text
    assert "resizes them to 256 once more" in text
    assert "?resize=none in the spec of the model" in text
    (text,) = warned(model(resize=(240, 256)), published.subset([1]))
    assert "resizes them to 240 x 256 once more" in text


@pytest.mark.parametrize(
    "framing", [{}, {"crop": 224}, {"resize": 224}, {"resize": (224, 224), "crop": 200}]
)
def test_what_leaves_their_size_is_not(published, framing):
    assert warned(model(**framing), published) == []


@pytest.mark.parametrize("crop", [24, None])
def test_what_shiftcal_corrupt_cut_is_known_by_its_description(tmp_path, crop):
    write_images(tmp_path / "in", draw_images(2, 32, 30), [f"{WNIDS[0]}/{i}.png" for i in range(2)])
    write_class_index(tmp_path / "imagenet_class_index.json")
    corrupt_files(
        tmp_path / "in", tmp_path / "out", corruptions="contrast", severities=[2], crop=crop
    )
    whole = load("imagenet-c", tmp_path / "out", severity=2)
    one = as_image_set(tmp_path / "out" / "contrast" / "2")
    assert whole.ready_made == one.ready_made == crop
    expected = 0 if crop is None else 1
    assert len(warned(model(resize=28, crop=24), one.relabelled(None))) == expected
    assert warned(model(crop=24), whole.relabelled(None)) == []

"""Which inputs a step trains on, and the random changes to images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from photos import photo
from PIL import Image
from stored_images import draw_images, write_images

from shiftcal.adaptation.loop import (
    SOURCE,
    TARGET,
    ArrayFeed,
    ImageFeed,
    indices,
    random_box,
    training_transform,
)
from shiftcal.datasets import as_image_set
from shiftcal.datasets.image_files import FileImages
from shiftcal.errors import FileError, UnknownName
from shiftcal.models import Preprocessing

N, M = 13, 9
NUMBERS = Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
PHOTOS, SKETCHES = draw_images(10, 30, 41, seed=1), draw_images(7, 25, 20, seed=2)
LABELS = np.arange(10) % 3
PHOTO = photo(150, 200)


def test_the_order_is_the_same_on_every_machine():
    first = indices(10, 0, batch_size=10, key=(0, SOURCE))
    largest = indices(10, 0, batch_size=10, key=(2**64 - 1, TARGET))
    assert first.tolist() == [8, 7, 4, 2, 6, 5, 9, 0, 1, 3]
    assert largest.tolist() == [8, 5, 4, 7, 3, 1, 6, 0, 2, 9]


def test_too_few_images_for_a_batch_come_as_often_as_one_another():
    drawn = np.concatenate([indices(5, k, batch_size=8, key=(0, SOURCE)) for k in range(10)])
    for first in range(0, 80, 5):
        assert sorted(drawn[first : first + 5]) == list(range(5))


@given(n=st.integers(1, 40), step=st.integers(0, 200), batch_size=st.integers(1, 12))
def test_a_batch_is_full_and_does_not_depend_on_what_came_before(n, step, batch_size):
    options = {"batch_size": batch_size, "key": (9, SOURCE)}
    one = indices(n, step, **options)
    for k in range(6):
        indices(n + 1 + k, step, **options)
    assert (one.shape, one.dtype) == ((batch_size,), np.intp)
    assert 0 <= one.min() <= one.max() < n
    np.testing.assert_array_equal(one, indices(n, step, **options))


@pytest.fixture
def drawn():
    rng = np.random.default_rng(1)
    source = rng.standard_normal((N, 5), np.float32)
    return source, rng.integers(0, 3, N), rng.standard_normal((M, 5), np.float32)


def feed(drawn, **options):
    return ArrayFeed(*drawn, **{"batch_size": 4, "seed": 8, **options})


def test_a_batch_has_the_rows_that_are_due(drawn):
    source, labels, target = drawn
    for step, batch in enumerate(feed(drawn).batches(0, 7)):
        ours = indices(N, step, batch_size=4, key=(8, SOURCE))
        theirs = indices(M, step, batch_size=4, key=(8, TARGET))
        np.testing.assert_array_equal(batch.source.numpy(), source[ours])
        np.testing.assert_array_equal(batch.labels.numpy(), labels[ours])
        np.testing.assert_array_equal(batch.target.numpy(), target[theirs])
        assert batch.source.dtype == batch.target.dtype == torch.float32
        assert batch.labels.dtype == torch.int64


def labelled(images, labels=LABELS):
    return as_image_set(images, labels=labels)


def feed_of(**changes):
    options = {
        "source": labelled(PHOTOS),
        "target": as_image_set(SKETCHES),
        "transform": training_transform("default", 16),
        "preprocessing": NUMBERS,
        "batch_size": 4,
        "seed": 3,
    } | changes
    return ImageFeed(options.pop("source"), options.pop("target"), **options)


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_images_are_those_of_the_sampling_and_normalised_as_for_evaluation():
    feed = feed_of(transform=training_transform("none", 16))
    for step, batch in enumerate(feed.batches(0, 5)):
        for domain, images, got in ((0, PHOTOS, batch.source), (1, SKETCHES, batch.target)):
            wanted = indices(len(images), step, batch_size=4, key=(3, domain))
            resized = [
                np.asarray(Image.fromarray(images[i]).resize((16, 16)), np.float64) for i in wanted
            ]
            numbers = (np.stack(resized) / 255 - NUMBERS.mean) / NUMBERS.std
            np.testing.assert_allclose(got.permute(0, 2, 3, 1), numbers, atol=1e-6)
        wanted = indices(len(PHOTOS), step, batch_size=4, key=(3, 0))
        assert batch.labels.tolist() == LABELS[wanted].tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_does_not_depend_on_those_before_nor_on_workers(workers):
    batches = list(feed_of().batches(0, 9))
    assert all(map(equal, feed_of(workers=workers).batches(4, 9), batches[4:]))
    assert list(feed_of(workers=workers).batches(5, 5)) == []
    assert not equal(next(feed_of(seed=4).batches(0, 1)), batches[0])


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_that_cannot_be_read_stops_the_training_and_is_named(tmp_path, workers):
    names = [f"{i}.png" for i in range(4)]
    write_images(tmp_path, PHOTOS[:4], names)
    (tmp_path / "2.png").write_bytes(b"no picture")
    files = FileImages(tmp_path, names, name="files").relabelled([0, 1, 0, 1])
    feed = feed_of(source=files, workers=workers)
    with pytest.raises(FileError, match=r"^\S*2\.png cannot be read as an image.*fix or remove it"):
        list(feed.batches(0, 1))


def made(name, side, seeds):
    """The photo after a transform, once for each seed."""
    pipeline = training_transform(name, side)
    framed = pipeline.framing.of_images(PHOTO[None])[0]
    return np.stack([pipeline.change(framed, np.random.default_rng(seed)) for seed in seeds])


def squeezed(side):
    """The photo as Pillow's default makes a square of it."""
    return np.asarray(Image.fromarray(PHOTO).resize((side, side)))


def test_a_centre_crop_is_the_one_pillow_cuts_mirrored_or_not():
    wanted = squeezed(64)[4:60, 4:60]
    images = made("center-crop", 56, range(20))
    mirrored = [np.array_equal(image, wanted[:, ::-1]) for image in images]
    assert 0 < sum(mirrored) < 20
    for image, flipped in zip(images, mirrored, strict=True):
        np.testing.assert_array_equal(image, wanted[:, ::-1] if flipped else wanted)


def test_by_default_a_part_is_cut_from_the_squeezed_image_resized_and_mirrored_or_not():
    images = made("default", 56, range(12))
    assert images.shape == (12, 56, 56, 3)
    flips = 0
    for seed, image in enumerate(images):
        rng = np.random.default_rng(seed)
        top, left, height, width = random_box(64, 64, rng)
        part = Image.fromarray(squeezed(64)).crop((left, top, left + width, top + height))
        wanted = np.asarray(part.resize((56, 56), Image.Resampling.BILINEAR))
        flipped = rng.random() < 0.5
        flips += flipped
        np.testing.assert_array_equal(image, wanted[:, ::-1] if flipped else wanted)
    assert 0 < flips < 12


def test_an_unknown_name_raises():
    with pytest.raises(UnknownName, match="transform must be one of 'default', 'center-crop'"):
        training_transform("centre", 224)


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [
        # A strip has room for no proportion of 3/4 to 4/3 with 8 % of its area.
        (100, 2000, (0, 933, 100, 133)),
        (2000, 100, (933, 0, 133, 100)),
    ],
)
def test_where_nothing_fits_the_centre_is_taken(height, width, box):
    assert random_box(height, width, np.random.default_rng(0)) == box


@pytest.mark.slow  # the oracle takes seconds to be imported
def test_boxes_are_distributed_as_those_of_albumentations(monkeypatch):
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    albumentations = pytest.importorskip("albumentations")
    from scipy.stats import ks_2samp

    theirs = albumentations.RandomResizedCrop(
        size=(224, 224), scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)
    )
    theirs.set_random_seed(3)
    drawn = np.array(
        [
            theirs.get_params_dependent_on_data({"shape": (256, 256, 3)}, {})["crop_coords"]
            for _ in range(3000)
        ]
    )
    left, top, right, bottom = drawn.T
    rng = np.random.default_rng(5)
    ours = np.array([random_box(256, 256, rng) for _ in range(3000)])
    for mine, other in (
        (ours[:, 0], top),
        (ours[:, 1], left),
        (ours[:, 2], bottom - top),
        (ours[:, 3], right - left),
        (ours[:, 2] * ours[:, 3], (bottom - top) * (right - left)),
    ):
        assert ks_2samp(mine, other).pvalue > 1e-3

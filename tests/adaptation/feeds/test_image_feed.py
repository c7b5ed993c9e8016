"""Batches of images: a function of the seed and their number, with any number of workers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from stored_images import draw_images, write_images

from shiftcal.adaptation.feeds.augment.pipelines import training_transform
from shiftcal.adaptation.feeds.images import ImageFeed
from shiftcal.adaptation.feeds.sampling import indices
from shiftcal.datasets import as_image_set
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.datasets.containers.files import FileImages
from shiftcal.errors import FileError, InputError
from shiftcal.models import Preprocessing

NUMBERS = Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
SOURCE, TARGET = draw_images(10, 30, 41, seed=1), draw_images(7, 25, 20, seed=2)
LABELS = np.arange(10) % 3


def feed_of(**changes):
    options = {
        "source": ArrayImages(SOURCE),
        "labels": LABELS,
        "target": ArrayImages(TARGET),
        "transform": training_transform("default", 16),
        "preprocessing": NUMBERS,
        "batch_size": 4,
        "seed": 3,
    } | changes
    return ImageFeed(options.pop("source"), options.pop("labels"), options.pop("target"), **options)


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_batch_holds_numbers_channels_first_labels_and_as_many_target_images():
    batch = next(feed_of().batches(0, 1))
    assert batch.source.shape == batch.target.shape == (4, 3, 16, 16)
    assert batch.source.dtype == batch.target.dtype == torch.float32
    assert (batch.labels.shape, batch.labels.dtype) == ((4,), torch.int64)


def test_images_are_those_of_the_sampling_and_normalised_as_for_evaluation():
    transform = training_transform("none", 16)
    for step, batch in enumerate(feed_of(transform=transform).batches(0, 5)):
        for domain, images, got in ((0, SOURCE, batch.source), (1, TARGET, batch.target)):
            wanted = indices(len(images), step, batch_size=4, key=(3, domain))
            resized = [
                np.asarray(Image.fromarray(images[i]).resize((16, 16)), np.float64) for i in wanted
            ]
            numbers = (np.stack(resized) / 255 - NUMBERS.mean) / NUMBERS.std
            np.testing.assert_allclose(got.permute(0, 2, 3, 1), numbers, atol=1e-6)
        wanted = indices(len(SOURCE), step, batch_size=4, key=(3, 0))
        assert batch.labels.tolist() == LABELS[wanted].tolist()


def test_training_numbers_without_chance_are_those_of_evaluation():
    settings = Preprocessing(resize=(16, 16), interpolation="bicubic", mean=(0.5,) * 3)
    feed = feed_of(transform=training_transform("none", 16), preprocessing=settings)
    batch = next(feed.batches(2, 3))
    rows = indices(len(SOURCE), 2, batch_size=4, key=(3, 0))
    np.testing.assert_array_equal(batch.source.numpy(), settings.apply(SOURCE[rows]))


def test_a_batch_does_not_depend_on_those_before():
    feed = feed_of()
    straight = list(feed.batches(0, 9))
    assert equal(next(feed.batches(6, 7)), straight[6])
    assert all(map(equal, feed_of().batches(4, 9), straight[4:]))
    assert list(feed.batches(5, 5)) == []


def test_the_same_image_is_changed_otherwise_each_time():
    one = ArrayImages(SOURCE[:1])
    feed = feed_of(source=one, labels=[0], target=one)
    made = [image for batch in feed.batches(0, 3) for part in (0, 2) for image in batch[part]]
    assert len({image.numpy().tobytes() for image in made}) == 24


def test_another_seed_gives_other_batches():
    assert not equal(next(feed_of().batches(0, 1)), next(feed_of(seed=4).batches(0, 1)))


def test_processes_that_train_together_share_the_batch_of_one():
    whole = feed_of(batch_size=4)
    parts = [feed_of(batch_size=2, rank=rank, world=2) for rank in range(2)]
    for batch, *shared in zip(*(feed.batches(0, 4) for feed in (whole, *parts)), strict=True):
        for got, *joined in zip(batch, *shared, strict=True):
            assert torch.equal(got, torch.cat(joined))


def test_a_trainer_that_looks_at_no_target_gets_none():
    with_target, without = feed_of(), feed_of(target=None)
    for one, other in zip(with_target.batches(0, 3), without.batches(0, 3), strict=True):
        assert torch.equal(one.source, other.source)
        assert other.target is None


def test_grey_images_are_made_for_a_grey_network():
    grey = Preprocessing(channels=1, mean=(0.5,), std=(0.5,))
    assert next(feed_of(preprocessing=grey).batches(0, 1)).source.shape == (4, 1, 16, 16)


def test_an_image_that_cannot_be_read_stops_the_training_and_is_named(tmp_path):
    names = [f"{i}.png" for i in range(4)]
    write_images(tmp_path, SOURCE[:4], names)
    (tmp_path / "2.png").write_bytes(b"no picture")
    files = FileImages(tmp_path, names, name="files")
    feed = feed_of(source=files, labels=[0, 1, 0, 1])
    with pytest.raises(FileError, match=r"2\.png cannot be read as an image.*mend or remove it"):
        list(feed.batches(0, 1))
    (tmp_path / "2.png").unlink()
    with pytest.raises(FileError, match=r"2\.png cannot be read.*left out of a training silently"):
        list(feed.batches(0, 1))


@pytest.mark.parametrize("labels", [LABELS[:9], LABELS / 1.0, -LABELS, LABELS[:, None]], ids=str)
def test_labels_that_are_no_class_for_each_image_are_refused(labels):
    with pytest.raises(InputError, match="labels must be a class index for each of the 10 source"):
        feed_of(labels=labels)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"batch_size": 0}, "batch_size must be a whole"), ({"workers": -1}, "workers must be a")],
)
def test_numbers_that_cannot_be_used_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        feed_of(**change)


def test_real_photos_come_as_pillow_makes_them(shared_data):
    folder = shared_data / "office-caltech10"
    source, target = (
        as_image_set(f"office-caltech10:{folder}?domain={name}") for name in ("dslr", "webcam")
    )
    feed = feed_of(
        source=source,
        labels=source.labels,
        target=target,
        transform=training_transform("center-crop", 224),
        batch_size=3,
    )
    batch = next(feed.batches(1, 2))
    rows = indices(len(source), 1, batch_size=3, key=(3, 0))
    assert batch.labels.tolist() == source.labels[rows].tolist()
    for row, got in zip(rows, batch.source, strict=True):
        picture = Image.fromarray(source[int(row)]).resize((256, 256))
        wanted = np.asarray(picture.crop((16, 16, 240, 240)), np.float64) / 255
        wanted = (wanted - NUMBERS.mean) / NUMBERS.std
        made = got.permute(1, 2, 0).numpy()
        flipped = np.abs(made[:, ::-1] - wanted).max() < 1e-5
        np.testing.assert_allclose(made[:, ::-1] if flipped else made, wanted, atol=1e-5)

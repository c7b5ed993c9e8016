"""Batches of arrays in memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.feeds.sampling import SOURCE, TARGET, indices
from shiftcal.adaptation.losses._joined import joined
from shiftcal.errors import InputError

N, M = 13, 9


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


def test_batches_from_the_middle_on_are_the_same(drawn):
    whole = list(feed(drawn).batches(0, 12))
    for one, two in zip(whole[5:], feed(drawn).batches(5, 12), strict=True):
        assert all(map(torch.equal, one, two))


def test_without_a_target_there_is_none(drawn):
    (batch,) = ArrayFeed(*drawn[:2], batch_size=4, seed=8).batches(3, 4)
    assert batch.target is None


def test_processes_have_parts_of_one_batch(drawn):
    (whole,) = feed(drawn, batch_size=6).batches(2, 3)
    parts = [next(feed(drawn, batch_size=3, rank=r, world=2).batches(2, 3)) for r in range(2)]
    for together, *pieces in zip(whole, *parts, strict=True):
        assert torch.equal(together, torch.cat(pieces))


def test_arrays_that_cannot_be_written_and_tensors_are_taken(drawn, tmp_path):
    source, labels, target = drawn
    np.save(tmp_path / "source.npy", source)
    mapped = np.load(tmp_path / "source.npy", mmap_mode="r")
    other = ArrayFeed(
        mapped, torch.from_numpy(labels), torch.from_numpy(target).double(), batch_size=4, seed=8
    )
    for one, two in zip(feed(drawn).batches(0, 3), other.batches(0, 3), strict=True):
        assert all(map(torch.equal, one, two))


def test_a_transform_is_told_what_to_draw_from():
    pixels = np.arange(N * 12, dtype=np.uint8).reshape(N, 3, 2, 2)
    told = []

    def halved(inputs, key):
        told.append(key)
        assert inputs.dtype == torch.uint8
        return inputs.float() / 2

    images = (pixels, np.zeros(N, int), pixels)
    batches = feed(images, transform=halved, rank=1, world=2).batches(5, 7)
    chosen = indices(N, 5, batch_size=4, key=(8, SOURCE), rank=1, world=2)
    np.testing.assert_array_equal(next(batches).source.numpy(), pixels[chosen] / np.float32(2))
    next(batches)
    assert told == [(8, SOURCE, 5, 1), (8, TARGET, 5, 1), (8, SOURCE, 6, 1), (8, TARGET, 6, 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: np.zeros((0, 5))}, r"source must have a row for each image.*\(0, 5\)"),
        ({0: np.zeros(N)}, r"source must have a row for each image, shape \(n, \.\.\.\); got"),
        ({0: np.full((N, 5), "a")}, "source must be numbers; got dtype"),
        ({0: np.zeros((N, 5), np.uint8)}, "source must be float.*uint8.*Pass a transform"),
        ({0: np.full((N, 5), np.nan)}, "source must be finite"),
        ({2: np.full((M, 5), np.inf)}, "target must be finite"),
        ({2: np.zeros((M, 4))}, r"inputs of one shape; got \(5,\) and \(4,\)"),
        ({1: np.zeros(N - 1, int)}, r"one for each of the 13 source images; got shape \(12,\)"),
        ({1: np.zeros(N)}, "labels must be class indices, .*dtype float64"),
        ({1: np.full(N, -1)}, "class indices from 0; got -1.*Leave images without a label out"),
    ],
)
def test_what_does_not_fit_is_refused(drawn, change, message):
    with pytest.raises(InputError, match=message):
        feed([change.get(i, given) for i, given in enumerate(drawn)])


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"seed": -1}])
def test_settings_that_cannot_be_are_refused(drawn, options):
    with pytest.raises(InputError, match=f"{next(iter(options))} must be a whole number"):
        feed(drawn, **options)


def test_arrays_are_left_as_they_were(drawn):
    before = [one.copy() for one in drawn]
    for batch in feed(drawn).batches(0, 5):
        for one in batch:
            one.zero_()
    for one, two in zip(drawn, before, strict=True):
        np.testing.assert_array_equal(one, two)


def test_both_domains_are_parts_of_one_tensor_so_that_joining_them_copies_nothing():
    rng = np.random.default_rng(0)
    source, target = rng.random((9, 3), np.float32), rng.random((8, 3), np.float32)
    feed = ArrayFeed(source, np.arange(9), target, batch_size=4, seed=0)
    first, second = feed.batches(0, 2)
    for batch in (first, second):
        together = joined(batch.source, batch.target)
        assert together.data_ptr() == batch.source.data_ptr()
        np.testing.assert_array_equal(batch.source, source[batch.labels])
    assert first.source.data_ptr() != second.source.data_ptr()

"""Corruptions on images of any size and content, in any batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import shiftcal as sc

NAMES = sc.corruptions.names()
SIDES = st.integers(8, 50)


@st.composite
def batches(draw):
    shape = (draw(st.integers(1, 4)), draw(SIDES), draw(SIDES), 3)
    kind = draw(st.sampled_from(["noise", "flat", "few levels", "drawn"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind == "noise":
        return rng.integers(0, 256, shape, dtype=np.uint8)
    if kind == "flat":
        return np.full(shape, draw(st.integers(0, 255)), np.uint8)
    if kind == "few levels":
        return rng.choice(np.array([0, 128, 255], np.uint8), shape)
    return draw(arrays(np.uint8, shape, elements=st.integers(0, 255), fill=st.integers(0, 255)))


@pytest.mark.parametrize("name", NAMES)
@given(
    images=batches(),
    severity=st.integers(0, 5),
    seed=st.integers(0, 2**70),
    table=st.sampled_from(["auto", "cifar", "tiny-imagenet", "imagenet"]),
    data=st.data(),
)
def test_any_image_any_batch(name, images, severity, seed, table, data):
    kept = images.copy()
    options = {"severity": severity, "seed": seed, "table": table}
    whole = sc.corrupt(images, name, threads=2, **options)
    assert np.array_equal(images, kept)
    assert whole.shape == images.shape
    assert whole.dtype == np.uint8
    if severity == 0:
        assert np.array_equal(whole, images)
    cut = data.draw(st.integers(0, len(images)))
    head = sc.corrupt(images[:cut], name, threads=1, **options)
    tail = sc.corrupt(images[cut:], name, first_index=cut, threads=1, **options)
    assert np.array_equal(np.concatenate([head, tail]), whole)
    one = data.draw(st.integers(0, len(images) - 1))
    alone = sc.corrupt(images[one], name, first_index=one, **options)
    assert np.array_equal(alone, whole[one])


ADDING = {"snow", "fog", "frost", "spatter", "saturate", "brightness"}
MOVING = [n for n in NAMES if n not in ADDING and sc.corruptions.get(n).group != "noise"]


@pytest.mark.parametrize("name", MOVING)
@given(level=st.integers(0, 255), severity=st.integers(1, 5), height=SIDES, width=SIDES)
def test_a_flat_grey_image_stays_flat_if_nothing_is_added(name, level, severity, height, width):
    flat = np.full((height, width, 3), level, np.uint8)
    made = sc.corrupt(flat, name, severity=severity).astype(int)
    # JPEG moves a flat image by a few levels at most, the others not at all or by one.
    assert np.ptp(made) <= 1
    assert abs(made.mean() - level) <= 4

"""The procedural frost beside the photographs of the published generator."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from shiftcal.corruptions._frost_textures import frost_textures
from shiftcal.corruptions._shrink import shrink

GREY = np.array([0.299, 0.587, 0.114])


def procedural(scale):
    texels, starts, sizes = frost_textures(scale)
    return [
        texels[start : start + 3 * h * w].reshape(h, w, 3)
        for start, (h, w) in zip(starts, sizes, strict=True)
    ]


@pytest.fixture(scope="module")
def photographs(shared_data):
    files = sorted((shared_data / "frost-textures").glob("frost?.*g"))[:5]
    return [np.asarray(Image.open(file).convert("RGB")) for file in files]


def crops(picture, size, count, seed):
    rng = np.random.default_rng(seed)
    grey = picture @ GREY
    rows = rng.integers(0, grey.shape[0] - size, count)
    columns = rng.integers(0, grey.shape[1] - size, count)
    return np.stack([grey[y : y + size, x : x + size] for y, x in zip(rows, columns, strict=True)])


def spectrum_slope(planes):
    """The slope of log power over log frequency, rings of equal frequency averaged."""
    n = planes.shape[1]
    window = np.hanning(n)[:, None] * np.hanning(n)
    power = np.abs(np.fft.fft2((planes - planes.mean(axis=(1, 2), keepdims=True)) * window)) ** 2
    frequency = np.hypot(np.fft.fftfreq(n)[:, None], np.fft.fftfreq(n)) * n
    rings = np.arange(2, n // 2)
    mean = [power.mean(axis=0)[np.abs(frequency - ring) <= 0.5].mean() for ring in rings]
    return np.polyfit(np.log(rings), np.log(mean), 1)[0]


def unevenness(picture):
    """How much the roughness of 8 x 8 blocks varies: deviation over mean of their deviations."""
    grey = picture @ GREY
    h, w = (side // 8 * 8 for side in grey.shape)
    blocks = grey[:h, :w].reshape(h // 8, 8, w // 8, 8).std(axis=(1, 3))
    return blocks.std() / blocks.mean()


@pytest.mark.parametrize(("scale", "size"), [(0.2, 32), (1, 224)])
def test_textures_have_the_statistics_of_the_published_photographs(photographs, scale, size):
    for k, (made, photo) in enumerate(zip(procedural(scale), photographs, strict=True)):
        taken = shrink(photo, scale)
        assert np.abs(made.mean(axis=(0, 1)) - taken.mean(axis=(0, 1))).max() < 2
        assert (made @ GREY).std() == pytest.approx((taken @ GREY).std(), rel=0.15)
        # A picture is 2 to 16 crops large, so that crops are far from independent.
        count = 200 if size == 32 else 80
        a, b = crops(made, size, count, seed=k), crops(taken, size, count, seed=k)
        assert a.std(axis=(1, 2)).mean() == pytest.approx(b.std(axis=(1, 2)).mean(), rel=0.15)
        # Crops of the smaller photographs overlap nearly all, which keeps their means together.
        assert a.mean(axis=(1, 2)).std() == pytest.approx(b.mean(axis=(1, 2)).std(), abs=3)
        assert spectrum_slope(a) == pytest.approx(spectrum_slope(b), abs=0.35)
        assert np.abs(np.diff(a)).mean() == pytest.approx(np.abs(np.diff(b)).mean(), rel=0.15)
        assert unevenness(made) == pytest.approx(unevenness(taken), rel=0.4)


def test_textures_as_a_whole_have_the_statistics_that_were_aimed_at():
    """Measured on the photographs; here without them."""
    made = [texture @ GREY for texture in procedural(1)]
    np.testing.assert_allclose([m.mean() for m in made], [131, 207, 207, 152, 123], atol=3)
    assert all(16 < m.std() < 44 for m in made)
    colour = np.mean([texture.mean(axis=(0, 1)) for texture in procedural(1)], axis=0)
    np.testing.assert_allclose(colour, [146, 167, 179], atol=2)


def test_no_texture_is_a_photograph(photographs):
    """The best match of a piece of any texture in its photograph is no better than chance."""
    for made, taken in zip(procedural(0.2), photographs, strict=True):
        # Neighbours are subtracted: smooth brightness may well be alike by chance.
        small = np.diff(shrink(taken, 0.2) @ GREY)
        piece = np.diff(made @ GREY)[:32, :32]
        piece = (piece - piece.mean()) / piece.std()
        windows = np.lib.stride_tricks.sliding_window_view(small, (32, 32))[::2, ::2]
        spread = windows.std(axis=(2, 3)) * piece.size
        match = np.einsum("abij,ij->ab", windows, piece) / spread
        assert np.abs(match).max() < 0.3

"""Snow, frost, fog, brightness and spatter against the published recipes in numpy and OpenCV."""

from __future__ import annotations

import hashlib

import cv2
import numpy as np
import pytest
from corrupted import corrupted
from corruption_recipes import clipped_zoom, drawn_angle, magick_blur, recipe
from photos import odd_images, photo, photos
from PIL import Image
from random_fields import TABLES, image_keys, symmetric_halves, words
from scipy import stats

from shiftcal import corruptions
from shiftcal.corruptions import Fog, Snow
from shiftcal.corruptions.corruption import stream_keys
from shiftcal.corruptions.filters import crop_length
from shiftcal.corruptions.weather import Frost, frost_textures, normal_quantiles, shrink
from shiftcal.errors import FileError, InputError

# ---- brightness


NAME = "brightness"


def exact(image, twentieths):
    """In whole numbers: floor(x min(V + 255 c, 255) / V), with c in twentieths."""
    x = image.astype(np.int64)
    value = x.max(axis=-1, keepdims=True)
    raised = np.minimum(20 * value + 255 * twentieths, 20 * 255)
    black = value == 0
    return np.where(black, raised // 20, x * raised // np.where(black, 1, 20 * value))


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_formula_in_whole_numbers(table, severity):
    (rise,) = corruptions.get(NAME)().setting(severity, table=table)
    colours = np.random.default_rng(3).integers(0, 256, (1, 300, 200, 3), dtype=np.uint8)
    colours[0, :150] //= 17
    found = corrupted(colours, NAME, severity, table)
    np.testing.assert_array_equal(found, exact(colours, round(20 * rise)))


# ---- fog


FOG_SIZES = [("cifar", 20, 27, 32), ("tiny-imagenet", 45, 80, 128), ("imagenet", 128, 300, 512)]


def plasma(side, decay, uniform):
    """The published map, unscaled; ``uniform(kind, n)`` gives ``(n, n)`` numbers in (-1, 1)."""
    points = np.zeros((1, 1))
    wibble = 100.0
    while len(points) < side:
        n = len(points)
        to_right, to_below = np.roll(points, -1, axis=1), np.roll(points, -1, axis=0)
        middle = (points + to_right + to_below + np.roll(to_below, -1, axis=1)) / 4
        middle = middle + wibble * (wibble * uniform("middle", n))
        right = (middle + np.roll(middle, 1, axis=0) + points + to_right) / 4
        right = right + wibble * (wibble * uniform("right", n))
        below = (middle + np.roll(middle, 1, axis=1) + points + to_below) / 4
        below = below + wibble * (wibble * uniform("below", n))
        finer = np.empty((2 * n, 2 * n))
        finer[::2, ::2], finer[::2, 1::2] = points, right
        finer[1::2, ::2], finer[1::2, 1::2] = below, middle
        points = finer
        wibble /= decay
    return points


def same_numbers(key):
    """The numbers the kernel draws for the stream with this key."""

    def uniform(kind, n):
        if kind == "below":
            return symmetric_halves(words(key, 3 * n * n, n * n))[0].reshape(n, n)
        middle, right = symmetric_halves(words(key, 2 * n * n, n * n))
        return (middle if kind == "middle" else right).reshape(n, n)

    return uniform


def foggy(image, strength, decay, side, uniform):
    """The published recipe in double precision."""
    x = image / 255.0
    height, width = x.shape[:2]
    cloud = plasma(side, decay, uniform)
    cloud = (cloud - cloud.min()) / (cloud.max() - cloud.min())
    top = x.max()
    x = x + strength * cloud[:height, :width, None]
    return np.uint8(np.clip(x * top / (top + strength), 0, 1) * 255)


@pytest.mark.parametrize(("table", "height", "width", "side"), FOG_SIZES)
def test_fog_is_the_published_one_given_the_same_random_numbers(table, height, width, side):
    images = np.concatenate([photos(height, width), odd_images(height, width)])
    for severity in range(1, 6):
        strength, decay, _ = Fog.settings[table][severity - 1]
        got = corrupted(images, "fog", severity, table)
        keys = image_keys("fog", severity, len(images))
        expected = np.stack(
            [
                foggy(image, strength, decay, side, same_numbers(key))
                for image, key in zip(images, keys, strict=True)
            ]
        )
        difference = np.abs(got.astype(int) - expected)
        assert difference.max() <= 1
        # single precision moves a value by about 1e-4 levels, and that many lie at an edge
        assert (difference > 0).mean() < 5e-4


@pytest.mark.parametrize("turned", [False, True])
def test_beyond_4096_the_map_is_repeated_without_a_seam(turned):
    shape = (1, 5000, 8, 3) if turned else (1, 8, 5000, 3)
    foggy = corrupted(np.full(shape, 255, np.uint8), "fog", 2, "tiny-imagenet")[0, ..., 0]
    foggy = (foggy.T if turned else foggy).astype(int)
    np.testing.assert_array_equal(foggy[:, 4096:], foggy[:, : 5000 - 4096])
    steps = np.abs(np.diff(foggy, axis=1)).max(axis=0)
    # a map of this side is smooth at a decay of 3, so that only a seam would have a large step
    assert steps.max() <= 3
    assert np.ptp(foggy) > 30


# ---- frost


SCALES = {"cifar": 0.2, "tiny-imagenet": 0.3, "imagenet": 1}


def textures(scale):
    """The five procedural textures as images."""
    texels, starts, sizes = frost_textures(scale)
    ends = [*starts[1:], len(texels)]
    return [
        texels[start:end].reshape(*size, 3)
        for start, end, size in zip(starts, ends, sizes, strict=True)
    ]


def drawn_places(index, severity, choices, seed=0):
    """Texture, row and column of an image: the first three words times the number of choices."""
    key = stream_keys(seed=seed, corruption="frost", severity=severity, indices=np.array([index]))
    picture, row, column = words(key[0], 0, 3).tolist()
    which = picture * len(choices) >> 32
    rows, columns = choices[which]
    return which, row * int(rows) >> 32, column * int(columns) >> 32


def frosted(image, crop, a, b):
    return np.clip(a * image.astype(np.float64) + b * crop, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("table", SCALES)
@pytest.mark.parametrize("shape", [(8, 9), (40, 52), (200, 150)])
def test_equals_the_recipe_at_the_drawn_place_of_a_procedural_texture(table, shape):
    height, width = shape
    pictures = textures(SCALES[table])
    images = np.concatenate([photos(height, width), odd_images(height, width)])
    for severity in range(1, 6):
        got = corrupted(images, "frost", severity, table)
        a, b, scale = Frost().setting(severity, table=table)
        assert scale == SCALES[table]
        for i, image in enumerate(images):
            which, top, left = drawn_places(i, severity, [p.shape[:2] for p in pictures])
            around = np.roll(pictures[which], (-top, -left), axis=(0, 1))
            times = (-(-height // len(around)), -(-width // len(around)), 1)
            want = frosted(image, np.tile(around, times)[:height, :width], a, b)
            np.testing.assert_array_equal(got[i], want)


@pytest.fixture
def folder(tmp_path):
    """Six photographs of different sizes, in both file formats of the published ones."""
    rng = np.random.default_rng(0)
    for k, (height, width) in enumerate([(300, 420), (310, 290), (350, 500)] * 2):
        picture = photo(height, width, "flower.jpg" if k % 2 else "china.jpg")
        noisy = np.clip(picture + rng.normal(0, 30, picture.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(tmp_path / f"frost{k + 1}.{'png' if k < 3 else 'jpg'}")
    (tmp_path / "notes.txt").write_text("not a photo")
    return tmp_path


@pytest.mark.parametrize(
    ("table", "size"), [("cifar", 32), ("tiny-imagenet", 64), ("imagenet", 224)]
)
def test_with_photos_it_equals_the_published_recipe(folder, table, size):
    """The oracle reads and shrinks the photographs with OpenCV, as the published generator."""
    frost = Frost(photos=folder)
    images = np.concatenate([photos(size, size), odd_images(size, size)] * 2)
    for severity in range(1, 6):
        got = corrupted(images, frost, severity, table)
        a, b, scale = frost.setting(severity, table=table)
        pictures = []
        for file in sorted(folder.glob("frost*"))[:5]:
            picture = cv2.imread(str(file))
            if scale != 1:
                picture = cv2.resize(picture, (0, 0), fx=scale, fy=scale)
            pictures.append(picture[..., [2, 1, 0]])
        choices = [np.array(p.shape[:2]) - size for p in pictures]
        for i, image in enumerate(images):
            which, top, left = drawn_places(i, severity, choices)
            crop = pictures[which][top : top + size, left : left + size]
            off = np.abs(got[i].astype(int) - frosted(image, crop, a, b))
            # Two decoders may differ by a level in a JPEG, of which at most 0.75 arrives.
            assert off.max() <= 1
            assert (off > 0).mean() < 0.02


def test_the_identity_is_that_of_the_content_wherever_it_is(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    whole = b"".join(file.read_bytes() for file in sorted(folder.glob("frost*"))[:5])
    digest = hashlib.sha256(whole).hexdigest()[:16]
    assert Frost(photos=folder).identity == f"frost (photos, sha256 {digest})"
    assert Frost(photos=other).identity == Frost(photos=folder).identity


@pytest.mark.parametrize("scale", [0.2, 0.3])
@pytest.mark.parametrize("shape", [(203, 311), (315, 560), (64, 65)])
def test_shrinking_is_that_of_opencv(shape, scale):
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8)
    want = cv2.resize(image, (0, 0), fx=scale, fy=scale)
    got = shrink(image, scale)
    assert got.shape == want.shape
    # Equal on the processors tried; OpenCV's own code differs by a level between processors.
    assert np.abs(got.astype(int) - want).max() <= 1


def test_photos_that_cannot_be_used_are_rejected(folder):
    for none in (folder / "nowhere", folder.parent):
        with pytest.raises(FileError, match="must be a folder with photos"):
            Frost(photos=none)
    frost = Frost(photos=folder)
    images = np.zeros((1, 60, 32, 3), np.uint8)
    with pytest.raises(InputError, match=r"60 x 32 pixels do not fit .*\[60 58\] pixels"):
        corrupted(images, frost, 1, "cifar")
    assert corrupted(images[:, :59], frost, 1, "cifar").shape == (1, 59, 32, 3)
    (folder / "frost1.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(FileError, match=r"frost1\.png could not be read as a photograph"):
        corrupted(images[:, :32], Frost(photos=folder), 1, "cifar")


# ---- frost statistics


GREY = np.array([0.299, 0.587, 0.114])


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


@pytest.mark.parametrize(
    ("scale", "size"), [(0.2, 32), pytest.param(1, 224, marks=pytest.mark.slow)]
)
def test_textures_have_the_statistics_of_the_published_photographs(photographs, scale, size):
    for k, (made, photograph) in enumerate(zip(textures(scale), photographs, strict=True)):
        taken = shrink(photograph, scale)
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


# ---- snow


SNOW_SIZES = [
    ("cifar", 32, 32),
    ("tiny-imagenet", 40, 52),
    ("imagenet", 8, 11),
    ("imagenet", 200, 156),  # at 150 the oracle's enlargement loses the last column
]


def published(image, field, angle, setting):
    """The published recipe with the field of normal deviates and the angle given."""
    _, _, factor, threshold, radius, sigma, mix = setting
    x = np.array(image, dtype=np.float32) / 255.0
    layer = clipped_zoom(field[..., None], factor)
    layer[layer < threshold] = 0
    layer = (np.clip(layer.squeeze(), 0, 1) * 255).astype(np.uint8)
    layer = magick_blur(layer, radius, sigma, angle)[..., None] / 255.0
    grey = cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None]
    x = mix * x + (1 - mix) * np.maximum(x, grey * 1.5 + 0.5)
    return np.uint8(np.clip(x + layer + np.rot90(layer, k=2), 0, 1) * 255)


def normal_field(key, height, width):
    """The field of normal deviates of a stream: two quantiles from the halves of every number."""
    bits = words(key, 0, (height * width + 1) // 2)
    halves = np.stack([bits & 0xFFFF, bits >> 16], axis=1).ravel()[: height * width]
    return normal_quantiles()[halves].reshape(height, width)


def drawn_field_of_snow(key, setting, height, width):
    """The deviates our kernel draws for a key, where the recipe would have drawn them."""
    mean, deviation = setting[:2]
    cut = [crop_length(side, setting[2]) for side in (height, width)]
    drawn = normal_field(key, *cut)
    field = np.full((height, width), np.nan)  # what is outside the middle must not be used
    top, left = (height - cut[0]) // 2, (width - cut[1]) // 2
    levels = (255 * (mean + deviation * drawn)).astype(np.float32)
    field[top : top + cut[0], left : left + cut[1]] = levels / 255.0
    return field


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize(("table", "height", "width"), SNOW_SIZES)
def test_every_value_is_the_recipes_with_the_flakes_drawn(table, height, width, severity):
    images = np.concatenate([photos(height, width)[1:3], odd_images(height, width)])
    setting = Snow.settings[table][severity - 1]
    snowy = corrupted(images, "snow", severity, table)
    equal, undecided = [], 0
    for image, ours, key in zip(
        images, snowy, image_keys("snow", severity, len(images)), strict=True
    ):
        field = drawn_field_of_snow(key, setting, height, width)
        if to_threshold(field, setting) < 1e-4:
            undecided += 1
            continue
        expected = published(image, field, drawn_angle(key, 1 << 31, -135), setting)
        difference = np.abs(ours.astype(int) - expected)
        assert difference.max() <= 1
        equal.append((difference == 0).mean())
    assert undecided <= 1
    # Sums that are whole but for rounding errors may be cut to either level.
    assert np.mean(equal) > 0.995


def to_threshold(field, setting):
    """How near a value comes to the threshold, in levels; at 1e-5 the last digit decides."""
    return 255 * np.abs(clipped_zoom(field[..., None], setting[2]) - setting[3]).min()


@pytest.mark.parametrize("severity", [1, 5])
def test_snow_on_black_has_the_distribution_of_numpys_own(severity):
    draws = 250
    setting = Snow.settings["cifar"][severity - 1]
    black = np.zeros((draws, 32, 32, 3), np.uint8)
    ours = corrupted(black, "snow", severity, "cifar")[..., 0].astype(float)
    generator = np.random.default_rng(severity)
    theirs = np.stack(
        [
            published(
                black[0],
                generator.normal(setting[0], setting[1], (32, 32)),
                generator.uniform(-135, -45),
                setting,
            )[..., 0]
            for _ in range(draws)
        ]
    ).astype(float)
    for measure in (np.mean, np.std, lambda image: np.abs(np.diff(image, axis=0)).mean()):
        a = np.array([measure(image) for image in ours])
        b = np.array([measure(image) for image in theirs])
        error = np.hypot(a.std(), b.std()) / np.sqrt(draws)
        assert abs(a.mean() - b.mean()) < 4 * error + 1e-9
    assert stats.ks_2samp(ours[:, 10, 7], theirs[:, 10, 7]).pvalue > 1e-3


# ---- spatter


SPATTER_TABLES = {"cifar": (32, 32), "tiny-imagenet": (50, 72), "imagenet": (224, 224)}


def setting(table, severity):
    return corruptions.get("spatter")().setting(severity, table=table)


def drawn_field_of_spatter(height, width, severity, index=0, seed=0):
    """The standard normal field that image ``index`` gets."""
    key = stream_keys(
        seed=seed, corruption="spatter", severity=severity, indices=np.array([index])
    )[0]
    return normal_field(key, height, width).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("table", SPATTER_TABLES)
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_equals_the_published_recipe_on_the_same_field(table, severity):
    height, width = SPATTER_TABLES[table]
    count = {"cifar": 60, "tiny-imagenet": 20, "imagenet": 5}[table]
    base = np.concatenate([photos(height, width), odd_images(height, width)])
    images = np.resize(base, (count, height, width, 3))
    values = setting(table, severity)
    got = corrupted(images, "spatter", severity, table)
    want = np.stack(
        [
            recipe(image, drawn_field_of_spatter(height, width, severity, i), values)
            for i, image in enumerate(images)
        ]
    )
    off = np.abs(got.astype(int) - want)
    # The field is smoothed in float32, so that one pixel in some ten thousand falls on the other
    # side of a cut; with water other pixels can hang on that one. Mud is off by a level at most.
    assert (off > 0).mean() < 2e-4
    same = (off.reshape(count, -1).max(axis=1) == 0).mean()
    if values[-1]:
        assert off.max() <= 1
    elif table == "imagenet":
        assert same >= 0.6
    if table == "cifar":
        assert same >= 0.95

"""Times a peer's corruptions, in the peer's environment, as it is told to line by line.

Started as ``python worker.py imagecorruptions|imaug|albumentations``. A line of JSON in names a
corruption, a file of images, a severity and the seconds to spend; a line of JSON out gives the
median seconds an image took, or null where the peer has no such corruption.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings

import cv2
import numpy as np

warnings.simplefilter("ignore")


def patched():
    """The package imagecorruptions with what it needs to run on current libraries."""
    setattr(np, "float_", np.float64)  # noqa: B010
    import skimage.filters

    plain = skimage.filters.gaussian

    def gaussian(image, *args, multichannel=False, **options):
        return plain(image, *args, channel_axis=-1 if multichannel else None, **options)

    skimage.filters.gaussian = gaussian
    import imagecorruptions.corruptions

    imagecorruptions.corruptions.gaussian = gaussian
    return by_name()


def by_name():
    from imagecorruptions import corrupt

    def make(name, severity):
        return lambda image: corrupt(image, corruption_name=name, severity=severity)

    return make


def albumentations():
    """Its transforms of the same kind, with ImageNet-C's strengths where they have them."""
    import albumentations as a

    def at(values, severity):
        return (values[severity - 1],) * 2

    def glass(severity):
        sigma, delta, times = [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)][
            severity - 1
        ]
        return a.GlassBlur(sigma=sigma, max_delta=delta, iterations=times, mode="exact", p=1)

    def zoom(severity):
        top, step = [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)][
            severity - 1
        ]
        return a.ZoomBlur(max_factor=(top, top), step_factor=(step, step), p=1)

    area = {"downscale": cv2.INTER_AREA, "upscale": cv2.INTER_NEAREST}
    kinds = {
        "gaussian_noise": lambda s: a.GaussNoise(
            std_range=at([0.08, 0.12, 0.18, 0.26, 0.38], s), p=1
        ),
        "shot_noise": lambda s: a.ShotNoise(
            scale_range=at([1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3], s), p=1
        ),
        "impulse_noise": lambda s: a.SaltAndPepper(
            amount=at([0.03, 0.06, 0.09, 0.17, 0.27], s), salt_vs_pepper=(0.5, 0.5), p=1
        ),
        "speckle_noise": lambda s: a.MultiplicativeNoise(
            multiplier=(1 - 0.12 * s, 1 + 0.12 * s), per_channel=True, elementwise=True, p=1
        ),
        "gaussian_blur": lambda s: a.GaussianBlur(
            blur_limit=0, sigma_limit=at([1, 2, 3, 4, 6], s), p=1
        ),
        "defocus_blur": lambda s: a.Defocus(
            radius=at([3, 4, 6, 8, 10], s), alias_blur=at([0.1, 0.5, 0.5, 0.5, 0.5], s), p=1
        ),
        "glass_blur": glass,
        "motion_blur": lambda s: a.MotionBlur(blur_limit=at([21, 31, 31, 31, 41], s), p=1),
        "zoom_blur": zoom,
        "fog": lambda s: a.RandomFog(fog_coef_range=at([0.3, 0.4, 0.5, 0.6, 0.7], s), p=1),
        "snow": lambda s: a.RandomSnow(snow_point_range=at([0.1, 0.2, 0.3, 0.4, 0.5], s), p=1),
        "spatter": lambda s: a.Spatter(mode="rain" if s < 4 else "mud", p=1),
        "elastic_transform": lambda s: a.ElasticTransform(
            alpha=[488, 488, 12, 17, 29][s - 1], sigma=[171, 20, 2.4, 2.4, 2.4][s - 1], p=1
        ),
        "pixelate": lambda s: a.Downscale(
            scale_range=at([0.6, 0.5, 0.4, 0.3, 0.25], s), interpolation_pair=area, p=1
        ),
        "jpeg_compression": lambda s: a.ImageCompression(
            quality_range=at([25, 18, 15, 10, 7], s), p=1
        ),
        "brightness": lambda s: a.RandomBrightnessContrast(
            brightness_limit=at([0.1, 0.2, 0.3, 0.4, 0.5], s), contrast_limit=(0, 0), p=1
        ),
        "contrast": lambda s: a.RandomBrightnessContrast(
            brightness_limit=(0, 0), contrast_limit=at([-0.6, -0.7, -0.8, -0.9, -0.95], s), p=1
        ),
        "saturate": lambda s: a.HueSaturationValue(
            hue_shift_limit=(0, 0),
            sat_shift_limit=at([-60, -90, 30, 60, 90], s),
            val_shift_limit=(0, 0),
            p=1,
        ),
    }

    def make(name, severity):
        if name not in kinds:
            return None
        transform = kinds[name](severity)
        return lambda image: transform(image=image)["image"]

    return make


def time_one(function, images, seconds):
    """Median seconds an image takes, each image timed alone."""
    function(images[0])
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 2000):
        image = images[len(times) % len(images)]
        begin = time.perf_counter()
        function(image)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    peers = {"imagecorruptions": patched, "imaug": by_name, "albumentations": albumentations}
    make = peers[sys.argv[1]]()
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        task = json.loads(line)
        cv2.setNumThreads(task["threads"])
        function = make(task["name"], task["severity"])
        found = None
        if function is not None:
            found = time_one(function, np.load(task["images"]), task["seconds"])
        print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main()

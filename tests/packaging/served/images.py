"""Image files are written and read again, to the pixel."""

import sys

import numpy as np

import shiftcal as sc
from shiftcal.cli.main import run
from shiftcal.datasets import as_image_set

image = np.random.default_rng(0).integers(0, 256, (32, 40, 3), dtype=np.uint8)
# A picture of one colour, as a file that needs no package to be written.
with open("grey.ppm", "wb") as file:  # noqa: PTH123
    file.write(b"P6 40 32 255\n" + image.tobytes())
if status := run(["corrupt", "grey.ppm", "harder", "--corruption", "pixelate", "--severity", "3"]):
    sys.exit(status)
(read,) = as_image_set("harder/pixelate/3").read([0]).images
np.testing.assert_array_equal(read, sc.corrupt(image, "pixelate", severity=3))

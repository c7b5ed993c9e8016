"""Draw the galleries of the corruptions page from a photograph that comes with scikit-learn.

The photograph, china.jpg, is by Daniel Büchele, CC BY 2.0.
"""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_sample_image

from shiftcal.cli.main import run

HERE = Path(__file__).resolve().parent
# File -> the command that makes it, as the page shows it.
COMMANDS = {
    "corruptions.webp": "shiftcal gallery photo.png -o corruptions.webp --crop 224",
}


def draw(folder):
    """Write every figure into ``folder``."""
    with tempfile.TemporaryDirectory() as scratch:
        photo = Path(scratch) / "photo.png"
        Image.fromarray(load_sample_image("china.jpg")).save(photo)
        for name, command in COMMANDS.items():
            places = {"photo.png": str(photo), name: str(folder / name)}
            _, *words = [places.get(word, word) for word in shlex.split(command)]
            assert run(words) == 0


if __name__ == "__main__":
    draw(HERE)

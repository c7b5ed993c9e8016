"""Images are scored by a worker of Ray, as in this process."""

import numpy as np

import shiftcal as sc


def brightness(images):
    """A model: how red, green and blue an image is."""
    return images.mean(axis=(1, 2))


if __name__ == "__main__":
    engine = sc.scoring.RayEngine(workers=1)
    images = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3), dtype=np.uint8)
    model = sc.models.as_model(brightness)
    there = sc.score(model, images, engine=engine, shard_size=4)
    np.testing.assert_array_equal(there.values, sc.score(model, images, shard_size=4).values)

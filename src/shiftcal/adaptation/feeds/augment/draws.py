"""Random numbers of one image in one batch, whatever was drawn before."""

from __future__ import annotations

import numpy as np

_WORD = (1 << 64) - 1
# Apart from every other stream of the same seed.
_STREAM = 0x61_75_67_6D_65_6E_74


def generator(seed: int, *, step: int, domain: int, position: int) -> np.random.Generator:
    """The generator for an image: a counter whose start is said by these four numbers.

    Args:
        seed: Of the training.
        step: Which batch.
        domain: 0 for source, 1 for target.
        position: Where in the batch of all processes together the image is.
    """
    key = np.array([seed & _WORD, step], np.uint64)
    counter = np.array([0, position, domain, _STREAM], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))

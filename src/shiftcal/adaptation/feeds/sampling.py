"""Which images an iteration trains on.

Every pass over a domain has an order of its own: image ``i`` is given word ``i`` of the generator
Philox4x64-10 (Salmon and others, 2011), and images come by their words. Its key is ``(seed,
domain)`` and its counter begins at ``(0, pass, 0, 1)``: no pass, domain or seed shares numbers with
another, nor with the splits, whose counters begin at 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# What comes second in the key.
SOURCE, TARGET = 0, 1
# Of two domains, the order of this pass and, where passes are joined, of the next.
_REMEMBERED = 4


def indices(
    n: int, step: int, *, batch_size: int, key: tuple[int, int], rank: int = 0, world: int = 1
) -> NDArray[np.intp]:
    """Images of one domain that a process trains on in iteration ``step``, shape ``(batch_size,)``.

    A pass has ``n // (world * batch_size)`` iterations, and the images left over are left out of
    it, as in the reference library. Where there are too few for one, passes are joined end to end
    instead. The processes of an iteration share no image, as long as there are enough.

    Args:
        n: Images of the domain.
        step: Which iteration, from 0.
        batch_size: Images for each process.
        key: Seed and domain, the latter :data:`SOURCE` or :data:`TARGET`.
        rank: Which process, from 0.
        world: How many there are.
    """
    together = world * batch_size
    if n >= together:
        number, place = divmod(step, n // together)
        first = place * together + rank * batch_size
        return _order(n, key, number)[first : first + batch_size].copy()
    number, place = divmod(step * together + rank * batch_size, n)
    passes = -(-(place + batch_size) // n)
    joined = np.concatenate([_order(n, key, number + more) for more in range(passes)])
    return joined[place : place + batch_size].copy()


@lru_cache(maxsize=_REMEMBERED)
def _order(n: int, key: tuple[int, int], number: int) -> NDArray[np.intp]:
    counter = np.array([0, number, 0, 1], np.uint64)
    words = np.random.Philox(key=np.array(key, np.uint64), counter=counter).random_raw(n)
    order: NDArray[np.intp] = np.argsort(words, kind="stable")
    return order

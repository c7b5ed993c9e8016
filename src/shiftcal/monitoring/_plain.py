"""A quick look at a batch: what is plainly good need not be checked part by part."""

from __future__ import annotations

import numpy as np

from shiftcal._checks.arrays import LARGEST_LOGIT
from shiftcal._checks.model_outputs import SUM_TOLERANCE
from shiftcal.numerics._jit import to_read

_PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


def plainly_logits(logits: object, k: int) -> bool:
    """Whether this is an array of finite logits ``(n, k)`` that are no probabilities.

    Everything else is asked of :mod:`shiftcal._checks`, which says what is wrong, if anything is.
    """
    from shiftcal.monitoring._stream_kernels import is_plain

    if type(logits) is not np.ndarray or logits.dtype not in _PLAIN or logits.ndim != 2:
        return False
    if logits.shape[1] != k or not len(logits) or not logits.flags.c_contiguous:
        return False
    return bool(is_plain(to_read(logits), LARGEST_LOGIT, SUM_TOLERANCE))

"""What was learnt, made ready for many targets of one size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shiftcal.rehearsals.memory import Memory
from shiftcal.rehearsals.response import NEAR, ODDS, Answer, Cloud, Quadratic, Response
from shiftcal.rehearsals.statistics import EDGE, Grouped, random_parts


class FixedSize:
    """Answers for targets of ``n`` rows as :meth:`Memory.answer` gives them, to rounding.

    It takes microseconds, since all that depends on the size is looked up before.

    Args:
        memory: What was learnt.
        n: Rows of the targets.
        groups: Groups that they come in, all of one size.
        seed: Of the parts that are asked of a target larger than all that was rehearsed.
    """

    def __init__(self, memory: Memory, n: int, *, groups: int, seed: int) -> None:
        taken = max(1, round(groups * memory.responses[-1].size / n))
        self._parts: NDArray[np.float64] | None = None
        if taken < groups:
            drawn = random_parts(groups, taken, np.random.default_rng(seed))
            self._parts = drawn.astype(np.float64)  # which makes a product of matrices fast
        self._counts: NDArray[np.float64] | NDArray[np.int64] | None = None
        self._shares = np.empty((0, groups))
        coarse, fine, share = memory.between(n)
        self._quadratics = np.array([_quadratics(one) for one in (coarse, fine)])
        self._clouds = np.array([_clouds(one) for one in (coarse, fine)])
        shares = (share, 1 - share)
        self._limits = np.array(
            [(r.low, r.high, ODDS, w) for r, w in zip((coarse, fine), shares, strict=True)]
        )

    def answer(
        self, means: NDArray[np.float64], whole: Callable[[], Grouped] | None = None
    ) -> Answer:
        """What a target's outputs say.

        Args:
            means: ``(2 + 2 k,)`` of the moments of its rows.
            whole: Gives the groups, where parts of them may have to be asked.
        """
        from shiftcal.rehearsals._answer_kernels import answer

        asked = means[None]
        if self._parts is not None and whole is not None:
            target = whole()
            if target.counts is not self._counts:  # of a window that moves they are one array
                self._shares = self._parts / (self._parts @ target.counts)[:, None]
                self._counts = target.counts
            asked = self._shares @ target.sums
        out = np.empty(11)
        answer(asked, EDGE, self._quadratics, self._clouds, self._limits, out)
        out[6] /= NEAR
        return Answer(*out[:7].tolist())


def _quadratics(response: Response) -> list[NDArray[np.float64]]:
    return [_packed(q) for q in (response.same, response.moved, response.judge)]


def _packed(q: Quadratic) -> NDArray[np.float64]:
    columns = q.coefficients[:, [0, -1]].T  # the judge has one answer, twice here
    return np.concatenate([q.centre, q.scale, *columns])


def _clouds(response: Response) -> list[NDArray[np.float64]]:
    return [_flat(cloud) for cloud in (response.everywhere, response.clean)]


def _flat(cloud: Cloud) -> NDArray[np.float64]:
    return np.concatenate([cloud.centre, cloud.whiten.ravel()])

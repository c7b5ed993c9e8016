"""What is kept of all rehearsals: one response for each of a few sizes of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal.rehearsals.draw import Draws, Rehearser
from shiftcal.rehearsals.response import Answer, Cloud, Response, fit_cloud, fit_response
from shiftcal.rehearsals.statistics import Grouped
from shiftcal.surrogates import SurrogateBank

# Rows drawn for a rehearsed target. The entropy of the mean of n rows is too low by about
# (K - 1) / 2n: what is learnt must come from samples as small as the target.
SIZES = (100, 400, 2000, 10_000)
# Rehearsals of one size, shared among the sets; but no set has fewer or more than these.
_TOTAL, _LEAST, _MOST = 3000, 60, 200
# The clean set has more, since it is to be told from all others.
_CLEAN = 300
# Errors of the answers that are kept, for the intervals.
_ERRORS = 200


@dataclass(frozen=True)
class Errors:
    """Errors of answers, as evenly spaced quantiles.

    Attributes:
        log_t: ``(e,)`` of the logarithm of the temperature.
        accuracy: ``(e,)``.
    """

    log_t: NDArray[np.float64]
    accuracy: NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """Responses for several sizes of the target, and how wrong they are without a corruption.

    Attributes:
        responses: In the order of their sizes.
        errors: What the answers were off where the corruption of a set was left out of what was
            learnt from, with the class prior as it was.
        moved_errors: The same with a moved prior.
        reach: Distance from the rehearsals that 99 in 100 of those left out keep to.
        ladders: Of every set the number of the corruption it was left out with, 0 of the clean one,
            which never was.
        accuracy_errors: ``(j,)`` mean error of the accuracy of every set, left out, with the class
            prior as it was; 0 of the clean one.
    """

    responses: tuple[Response, ...]
    errors: Errors
    moved_errors: Errors
    reach: float
    ladders: tuple[int, ...]
    accuracy_errors: NDArray[np.float64]

    def answer(self, target: Grouped, rng: np.random.Generator) -> Answer:
        """What the target's outputs say.

        Of a target larger than all that was rehearsed, random parts of that size are asked and
        their statistics averaged.
        """
        return self.answers(target.at_size(self.responses[-1].size, rng), target.n)

    def redrawn(self, target: Grouped, n_draws: int, rng: np.random.Generator) -> Answer:
        """What the target's rows say when they are drawn anew, around what they say themselves.

        Rows that come twice make the entropy of a mean lower than that of as many other rows, so
        that the statistics drawn are moved to have the mean of those that :meth:`answer` asks.
        """
        drawn = target.redrawn(n_draws, rng)
        asked = target.at_size(self.responses[-1].size, rng)
        return self.answers(drawn - drawn.mean(axis=0) + asked, target.n)

    def answers(self, statistics: NDArray[np.float64], n: int) -> Answer:
        """What statistics ``(..., 4)`` of ``n`` rows say, linear in ``1 / n`` between two sizes."""
        below, above, share = self.between(n)
        fine = above.answer(statistics)
        if below is above:
            return fine
        coarse = below.answer(statistics)
        return Answer(*(share * a + (1 - share) * b for a, b in zip(coarse, fine, strict=True)))

    def between(self, n: int) -> tuple[Response, Response, float]:
        """The two responses for ``n`` rows and the share of the first; one, twice, at the ends."""
        sizes = np.array([response.size for response in self.responses])
        held = float(np.clip(n, sizes[0], sizes[-1]))
        at = int(np.searchsorted(sizes, held))
        if at == 0:
            return self.responses[0], self.responses[0], 0.0
        share = (1 / held - 1 / sizes[at]) / (1 / sizes[at - 1] - 1 / sizes[at])
        return self.responses[at - 1], self.responses[at], float(share)


def remember(bank: SurrogateBank, log_t: Sequence[float], *, seed: int) -> Memory:
    """Rehearse targets of all sizes with every set of a bank, and keep what was learnt.

    The clean set is a step of every ladder: it weighs as many times as there are corruptions.
    A draw of ``m`` rows from ``n`` that are drawn from the world themselves is as noisy as a
    target of ``1 / (1/m + 1/n)`` rows, and is learnt from as such.

    Args:
        bank: Labelled sets.
        log_t: ``(j,)`` logarithms of their temperatures.
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    ladders = _ladders(bank)
    each = min(max(_TOTAL // len(bank), _LEAST), _MOST)
    by_set, used = [], []
    for j, (s, own) in enumerate(zip(bank, log_t, strict=True)):  # one at a time: they are large
        one = Rehearser(s.logits, s.labels, own, rng)
        by_set.append([one.draw(rows, each if j else _CLEAN, rng) for rows in SIZES])
        used.append(one.n)
    rows = float(np.median(used))
    responses, left_out = [], []
    for drawn_rows, drawn in zip(SIZES, zip(*by_set, strict=True), strict=True):
        size = 1 / (1 / drawn_rows + 1 / rows)
        # The clean set is a sample too, and so is the target: what is seen of the one varies by
        # drawing alone, what the other is apart from it by all three.
        clean = _calm_cloud(drawn[0], noise=1 + 2 * drawn_rows / rows)
        responses.append(_response(size, drawn, ladders, clean))
        left_out += _left_out(size, drawn, ladders, clean)
    if not left_out:  # the clean set alone
        nothing = Errors(np.zeros(1), np.zeros(1))
        return Memory(tuple(responses), nothing, nothing, float("inf"), (0,), np.zeros(1))
    # Of the largest draws, where nothing but the corruption is to blame.
    largest = left_out[-(len(left_out) // len(SIZES)) :]
    log_t_error, accuracy_error, _, moved, which = (
        np.concatenate(parts) for parts in zip(*largest, strict=True)
    )
    distance = np.concatenate([parts[2] for parts in left_out])
    calm_errors, moved_errors = (
        Errors(_quantiles(log_t_error[rows]), _quantiles(accuracy_error[rows]))
        for rows in (~moved.astype(bool), moved.astype(bool))
    )
    reach = float(np.quantile(distance, 0.99))
    of_sets = [accuracy_error[(which == j) & (moved == 0)].mean() for j in range(1, len(bank))]
    means = np.array([0.0, *of_sets])
    return Memory(tuple(responses), calm_errors, moved_errors, reach, tuple(ladders), means)


def _ladders(bank: SurrogateBank) -> list[int]:
    """Of every set the number of its ladder: 0 the clean one, then one for each corruption.

    Where there is one corruption, or their names are not known, each set is a ladder of its own.
    """
    names = [s.corruption for s in bank][1:]
    known = list(dict.fromkeys(names))
    if len(known) < 2 or None in known:
        return list(range(len(names) + 1))
    return [0, *(1 + known.index(name) for name in names)]


def _calm_cloud(clean: Draws, *, noise: float) -> Cloud:
    calm = clean.statistics[~clean.moved]
    return fit_cloud(calm, np.ones(len(calm)), noise=noise)


def _response(
    size: float, drawn: Sequence[Draws], ladders: Sequence[int], clean: Cloud
) -> Response:
    """Learn from the rehearsals of all these sets together; each set weighs the same."""
    corruptions = len(set(ladders) - {0})
    stepped = len(ladders) > corruptions + 1  # ladders have several steps
    weights = [
        np.full(
            len(one.log_t), (max(corruptions, 1) if own == 0 and stepped else 1) / len(one.log_t)
        )
        for one, own in zip(drawn, ladders, strict=True)
    ]
    together = Draws(
        *(
            np.concatenate([getattr(one, name) for one in drawn])
            for name in ("statistics", "log_t", "accuracy", "moved")
        )
    )
    return fit_response(size, together, np.concatenate(weights), clean)


def _left_out(
    size: float, drawn: Sequence[Draws], ladders: Sequence[int], clean: Cloud
) -> list[tuple[NDArray[np.float64], ...]]:
    """Errors, distances, kind and set of each ladder's rehearsals as answered from the others.

    The clean set is never left out: every target has it in the bank.
    """
    found: list[tuple[NDArray[np.float64], ...]] = []
    for ladder in dict.fromkeys(ladders[1:]):
        rest = [j for j, other in enumerate(ladders) if other != ladder]
        response = _response(size, [drawn[j] for j in rest], [ladders[j] for j in rest], clean)
        for j, one in enumerate(drawn):
            if ladders[j] == ladder:
                said = response.answer(one.statistics)
                log_t = np.where(one.moved, said.log_t_moved, said.log_t) - one.log_t
                accuracy = np.where(one.moved, said.accuracy_moved, said.accuracy) - one.accuracy
                kind, which = one.moved.astype(np.float64), np.full(len(log_t), float(j))
                found.append((log_t, accuracy, said.distance, kind, which))
    return found


def _quantiles(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.quantile(errors, (np.arange(_ERRORS) + 0.5) / _ERRORS)

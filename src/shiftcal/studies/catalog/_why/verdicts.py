"""What the numbers say to the paper's claim about the closest mean, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shiftcal.numerics.intervals import mean_interval
from shiftcal.studies.catalog._pairs import in_points
from shiftcal.studies.catalog._why.case import Case, by_split, spoken
from shiftcal.studies.results import Mean


def example_said(shown: Case, cases: Sequence[Case], *, title: str) -> str:
    """Whether the closest mean gives the least ECE on one target, as the paper says of its example.

    It holds if that is so in every split, partly if in some.

    Args:
        shown: The target in the split that is shown.
        cases: The target in every split.
        title: Of the target.
    """
    seen = shown.seen
    name, best = (spoken(shown.rungs[j].name) for j in (seen.nearest, seen.best))
    least = f"the least of all {len(shown.rungs)} sets"
    if seen.nearest != seen.best:
        least = f"while the least is {100 * seen.eces[seen.best]:.2f} %, under that of {best}"
    hits = sum(case.hit for case in cases)
    word = "does not hold" if not hits else "holds" if hits == len(cases) else "holds partly"
    return (
        f"Target {title}, split with seed {shown.split}: the surrogate set with the closest mean "
        f"p_max is {name} (difference {seen.distances[seen.nearest]:.4f}), and under its "
        f"temperature the ECE is {100 * seen.eces[seen.nearest]:.2f} %, {least}. What the paper "
        f"says of its example, that the closest mean gives the least ECE, {word} on this target: "
        f"it is so in {int(hits)} of {_splits(cases)}. The temperature of the closest mean instead "
        f"of the clean set's changes the ECE by {_told(_instead_of_clean(cases))}."
    )


def claim_said(cases: Sequence[Case]) -> str:
    """Whether the closest mean typically has the lower error, over all targets and splits.

    It holds if the closest mean gives the least ECE in more than half of the cases, and a lower
    mean ECE than the clean set's temperature, beyond the interval; partly if one of the two is so.
    """
    hits, near = (int(sum(pick(case) for case in cases)) for pick in (_hit, _near_hit))
    gain = _instead_of_clean(cases)
    lower = (gain.value if gain.high is None else gain.high) < 0
    found = (2 * hits > len(cases)) + lower
    word = ("does not hold", "holds partly", "holds")[found]
    cost = _over_splits(cases, lambda case: case.ece_nearest - case.ece_best)
    targets = len({case.target.name for case in cases})
    exceptions = len(cases) - hits
    return (
        "The paper's claim that the surrogate set with the closest mean p_max typically has the "
        f"lower calibration error {word} here: over {_number(targets, 'target')} in "
        f"{_splits(cases)}, it is the set of least ECE in {hits} of {len(cases)} cases, and that "
        f"or one beside it in {near} of {len(cases)}; its temperature instead of the clean set's "
        f"changes the mean ECE by {_told(gain)}. "
        + (
            f"It is no rule without exceptions: in {exceptions} of {len(cases)} cases another set "
            f"is better, and choosing the closest instead of the best costs {in_points(cost)} of "
            "ECE on average."
            if exceptions
            else "There is no exception."
        )
    )


def _instead_of_clean(cases: Sequence[Case]) -> Mean:
    return _over_splits(cases, lambda case: case.ece_nearest - case.ece_clean)


def _over_splits(cases: Sequence[Case], pick: Callable[[Case], float]) -> Mean:
    """The mean within each split, then over the splits; its interval may reach below 0."""
    splits = tuple(float(np.mean([pick(each) for each in own])) for own in by_split(cases))
    return Mean(*mean_interval(splits), splits)


def _told(difference: Mean) -> str:
    ends = "" if difference.high is None else " (95 % interval over the splits)"
    return f"{in_points(difference)}{ends}"


def _hit(case: Case) -> float:
    return case.hit


def _near_hit(case: Case) -> float:
    return case.near_hit


def _splits(cases: Sequence[Case]) -> str:
    return _number(len({case.split for case in cases}), "split")


def _number(count: int, of: str) -> str:
    return f"{count} {of}{'' if count == 1 else 's'}"

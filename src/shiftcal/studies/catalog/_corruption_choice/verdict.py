"""Whether the choice of the calibration corruption matters as little as the paper says."""

from __future__ import annotations

from collections.abc import Iterator

from shiftcal.studies.catalog._corruption_choice.views import View
from shiftcal.studies.catalog._pairs import ece_difference, in_points, paired
from shiftcal.studies.results import Mean

# A choice that costs more points than this matters.
_LITTLE = 1.0


def verdicts(view: View) -> Iterator[str]:
    """One sentence for each method that uses surrogate sets.

    Every choice is compared with one that was fixed beforehand, on the targets that both have: the
    best and the worst of what was measured would be apart by chance alone. The claim holds if no
    choice costs more than a point beyond its interval, holds partly if at most half of them do.
    """
    for key in view.varied:
        costs = _costs(view, key)
        if costs:
            yield _verdict(view, key, costs)


def _costs(view: View, key: str) -> dict[str, Mean]:
    """How much more ECE each choice has than the reference, on the targets of both."""
    own = {choice.name: choice.of(key, view.shifted) for choice in view.choices}
    reference = own.pop(view.reference, [])
    found = {name: paired(records, reference, ece_difference) for name, records in own.items()}
    return {name: mean for name, mean in found.items() if mean is not None}


def _verdict(view: View, key: str, costs: dict[str, Mean]) -> str:
    dear = [name for name, cost in costs.items() if _matters(cost)]
    worst = max(costs, key=lambda name: costs[name].value)
    if not dear:
        word = "holds"
    elif 2 * len(dear) <= len(costs):
        word = "holds partly"
    else:
        word = "does not hold"
    surely = "" if costs[worst].low is None else ", and an interval above 0"
    found = [choice.mean(key, view.shifted) for choice in view.choices]
    means = [100 * mean.value for mean in found if mean is not None]
    return (
        f"The paper's claim that the choice matters little {word} here for {view.labels[key]}, "
        f"whose mean ECE goes from {min(means):.2f} % to {max(means):.2f} %: compared with "
        f"{view.reference} on the targets that both have, {len(dear)} of {len(costs)} other "
        f"choices have over {_LITTLE:g} point more{surely}; the most has {worst}, "
        f"{in_points(costs[worst])}."
    )


def _matters(cost: Mean) -> bool:
    """Whether it is above the limit, and its interval above 0 if there is one."""
    return 100 * cost.value > _LITTLE and (cost.low is None or cost.low > 0)

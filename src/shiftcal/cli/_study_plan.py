"""What a command looks for in the plan of a study, of whatever kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shiftcal.studies.adapting.plan import AnyPlan


def with_model(plan: AnyPlan, model: str) -> AnyPlan:
    """The plan with another model, or another backbone."""
    from shiftcal.studies.adapting.plan import AdaptationPlan

    if isinstance(plan, AdaptationPlan):
        return replace(plan, network=replace(plan.network, backbone=(model,)))
    return replace(plan, model=replace(plan.model, spec=(model,)))


def images_of(plan: AnyPlan) -> Iterator[str]:
    """Every text of images in it."""
    from shiftcal.studies.adapting.plan import AdaptationPlan

    if isinstance(plan, AdaptationPlan):
        for domain in plan.domains:
            for texts in domain.images:
                yield from texts
        return
    yield from plan.data.images
    yield from plan.data.train
    for each in plan.shifts.sets:
        yield from each.images

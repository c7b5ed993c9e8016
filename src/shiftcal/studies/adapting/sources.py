"""The domains and the backbone of a plan, opened; what is not there is explained, all at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from shiftcal.adaptation.task import Task
from shiftcal.datasets import ChainImages, ImageSet, as_image_set
from shiftcal.errors import InputError, InputWarning
from shiftcal.studies.adapting.origins import Origin, origin_of
from shiftcal.studies.adapting.plan import AdaptationPlan, DomainPlan
from shiftcal.studies.stages.search import Search
from shiftcal.studies.stages.sources import limited

# Images in a bin of the ECE, below which noise is most of what it measures.
_A_BIN = 10


@dataclass(frozen=True, eq=False)
class Domains:
    """What a plan speaks of, opened.

    Attributes:
        plan: The plan with the alternatives that are there, and nothing that is not.
        images: By name of the domain.
        backbone: What is trained, or what gives frozen features.
        missing: What was left out because it is not there.
        origins: Where the images were found.
    """

    plan: AdaptationPlan
    images: dict[str, ImageSet]
    backbone: Any
    missing: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()


def open_domains(plan: AdaptationPlan, *, skip_missing: bool = False) -> Domains:
    """Open the images and the backbone of a plan.

    Args:
        plan: The plan.
        skip_missing: Whether tasks are left out of which a domain is not there.

    Raises:
        MissingData: Naming everything that is not there, and where to get it.
        InputError: If something is there and cannot be used: too few images, no labels, classes
            that are not those of the other domains.
    """
    search = Search()
    text, backbone = search.first("the backbone", plan.network.backbone, _backbone(plan), "")
    given = {domain.name: domain for domain in plan.domains}
    plan, images = _domains(plan, search, skip_missing)
    search.raise_if_missing(skipping=skip_missing)
    chosen = replace(plan, network=replace(plan.network, backbone=(text,)))
    images = {domain.name: _limited(chosen, domain, images) for domain in chosen.domains}
    _check(chosen, images)
    origins = tuple(
        origin_of(given[domain.name], domain.images[0], len(images[domain.name]))
        for domain in chosen.domains
    )
    return Domains(chosen, images, backbone, tuple(search.left_out), origins)


def _backbone(plan: AdaptationPlan) -> Callable[[str], Any]:
    if plan.network.frozen:
        from shiftcal.adaptation.feature_model import as_feature_model

        return as_feature_model
    from shiftcal.adaptation.backbones.make import make_backbone

    return make_backbone


def _domains(
    plan: AdaptationPlan, search: Search, skip: bool
) -> tuple[AdaptationPlan, dict[str, ImageSet]]:
    """Those that a task needs; with ``skip`` the tasks of those that are not there are gone."""
    needed = {name for pair in plan.tasks for name in pair}
    images: dict[str, ImageSet] = {}
    kept = []
    for domain in (domain for domain in plan.domains if domain.name in needed):
        where, found = search.first(
            domain.title, domain.images, _opener(domain), domain.fetch, optional=True
        )
        if found is not None:
            images[domain.name] = found
            kept.append(replace(domain, images=(where,)))
    tasks = tuple(pair for pair in plan.tasks if images.keys() >= set(pair))
    if not tasks:
        search.need_all()
    elif skip:
        search.leave_out_optional()
        used = {name for pair in tasks for name in pair}
        kept = [domain for domain in kept if domain.name in used]
        images = {domain.name: images[domain.name] for domain in kept}
        plan = replace(plan, tasks=tasks)
    return replace(plan, domains=tuple(kept)), images


def _opener(domain: DomainPlan) -> Callable[[tuple[str, ...]], ImageSet]:
    def opened(texts: tuple[str, ...]) -> ImageSet:
        parts = [as_image_set(text) for text in texts]
        joined = parts[0] if len(parts) == 1 else ChainImages(parts, name=domain.title)
        return joined if domain.labels is None else as_image_set(joined, labels=domain.labels)

    return opened


def _limited(plan: AdaptationPlan, domain: DomainPlan, images: dict[str, ImageSet]) -> ImageSet:
    """As many as the plan wants; labels of what is a target only have no say in which."""
    return limited(
        images[domain.name], domain.limit, domain.title, stratified=plan.is_source(domain)
    )


def _check(plan: AdaptationPlan, images: dict[str, ImageSet]) -> None:
    """Refuse images that cannot be judged; warn of an ECE of a few images a bin."""
    fewest, where = None, ""
    for pair in plan.pairs:
        source, target = images[pair.source.name], images[pair.target.name]
        if target.labels is None:
            raise InputError(
                f"{pair.target.title} has no labels, and nothing can be judged without. Name a "
                "file of them in the plan: labels = ..."
            )
        task = Task(source, target)
        held_out = len(task.split(plan.seeds[0]).held_out)
        if held_out < plan.bins:
            raise InputError(
                f"{pair.target.title} must have an image to test on for each of the {plan.bins:,} "
                f"bins of the ECE; half of it is {held_out:,}. Lower bins, or leave it out."
            )
        if fewest is None or held_out < fewest:
            fewest, where = held_out, pair.target.title
    if fewest is not None and fewest < _A_BIN * plan.bins:
        warnings.warn(
            f"{fewest:,} images of {where} are tested on, in {plan.bins:,} bins of the ECE: with "
            f"fewer than {_A_BIN} in a bin it is mostly noise, and too large. Lower bins, or leave "
            "it out.",
            InputWarning,
            stacklevel=4,
        )

"""Frozen features of every domain, computed once and shared by all trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shiftcal._files import make_folder
from shiftcal.adaptation.frozen import Frozen, frozen_features
from shiftcal.scoring.job import Job
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.setup import cache_folder
from shiftcal.scoring.shard import Condition
from shiftcal.studies.adapting.plan import AdaptationPlan, DomainPlan
from shiftcal.studies.adapting.sources import Domains
from shiftcal.studies.stages.digests import digest
from shiftcal.studies.stages.left import pending_in
from shiftcal.studies.stages.scoring import Means, which
from shiftcal.studies.stages.stored import read_bank
from shiftcal.surrogates.build import WORKSHOP
from shiftcal.surrogates.conditions import conditions_of
from shiftcal.surrogates.synthesize import Options, labelled_work

FOLDER = "features"


def make_features(domains: Domains, run: Path, means: Means) -> tuple[dict[str, Frozen], int]:
    """Have the features of every domain in the folder of a run, whatever was done before.

    Domains that are a source have those of the surrogate sets, too.

    Args:
        domains: The images and the backbone.
        run: Folder of the run.
        means: How it is done.

    Returns:
        The features by name of the domain, and how many images were scored by this call.

    Raises:
        InputError: If the backbone fails, or an image cannot be read.
        FileError: If something cannot be written; what is done is kept.
    """
    plan, found, scored = domains.plan, {}, 0
    for domain in plan.domains:
        job = _left_of(domains, domain, run, means)
        scored += 0 if job is None else pending_in(job, _place(plan, domain, run), means)
        make_folder(_place(plan, domain, run).parent)
        found[domain.name] = frozen_features(
            domains.backbone,
            domains.images[domain.name],
            _place(plan, domain, run),
            corruption=plan.calibration.corruption,
            severities=_severities(plan, domain),
            engine=means.engine,
            cache=means.cache,
            reporting=means.reporting,
        )
    return found, scored


def count_left(domains: Domains, run: Path, means: Means) -> tuple[int, Job | None]:
    """How many images are to be scored, and one of the jobs, to be measured; nothing is written."""
    images, some = 0, None
    for domain in domains.plan.domains:
        job = _left_of(domains, domain, run, means)
        if job is not None:
            images += pending_in(job, _place(domains.plan, domain, run), means)
            some = some or job
    return images, some


def _left_of(domains: Domains, domain: DomainPlan, run: Path, means: Means) -> Job | None:
    """The features that are missing of a domain, as a job; ``None`` if all are there."""
    bank = _place(domains.plan, domain, run)
    document = read_bank(bank)
    sets = [] if document is None else document["sets"]
    there = {(entry["corruption"], entry["severity"]) for entry in sets}
    missing = [c for c in _conditions(domains.plan, domain) if which(c) not in there]
    if not missing:
        return None
    images = domains.images[domain.name]
    begun = bank / WORKSHOP
    work = labelled_work(
        domains.backbone,
        images.relabelled(np.zeros(len(images), np.intp)),  # as frozen_features has it
        None,
        Options(features="all"),
        notes=Notes(begun if begun.is_dir() else None, cache_folder(means.cache)),
        before=None if document is None else document["origin"]["model"]["batch_size"],
    )
    return Job(work, tuple(missing), lasting=False)


def _place(plan: AdaptationPlan, domain: DomainPlan, run: Path) -> Path:
    told = digest(plan.network.backbone, *plan.images_of(domain))
    return run / FOLDER / f"{domain.name}-{told}"


def _severities(plan: AdaptationPlan, domain: DomainPlan) -> tuple[int, ...]:
    return plan.calibration.severities if plan.is_source(domain) else ()


def _conditions(plan: AdaptationPlan, domain: DomainPlan) -> list[Condition]:
    severities = list(_severities(plan, domain))
    corruption = plan.calibration.corruption
    return conditions_of(corruption, severities) if severities else [Condition()]

"""Digests of what decides scores."""

from __future__ import annotations

import hashlib
import json

from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.stages.sources import Sources
from shiftcal.studies.variant import CLEAN

TRAIN = "train"


def digest_of(sources: Sources) -> str:
    """A short digest of what decides all scores: the model, the images, the corruptions' seed."""
    plan = sources.plan
    told = [
        sources.model.fingerprint or sources.token,
        sources.model.engine,
        sources.model.preprocessing.to_dict(),
        plan.model.groups,
        plan.model.batch_size,
        plan.model.dtype,
        plan.data.images,
        plan.data.labels,
        plan.data.limit,
        plan.shifts.seed,
        plan.shifts.table,
    ]
    return digest(*told)


def made_of(plan: Plan) -> dict[str, str]:
    """Digests of what a plan says about its sets, by which scores of another plan are noticed."""
    model, data, shifts = plan.model, plan.data, plan.shifts
    found = {
        CLEAN: digest(
            (model.spec, model.groups, model.batch_size, model.dtype),
            (data.images, data.labels, data.limit),
            (shifts.seed, shifts.table, shifts.made),
        ),
        TRAIN: digest(data.train, data.train_labels, data.train_limit),
    }
    found |= {each.name: digest(each.images, each.labels) for each in shifts.sets}
    return found | {each.name: digest(each.corruption, each.strengths) for each in plan.ladders}


def digest(*said: object) -> str:
    """A short digest of entries of a plan."""
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=4).hexdigest()

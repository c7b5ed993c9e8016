"""A plan with its study: what is evaluated."""

from __future__ import annotations

from shiftcal._registry import Registry
from shiftcal.errors import InputError
from shiftcal.studies.catalog.base import Study
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.variant import Variant

REGISTRY: Registry[Study] = Registry("shiftcal.studies.catalog", "study", Study)


def study_of(plan: Plan) -> Study:
    """The study of a plan, which it can run.

    Raises:
        UnknownName: If no study is called so.
        InputError: If the plan says something that the study does not take.
    """
    study: Study = REGISTRY.get(plan.study)()
    study.check(plan)
    return study


def variants_of(plan: Plan, n: int) -> list[Variant]:
    """What a plan evaluates.

    Args:
        plan: The plan.
        n: How many images there are.

    Raises:
        InputError: If nothing is left to test on, or nothing is compared.
    """
    if plan.calibration.images >= n:
        raise InputError(
            f"the plan calibrates on {plan.calibration.images:,} images, and there are {n:,} in "
            "all, which leaves none for the test. Lower [calibration] images."
        )
    variants = study_of(plan).variants(plan)
    if not variants or not any(variant.targets for variant in variants):
        raise InputError(
            "the plan compares nothing: it needs methods, and shifts to compare them on."
        )
    _check_different(variants)
    return variants


def _check_different(variants: list[Variant]) -> None:
    """Refuse two variants that nothing in a record tells apart."""
    seen: dict[tuple[str, ...], str] = {}
    for variant in variants:
        told = (variant.panel, variant.setting, variant.key, variant.ladder.corruption)
        if told in seen:
            raise InputError(
                f"the plan compares {seen[told]!r} with {variant.label!r}, and they are the same: "
                "method and settings are alike. Leave one out, or set it otherwise."
            )
        seen[told] = variant.label

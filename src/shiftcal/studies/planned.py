"""A plan with its study: what is evaluated."""

from __future__ import annotations

from shiftcal import methods
from shiftcal._registry import Registry
from shiftcal.errors import InputError
from shiftcal.studies.catalog.base import Study
from shiftcal.studies.plan.methods import ORACLE
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
        InputError: If too little is left to test on, or nothing is compared.
    """
    if plan.calibration.images >= n:
        raise InputError(
            f"the plan calibrates on {plan.calibration.images:,} images, and there are {n:,} in "
            "all, which leaves none for the test. Lower [calibration] images."
        )
    test = n - plan.calibration.images
    if test < plan.bins:
        raise InputError(
            f"{plan.where} leaves {test:,} images for the test, and the ECE has {plan.bins:,} "
            "bins: each needs one at least, and better ten. Lower bins, or [calibration] images."
        )
    variants = study_of(plan).variants(plan)
    _check_shifted(plan, variants)
    if not variants or not any(variant.targets for variant in variants):
        raise InputError(
            f"{plan.where} compares nothing: it needs methods, and shifts to compare them on."
        )
    _check_different(variants)
    _check_surrogates(plan, variants)
    return variants


def _check_shifted(plan: Plan, variants: list[Variant]) -> None:
    """Refuse shifts of which all are left out, being what makes the surrogate sets."""
    targets = {target for variant in variants for target in variant.targets}
    asked = any(plan.shifts.severities) and plan.shifts.corruptions
    if variants and asked and all(target.severity == 0 for target in targets):
        raise InputError(
            f"{plan.where} [shifts] corruptions must name another than that of the surrogate sets, "
            f"which is left out; got {', '.join(plan.shifts.corruptions)} alone. Add one, or "
            "choose another [calibration] corruption."
        )


def _check_surrogates(plan: Plan, variants: list[Variant]) -> None:
    """Refuse methods that learn from surrogate sets without any."""
    learning = [v for v in variants if v.method != ORACLE and methods.get(v.method).uses_bank]
    if learning and not any(variant.ladder.severities for variant in learning):
        names = ", ".join(dict.fromkeys(variant.label for variant in learning))
        raise InputError(
            f"{plan.where} [calibration] severities must name one at least: {names} learn from "
            "surrogate sets, and of the clean set alone they are TS. Add some, or leave them out."
        )


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

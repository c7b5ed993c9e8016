"""What the records of the synthetic study say of the paper's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftcal.numerics.intervals import mean_interval
from shiftcal.studies.catalog._pairs import in_points
from shiftcal.studies.comparing import below, difference, verdict
from shiftcal.studies.paper import READING_UNTOLD
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits, select
from shiftcal.studies.showing import severities_in_words

OURS = ("sac", "sts")
# A difference that the order of a sum can make.
_EQUAL = 1e-11


def lowest_everywhere(records: Sequence[Record], variants: Mapping[str, str]) -> list[str]:
    """Whether SAC and STS have the lowest mean ECE of all methods at every severity.

    At each, both are compared with the lowest of the others, the oracle aside.
    """
    methods = {record.variant: record.method for record in records}
    others = [key for key in variants if methods[key] not in (*OURS, "oracle")]
    severities = sorted({r.severity for r in records if r.severity is not None})
    kept, told = [], []
    for key in (key for key in OURS if key in variants):
        above, seen = [], 0
        for severity in severities:
            here = select(records, severity=severity)
            rival = _lowest(here, others)
            excess = (
                None
                if rival is None
                else difference(select(here, variant=key), select(here, variant=rival))
            )
            if rival is None or excess is None:
                continue
            seen += 1
            kept.append(excess.value <= _EQUAL)
            if not kept[-1]:
                above.append(f"{severity} ({variants[rival]}: {in_points(excess)})")
        if seen:
            told.append(_place(variants[key], above, seen))
    if not told:
        return []
    return [
        "The paper's claim that SAC and STS have the lowest mean ECE at every severity "
        f"{verdict(kept)} here: {'; '.join(told)}."
    ]


def _lowest(records: Sequence[Record], keys: Sequence[str]) -> str | None:
    means = {
        key: mean_over_splits(own).value for key in keys if (own := select(records, variant=key))
    }
    return min(means, key=means.__getitem__) if means else None


def _place(label: str, above: Sequence[str], seen: int) -> str:
    if not above:
        return f"{label} is above no other method at any of the {seen} severities"
    return f"{label} is above the lowest of the others at severity {', '.join(above)}"


def gain_most(
    records: Sequence[Record], variants: Mapping[str, str], strong: Sequence[int]
) -> list[str]:
    """Whether SAC and STS gain more over TS at the strong severities than at the others."""
    weak = sorted({r.severity for r in records if r.severity is not None} - set(strong))
    kept, told = [], []
    for key in (key for key in OURS if key in variants):
        gains = [_change(records, key, which) for which in (strong, weak)]
        high, low = gains
        if high is None or low is None or len(high.splits) != len(low.splits):
            continue
        more = _between(high, low)
        kept.append(below(more))
        told.append(
            f"{variants[key]} {in_points(high)} at {severities_in_words(strong)} and "
            f"{in_points(low)} at {severities_in_words(weak)}, {in_points(more)} apart"
        )
    if not told:
        return []
    return [
        f"The paper's claim that they gain most at the high severities {verdict(kept)} here: "
        f"against TS, {'; '.join(told)}."
    ]


def _change(records: Sequence[Record], key: str, severities: Sequence[int]) -> Mean | None:
    here = select(records, severity=tuple(severities))
    return difference(select(here, variant=key), select(here, variant="ts"))


def _between(high: Mean, low: Mean) -> Mean:
    """The difference of two differences, split by split."""
    splits = tuple(a - b for a, b in zip(high.splits, low.splits, strict=True))
    return Mean(*mean_interval(splits), splits)


def weighting_improves(
    plan: Plan, records: Sequence[Record], variants: Mapping[str, str], strong: Sequence[int]
) -> list[str]:
    """Whether CPCS and TransCal improve at high severities on ImageNet, and nowhere else.

    The paper does not say on what they improve: both TS and Vanilla are told.
    """
    here = select(records, severity=tuple(strong))
    methods = {record.variant: record.method for record in here}
    weighting = [key for key in variants if methods.get(key) in READING_UNTOLD]
    kept: list[bool] = []
    told = []
    for other in (key for key in ("ts", "vanilla") if key in variants):
        changes = {
            variants[key]: change
            for key in weighting
            if (change := difference(select(here, variant=key), select(here, variant=other)))
        }
        if changes:
            better = [label for label, change in changes.items() if below(change)]
            kept += [(label in better) == _on_imagenet(plan) for label in changes]
            numbers = ", ".join(f"{name} {in_points(each)}" for name, each in changes.items())
            told.append(f"{_improving(better)} on {variants[other]} ({numbers})")
    if not told:
        return []
    data = "on ImageNet" if _on_imagenet(plan) else "not on ImageNet"
    return [
        "The paper's claim that CPCS and TransCal improve calibration at high severities for "
        f"ImageNet only {verdict(kept)} here, {data}: at {severities_in_words(strong)} "
        f"{'; '.join(told)}."
    ]


def _improving(labels: Sequence[str]) -> str:
    if not labels:
        return "none of them improves"
    *first, last = labels
    return f"{', '.join(first)} and {last} improve" if first else f"{last} alone improves"


def _on_imagenet(plan: Plan) -> bool:
    return any(place.startswith("imagenet") for place in plan.data.images)

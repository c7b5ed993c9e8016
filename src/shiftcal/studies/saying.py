"""Sentences about records, each made from their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import mean_over_splits, select

# The methods from best to worst as the paper has them under strong shift; SAC may equal STS.
PAPER_ORDER = ("sac", "sts", "ts", "vanilla")
# Points of ECE that the order of a sum can make.
_EQUAL = 1e-9
_NAMES = {"sac": "SAC", "sts": "STS", "ts": "TS", "vanilla": "Vanilla"}
_FLAGS = {
    "domains-separable": "features told target from source almost perfectly",
    "few-effective-samples": "the weights of a few calibration samples decided",
    "weights-not-converged": "the regression behind the weights did not converge",
    "accuracy-estimate-outside": "the accuracy estimated for the target lay outside 0 to 100 %",
    "gap-open": "no temperature made confidence equal to the estimated accuracy",
    "search-not-converged": "the search for the temperature ended early",
    "map-not-converged": "the temperature ran into the end of its range or did not converge",
    "outside-range": "the target's confidence lay outside that of all surrogate sets",
    "not-monotone": "confidence did not fall along the surrogate sets",
    "indistinguishable": "two surrogate sets were equally near within noise",
    "few-rows": "few rows of the target were looked at",
}


def ranking(records: Sequence[Record], variants: Mapping[str, str], *, where: str) -> list[str]:
    """The mean ECE of every variant, the lowest first.

    Args:
        records: Over which the mean is taken.
        variants: Labels by key.
        where: What the records are of, such as ``"over severities 3 to 5"``.
    """
    means = {
        label: mean_over_splits(own).value
        for key, label in variants.items()
        if (own := select(records, variant=key))
    }
    if not means:
        return []
    ranked = sorted(means.items(), key=lambda item: item[1])
    told = ", ".join(f"{label} {100 * value:.2f} %" for label, value in ranked)
    return [f"Mean ECE {where}, lowest first: {told}."]


def paper_order(records: Sequence[Record], *, where: str) -> list[str]:
    """Whether SAC <= STS < TS < Vanilla in mean ECE, all splits together and each alone."""
    means = {
        key: mean_over_splits(own) for key in PAPER_ORDER if (own := select(records, variant=key))
    }
    if len(means) < 2:
        return []
    order = " < ".join(_NAMES[key] for key in means).replace("SAC < STS", "SAC <= STS")
    against = [
        f"{_NAMES[a]} {100 * means[a].value:.2f} %, {_NAMES[b]} {100 * means[b].value:.2f} %"
        for a, b in pairwise(means)
        if not _in_order(a, b, means[a].value, means[b].value)
    ]
    verdict = f"does not hold ({'; '.join(against)})" if against else "holds"
    by_split = list(zip(*(mean.splits for mean in means.values()), strict=False))
    kept = sum(
        all(
            _in_order(*keys, *values)
            for keys, values in zip(pairwise(means), pairwise(row), strict=True)
        )
        for row in by_split
    )
    splits = f", and is that of {kept} of the {len(by_split)} splits" if len(by_split) > 1 else ""
    return [f"The paper's order {order} in mean ECE {where} {verdict}{splits}."]


def _in_order(a: str, b: str, first: float, second: float) -> bool:
    return first <= second if (a, b) == ("sac", "sts") else first < second


def same_when_clean(records: Sequence[Record]) -> list[str]:
    """How far SAC and TS are apart on the clean test images, split by split."""
    clean = select(records, severity=0)
    sac, ts = ({r.split: r for r in select(clean, variant=key)} for key in ("sac", "ts"))
    both = sorted(sac.keys() & ts.keys())
    if not both:
        return []
    apart = max(100 * abs(sac[split].ece - ts[split].ece) for split in both)
    other = sum(sac[split].chosen != "clean" for split in both)
    of = f"{len(both)} splits" if len(both) > 1 else "one split"
    chose = f"SAC chose another set than the clean one in {other} of {of}"
    if apart < _EQUAL:
        why = "" if other else ", since it chose the clean set"
        return [f"On the clean test images SAC has the ECE of TS in all of {of}{why}."]
    return [
        f"On the clean test images SAC and TS differ by up to {apart:.2g} points of ECE: {chose}."
    ]


def worse_than(
    records: Sequence[Record], key: str, other: str, severities: Iterable[int]
) -> list[str]:
    """At which severities a variant has the larger mean ECE, and by how much."""
    worse, compared = [], False
    labels = {record.variant: record.label for record in records}
    for severity in severities:
        here = select(records, severity=severity)
        one, two = select(here, variant=key), select(here, variant=other)
        if not one or not two:
            continue
        compared = True
        excess = 100 * (mean_over_splits(one).value - mean_over_splits(two).value)
        if excess > 0:
            worse.append(f"{severity} (by {excess:.2f} points)")
    if not compared:
        return []
    name = f"{labels[key]} has a larger mean ECE than {labels[other]}"
    if not worse:
        return [f"At no severity {name}."]
    return [f"{name} at severity {', '.join(worse)}."]


def flags_raised(records: Sequence[Record], variants: Mapping[str, str]) -> list[str]:
    """What every variant noticed while adapting, and how often."""
    told = []
    for key, label in variants.items():
        own = select(records, variant=key)
        counts = Counter(code for record in own for code in dict.fromkeys(record.flags.split()))
        if counts:
            parts = "; ".join(
                f"in {n} {_FLAGS[code]} ({code})" if code in _FLAGS else f"in {n} {code}"
                for code, n in counts.most_common()
            )
            told.append(f"{label}, of {len(own)} evaluations: {parts}.")
    return told


def transcal_readings(plan: Plan, records: Sequence[Record], *, where: str) -> list[str]:
    """Which readings of TransCal were used, and what each gave.

    Args:
        plan: Which says the readings.
        records: Over which the mean is taken.
        where: What they are of.
    """
    told = []
    for method in plan.methods:
        own = select(records, label=method.label, method="transcal")
        if own:
            reading = method.settings.get("reading", "official")
            bound = {"official": "T >= 1 as published", "free": "T >= 0.01"}.get(reading, reading)
            sharper = sum(r.temperature is not None and r.temperature < 1 for r in own)
            mean = 100 * mean_over_splits(own).value
            told.append(
                f"{method.label}, with {bound}, has a mean ECE of {mean:.2f} % {where}, and "
                f"sharpened (T < 1) in {sharper} of {len(own)} evaluations."
            )
    return told

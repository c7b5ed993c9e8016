"""Sentences about records, each made from their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from shiftcal.studies.adapting.plan import AnyPlan
from shiftcal.studies.catalog._pairs import in_points
from shiftcal.studies.comparing import clearly_above, difference
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits, select
from shiftcal.studies.showing import flips

# The methods from best to worst as the paper has them under strong shift; SAC may equal STS.
PAPER_ORDER = ("sac", "sts", "ts", "vanilla")
# Points of ECE that the order of a sum can make.
_EQUAL = 1e-9
_NAMES = {"sac": "SAC", "sts": "STS", "ts": "TS", "vanilla": "Vanilla"}
_FLAGS = {
    "domains-separable": "features told target from source almost perfectly",
    "few-effective-samples": "the weights of a few calibration samples decided",
    "weights-not-converged": (
        "the regression behind the weights stopped at its limit of iterations, 100 as published"
    ),
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
    """Whether SAC <= STS < TS < Vanilla in mean ECE, all splits together and each alone.

    With the difference of each to the one before, taken within each split.
    """
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
    by_split = list(zip(*(mean.splits for mean in means.values()), strict=False))
    kept = sum(
        all(
            _in_order(*keys, *values)
            for keys, values in zip(pairwise(means), pairwise(row), strict=True)
        )
        for row in by_split
    )
    several = len(by_split) > 1
    splits = f", and is that of {kept} of the {len(by_split)} splits" if several else ""
    verdict = f"does not hold ({'; '.join(against)})" if against else "holds"
    if not against and several and 2 * kept < len(by_split):
        verdict, splits = "holds in the means", f", but in only {kept} of {len(by_split)} splits"
    steps = [
        in_points(step)
        for a, b in pairwise(means)
        if (step := difference(select(records, variant=b), select(records, variant=a)))
    ]
    told = f"; each against the one before: {', '.join(steps)}" if steps else ""
    return [f"The paper's order {order} in mean ECE {where} {verdict}{splits}{told}."]


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
    """At which severities a variant has the larger mean ECE, and by how much within a split."""
    worse, compared = [], False
    labels = {record.variant: record.label for record in records}
    for severity in severities:
        here = select(records, severity=severity)
        excess = difference(select(here, variant=key), select(here, variant=other))
        if excess is None:
            continue
        compared = True
        if _shows(excess):
            worse.append(f"{severity} ({in_points(excess)})")
    if not compared:
        return []
    name = f"{labels[key]} has a larger mean ECE than {labels[other]}"
    if not worse:
        return [f"At no severity {name}."]
    return [f"{name} at severity {', '.join(worse)}."]


def _shows(excess: Mean) -> bool:
    """Whether a difference is above 0 as it prints."""
    return round(100 * excess.value, 2) > 0


def targets_above(records: Sequence[Record], key: str, other: str, *, where: str) -> list[str]:
    """On which targets a variant has the larger mean ECE, the largest difference first.

    "Clearly" is what :data:`shiftcal.studies.comparing.CLEARLY` says.

    Args:
        records: Of the targets to count.
        key: The variant.
        other: What it is compared with.
        where: Which targets, such as ``"at severities 3 to 5"``; may be empty.
    """
    labels = {record.variant: record.label for record in records}
    found = {}
    for target in dict.fromkeys(record.target for record in records):
        here = select(records, target=target)
        excess = difference(select(here, variant=key), select(here, variant=other))
        if excess is not None:
            found[target] = excess
    if not found:
        return []
    above = {target: each for target, each in found.items() if _shows(each)}
    places = f"{len(found)} targets{where and f' {where}'}"
    name = f"{labels[key]} has a larger mean ECE than {labels[other]}"
    if not above:
        return [f"On none of the {places} {name}."]
    ranked = sorted(above, key=lambda target: -above[target].value)
    told = ", ".join(f"{target} ({in_points(above[target])})" for target in ranked)
    clearly = sum(map(clearly_above, above.values())) or "none"
    return [f"{name} on {len(above)} of the {places}, on {clearly} of them clearly: {told}."]


def changed_choice(records: Sequence[Record]) -> list[str]:
    """On how many targets a variant chose different sets in different splits, and what it did."""
    told = []
    for key, label in {r.variant: r.label for r in records if r.chosen}.items():
        own = select(records, variant=key)
        by_target = {
            name: select(own, target=name) for name in dict.fromkeys(r.target for r in own)
        }
        if all(len(each) < 2 for each in by_target.values()):
            continue
        changed = {name: each for name, each in by_target.items() if flips(each)}
        chose = f"{label} chose different surrogate sets in different splits"
        if not changed:
            told.append(f"On none of the {len(by_target)} targets {chose}.")
            continue
        ends = {
            name: (min(r.ece for r in each), max(r.ece for r in each))
            for name, each in changed.items()
        }
        widest = max(ends, key=lambda name: ends[name][1] - ends[name][0])
        low, high = ends[widest]
        told.append(
            f"{chose} on {len(changed)} of the {len(by_target)} targets; its ECE then differs "
            f"between splits, most on {widest}: from {100 * low:.2f} to {100 * high:.2f} %."
        )
    return told


def flags_raised(records: Sequence[Record], variants: Mapping[str, str]) -> list[str]:
    """What every variant noticed while adapting, and how often."""
    told = []
    for key, label in variants.items():
        own = select(records, variant=key)
        counts = Counter(code for record in own for code in dict.fromkeys(record.flags.split()))
        if counts:
            parts = "; ".join(
                f"{_FLAGS[code]} ({code}) in {n}" if code in _FLAGS else f"{code} in {n}"
                for code, n in counts.most_common()
            )
            told.append(f"{label}, of {len(own)} evaluations: {parts}.")
    return told


def transcal_readings(plan: AnyPlan, records: Sequence[Record], *, where: str) -> list[str]:
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

"""What a study of domain adaptation found, in sentences made from its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shiftcal.studies.adapting.paper import paper_key, papers_variants
from shiftcal.studies.adapting.plan import TrainerPlan
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.adapting.showing import paper_name, paper_of, uncalibrated
from shiftcal.studies.adapting.sureness import blindness
from shiftcal.studies.adapting.unlike_paper import unlike_paper
from shiftcal.studies.catalog._pairs import in_points, paired
from shiftcal.studies.catalog.base import variant_key
from shiftcal.studies.comparing import clearly_above
from shiftcal.studies.record import Record
from shiftcal.studies.results import mean_over_splits
from shiftcal.studies.saying import flags_raised, ranking, transcal_readings

# Reasons of diverged trainings that are told in full.
_TOLD = 3


def remarks(results: AdaptationResults) -> tuple[str, ...]:
    """All of them, the most important first."""
    found = [*_failed(results), *_helped(results)]
    records = _of_adapted(results)
    where = _where(results)
    found += ranking(records, results.variants, where=where)
    found += [*_lowest(results), *_sts_claim(results), *_order_claim(results)]
    found += [*blindness(results), *_beside_paper(results)]
    found += transcal_readings(results.plan, records, where=where)
    return (*found, *flags_raised(results.records, results.variants))


def _failed(results: AdaptationResults) -> list[str]:
    if not results.failures:
        return []
    labels = {trainer.key: trainer.label for trainer in results.plan.trainers}
    titles = {pair.name: pair.title for pair in results.plan.pairs}
    some = [
        f"{labels.get(f.trainer, f.trainer)} on {titles.get(f.task, f.task)}, seed {f.seed}: "
        f"{f.reason}"
        for f in results.failures[:_TOLD]
    ]
    plan, n = results.plan, len(results.failures)
    planned = len(plan.tasks) * len(plan.trainers) * len(plan.seeds)
    more = f" And {n - _TOLD} more." if n > _TOLD else ""
    are = "is" if n == 1 else "are"
    return [f"{n} of {planned} trainings diverged and {are} left out. {' '.join(some)}{more}"]


def _helped(results: AdaptationResults) -> list[str]:
    """With which trainers the accuracy on the target is above that without adaptation."""
    baseline, key = results.baseline, uncalibrated(results)
    if baseline is None or not results.adapting:
        return []
    without = results.over_tasks([baseline.key], key)
    gains = {}
    for trainer in results.adapting:
        own = results.over_tasks([trainer.key], key)
        gain = paired(own, without, lambda one, other: one.accuracy - other.accuracy)
        if gain is not None:
            gains[trainer.label] = gain
    if not gains:
        return []
    above = sum(gain.value > 0 for gain in gains.values())
    clearly = sum(map(clearly_above, gains.values()))
    told = ", ".join(f"{label} {in_points(gain)}" for label, gain in gains.items())
    start = 100 * mean_over_splits(without, lambda record: record.accuracy).value
    sure = f", with {clearly} clearly" if len(results.plan.seeds) > 1 else ""
    return [
        f"Adaptation beats training on the source alone ({start:.1f} % right on the target) in "
        f"mean accuracy with {above} of {len(gains)} trainers{sure}: {told}."
    ]


def _of_adapted(results: AdaptationResults) -> list[Record]:
    """Records of trainers that adapt; of all if none does."""
    keys = [trainer.key for trainer in results.adapting or results.trainers]
    return [r for key in results.variants for r in results.over_tasks(keys, key)]


def _where(results: AdaptationResults) -> str:
    trainers = results.adapting or results.trainers
    n, tasks = len(trainers), len(results.pairs)
    of = trainers[0].label if n == 1 else f"{n} trainers"
    return f"with {of} over {tasks} tasks" if tasks > 1 else f"with {of} on one task"


def _lowest(results: AdaptationResults) -> list[str]:
    """The method of lowest mean ECE, trainer by trainer."""
    told = []
    for trainer in results.trainers:
        means = _means(results, [trainer])
        if len(means) > 1:
            best = min(means, key=means.__getitem__)
            told.append(f"{trainer.label} {results.variants[best]} {100 * means[best]:.2f} %")
    if len(told) < 2:
        return []
    return [f"The lowest mean ECE, the oracle aside, trainer by trainer: {', '.join(told)}."]


def _means(results: AdaptationResults, trainers: Sequence[TrainerPlan]) -> dict[str, float]:
    """Mean ECE of every method but the oracle, over all tasks."""
    keys = [trainer.key for trainer in trainers]
    own = {k: results.over_tasks(keys, k) for k in results.variants if k != "oracle"}
    return {key: mean_over_splits(found).value for key, found in own.items() if found}


def _sts_claim(results: AdaptationResults) -> list[str]:
    """On how many tasks STS is the best of the paper's; in its Table 3 on six of twelve."""
    trainers, among = results.adapting, papers_variants(results.plan.methods)
    if "sts" not in results.variants or len(results.pairs) < 2 or not trainers:
        return []
    wins: Counter[str] = Counter()
    for trainer in trainers:
        for pair in results.pairs:
            own = {key: results.at(trainer.key, key, pair.name) for key in among}
            means = {key: mean_over_splits(found).value for key, found in own.items() if found}
            if "sts" in means:
                wins[trainer.label] += min(means, key=means.__getitem__) == "sts"
    n = len(results.pairs)
    kept = sum(2 * won >= n for won in wins.values())
    held = "holds" if kept == len(wins) else "holds partly" if kept else "does not hold"
    told = ", ".join(f"{label} {won}" for label, won in wins.items())
    return [
        f"The paper's finding that STS is the best on half of the tasks (6 of 12 with CDAN on "
        f"Office-Home) {held} here; of {n} tasks STS has the lowest mean ECE of the paper's "
        f"methods on: {told}."
    ]


def _order_claim(results: AdaptationResults) -> list[str]:
    """Whether STS is the lowest of the paper's methods and SAC the next, as in its Table 4."""
    among = papers_variants(results.plan.methods)
    means = {k: mean for k, mean in _means(results, results.adapting).items() if k in among}
    if not {"sts", "sac"} <= means.keys() or len(means) < 3:
        return []
    order = sorted(means, key=means.__getitem__)
    kept = [order[0] == "sts", order[1] == "sac"]
    held = "holds" if all(kept) else "holds partly" if any(kept) else "does not hold"
    labels = [results.variants[key] for key in order[:2]]
    return [
        f"The paper's finding that STS has the lowest ECE and SAC the next (VisDA-2017, six "
        f"trainers) {held} here in the means {_where(results)}: of its methods the lowest is "
        f"{labels[0]}, the next {labels[1]}."
    ]


def _beside_paper(results: AdaptationResults) -> list[str]:
    """Ours and the paper's means of the methods that both have, trainer by trainer."""
    paper = paper_of(results.plan)
    if paper is None:
        return []
    told = []
    for trainer in results.trainers:
        name = paper_name(trainer)
        if name not in paper.trainers or len(results.pairs) != len(paper.tasks):
            continue
        means, parts = _means(results, [trainer]), []
        for method in results.plan.methods:
            key, row = variant_key(method.name, method.settings), paper_key(method)
            theirs = None if row is None else paper.mean(name, row)
            if theirs is not None and key in means:
                parts.append(f"{method.label} {100 * means[key]:.2f} and {theirs:.2f} %")
        told.append(f"{trainer.label}, ours and the paper's mean ECE: {', '.join(parts)}.")
    unlike = unlike_paper(results.plan)
    return [*told, unlike] if told and unlike else told

"""Which distance chooses the surrogate set: of the means, Kolmogorov-Smirnov, or Wasserstein."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, final

from shiftcal.errors import InputError
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._pairs import ece_difference, in_points, paired, pairs, same_set
from shiftcal.studies.catalog._spans import spans
from shiftcal.studies.catalog.base import Findings, Study, compared
from shiftcal.studies.comparing import verdict
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, Results, mean_over_splits, select
from shiftcal.studies.showing import (
    OVER_SPLITS,
    percent,
    severities_in_words,
    severity_boxes,
    severity_table,
)
from shiftcal.studies.variant import Variant

_SAC = "sac"
_BOXES = (
    "A value is the ECE under one corruption, its mean over the splits; severity 0 has one, the "
    "clean test images."
)


@final
class Distances(Study):
    """SAC with several distances between target and surrogate sets, as the plan lists them."""

    title: ClassVar[str] = "The distance that chooses the surrogate set"

    def check(self, plan: Plan) -> None:
        """Refuse a plan with nothing to compare."""
        super().check(plan)
        found = sum(each.name == _SAC for each in plan.methods)
        if found < 2:
            raise InputError(
                f"the study {plan.study!r} compares SAC under several distances, and the plan's "
                f"methods have {found or 'none'} of it. List one for each distance, such as "
                '{name = "sac", label = "SAC, KS", distance = "ks"}.'
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """The methods of the plan."""
        return compared(plan)

    def findings(self, results: Results) -> Findings:
        """Boxes and means by severity, and how often two distances choose the same set."""
        if not results.severities:
            return Findings({}, {}, ("No corrupted or clean target was evaluated.",))
        labels = {record.variant: record.label for record in results.records}
        chosen = _by_key([r for r in results.records if r.method == _SAC])
        tables = {
            "mean-ece": severity_table(
                results.records,
                labels,
                results.severities,
                title="Mean ECE by distance",
            )
        }
        if len(chosen) > 1:
            tables["agreement"] = _agreement(chosen, labels, results.severities)
        boxes = severity_boxes(
            results.records,
            labels,
            results.severities,
            title="ECE by distance and severity",
            note=_BOXES,
        )
        shifted = [s for s in results.severities if s]
        remarks = (
            *_means(chosen, labels, shifted),
            *_verdict(chosen, labels, shifted),
            *_where_apart(chosen, labels, shifted),
        )
        return Findings(tables, {"distances": boxes}, remarks)


@dataclass(frozen=True)
class _Apart:
    """Two variants where they chose different sets: how often, and what each then has."""

    share: float
    first: float
    second: float


def _by_key(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.variant, []).append(record)
    return found


def _agreement(
    chosen: Mapping[str, Sequence[Record]], labels: Mapping[str, str], severities: Sequence[int]
) -> Table:
    """The share of targets for which two variants chose the same surrogate set."""
    over = spans(severities)
    columns = [Column(name, unit="%", digits=1) for name in over]
    rows = []
    for one, other in combinations(chosen, 2):
        means = [
            same_set(select(chosen[one], severity=span), select(chosen[other], severity=span))
            for span in over.values()
        ]
        cells = tuple(Cell(None) if mean is None else percent(mean) for mean in means)
        rows.append(Row(f"{labels[one]} and {labels[other]}", cells))
    return Table(
        "Targets for which the same surrogate set is chosen",
        tuple(columns),
        tuple(rows),
        note=OVER_SPLITS,
        corner="Pair",
    )


def _means(
    chosen: Mapping[str, Sequence[Record]], labels: Mapping[str, str], shifted: Sequence[int]
) -> Iterator[str]:
    """The order of the distances over all shifted targets."""
    means: dict[str, Mean] = {}
    for key, records in chosen.items():
        own = select(records, severity=shifted)
        if own:
            means[key] = mean_over_splits(own)
    if len(means) < 2:
        return
    order = sorted(means, key=lambda key: means[key].value)
    told = "; ".join(f"{labels[key]} {100 * means[key].value:.2f} %" for key in order)
    yield f"Mean ECE over {severities_in_words(shifted)}: {told}."


def _verdict(
    chosen: Mapping[str, Sequence[Record]], labels: Mapping[str, str], shifted: Sequence[int]
) -> Iterator[str]:
    """Whether other distances do as well as that of the means, target by target.

    One does if the interval of the difference holds 0. The means are the reference if they are
    among the distances, else the first.
    """
    reference = _SAC if _SAC in chosen else next(iter(chosen), "")
    found = {
        key: paired(select(records, severity=shifted), chosen[reference], ece_difference)
        for key, records in chosen.items()
        if key != reference
    }
    known = {key: mean for key, mean in found.items() if mean is not None}
    if not known:
        return
    told = "; ".join(f"{labels[key]} {in_points(mean)}" for key, mean in known.items())
    differ = [_changes(mean) for mean in known.values()]
    word = "cannot be judged by one split"
    if None not in differ:
        word = f"{verdict([not each for each in differ])} here"
    yield (
        f"Mean ECE minus that of {labels[reference]} on the same targets: {told}. The paper's "
        f"claim that another distance makes no significant difference {word}{_which(known, labels)}"
        "."
    )


def _changes(difference: Mean) -> bool | None:
    """Whether 0 is outside of the interval; ``None`` without one."""
    if difference.low is None or difference.high is None:
        return None
    return not difference.low <= 0 <= difference.high


def _which(differences: Mapping[str, Mean], labels: Mapping[str, str]) -> str:
    worse = [labels[k] for k, each in differences.items() if _changes(each) and each.value > 0]
    better = [labels[k] for k, each in differences.items() if _changes(each) and each.value < 0]
    parts = [
        f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {word}"
        for names, word in ((worse, "worse"), (better, "better"))
        if names
    ]
    return f": {', '.join(parts)}" if parts else ""


def _where_apart(
    chosen: Mapping[str, Sequence[Record]], labels: Mapping[str, str], shifted: Sequence[int]
) -> Iterator[str]:
    """What each distance has where two choose differently."""
    for one, other in combinations(chosen, 2):
        found = _apart(*(select(chosen[key], severity=shifted) for key in (one, other)))
        if found is None:
            continue
        pair = f"{labels[one]} and {labels[other]}"
        if not found.share:
            yield f"{pair} choose the same set for every shifted target."
            continue
        yield (
            f"{pair} choose the same set for {100 * (1 - found.share):.1f} % of the shifted "
            f"targets; on the others their mean ECE is {100 * found.first:.2f} % and "
            f"{100 * found.second:.2f} %."
        )


def _apart(records: Sequence[Record], others: Sequence[Record]) -> _Apart | None:
    both = list(pairs(records, others))
    if not both:
        return None
    differ = [(a, b) for a, b in both if a.chosen != b.chosen]
    n = max(len(differ), 1)
    return _Apart(
        len(differ) / len(both),
        sum(a.ece for a, _ in differ) / n,
        sum(b.ece for _, b in differ) / n,
    )

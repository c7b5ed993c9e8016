"""How few target rows SAC has to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from shiftcal.checks import check_count
from shiftcal.errors import InputError
from shiftcal.report.figures import FigureData, Lines, Panel, Series
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.catalog.base import Findings, Study, compared
from shiftcal.studies.plan import Plan, Variant
from shiftcal.studies.records import Record, Results, mean_over_splits, paired, same_set, select
from shiftcal.studies.tables import (
    ECE,
    OVER_SPLITS,
    labels_of,
    mean_cell,
    percent,
    severities_in_words,
    severity_boxes,
    severity_table,
    spans,
)

_PEEK = "-peek-"
_CORNER = "Rows looked at"
_BOXES = (
    "A value is the ECE under one corruption, its mean over splits and draws; severity 0 has one, "
    "the clean test images."
)


@dataclass(frozen=True)
class Peeked:
    """A variant that looks at a few rows.

    Attributes:
        base: Key of the variant that looks at all rows.
        label: Its label.
        size: How many rows it looks at.
        records: Of all its draws.
        whole: Of the variant that looks at all rows; empty if that was not evaluated.
    """

    base: str
    label: str
    size: int
    records: Sequence[Record]
    whole: Sequence[Record]

    def spread(self, severities: Sequence[int]) -> float | None:
        """Standard deviation of the ECE over the draws for one target of one split.

        The variances of all targets and splits are averaged. ``None`` with one draw.
        """
        values: dict[tuple[int, str], list[float]] = {}
        for record in select(self.records, severity=severities):
            values.setdefault((record.split, record.target), []).append(record.ece)
        variances = [np.var(each, ddof=1) for each in values.values() if len(each) > 1]
        return float(np.sqrt(np.mean(variances))) if variances else None


@final
class Peek(Study):
    """SAC that looks at all rows of a target, and at a few drawn at random, several times.

    Every draw has its own rows: those of one target and split say nothing of those of another.
    """

    name: ClassVar[str] = "peek"
    title: ClassVar[str] = "How many target rows have to be looked at"
    options: ClassVar[Mapping[str, Any]] = {"sizes": (10, 30, 100, 300, 1000), "draws": 10}

    def check(self, plan: Plan) -> None:
        """Reject sizes and draws that are no counts, and a plan without SAC."""
        super().check(plan)
        check_count(self.option(plan, "draws"), name="the option draws")
        sizes = self.option(plan, "sizes")
        if not isinstance(sizes, (list, tuple)) or not sizes or len(set(sizes)) < len(sizes):
            raise InputError(
                "the option sizes must be a list of different numbers of rows, such as "
                f"[10, 100]; got {sizes!r}."
            )
        for size in sizes:
            check_count(size, name="every one of the option sizes")
        if not any(each.name == "sac" for each in plan.methods):
            raise InputError(
                f"the study {plan.study!r} is about SAC, which the plan's methods do not have. "
                'Add {name = "sac", label = "SAC"}.'
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """The methods of the plan, and before each SAC the same with fewer rows, rising."""
        made: list[Variant] = []
        for each in compared(plan):
            if each.method != "sac" or "peek" in each.settings:
                made.append(each)
                continue
            made += [
                replace(
                    each,
                    key=f"{each.key}{_PEEK}{size}",
                    label=f"{each.label}, {size} rows",
                    settings={**each.settings, "peek": size},
                    setting=str(size),
                    draws=self.option(plan, "draws"),
                )
                for size in sorted(self.option(plan, "sizes"))
            ]
            made.append(replace(each, label=f"{each.label}, all rows"))
        return made

    def findings(self, results: Results) -> Findings:
        """Boxes by severity, means against the number of rows, how often the choice holds."""
        records, severities = results.records, results.severities
        if not severities:
            return Findings({}, {})
        title = "Mean ECE by the number of target rows looked at"
        tables = {"mean-ece": severity_table(records, labels_of(records), severities, title=title)}
        figures: dict[str, FigureData] = {}
        sac = labels_of(results.select(method="sac"))
        if sac:
            title = "ECE by the number of target rows looked at"
            figures["peek"] = severity_boxes(records, sac, severities, title=title, note=_BOXES)
        peeked = peeked_of(results)
        if not peeked:
            return Findings(tables, figures)
        tables["same-set"] = _same_set_table(peeked, severities)
        shifted = sorted({r.severity for each in peeked for r in each.records if r.severity})
        if shifted:
            tables["peek-size"] = _sizes_table(peeked, shifted)
            figures["peek-size"] = _sizes_figure(peeked, results, shifted)
        return Findings(tables, figures)


def peeked_of(results: Results) -> list[Peeked]:
    """Every variant that looks at a few rows, in the order of the plan."""
    by_key: dict[str, list[Record]] = {}
    for record in results.records:
        by_key.setdefault(record.variant, []).append(record)
    made = []
    for key, records in by_key.items():
        base, mark, size = key.rpartition(_PEEK)
        if mark and records[0].setting == size:
            whole = by_key.get(base, [])
            made.append(Peeked(base, records[0].label, int(size), records, whole))
    return made


def _same_set_table(peeked: Sequence[Peeked], severities: Sequence[int]) -> Table:
    """How often the set that all rows choose is chosen, by severity."""
    columns = spans(severities)
    rows = []
    for each in peeked:
        shares = (
            same_set(select(each.records, severity=span), each.whole) for span in columns.values()
        )
        rows.append(Row(each.label, tuple(map(percent, shares))))
    return Table(
        "Draws that choose the same surrogate set as all rows do",
        tuple(Column(name, unit="%", digits=1) for name in columns),
        tuple(rows),
        note=OVER_SPLITS,
        corner=_CORNER,
    )


def _sizes_table(peeked: Sequence[Peeked], shifted: Sequence[int]) -> Table:
    """The shifted targets: a row for each number of rows, that with all of them last."""
    columns = (
        Column("mean ECE", unit="%"),
        Column("more than with all rows", unit="points"),
        Column("spread over draws", unit="points"),
        Column("same set as all rows", unit="%", digits=1),
    )
    rows: list[Row] = []
    for own in _by_base(peeked):
        for index, each in enumerate(own):
            here, spread = select(each.records, severity=shifted), each.spread(shifted)
            cells = (
                mean_cell(here),
                percent(paired(here, each.whole)),
                Cell(None if spread is None else 100 * spread),
                percent(same_set(here, each.whole)),
            )
            rows.append(Row(each.label, cells, rule_before=bool(rows) and not index))
        whole = select(own[0].whole, severity=shifted)
        if whole:
            rows.append(Row(whole[0].label, (mean_cell(whole), *(Cell(None),) * 3)))
    return Table(
        f"Number of target rows looked at, {severities_in_words(shifted)}",
        columns,
        tuple(rows),
        note=(
            f"{OVER_SPLITS} Spread over draws: standard deviation of the ECE of one target when "
            "other rows are drawn."
        ),
        corner=_CORNER,
    )


def _by_base(peeked: Sequence[Peeked]) -> list[list[Peeked]]:
    found: dict[str, list[Peeked]] = {}
    for each in peeked:
        found.setdefault(each.base, []).append(each)
    return list(found.values())


def _sizes_figure(peeked: Sequence[Peeked], results: Results, shifted: Sequence[int]) -> Lines:
    """Mean ECE against the number of rows: over all severities next to others, and by severity."""
    bases = _by_base(peeked)
    base = bases[0]
    sizes = sorted(each.size for each in base)
    most = max((r.n for r in base[0].whole if r.severity is not None), default=0)
    x = tuple(map(float, (*sizes, *([most] if most > sizes[-1] else []))))

    def y_of(own: Sequence[Peeked], severities: Sequence[int]) -> tuple[float | None, ...]:
        at = {float(each.size): each.records for each in own}
        records = [select(at.get(size, own[0].whole), severity=severities) for size in x]
        return tuple(mean_cell(each).number for each in records)

    def with_band(own: Sequence[Peeked]) -> Series:
        """A line with one standard deviation over the draws to either side."""
        y, spreads = y_of(own, shifted), {float(each.size): each.spread(shifted) for each in own}
        ends: list[tuple[float | None, float | None]] = []
        for size, value in zip(x, y, strict=True):
            half = spreads.get(size)
            known = half is not None and value is not None
            ends.append((value - 100 * half, value + 100 * half) if known else (None, None))  # type: ignore[operator]
        low, high = zip(*ends, strict=True)
        return Series(key=own[0].base, label=_name(own), y=y, low=low, high=high)

    overall = [with_band(own) for own in bases]
    # Methods that look at no rows or know the labels, as level lines; Vanilla is far above.
    for key, label in labels_of(results.records).items():
        records = results.select(variant=key, severity=shifted)
        if key != "vanilla" and records and records[0].method != "sac":
            value = 100 * mean_over_splits(records).value
            overall.append(Series(key=key, label=label, y=(value,) * len(x)))
    by_severity = tuple(
        Series(key=f"severity-{s}", label=f"severity {s}", y=y_of(base, [s]))
        for s in results.severities
    )
    label = "target rows looked at" + (", all of them last" if len(x) > len(base) else "")
    titles = f"mean of {severities_in_words(shifted)}", f"{_name(base)} by severity"
    panels = [
        Panel(x=x, series=lines, x_label=label, title=title, log_x=True)
        for title, lines in zip(titles, (tuple(overall), by_severity), strict=True)
    ]
    return Lines(
        panels=tuple(panels),
        y_label=f"mean {ECE}",
        title="How many target rows have to be looked at",
        intervals="bands",
        note=_note(base, shifted),
    )


def _name(base: Sequence[Peeked]) -> str:
    """Its label without the number of rows."""
    return base[0].label.rpartition(",")[0]


def _note(base: Sequence[Peeked], shifted: Sequence[int]) -> str:
    """What the band is, and how much better the mean within it is known."""
    if all(each.spread(shifted) is None for each in base):
        return "One draw has no band."
    targets = {record.target for each in base for record in each.records if record.severity}
    note = (
        "Band on the left: how far the ECE of one target strays when other rows are drawn, one "
        f"standard deviation to either side of the mean of all {len(targets)} targets."
    )
    means = [mean_over_splits(select(each.records, severity=shifted)) for each in base]
    halves = [100 * (m.high - m.value) for m in means if m.high is not None]
    if not halves:
        return note
    return (
        f"{note} The mean itself is known to ± {min(halves):.2f} to {max(halves):.2f} points "
        "(95 %, over the splits)."
    )

"""Which corruption makes the surrogate sets: each in turn, always left out of the targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from shiftcal import corruptions
from shiftcal.errors import InputError
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures import Lines, Panel
from shiftcal.report.gallery import PAPER
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.catalog.base import Findings, Study, compared, targets_of
from shiftcal.studies.plan import CLEAN, Ladder, Plan, Variant, uses_bank
from shiftcal.studies.records import Mean, Record, Results, mean_over_splits, paired
from shiftcal.studies.tables import (
    ECE,
    OVER_SPLITS,
    SEVERITY,
    labels_of,
    mean_cell,
    percent,
    series,
    severities_in_words,
    spans,
)

_CORNER = "Calibration corruption"
_OTHER_FAMILIES = "other families"
_OTHER_FAMILIES_NOTE = (
    "Other families: without the targets of the choice's own family (noise, blur, weather or "
    "digital) too."
)
_OWN_TARGETS = (
    "Every row has other targets: compare the columns of a row, not one error with another."
)
_OVER_CHOICES = (
    "one standard deviation over the choices to either side. Methods without surrogate sets vary "
    "only because each choice leaves out another target."
)


@final
class CorruptionChoice(Study):
    """Cross-validation over the calibration corruption, as in the paper's appendix.

    Methods that learn from surrogate sets are evaluated once for every choice, on all targets but
    those of the chosen corruption. The others are evaluated once, and shown for every choice on
    the targets of that choice.
    """

    name: ClassVar[str] = "corruption-choice"
    title: ClassVar[str] = "The choice of the calibration corruption"
    options: ClassVar[Mapping[str, Any]] = {"choices": PAPER}

    def check(self, plan: Plan) -> None:
        """Reject choices that are no corruptions, and plans in which nothing depends on them."""
        super().check(plan)
        choices = self.option(plan, "choices")
        texts = isinstance(choices, (list, tuple)) and all(isinstance(c, str) for c in choices)
        if not texts or not choices or len(set(choices)) < len(choices):
            raise InputError(
                "the option choices must be a list of different corruptions, such as "
                f'["pixelate", "fog"]; got {choices!r}.'
            )
        own = {ladder.name for ladder in plan.ladders}
        for name in choices:
            if name not in own:
                corruptions.get(name)  # raises, with the nearest name
        if not any(uses_bank(each.name) for each in plan.methods):
            raise InputError(
                f"the study {plan.study!r} compares surrogate sets, and none of the plan's methods "
                'learns from them. Add {name = "sac", label = "SAC"} to methods.'
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """Every choice for methods that use surrogate sets; the others once."""
        on = {name: targets_of(plan, calibration=name) for name in self.option(plan, "choices")}
        every = tuple(dict.fromkeys(target for targets in on.values() for target in targets))
        made: list[Variant] = []
        for each in compared(plan):
            if not uses_bank(each.method):
                clean_alone = Ladder(plan.calibration.corruption, ())
                made.append(replace(each, ladder=clean_alone, targets=every))
                continue
            for name, targets in on.items():
                ladder = Ladder(name, plan.calibration.severities)
                made.append(replace(each, ladder=ladder, targets=targets, setting=name))
        return made

    def findings(self, results: Results) -> Findings:
        """Means and deviations over the choices, and every choice by itself."""
        view = View.of(results)
        if not view.choices or not view.severities:
            return Findings({}, {})
        tables = {"choice": _spread_table(view), "severities": _severities_table(view)}
        figures = {"choice": _spread_figure(view)}
        if view.shifted:
            tables["choices"] = _choices_table(view, results)
            figures["choices"] = _choices_figure(view)
        return Findings(tables, figures)


@dataclass(frozen=True)
class Choice:
    """One calibration corruption.

    Attributes:
        name: Of the corruption.
        records: All on the targets of this choice. Those of methods that use no surrogate sets are
            taken from their one evaluation.
        family: Of the corruption: noise, blur, weather or digital.
    """

    name: str
    records: Mapping[tuple[str, int], Sequence[Record]]
    families: Mapping[str, str]

    def of(self, variant: str, severities: Sequence[int], *, others: bool = False) -> list[Record]:
        """The records of a variant at these severities.

        Args:
            variant: Its key.
            severities: Which.
            others: Whether targets of the choice's own family are left out: a blur calibrated for
                with another blur is not a new kind of shift.
        """
        own = self.families.get(self.name, "")
        found = (record for s in severities for record in self.records.get((variant, s), ()))
        return [r for r in found if not others or self.families.get(r.corruption) != own]


@dataclass(frozen=True)
class View:
    """What tables and figures of the study are made of.

    Attributes:
        choices: Those first with which the leading method gains most on TS, on the same targets;
            in the order of the plan without TS. Means of one method are no order: every choice
            leaves out another target.
        labels: Of all variants, by key, in the order of the plan.
        varied: Keys of those that use surrogate sets, the leading one first: SAC if it is there.
        severities: All of them, rising.
    """

    choices: Sequence[Choice]
    labels: Mapping[str, str]
    varied: Sequence[str]
    severities: Sequence[int]

    @classmethod
    def of(cls, results: Results) -> View:
        """The view of a run."""
        varied = list(dict.fromkeys(r.variant for r in results.records if r.setting))
        varied.sort(key=lambda key: key != "sac")
        families = _families(results)
        choices = []
        for name in dict.fromkeys(r.setting for r in results.records if r.setting):
            targets = {record.target for record in results.select(setting=name)}
            records: dict[tuple[str, int], list[Record]] = {}
            for record in results.select(setting=(name, "")):
                if record.severity is not None and record.target in targets:
                    records.setdefault((record.variant, record.severity), []).append(record)
            choices.append(Choice(name, records, families))
        view = cls(choices, labels_of(results.records), varied, results.severities)
        if varied:
            gains = view.minus_ts(varied[0])
            choices.sort(key=lambda choice: g.value if (g := gains.get(choice.name)) else np.inf)
        return view

    @property
    def shifted(self) -> list[int]:
        """The severities from 1 on."""
        return [s for s in self.severities if s]

    def minus_ts(self, key: str, *, others: bool = False) -> dict[str, Mean]:
        """How much more ECE than TS a variant has with each choice, over the shifted targets."""
        over = self.shifted or self.severities
        found = {
            choice.name: paired(
                choice.of(key, over, others=others), choice.of("ts", over, others=others)
            )
            for choice in self.choices
        }
        return {name: mean for name, mean in found.items() if mean is not None}

    def over_choices(self, key: str, severities: Sequence[int]) -> Cell:
        """Mean over the choices of a variant's mean ECE, with one standard deviation."""
        own = [records for c in self.choices if (records := c.of(key, severities))]
        if not own:
            return Cell(None)
        values = [mean_over_splits(records).value for records in own]
        mean = float(np.mean(values))
        if len(values) < 2:
            return Cell(100 * mean)
        sd = float(np.std(values, ddof=1))
        return Cell(100 * mean, 100 * (mean - sd), 100 * (mean + sd))


def _families(results: Results) -> dict[str, str]:
    """The family of every corruption that makes surrogate sets or targets, as far as known.

    One with the plan's own strengths has the family of the corruption beneath.
    """
    beneath = {ladder.name: ladder.corruption for ladder in results.plan.ladders}
    names = {r.setting for r in results.records} | {
        r.corruption for r in results.records if r.severity
    }
    known = corruptions.names()
    published = {name: beneath.get(name, name) for name in names}
    return {name: corruptions.get(base).group for name, base in published.items() if base in known}


def _spread_figure(view: View) -> Lines:
    """Mean ECE over the choices against severity, a line for each variant."""
    drawn = [
        series(key, label, [view.over_choices(key, [s]) for s in view.severities])
        for key, label in view.labels.items()
    ]
    panel = Panel(x=tuple(map(float, view.severities)), series=tuple(drawn), x_label=SEVERITY)
    return Lines(
        panels=(panel,),
        y_label=f"mean {ECE}",
        intervals="bands",
        title=f"Mean over {len(view.choices)} choices of the calibration corruption",
        note=f"Bands: {_OVER_CHOICES}",
    )


def _choices_figure(view: View) -> Lines:
    """The difference to TS on the same targets for every choice; without TS the means."""
    if "ts" in view.labels:
        lines = [(key, view.labels[key], view.minus_ts(key)) for key in view.varied]
        leading = view.varied[0]
        others = view.minus_ts(leading, others=True)
        label = f"{view.labels[leading]}, {_OTHER_FAMILIES}"
        lines.append((f"{leading}-others", label, others))
        drawn = [
            series(key, label, [percent(means.get(choice.name)) for choice in view.choices])
            for key, label, means in lines
        ]
        y_label = f"mean ECE minus that of {view.labels['ts']} (points)"
        note = f" Differences are on the same targets: 0 is {view.labels['ts']}. "
        note += _OTHER_FAMILIES_NOTE
    else:
        drawn = [
            series(key, label, [mean_cell(choice.of(key, view.shifted)) for choice in view.choices])
            for key, label in view.labels.items()
        ]
        y_label, note = f"mean {ECE}", " Every choice has other targets."
    panel = Panel(
        x=tuple(choice.name for choice in view.choices),
        series=tuple(drawn),
        x_label="calibration corruption, which is left out of the targets",
    )
    return Lines(
        panels=(panel,),
        y_label=y_label,
        title=f"Every choice of the calibration corruption, {severities_in_words(view.shifted)}",
        note=f"{OVER_SPLITS}{note}",
    )


def _spread_table(view: View) -> Table:
    """Mean ECE over the choices, a row for each variant, a column for each severity."""
    columns = spans(view.severities)
    rows = [
        Row(
            label,
            tuple(view.over_choices(key, span) for span in columns.values()),
            ranked=key != "oracle",
        )
        for key, label in view.labels.items()
    ]
    return Table(
        f"Mean ECE over {len(view.choices)} choices of the calibration corruption",
        tuple(Column(name, unit="%", lower_is_better=True) for name in columns),
        tuple(rows),
        note=f"Intervals: {_OVER_CHOICES}",
        corner="Method",
    ).marked()


def _severities_table(view: View) -> Table:
    """Mean ECE of every choice at every severity, for the methods that use surrogate sets."""
    places = [(key, s) for key in view.varied for s in view.severities]
    return Table(
        "Mean ECE by calibration corruption and severity",
        tuple(Column(f"severity {s}", unit="%", group=view.labels[key]) for key, s in places),
        tuple(
            Row(choice.name, tuple(mean_cell(choice.of(key, [s])) for key, s in places))
            for choice in view.choices
        ),
        note=f"{OVER_SPLITS} {_OWN_TARGETS}",
        corner=_CORNER,
    )


def _choices_table(view: View, results: Results) -> Table:
    """Every choice over the shifted targets, the greatest gain of the leading method on TS first.

    Nothing is marked best: a row has other targets than the next. The last columns are known
    without labels of the target: how far the surrogate sets reach, and on how many targets the
    method itself says that the target is outside of them.
    """
    parts = list(_choices_columns(view, results))
    leading = view.labels[view.varied[0]]
    families = f" {_OTHER_FAMILIES_NOTE}" if "ts" in view.labels else ""
    return Table(
        f"Mean ECE by calibration corruption, {severities_in_words(view.shifted)}",
        tuple(column for column, _ in parts),
        tuple(
            Row(choice.name, tuple(cells[index] for _, cells in parts))
            for index, choice in enumerate(view.choices)
        ),
        note=(
            f"{OVER_SPLITS} {_OWN_TARGETS}{families} Targets outside: those of which {leading} "
            "says that their mean confidence is beyond that of every surrogate set. Confidence "
            "(mean, raw) and accuracy of the surrogate sets: on the calibration images of the "
            "first split, before any target is seen."
        ),
        corner=_CORNER,
    )


def _choices_columns(view: View, results: Results) -> Iterator[tuple[Column, Sequence[Cell]]]:
    """The columns, each with a cell for every choice."""
    leading, with_ts = view.varied[0], "ts" in view.labels

    def minus_ts(key: str, *, others: bool = False) -> tuple[Column, list[Cell]]:
        means = view.minus_ts(key, others=others)
        group = _OTHER_FAMILIES if others else ""
        column = Column(f"{view.labels[key]} minus {view.labels['ts']}", unit="points", group=group)
        return column, [percent(means.get(choice.name)) for choice in view.choices]

    for key in view.varied if with_ts else ():
        yield minus_ts(key)
    fixed = [key for key in view.labels if key not in view.varied]
    for key in (*view.varied, *fixed):
        group = "same targets" if key in fixed else ""
        cells = [mean_cell(choice.of(key, view.shifted)) for choice in view.choices]
        yield Column(view.labels[key], unit="%", group=group), cells
    if with_ts:
        cells = [mean_cell(c.of(leading, view.shifted, others=True)) for c in view.choices]
        yield Column(view.labels[leading], unit="%", group=_OTHER_FAMILIES), cells
        yield minus_ts(leading, others=True)
    shares = []
    for choice in view.choices:
        own = choice.of(leading, view.shifted)
        outside = sum("outside-range" in record.flags.split() for record in own)
        shares.append(Cell(100 * (outside / len(own)) if own else None))
    yield Column("targets outside", unit="%", digits=1), shares
    reach = [_reach(results, choice.name) for choice in view.choices]
    names = ("highest confidence", "lowest confidence", "lowest accuracy")
    for index, name in enumerate(names):
        cells = [Cell(None if each is None else 100 * each[index]) for each in reach]
        yield Column(name, unit="%", group="surrogate sets", digits=1), cells


def _reach(results: Results, corruption: str) -> tuple[float, float, float] | None:
    """Greatest and least mean raw confidence and least accuracy of a corruption's sets.

    On the calibration images of the first split. ``None`` if a set is not stored.
    """
    plan, archive = results.plan, results.archive
    sets = Ladder(corruption, plan.calibration.severities).sets
    if any(name not in archive.entries for name in sets):
        return None
    rows = archive.split(plan.seeds[0], plan.calibration.images).calibration
    labels = archive.scores(CLEAN).labels
    assert labels is not None
    logits = [archive.scores(name).logits[rows] for name in sets]
    means = [float(p_max(each).mean()) for each in logits]
    accuracies = [float((each.argmax(axis=1) == labels[rows]).mean()) for each in logits]
    return max(means), min(means), min(accuracies)

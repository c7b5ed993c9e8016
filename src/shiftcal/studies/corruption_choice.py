"""Which corruption makes the surrogate sets: each in turn, always left out of the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from shiftcal import corruptions
from shiftcal.errors import InputError
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures import FigureData
from shiftcal.report.gallery import PAPER
from shiftcal.report.tables import Cell, Column, Table
from shiftcal.studies import tables as show
from shiftcal.studies.plan import CLEAN, STRICT, Names, Plan, uses_bank
from shiftcal.studies.records import (
    Record,
    Results,
    difference,
    labels_of,
    mean_of,
    select,
)
from shiftcal.studies.study import Findings, Ladder, Study, Variant, compared, targets_of
from shiftcal.studies.tables import Span

_CORNER = "Calibration corruption"
_OTHERS = "other families"
_OTHERS_NOTE = (
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

    @dataclass(frozen=True)
    class Options:
        """The corruptions that make the surrogate sets in turn."""

        __pydantic_config__ = STRICT
        choices: Names = tuple(PAPER)

    def check(self, plan: Plan) -> None:
        """Reject choices that are no corruptions, and plans that lack what is compared."""
        own = {ladder.name for ladder in plan.ladders}
        for name in self.options(plan).choices:
            if name not in own:
                corruptions.get(name)  # raises, with the nearest name
        names = [each.name for each in plan.methods]
        if "ts" not in names or not any(map(uses_bank, names)):
            raise InputError(
                "the study 'corruption-choice' compares TS with methods that learn from surrogate "
                f'sets: methods must name "ts" and one of those, such as "sac"; got {names}.'
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """Every choice for methods that use surrogate sets; the others once."""
        on = {name: targets_of(plan, calibration=name) for name in self.options(plan).choices}
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
        view, severities = _View(results), results.severities
        labels = view.labels
        title = f"Mean ECE over {len(view.choices)} choices of the calibration corruption"
        by_severity = {
            (key, s): Column(f"severity {s}", unit="%", group=labels[key])
            for key in view.varied
            for s in severities
        }
        tables = {
            "choice": show.table(
                title,
                labels,
                show.percents(show.spans(severities), lower_is_better=True),
                view.over_choices,
                note=f"Intervals: {_OVER_CHOICES}",
            ),
            "severities": show.table(
                "Mean ECE by calibration corruption and severity",
                view.choices,
                by_severity,
                lambda choice, place: show.mean_cell(view.of(choice, place[0], (place[1],))),
                note=f"{show.OVER_SPLITS} {_OWN_TARGETS}",
                corner=_CORNER,
            ),
        }
        figures: dict[str, FigureData] = {
            "choice": show.lines(
                title.replace("Mean ECE", "Mean"),
                show.panel(labels, show.axis(severities), view.over_choices, x_label=show.SEVERITY),
                intervals="bands",
                note=f"Bands: {_OVER_CHOICES}",
            )
        }
        words, leading = show.severities_in_words(view.over), view.varied[0]
        tables["choices"] = _choices_table(view, results, words)
        rows = {key: labels[key] for key in view.varied}
        drawn = show.panel(
            {**rows, f"{leading}-others": f"{labels[leading]}, {_OTHERS}"},
            view.choices,
            lambda key, choice: view.minus_ts(
                choice, key.removesuffix("-others"), others=key not in rows
            ),
            x_label="calibration corruption, which is left out of the targets",
        )
        figures["choices"] = show.lines(
            f"Every choice of the calibration corruption, {words}",
            drawn,
            y_label=f"mean ECE minus that of {labels['ts']} (points)",
            note=f"{show.OVER_SPLITS} Differences are on the same targets: 0 is {labels['ts']}. "
            f"{_OTHERS_NOTE}",
        )
        return Findings(tables, figures)


class _View:
    """Records by choice of the calibration corruption.

    Attributes:
        labels: Of all variants, by key.
        varied: Keys of those that use surrogate sets, the leading one first: SAC if it is there.
        choices: Names of the choices by themselves; those first with which the leading method
            gains most on TS, on the same targets. Means of one method are no order: every choice
            leaves out another target.
        over: The severities from 1 on.
    """

    def __init__(self, results: Results) -> None:
        records = results.records
        self.labels = labels_of(records)
        chosen = [record for record in records if record.setting]
        self.varied = sorted(labels_of(chosen), key=lambda key: key != "sac")
        self.over = show.shifted(results.severities)
        self._families = _families(results)
        self._records: dict[str, dict[tuple[str, int | None], list[Record]]] = {}
        for choice in dict.fromkeys(record.setting for record in chosen):
            targets = {record.target for record in select(chosen, setting=choice)}
            own = self._records[choice] = {}
            # Those of methods that use no surrogate sets are taken from their one evaluation.
            for record in select(records, setting=(choice, "")):
                if record.target in targets:
                    own.setdefault((record.variant, record.severity), []).append(record)
        gains = {choice: self.minus_ts(choice, self.varied[0]).number for choice in self._records}
        order = sorted(gains, key=lambda name: (gains[name] is None, gains[name] or 0.0))
        self.choices = {choice: choice for choice in order}

    def of(self, choice: str, key: str, span: Span, *, others: bool = False) -> list[Record]:
        """The records of a variant at some severities, on the targets of a choice.

        With ``others``, targets of the choice's own family are left out: a blur calibrated for
        with another blur is not a new kind of shift.
        """
        own, families = self._families.get(choice, ""), self._families
        found = (r for s in span for r in self._records[choice].get((key, s), ()))
        return [r for r in found if not others or families.get(r.corruption) != own]

    def minus_ts(self, choice: str, key: str, *, others: bool = False) -> Cell:
        """How much more ECE than TS a variant has with a choice, over the shifted targets."""
        one, ts = (self.of(choice, k, self.over, others=others) for k in (key, "ts"))
        return show.percent(difference(one, ts))

    def over_choices(self, key: str, span: Span) -> Cell:
        """Mean over the choices of a variant's mean ECE, with one standard deviation."""
        means = [mean_of(self.of(choice, key, span)) for choice in self.choices]
        values = [mean.value for mean in means if mean is not None]
        if not values:
            return Cell(None)
        mean = float(np.mean(values))
        if len(values) < 2:
            return Cell(100 * mean)
        sd = float(np.std(values, ddof=1))
        return Cell(100 * mean, 100 * (mean - sd), 100 * (mean + sd))


def _families(results: Results) -> Mapping[str, str]:
    """The family of every published corruption that makes surrogate sets or targets.

    One with the plan's own strengths has the family of the corruption beneath.
    """
    names = {r.setting for r in results.records} | {r.corruption for r in results.records}
    base = {name: name for name in names} | {
        ladder.name: ladder.corruption for ladder in results.plan.ladders
    }
    known = corruptions.names()
    return {name: corruptions.get(each).group for name, each in base.items() if each in known}


def _choices_table(view: _View, results: Results, words: str) -> Table:
    """Every choice over the shifted targets, the greatest gain of the leading method on TS first.

    Nothing is marked best: a row has other targets than the next. The last columns are known
    without labels of the target: how far the surrogate sets reach, and on how many targets the
    method itself says that the target is outside of them.
    """
    labels, leading, ts = view.labels, view.varied[0], view.labels["ts"]
    fixed = [key for key in labels if key not in view.varied]
    minus = {("minus", key): f"{labels[key]} minus {ts}" for key in view.varied}
    columns: dict[tuple[str, str], Column] = show.percents(minus, unit="points")
    columns |= show.percents({("ece", key): labels[key] for key in view.varied})
    columns |= show.percents({("ece", key): labels[key] for key in fixed}, group="same targets")
    columns |= show.percents({("others", "ece"): labels[leading]}, group=_OTHERS)
    columns |= show.percents(
        {("others", "minus"): f"{labels[leading]} minus {ts}"}, unit="points", group=_OTHERS
    )
    columns |= show.percents({("outside", ""): "targets outside"}, digits=1)
    names = ("highest confidence", "lowest confidence", "lowest accuracy")
    columns |= show.percents(
        {("reach", name): name for name in names}, group="surrogate sets", digits=1
    )
    reach = {
        choice: dict(zip(names, _reach(results, choice), strict=True)) for choice in view.choices
    }

    def cell(choice: str, column: tuple[str, str]) -> Cell:
        what, key = column
        if what == "minus":
            return view.minus_ts(choice, key)
        if what == "ece":
            return show.mean_cell(view.of(choice, key, view.over))
        if column == ("others", "minus"):
            return view.minus_ts(choice, leading, others=True)
        if what == "others":
            return show.mean_cell(view.of(choice, leading, view.over, others=True))
        if what == "reach":
            return Cell(reach[choice][key])
        own = view.of(choice, leading, view.over)
        outside = sum("outside-range" in record.flags.split() for record in own)
        return Cell(100 * (outside / len(own)) if own else None)

    return show.table(
        f"Mean ECE by calibration corruption, {words}",
        view.choices,
        columns,
        cell,
        note=(
            f"{show.OVER_SPLITS} {_OWN_TARGETS} {_OTHERS_NOTE} Targets outside: those of which "
            f"{labels[leading]} says that their mean confidence is beyond that of every surrogate "
            "set. Confidence (mean, raw) and accuracy of the surrogate sets: on the calibration "
            "images of the first split, before any target is seen."
        ),
        corner=_CORNER,
    )


def _reach(results: Results, corruption: str) -> Sequence[float | None]:
    """Greatest and least mean raw confidence and least accuracy of a corruption's sets, in percent.

    On the calibration images of the first split. ``None`` if a set is not stored.
    """
    plan, archive = results.plan, results.archive
    sets = Ladder(corruption, plan.calibration.severities).sets
    if any(name not in archive.entries for name in sets):
        return None, None, None
    rows, _ = archive.split(plan.seeds[0])
    labels = archive.scores(CLEAN).labels
    assert labels is not None
    logits = [archive.scores(name).logits[rows] for name in sets]
    means = [float(p_max(each).mean()) for each in logits]
    accuracies = [float((each.argmax(axis=1) == labels[rows]).mean()) for each in logits]
    return 100 * max(means), 100 * min(means), 100 * min(accuracies)

"""Which corruption makes the surrogate sets: each in turn, always left out of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from shiftcal.errors import InputError
from shiftcal.report.gallery import PAPER
from shiftcal.report.tables import Cell, Column
from shiftcal.studies import records as show
from shiftcal.studies.plan import STRICT, Names, Variant, check_severities, targets_of, uses_bank
from shiftcal.studies.records import OVER_SPLITS, Findings, Record, Span, Study, labels_of, select
from shiftcal.studies.sources import Archive

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

    def check(self) -> None:
        """Reject choices that are no corruptions, and plans that lack what is compared."""
        for name in self.options.choices:
            check_severities(self.plan, name, self.plan.calibration.severities)
        names = [each.name for each in self.plan.methods]
        if "ts" not in names or not any(map(uses_bank, names)):
            raise InputError(
                "the study 'corruption-choice' compares TS with methods that learn from surrogate "
                f'sets: methods must name "ts" and one of those, such as "sac"; got {names}.'
            )

    def variants(self) -> list[Variant]:
        """Every choice for methods that use surrogate sets; the others once."""
        on = {name: targets_of(self.plan, calibration=name) for name in self.options.choices}
        every = tuple(dict.fromkeys(target for targets in on.values() for target in targets))
        made: list[Variant] = []
        for each in super().variants():
            if not uses_bank(each.method):
                clean_alone = replace(each.ladder, severities=())
                made.append(replace(each, ladder=clean_alone, targets=every))
                continue
            for name, targets in on.items():
                ladder = replace(each.ladder, corruption=name)
                made.append(replace(each, ladder=ladder, targets=targets, setting=name))
        return made

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Means and deviations over the choices, and every choice by itself.

        Choices are in the order of what the leading method gains on TS, on the same targets. Means
        of one method are no order: every choice leaves out another target.
        """
        severities, labels = show.severities_of(records), labels_of(records)
        over, chosen = show.shifted(severities), [r for r in records if r.setting]
        on: dict[str, list[Record]] = {}
        for choice in dict.fromkeys(record.setting for record in chosen):
            targets = {record.target for record in select(chosen, setting=choice)}
            # Those of methods that use no surrogate sets are taken from their one evaluation.
            own = select(records, setting=(choice, ""), target=tuple(targets))
            on[choice] = sorted(own, key=lambda record: record.severity or 0)

        def minus_ts(choice: str, key: str) -> Cell:
            one, ts = (select(on[choice], variant=k, severity=over) for k in (key, "ts"))
            return show.percent(show.difference(one, ts))

        def over_choices(key: str, span: Span) -> Cell:
            """Mean over the choices of a variant's mean ECE, with one standard deviation."""
            means = [show.mean_of(select(on[c], variant=key, severity=span)) for c in choices]
            values = [mean.value for mean in means if mean is not None]
            if len(values) < 2:
                return Cell(100 * values[0] if values else None)
            mean, sd = float(np.mean(values)), float(np.std(values, ddof=1))
            return Cell(100 * mean, 100 * (mean - sd), 100 * (mean + sd))

        def cell(choice: str, column: tuple[str, str]) -> Cell:
            what, key = column
            if what == "minus":
                return minus_ts(choice, key)
            own = select(on[choice], variant=key, severity=over)
            if what == "ece":
                return show.mean_cell(own)
            outside = ["outside-range" in record.flags.split() for record in own]
            return Cell(100 * (sum(outside) / len(outside)) if outside else None)

        varied = sorted(labels_of(chosen), key=lambda key: key != "sac")
        leading, rest = varied[0], [key for key in labels if key not in varied]
        order = sorted(on, key=lambda choice: minus_ts(choice, leading).number or 0.0)
        choices, words = {choice: choice for choice in order}, show.severities_in_words(over)
        title = f"Mean ECE over {len(on)} choices of the calibration corruption"
        minus = {("minus", key): f"{labels[key]} minus {labels['ts']}" for key in varied}
        columns: dict[tuple[str, str], Column] = {
            **show.percents(minus, unit="points"),
            **show.percents({("ece", key): labels[key] for key in varied}),
            **show.percents({("ece", key): labels[key] for key in rest}, group="same targets"),
            **show.percents({("outside", leading): "targets outside"}, digits=1),
        }
        note = (
            f"{OVER_SPLITS} Every row has other targets: compare the columns of a row, not one "
            f"error with another. Targets outside: those of which {labels[leading]} says that "
            "their mean confidence is beyond that of every surrogate set."
        )
        tables = {
            "choice": show.table(
                title,
                labels,
                show.percents(show.spans(severities), lower_is_better=True),
                over_choices,
                note=f"Intervals: {_OVER_CHOICES}",
            ),
            "choices": show.table(
                f"Mean ECE by calibration corruption, {words}",
                choices,
                columns,
                cell,
                note=note,
                corner="Calibration corruption",
            ),
        }
        by_severity = show.panel(labels, show.axis(severities), over_choices, x_label=show.SEVERITY)
        by_choice = show.panel(
            {key: labels[key] for key in varied},
            choices,
            lambda key, choice: minus_ts(choice, key),
            x_label="calibration corruption, which is left out of the targets",
        )
        figures = {
            "choice": show.lines(
                title.replace("Mean ECE", "Mean"),
                by_severity,
                intervals="bands",
                note=f"Bands: {_OVER_CHOICES}",
            ),
            "choices": show.lines(
                f"Every choice of the calibration corruption, {words}",
                by_choice,
                y_label=f"mean ECE minus that of {labels['ts']} (points)",
                note=f"{OVER_SPLITS} Differences are on the same targets: 0 is {labels['ts']}.",
            ),
        }
        return Findings(tables, figures)

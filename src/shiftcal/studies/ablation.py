"""What SAC and STS owe to each of their parts, and to the corruption of their surrogate sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from shiftcal.errors import InputError
from shiftcal.registry import MAPS
from shiftcal.report.gallery import PAPER
from shiftcal.report.tables import Cell, Column, Table
from shiftcal.studies import records as show
from shiftcal.studies.plan import Counts, Ladder, Names, Strict, Variant, targets_of, uses_bank
from shiftcal.studies.records import OVER_SPLITS, Findings, Record, Span, Study, labels_of, select
from shiftcal.studies.sources import Archive

# What a part adds: the method without it, the method with it.
_STEPS = {
    ("vanilla", "ts"): "clean temperature (Vanilla to TS)",
    ("ts", "sts"): "surrogate sets (TS to STS)",
    ("sts", "sac"): "adaptation (STS to SAC)",
    ("ts", "sac"): "both (TS to SAC)",
    ("sac", "oracle"): "target labels (SAC to oracle)",
}


def spread(severities: Sequence[int], n_sets: int) -> tuple[int, ...]:
    """So many sets, the clean one among them, spread evenly over a ladder.

    Set ``i`` of ``J`` stands at ``i m / (J - 1)`` of the ``m`` steps, rounded to the nearest, a
    half up: the clean set and the strongest are always there. Of severities 1 to 5, two sets are
    the clean one and 5, three add 3 and 5 to it, four 2, 3 and 5, five 1, 3, 4 and 5.

    Args:
        severities: Of the whole ladder, rising.
        n_sets: With the clean set; at most one more than there are severities.
    """
    steps = len(severities)
    places = [(2 * i * steps + n_sets - 1) // (2 * (n_sets - 1)) for i in range(1, n_sets)]
    return tuple(severities[place - 1] for place in places)


class Question(NamedTuple):
    """One panel of the study.

    Attributes:
        x_label: What is varied.
        words: A setting in words, with ``{}`` where the setting goes; empty if the methods
            themselves are compared.
        methods: Which of the plan's methods it is tried on; default: all.
        numeric: Whether the settings are numbers.
        log_x: Whether equal distances are equal ratios.
    """

    x_label: str
    words: str
    methods: tuple[str, ...] = ("sts", "sac")
    numeric: bool = False
    log_x: bool = False


PARTS, FINE = "what the parts give", "fine ladder"
QUESTIONS = {
    PARTS: Question("Targets", "", ()),
    "number of sets": Question("Number of sets J", "J = {}", numeric=True),
    "spacing": Question("Severities beside the clean set", "severities {}"),
    "calibration images": Question(
        "Calibration images", "{} images", ("ts", "sts", "sac"), numeric=True, log_x=True
    ),
    "map": Question("Calibration map", "map {}"),
    FINE: Question("Ladder of surrogate sets", "ladder {}"),
}


class Ablation(Study):
    """TS, STS and SAC with one thing varied at a time, in six panels.

    What the parts give (TS to STS: the surrogate sets; STS to SAC: the adaptation), the number of
    sets, their spacing, the number of calibration images, the map inside, and ladders with the
    plan's own strengths. A panel compares those methods that the plan lists.
    """

    title = "Ablation: what each part gives"

    @dataclass(frozen=True)
    class Options(Strict):
        """What is tried in each panel; what a plan has no room for is left out."""

        sets: Counts = (1, 2, 3, 4, 5, 6)
        spacings: tuple[Counts, ...] = ((1, 2, 3), (2, 3, 4), (3, 4, 5), (1, 3, 5))
        images: Counts = (100, 200, 500, 1000, 2000, 5000)
        maps: tuple[str, ...] = ("temperature", "ensemble-temperature", "isotonic", "spline")

    def check(self) -> None:
        """Reject unknown maps."""
        for name in self.options.maps:
            MAPS.get(name)  # raises, with the nearest name

    def variants(self) -> list[Variant]:
        """Those of every panel."""
        made = []
        for panel, tried in self._tried().items():
            methods = QUESTIONS[panel].methods
            # What makes sets of one ladder is a target of none: all are compared on the same.
            not_on = {each.corruption for each in self.plan.ladders} if panel == FINE else set()
            for (setting, change), each in product(tried.items(), super().variants()):
                if methods and each.method not in methods:
                    continue
                varied: dict[str, Any] = {"settings": {**each.settings, "map": change}}
                if isinstance(change, Ladder):
                    varied = {"ladder": change}
                targets = tuple(t for t in each.targets if t.corruption not in not_on)
                made.append(replace(each, panel=panel, setting=setting, targets=targets, **varied))
        return made

    def _tried(self) -> dict[str, dict[str, Ladder | str]]:
        """What every panel tries: by setting, the surrogate sets or the map."""
        plan, options, ladder = self.plan, self.options, self.ladder
        images = plan.calibration.images
        fine = [Ladder(own.name, tuple(range(1, len(own.strengths) + 1))) for own in plan.ladders]
        sets = [n for n in options.sets if n <= len(ladder.severities) + 1]
        spacings = [each for each in options.spacings if set(each) <= set(ladder.severities)]
        return {
            PARTS: {"": ladder},
            "number of sets": {
                str(n): replace(ladder, severities=spread(ladder.severities, n)) for n in sets
            },
            "spacing": {"-".join(map(str, s)): replace(ladder, severities=s) for s in spacings},
            # None is all of them, so that they are not drawn from.
            "calibration images": {
                str(n): replace(ladder, images=n if n < images else None)
                for n in options.images
                if n <= images
            },
            "map": {name: name for name in options.maps},
            FINE: {each.corruption: each for each in [ladder, *fine] if fine},
        }

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """A table for each panel, and all panels in one figure; the parts by severity too."""
        over = show.shifted(show.severities_of(records))
        words = show.severities_in_words(over)
        tables: dict[str, Table] = {}
        panels = []
        for name, question in QUESTIONS.items():
            own = select(records, panel=name)
            settings = list(dict.fromkeys(record.setting for record in own))
            x: dict[str, Any] = {each: each or words for each in settings}
            if question.numeric:
                x = {each: float(each) for each in sorted(settings, key=int)}
            if own:
                tables[_file(name)] = _table(name, own, list(x))
                axis = {"x_label": question.x_label, "title": name, "log_x": question.log_x}
                panels.append(show.panel(labels_of(own), x, _ece(own, over), **axis))
        parts = select(records, panel=PARTS)
        tables["shares"] = _shares_table(parts)
        title = "What the surrogate sets and the adaptation give"
        figures = {
            "ablation": show.lines(f"One thing varied at a time: mean ECE over {words}", *panels),
            _file(PARTS): show.severity_lines(parts, title),
        }
        return Findings(tables, figures)


def _file(name: str) -> str:
    return name.replace(" ", "-")


def _ece(records: Sequence[Record], span: Span) -> Callable[[str, str], Cell]:
    """Mean ECE of a method with a setting, at some severities."""
    return lambda key, setting: show.ece(records, variant=key, setting=setting, severity=span)


def _table(name: str, records: Sequence[Record], settings: Sequence[str]) -> Table:
    """Mean ECE per severity, a row for each method and setting."""
    title, question = f"Mean ECE: {name}", QUESTIONS[name]
    if not question.words:
        return show.severity_table(records, title)
    rows = {
        (key, setting): f"{label}, {question.words.format(shown)}"
        for key, label in labels_of(records).items()
        for setting in settings
        if (shown := f"{int(setting):,}" if question.numeric else setting)
    }
    return show.table(
        title,
        rows,
        show.percents(show.spans(records), lower_is_better=True),
        lambda row, span: _ece(records, span)(*row),
        corner="Method and setting",
    )


def _shares_table(records: Sequence[Record]) -> Table:
    """Change of mean ECE from one method to the next, by severity; below zero is better."""
    # The first line of a method, should the plan have several.
    first = {r.method: r.variant for r in reversed(records)}
    return show.table(
        "Change of mean ECE that each part makes",
        {step: name for step, name in _STEPS.items() if first.keys() >= set(step)},
        show.percents(show.spans(records), unit="points"),
        lambda step, span: show.percent(
            show.difference(
                select(records, variant=first[step[1]], severity=span),
                select(records, variant=first[step[0]]),
            )
        ),
        note=(
            "Below zero the part lowers the ECE. Differences are taken within each split; "
            "intervals: 95 %, over the splits."
        ),
        corner="Part",
    )


# --------------------------------------------------------------------------------------
# Which corruption makes the surrogate sets
# --------------------------------------------------------------------------------------

_OVER_CHOICES = (
    "one standard deviation over the choices to either side. Methods without surrogate sets vary "
    "only because each choice leaves out another target."
)


class CorruptionChoice(Study):
    """Cross-validation over the calibration corruption, as in the paper's appendix.

    Methods that learn from surrogate sets are evaluated once for every choice, on all targets but
    those of the chosen corruption. The others are evaluated once, and shown for every choice on
    the targets of that choice.
    """

    title = "The choice of the calibration corruption"

    @dataclass(frozen=True)
    class Options(Strict):
        """The corruptions that make the surrogate sets in turn."""

        choices: Names = tuple(PAPER)

    def check(self) -> None:
        """Reject a plan that lacks what is compared."""
        names = [each.name for each in self.plan.methods]
        if "ts" not in names or not any(map(uses_bank, names)):
            raise InputError(
                f'methods must name "ts" and one that learns from surrogate sets; got {names}.'
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
        labels, chosen = labels_of(records), [r for r in records if r.setting]
        over = show.shifted(show.severities_of(records))
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
            return show.ece(on[choice], variant=key, severity=over)

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
        }
        note = (
            f"{OVER_SPLITS} Every row has other targets: compare the columns of a row, not one "
            "error with another."
        )
        tables = {
            "choice": show.table(
                title,
                labels,
                show.percents(show.spans(records), lower_is_better=True),
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
        by_severity = show.panel(labels, show.axis(records), over_choices, x_label=show.SEVERITY)
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

"""What each part of SAC and STS gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from shiftcal import maps
from shiftcal.errors import InputError
from shiftcal.report.figures import FigureData, Panel
from shiftcal.report.tables import Cell, Column, Table
from shiftcal.studies import tables as show
from shiftcal.studies.plan import STRICT, Counts, Plan
from shiftcal.studies.records import Record, Results, difference, labels_of, select
from shiftcal.studies.study import Findings, Ladder, Study, Variant, compared, ladder_of
from shiftcal.studies.tables import Span

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


@dataclass(frozen=True)
class Question:
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


def _tried(plan: Plan, options: Any) -> dict[str, dict[str, Ladder | str]]:
    """What every panel tries: by setting, the surrogate sets or the map."""
    ladder, images = ladder_of(plan), plan.calibration.images
    fine = [ladder] if plan.ladders else []
    fine += [
        Ladder(each.name, tuple(range(1, len(each.strengths) + 1)))
        for each in plan.ladders
        if each.name != ladder.corruption
    ]
    return {
        PARTS: {"": ladder},
        "number of sets": {
            str(n): replace(ladder, severities=spread(ladder.severities, n))
            for n in options.sets
            if n <= len(ladder.severities) + 1
        },
        "spacing": {
            "-".join(map(str, each)): replace(ladder, severities=each)
            for each in options.spacings
            if set(each) <= set(ladder.severities)
        },
        # None is all of them, so that they are not drawn from.
        "calibration images": {
            str(n): replace(ladder, images=n if n < images else None)
            for n in options.images
            if n <= images
        },
        "map": {name: name for name in options.maps},
        FINE: {each.corruption: each for each in fine},
    }


class Ablation(Study):
    """TS, STS and SAC with one thing varied at a time, in six panels.

    What the parts give (TS to STS: the surrogate sets; STS to SAC: the adaptation), the number of
    sets, their spacing, the number of calibration images, the map inside, and ladders with the
    plan's own strengths. A panel compares those methods that the plan lists.
    """

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "Ablation: what each part gives"

    @dataclass(frozen=True)
    class Options:
        """Which panels, and what is tried in each; what a plan has no room for is left out."""

        __pydantic_config__ = STRICT
        panels: tuple[str, ...] = tuple(QUESTIONS)
        sets: Counts = (1, 2, 3, 4, 5, 6)
        spacings: tuple[Counts, ...] = ((1, 2, 3), (2, 3, 4), (3, 4, 5), (1, 3, 5))
        images: Counts = (100, 200, 500, 1000, 2000, 5000)
        maps: tuple[str, ...] = ("temperature", "ensemble-temperature", "isotonic", "spline")

    def check(self, plan: Plan) -> None:
        """Reject unknown panels and maps, and natural targets."""
        options = self.options(plan)
        unknown = [name for name in options.panels if name not in QUESTIONS]
        if unknown:
            raise InputError(
                f"the study 'ablation' has no panel {unknown[0]!r}, only {', '.join(QUESTIONS)}."
            )
        for name in options.maps:
            maps.get(name)  # raises, with the nearest name
        if plan.shifts.sets:
            raise InputError(
                "the study 'ablation' shows means over severities, and the natural set "
                f"{plan.shifts.sets[0].name!r} has none. Use the study natural for it."
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """Those of every panel."""
        options = self.options(plan)
        made: list[Variant] = []
        tried = _tried(plan, options)
        for panel in options.panels:
            # What makes sets of one ladder is a target of none: all are compared on the same.
            not_on = {each.corruption for each in plan.ladders} if panel == FINE else set()
            for setting, change in tried[panel].items():
                for each in compared(plan):
                    if each.method not in (QUESTIONS[panel].methods or (each.method,)):
                        continue
                    targets = tuple(t for t in each.targets if t.corruption not in not_on)
                    changes: dict[str, Any] = {"settings": {**each.settings, "map": change}}
                    if isinstance(change, Ladder):
                        changes = {"ladder": change}
                    made.append(
                        replace(each, panel=panel, setting=setting, targets=targets, **changes)
                    )
        return made

    def findings(self, results: Results) -> Findings:
        """A table for each panel, and all panels in one figure; two of them by severity too."""
        severities = results.severities
        over = show.shifted(severities)
        tables: dict[str, Table] = {}
        figures: dict[str, FigureData] = {}
        panels = []
        for name, question in QUESTIONS.items():
            own = select(results.records, panel=name)
            if own:
                tables[_file(name)] = _table(name, question, own, severities)
                panels.append(_panel(name, question, own, over))
        if panels:
            title = f"One thing varied at a time: mean ECE over {show.severities_in_words(over)}"
            figures["ablation"] = show.lines(title, *panels)
        parts, fine = (select(results.records, panel=name) for name in (PARTS, FINE))
        if parts:
            title = "What the surrogate sets and the adaptation give"
            figures[_file(PARTS)] = show.severity_lines(parts, severities, title=title)
            tables["shares"] = _shares_table(parts, severities)
        if fine:
            ladders = {r.setting: f"{r.setting} ({r.n_sets} sets)" for r in fine}
            drawn = [
                show.panel(
                    ladders,
                    show.axis(severities),
                    _ece(select(fine, variant=key)),
                    x_label=show.SEVERITY,
                    title=label,
                )
                for key, label in labels_of(fine).items()
            ]
            figures[_file(FINE)] = show.lines("Ladders of surrogate sets", *drawn)
        return Findings(tables, figures)


def _file(name: str) -> str:
    return name.replace(" ", "-")


def _ece(records: Sequence[Record]) -> Callable[[str, Span], Cell]:
    """Mean ECE of a setting at some severities."""
    return lambda setting, span: show.mean_cell(select(records, setting=setting, severity=span))


def _settings(question: Question, records: Iterable[Record]) -> list[str]:
    """What was varied: numbers rising, other settings in the order of the plan."""
    found = list(dict.fromkeys(record.setting for record in records))
    return sorted(found, key=int) if question.numeric else found


def _table(
    name: str, question: Question, records: Sequence[Record], severities: Sequence[int]
) -> Table:
    """Mean ECE per severity, a row for each method and setting."""
    title = f"Mean ECE: {name}"
    if not question.words:
        return show.severity_table(records, severities, title=title)
    rows = {}
    for key, label in labels_of(records).items():
        for setting in _settings(question, select(records, variant=key)):
            shown = f"{int(setting):,}" if question.numeric else setting
            rows[key, setting] = f"{label}, {question.words.format(shown)}"
    return show.table(
        title,
        rows,
        show.percents(show.spans(severities), lower_is_better=True),
        lambda row, span: _ece(select(records, variant=row[0]))(row[1], span),
        corner="Method and setting",
        group=lambda row: row[0],
    )


def _panel(name: str, question: Question, records: Sequence[Record], over: Span) -> Panel:
    """Mean ECE over the shifted targets against what is varied, a series for each method."""
    here, settings = select(records, severity=over), _settings(question, records)
    x = {
        each: float(each) if question.numeric else each or show.severities_in_words(over)
        for each in settings
    }
    return show.panel(
        labels_of(records),
        x,
        lambda key, setting: show.mean_cell(select(here, variant=key, setting=setting)),
        x_label=question.x_label,
        title=name,
        log_x=question.log_x,
    )


def _shares_table(records: Sequence[Record], severities: Sequence[int]) -> Table:
    """Change of mean ECE from one method to the next, by severity; below zero is better."""

    def first_of(method: str) -> list[Record]:
        """The first line of a method, should the plan have several."""
        own = select(records, method=method)
        return [record for record in own if record.variant == own[0].variant]

    there = {record.method for record in records}
    return show.table(
        "Change of mean ECE that each part makes",
        {step: name for step, name in _STEPS.items() if there >= set(step)},
        {span: Column(name, unit="points") for span, name in show.spans(severities).items()},
        lambda step, span: show.percent(
            difference(select(first_of(step[1]), severity=span), first_of(step[0]))
        ),
        note=(
            "Below zero the part lowers the ECE. Differences are taken within each split; "
            "intervals: 95 %, over the splits."
        ),
        corner="Part",
    )

"""What each part of SAC and STS gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from shiftcal import maps
from shiftcal.errors import InputError
from shiftcal.registry import suggest
from shiftcal.report.figures import FigureData, Lines, Panel
from shiftcal.report.tables import Column, Row, Table
from shiftcal.studies.catalog.base import Findings, Study, compared, ladder_of
from shiftcal.studies.plan import Ladder, Plan, Variant
from shiftcal.studies.records import Record, Results, paired, select
from shiftcal.studies.tables import (
    ECE,
    OVER_SPLITS,
    SEVERITY,
    labels_of,
    mean_cell,
    percent,
    series,
    severities_in_words,
    severity_lines,
    severity_table,
    spans,
)

_SURROGATES = ("sts", "sac")
# From one method to the next: what it adds, the method without it, the method with it.
_STEPS = (
    ("clean temperature (Vanilla to TS)", "vanilla", "ts"),
    ("surrogate sets (TS to STS)", "ts", "sts"),
    ("adaptation (STS to SAC)", "sts", "sac"),
    ("both (TS to SAC)", "ts", "sac"),
    ("target labels (SAC to oracle)", "sac", "oracle"),
)


@dataclass(frozen=True)
class Question:
    """One panel of the study.

    Attributes:
        name: Of the panel, as plans write it.
        x_label: What is varied.
        words: A setting in words, with ``{}`` where the setting goes; empty if the methods
            themselves are compared.
        variants: What is evaluated, from the plan and the values of the options.
        numeric: Whether the settings are numbers.
        log_x: Whether equal distances are equal ratios.
    """

    name: str
    x_label: str
    words: str
    variants: Callable[[Plan, Mapping[str, Any]], Iterator[Variant]]
    numeric: bool = False
    log_x: bool = False

    def settings(self, records: Sequence[Record]) -> list[str]:
        """What was varied: numbers rising, other settings in the order of the plan."""
        found = list(dict.fromkeys(record.setting for record in records))
        return sorted(found, key=int) if self.numeric else found


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


def _each(
    plan: Plan,
    panel: str,
    setting: object,
    *,
    ladder: Ladder | None = None,
    settings: Mapping[str, Any] | None = None,
    of: tuple[str, ...] = _SURROGATES,
) -> Iterator[Variant]:
    """The plan's lines of some methods, under one setting."""
    for variant in compared(plan):
        if variant.method in of:
            yield replace(
                variant,
                panel=panel,
                setting=str(setting),
                ladder=ladder or variant.ladder,
                settings={**variant.settings, **(settings or {})},
            )


def _parts(plan: Plan, _: Mapping[str, Any]) -> Iterator[Variant]:
    return (replace(variant, panel=PARTS) for variant in compared(plan))


def _sets(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    ladder = ladder_of(plan)
    for count in sorted(options["sets"]):
        if count <= len(ladder.severities) + 1:
            fewer = replace(ladder, severities=spread(ladder.severities, count))
            yield from _each(plan, SETS, count, ladder=fewer)


def _spacing(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    ladder = ladder_of(plan)
    for severities in options["spacings"]:
        if set(severities) <= set(ladder.severities):
            other = replace(ladder, severities=tuple(severities))
            yield from _each(plan, SPACING, "-".join(map(str, severities)), ladder=other)


def _images(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    whole = plan.calibration.images
    for size in sorted(options["images"]):
        if size <= whole:
            # None is all of them, so that they are not drawn from.
            ladder = replace(ladder_of(plan), images=size if size < whole else None)
            yield from _each(plan, IMAGES, size, ladder=ladder, of=("ts", *_SURROGATES))


def _maps(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    for name in options["maps"]:
        yield from _each(plan, MAP, name, settings={"map": name})


def _fine(plan: Plan, _: Mapping[str, Any]) -> Iterator[Variant]:
    if not plan.ladders:
        return
    ladders = [ladder_of(plan)]
    ladders += [
        Ladder(ladder.name, tuple(range(1, len(ladder.strengths) + 1)))
        for ladder in plan.ladders
        if ladder.name != plan.calibration.corruption
    ]
    # What makes surrogate sets for one ladder is a target for none: all are compared on the same.
    made_of = {ladder.corruption for ladder in plan.ladders}
    for ladder in ladders:
        for variant in _each(plan, FINE, ladder.corruption, ladder=ladder):
            fair = tuple(each for each in variant.targets if each.corruption not in made_of)
            yield replace(variant, targets=fair)


PARTS, SETS, SPACING = "what the parts give", "number of sets", "spacing"
IMAGES, MAP, FINE = "calibration images", "map", "fine ladder"
QUESTIONS = {
    question.name: question
    for question in (
        Question(PARTS, "Targets", "", _parts),
        Question(SETS, "Number of sets J", "J = {}", _sets, numeric=True),
        Question(SPACING, "Severities beside the clean set", "severities {}", _spacing),
        Question(IMAGES, "Calibration images", "{} images", _images, numeric=True, log_x=True),
        Question(MAP, "Calibration map", "map {}", _maps),
        Question(FINE, "Ladder of surrogate sets", "ladder {}", _fine),
    )
}


class Ablation(Study):
    """TS, STS and SAC with one thing varied at a time, in six panels.

    What the parts give (TS to STS: the surrogate sets; STS to SAC: the adaptation), the number of
    sets, their spacing, the number of calibration images, the map inside, and ladders with the
    plan's own strengths. A panel compares those methods that the plan lists.
    """

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "Ablation: what each part gives"
    options: ClassVar[Mapping[str, Any]] = {
        "panels": list(QUESTIONS),
        "sets": [1, 2, 3, 4, 5, 6],
        "spacings": [[1, 2, 3], [2, 3, 4], [3, 4, 5], [1, 3, 5]],
        "images": [100, 200, 500, 1000, 2000, 5000],
        "maps": ["temperature", "ensemble-temperature", "isotonic", "spline"],
    }

    def check(self, plan: Plan) -> None:
        """Reject unknown panels, maps and severities, and natural targets."""
        super().check(plan)
        for name in self.option(plan, "panels"):
            if name not in QUESTIONS:
                raise InputError(
                    f"the study ablation has no panel {name!r}. {suggest(name, list(QUESTIONS))}"
                )
        for name in self.option(plan, "maps"):
            maps.get(name)  # raises, with the nearest name
        for name in ("sets", "images"):
            values = self.option(plan, name)
            whole = isinstance(values, (list, tuple)) and all(
                type(each) is int and each > 0 for each in values
            )
            if not whole or len(set(values)) < len(values):
                raise InputError(
                    f"{name} of the study ablation must be different whole numbers above 0; got "
                    f"{values!r}."
                )
        known = plan.calibration.severities
        for severities in plan.options.get("spacings", ()):
            if not set(severities) <= set(known):
                raise InputError(
                    "spacings of the study ablation must be of the severities of the plan's "
                    f"[calibration], {list(known)}; got {severities}."
                )
        if plan.shifts.sets:
            raise InputError(
                "the study ablation shows means over severities, and the natural set "
                f"{plan.shifts.sets[0].name!r} has none. Use the study natural for it."
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """Those of every panel; what a plan has no room for (a larger J, more images) is absent."""
        options = {name: self.option(plan, name) for name in self.options}
        return [
            variant
            for name in options["panels"]
            for variant in QUESTIONS[name].variants(plan, options)
        ]

    def findings(self, results: Results) -> Findings:
        """A table for each panel, and all panels in one figure; two of them by severity too."""
        severities = results.severities
        shifted = [s for s in severities if s] or list(severities)
        tables: dict[str, Table] = {}
        panels = []
        for name, question in QUESTIONS.items():
            own = results.select(panel=name)
            if own:
                tables[_file(name)] = _table(question, own, severities)
                panels.append(_panel(question, own, shifted))
        figures: dict[str, FigureData] = {}
        if panels:
            span = severities_in_words(shifted)
            figures["ablation"] = Lines(
                panels=tuple(panels),
                y_label=f"mean {ECE}",
                title=f"One thing varied at a time: mean ECE over {span}",
                note=OVER_SPLITS,
            )
        parts = results.select(panel=PARTS)
        if parts:
            title = "What the surrogate sets and the adaptation give"
            lines = severity_lines(parts, labels_of(parts), severities, title=title)
            figures[_file(PARTS)] = lines
            tables["shares"] = shares_table(parts, severities)
        fine = results.select(panel=FINE)
        if fine:
            figures[_file(FINE)] = _ladder_lines(fine, severities)
        return Findings(tables, figures)


def _file(panel: str) -> str:
    return panel.replace(" ", "-")


def _table(question: Question, records: Sequence[Record], severities: Sequence[int]) -> Table:
    """Mean ECE per severity, a row for each method and setting."""
    title = f"Mean ECE: {question.name}"
    if not question.words:
        return severity_table(records, labels_of(records), severities, title=title)
    rows: dict[str, str] = {}
    starts = []
    for key, label in labels_of(records).items():
        for index, setting in enumerate(question.settings(select(records, variant=key))):
            shown = f"{int(setting):,}" if question.numeric else setting
            rows[f"{key} {setting}"] = f"{label}, {question.words.format(shown)}"
            if rows and index == 0:
                starts.append(rows[f"{key} {setting}"])
    renamed = [replace(each, variant=f"{each.variant} {each.setting}") for each in records]
    table = severity_table(renamed, rows, severities, title=title, corner="Method and setting")
    ruled = [replace(row, rule_before=row.label in starts[1:]) for row in table.rows]
    return replace(table, rows=tuple(ruled))


def _panel(question: Question, records: Sequence[Record], shifted: Sequence[int]) -> Panel:
    """Mean ECE over the shifted targets against what is varied, a series for each method."""
    here, settings = select(records, severity=shifted), question.settings(records)
    drawn = [
        series(
            key, label, [mean_cell(select(here, variant=key, setting=each)) for each in settings]
        )
        for key, label in labels_of(records).items()
    ]
    x: tuple[float, ...] | tuple[str, ...]
    if question.numeric:
        x = tuple(float(each) for each in settings)
    else:
        x = tuple(each or severities_in_words(shifted) for each in settings)
    return Panel(
        x=x,
        series=tuple(drawn),
        x_label=question.x_label,
        title=question.name,
        log_x=question.log_x,
    )


def _ladder_lines(records: Sequence[Record], severities: Sequence[int]) -> Lines:
    """Mean ECE against severity: a panel for each method, a series for each ladder."""
    ladders = {record.setting: record.n_sets for record in records}
    panels = []
    for key, label in labels_of(records).items():
        drawn = [
            series(
                ladder,
                f"{ladder} ({n_sets} sets)",
                [
                    mean_cell(select(records, variant=key, setting=ladder, severity=s))
                    for s in severities
                ],
            )
            for ladder, n_sets in ladders.items()
        ]
        x = tuple(map(float, severities))
        panels.append(Panel(x=x, series=tuple(drawn), x_label=SEVERITY, title=label))
    return Lines(
        panels=tuple(panels),
        y_label=f"mean {ECE}",
        title="Ladders of surrogate sets",
        note=OVER_SPLITS,
    )


def shares_table(records: Sequence[Record], severities: Sequence[int]) -> Table:
    """Change of mean ECE from one method to the next, by severity; below zero is better."""
    columns = spans(severities)
    rows = []
    for name, before, after in _STEPS:
        differences = []
        for span in columns.values():
            here = select(records, severity=span)
            differences.append(paired(_first_of(here, after), _first_of(here, before)))
        if any(each is not None for each in differences):
            rows.append(Row(name, tuple(map(percent, differences))))
    return Table(
        "Change of mean ECE that each part makes",
        tuple(Column(name, unit="points") for name in columns),
        tuple(rows),
        note=(
            "Below zero the part lowers the ECE. Differences are taken within each split; "
            "intervals: 95 %, over the splits."
        ),
        corner="Part",
    )


def _first_of(records: Sequence[Record], method: str) -> list[Record]:
    """The first line of a method, should the plan have several."""
    own = select(records, method=method)
    return [record for record in own if record.variant == own[0].variant]

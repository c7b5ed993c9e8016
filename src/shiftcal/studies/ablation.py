"""What each part of SAC and STS gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from shiftcal.errors import InputError
from shiftcal.registry import MAPS
from shiftcal.report.figures import FigureData
from shiftcal.report.tables import Cell, Table
from shiftcal.studies import records as show
from shiftcal.studies.plan import STRICT, Counts, Ladder, Plan, Variant, ladder_of
from shiftcal.studies.records import Findings, Record, Span, Study, labels_of, select
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


def _tried(plan: Plan, options: Any) -> dict[str, dict[str, Ladder | str]]:
    """What every panel tries: by setting, the surrogate sets or the map."""
    ladder, images = ladder_of(plan), plan.calibration.images
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

    def check(self) -> None:
        """Reject unknown panels and maps, and natural targets."""
        plan, options = self.plan, self.options
        if not QUESTIONS.keys() >= set(options.panels):
            raise InputError(f"{plan.where} [options] panels must be of {', '.join(QUESTIONS)}.")
        for name in options.maps:
            MAPS.get(name)  # raises, with the nearest name
        if plan.shifts.sets:
            raise InputError(
                "the study 'ablation' shows means over severities, and the natural set "
                f"{plan.shifts.sets[0].name!r} has none. Use the study natural for it."
            )

    def variants(self) -> list[Variant]:
        """Those of every panel."""
        plan, options, made = self.plan, self.options, []
        for panel in options.panels:
            methods = QUESTIONS[panel].methods
            # What makes sets of one ladder is a target of none: all are compared on the same.
            not_on = {each.corruption for each in plan.ladders} if panel == FINE else set()
            for setting, change in _tried(plan, options)[panel].items():
                for each in super().variants():
                    if methods and each.method not in methods:
                        continue
                    varied = replace(each, panel=panel, setting=setting)
                    if isinstance(change, Ladder):
                        varied = replace(varied, ladder=change)
                    else:
                        varied = replace(varied, settings={**each.settings, "map": change})
                    targets = tuple(t for t in each.targets if t.corruption not in not_on)
                    made.append(replace(varied, targets=targets))
        return made

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """A table for each panel, and all panels in one figure; two of them by severity too."""
        severities = show.severities_of(records)
        over = show.shifted(severities)
        words = show.severities_in_words(over)
        tables: dict[str, Table] = {}
        figures: dict[str, FigureData] = {}
        panels = []
        for name, question in QUESTIONS.items():
            own = select(records, panel=name)
            settings = list(dict.fromkeys(record.setting for record in own))
            x: dict[str, Any] = {each: each or words for each in settings}
            if question.numeric:
                x = {each: float(each) for each in sorted(settings, key=int)}
            if own:
                tables[_file(name)] = _table(name, question, own, list(x), severities)
                axis = {"x_label": question.x_label, "title": name, "log_x": question.log_x}
                panels.append(show.panel(labels_of(own), x, _ece(own, over), **axis))
        if panels:
            title = f"One thing varied at a time: mean ECE over {words}"
            figures["ablation"] = show.lines(title, *panels)
        parts, fine = (select(records, panel=name) for name in (PARTS, FINE))
        if parts:
            title = "What the surrogate sets and the adaptation give"
            figures[_file(PARTS)] = show.severity_lines(parts, severities, title=title)
            tables["shares"] = _shares_table(parts, severities)
        if fine:
            rows = {r.setting: f"{r.setting} ({r.n_sets} sets)" for r in fine}
            by_severity = [
                show.panel(
                    rows,
                    show.axis(severities),
                    lambda setting, span, key=key: _ece(fine, span)(key, setting),  # type: ignore[misc]
                    x_label=show.SEVERITY,
                    title=label,
                )
                for key, label in labels_of(fine).items()
            ]
            figures[_file(FINE)] = show.lines("Ladders of surrogate sets", *by_severity)
        return Findings(tables, figures)


def _file(name: str) -> str:
    return name.replace(" ", "-")


def _ece(records: Sequence[Record], span: Span) -> Callable[[str, str], Cell]:
    """Mean ECE of a method with a setting, at some severities."""
    return lambda key, setting: show.ece(records, variant=key, setting=setting, severity=span)


def _table(
    name: str,
    question: Question,
    records: Sequence[Record],
    settings: Sequence[str],
    severities: Sequence[int],
) -> Table:
    """Mean ECE per severity, a row for each method and setting."""
    title = f"Mean ECE: {name}"
    if not question.words:
        return show.severity_table(records, severities, title=title)
    rows = {
        (key, setting): f"{label}, {question.words.format(shown)}"
        for key, label in labels_of(records).items()
        for setting in settings
        if (shown := f"{int(setting):,}" if question.numeric else setting)
    }
    return show.table(
        title,
        rows,
        show.percents(show.spans(severities), lower_is_better=True),
        lambda row, span: _ece(records, span)(*row),
        corner="Method and setting",
    )


def _shares_table(records: Sequence[Record], severities: Sequence[int]) -> Table:
    """Change of mean ECE from one method to the next, by severity; below zero is better."""
    # The first line of a method, should the plan have several.
    first = {r.method: r.variant for r in reversed(records)}
    return show.table(
        "Change of mean ECE that each part makes",
        {step: name for step, name in _STEPS.items() if first.keys() >= set(step)},
        show.percents(show.spans(severities), unit="points"),
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

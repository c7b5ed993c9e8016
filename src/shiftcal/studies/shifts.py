"""Studies of methods under shift: synthetic and natural, by distance, and by rows looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import pi, sqrt
from typing import Any

import numpy as np

from shiftcal.errors import InputError
from shiftcal.report.figures import FigureData, Lines
from shiftcal.report.tables import Cell, Column, Table
from shiftcal.studies import records as show
from shiftcal.studies.plan import CLEAN, Count, Counts, Strict, Variant
from shiftcal.studies.records import OVER_SPLITS, Findings, Record, Span, Study, labels_of, select
from shiftcal.studies.sources import Archive


class Synthetic(Study):
    """Which method keeps confidences calibrated when images are corrupted in new ways?

    The test images under every corruption of the plan but that of the surrogate sets, at every
    severity. The paper shows the means over corruptions as lines and their quartiles as boxes.
    """

    title = "Synthetic shift"

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Means, boxes, every target, temperatures and choices."""
        severities, title = show.severities_of(records), "Mean ECE over corruptions"
        records = select(records, severity=severities)
        tables = {
            "mean-ece": show.severity_table(records, severities, title=title),
            "full": show.full_table(records),
        }
        if any(record.temperature and record.method != "vanilla" for record in records):
            tables["temperatures"] = show.temperature_table(records, severities)
        if any(record.chosen for record in records):
            tables["chosen"] = show.chosen_table(records, self.ladder.sets)
        boxes = show.severity_boxes(records, severities, title="ECE of every corruption")
        means = show.severity_lines(records, severities, title=title)
        return Findings(tables, {"ece-means": means, "ece-boxes": boxes})


# --------------------------------------------------------------------------------------
# Natural shift
# --------------------------------------------------------------------------------------

CLEAN_TITLE = "clean test images"
_NATURAL = "ECE under natural shift"
_NOTE = (
    f"{OVER_SPLITS} All images of a natural set are judged in every split: intervals do not cover "
    "which images it has; the table of the sets says how much they matter. A natural set's ECE "
    f"without interval is one value: the same images and no calibration set. {show.RANGES}"
)
_SETS_NOTE = (
    f"Accuracy and confidence are those of the model itself. {OVER_SPLITS} So many images make an "
    "ECE uncertain: by chance even perfect calibration shows up to about the first number, and one "
    "well above it has about the second as standard error."
)


class Natural(Study):
    """Which method keeps confidences calibrated on images of the same classes from elsewhere?

    Every natural set of the plan, whole, next to the clean test images if the plan asks for
    severity 0.
    """

    title = "Natural shift"
    by_severity = False

    def check(self) -> None:
        """Reject a plan without natural sets, or with two of the same title."""
        titles = [CLEAN_TITLE, *(each.title for each in self.plan.shifts.sets)]
        if len(titles) == 1 or len(set(titles)) < len(titles):
            raise InputError(
                "the study 'natural' needs natural sets, [[shifts.sets]] with name = ... and "
                f"images = ..., each with its own title; got {titles[1:]}."
            )

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """ECE by method and set, the sets in numbers, and a figure."""
        titles = {CLEAN: CLEAN_TITLE, **{s.name: s.title for s in self.plan.shifts.sets}}
        records = select(records, target=tuple(titles))
        titles = {name: titles[name] for name in titles if select(records, target=name)}

        def ece(key: str, target: str) -> Cell:
            own = select(records, variant=key, target=target)
            one_value = target != CLEAN and len({record.ece for record in own}) == 1
            cell = show.target_cell(own)
            return Cell(cell.value) if one_value else cell

        rows, columns = labels_of(records), show.percents(titles, lower_is_better=True)
        axis = show.panel(rows, titles, ece, x_label="Target")
        return Findings(
            {
                "natural": show.table(_NATURAL, rows, columns, ece, note=_NOTE),
                "sets": _sets_table(records, titles, self.plan.bins),
            },
            {"natural": show.lines(_NATURAL, axis, y_label=show.ECE, note=_NOTE)},
        )


def by_chance(accuracy: float, n: int, bins: int) -> float:
    """About the most ECE that a perfectly calibrated predictor shows on so many images.

    Such a predictor shows ``sqrt(2 / pi) mean(sqrt(c (1 - c))) sqrt(bins / n)``, as
    :func:`shiftcal.metrics.ece` says. Its mean confidence is the accuracy a, and the mean root is
    at most ``sqrt(a (1 - a))``, by Jensen.
    """
    return sqrt(2 / pi) * sqrt(accuracy * (1 - accuracy) * min(bins, n) / n)


def _sets_table(records: Sequence[Record], titles: dict[str, str], bins: int) -> Table:
    """Every set in numbers: its size, what that does to an ECE, the model itself, the choices."""
    columns = {
        "n": Column("images", digits=0),
        "accuracy": Column("accuracy", unit="%"),
        "raw_confidence": Column("confidence", unit="%"),
        "by chance": Column("by chance", unit="%", group="ECE"),
        "standard error": Column("standard error", unit="%", group="ECE"),
    }
    for key, label in labels_of(record for record in records if record.chosen).items():
        columns[f"chosen {key}"] = Column("chosen", group=label)
        columns[f"T {key}"] = Column("T", group=label)

    def cell(target: str, column: str) -> Cell:
        here = select(records, target=target)
        what, _, key = column.partition(" ")
        if what in ("chosen", "T"):
            return _choice(select(here, variant=key), what)
        first = select(here, variant=here[0].variant)
        if column in ("accuracy", "raw_confidence"):
            found = show.mean_cell(first, column)
            return found if target == CLEAN else Cell(found.value)  # the same in every split
        n, mean = first[0].n, show.mean_of(first, "accuracy")
        accuracy = mean.value if mean else 0.0
        if column == "by chance":
            return Cell(100 * by_chance(accuracy, n, bins))
        # Where confidence is too high in every bin, ECE is confidence minus accuracy.
        return Cell(n if column == "n" else 100 * sqrt(accuracy * (1 - accuracy) / n))

    return show.table("The sets", titles, columns, cell, note=_SETS_NOTE, corner="Set")


def _choice(records: Sequence[Record], what: str) -> Cell:
    """The set that was chosen most often, or the mean of the temperatures."""
    if what == "chosen" and records:
        (name, times), *others = Counter(record.chosen for record in records).most_common()
        return Cell(f"{name} ({times} of {len(records)})" if others else name)
    known = ((r.split, r.temperature) for r in records if r.temperature is not None)
    mean = show.mean_over_splits(known, least=0.0)
    return Cell(*mean[:3] if mean else (None,))


# --------------------------------------------------------------------------------------
# Which distance chooses the surrogate set
# --------------------------------------------------------------------------------------


class Distances(Study):
    """SAC with several distances between target and surrogate sets, as the plan lists them."""

    title = "The distance that chooses the surrogate set"

    def check(self) -> None:
        """Reject a plan with nothing to compare."""
        if sum(each.name == "sac" for each in self.plan.methods) < 2:
            raise InputError(
                "the study 'distances' compares SAC under several distances: methods must list it "
                'at least twice, such as {name = "sac", label = "SAC, KS", distance = "ks"}.'
            )

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Boxes and means by severity, and how often two distances choose the same set."""
        severities, labels = show.severities_of(records), labels_of(select(records, method="sac"))

        def agreement(pair: tuple[str, str], span: Span) -> Cell:
            one, other = (select(records, variant=key, severity=span) for key in pair)
            return show.percent(show.same_set(one, other))

        tables = {
            "mean-ece": show.severity_table(records, severities, title="Mean ECE by distance"),
            "agreement": show.table(
                "Targets for which the same surrogate set is chosen",
                {(a, b): f"{labels[a]} and {labels[b]}" for a, b in combinations(labels, 2)},
                show.percents(show.spans(severities), digits=1),
                agreement,
                corner="Pair",
            ),
        }
        boxes = show.severity_boxes(records, severities, title="ECE by distance and severity")
        return Findings(tables, {"distances": boxes})


# --------------------------------------------------------------------------------------
# How few target rows SAC has to look at
# --------------------------------------------------------------------------------------

_PEEK_BOXES = (
    "A value is the ECE under one corruption, its mean over splits and draws; severity 0 has one, "
    "the clean test images."
)
_BAND = (
    "Band: how far the ECE of one target strays when other rows are drawn, one "
    "standard deviation to either side of the mean over the targets."
)


class Peek(Study):
    """SAC that looks at all rows of a target, and at a few drawn at random, several times.

    Every draw has its own rows: those of one target and split say nothing of those of another.
    """

    title = "How many target rows have to be looked at"

    @dataclass(frozen=True)
    class Options(Strict):
        """How many rows are looked at, and how often they are drawn."""

        sizes: Counts = (10, 30, 100, 300, 1000)
        draws: Count = 10

    def check(self) -> None:
        """Reject a plan without SAC."""
        if [each.name for each in self.plan.methods].count("sac") != 1:
            raise InputError("the study 'peek' is about SAC, which methods must name once.")

    def variants(self) -> list[Variant]:
        """The methods of the plan, and before SAC the same with fewer rows, rising."""
        made: list[Variant] = []
        for each in super().variants():
            if each.method != "sac":
                made.append(each)
                continue
            made += [
                replace(
                    each,
                    key=f"{each.key}-peek-{size}",
                    label=f"{each.label}, {size} rows",
                    settings={**each.settings, "peek": size},
                    setting=str(size),
                    draws=self.options.draws,
                )
                for size in self.options.sizes
            ]
            made.append(replace(each, label=f"{each.label}, all rows"))
        return made

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Boxes by severity, means against the number of rows, how often the choice holds."""
        severities, sac = show.severities_of(records), select(records, method="sac")
        over, title = show.shifted(severities), "ECE by the number of target rows looked at"
        whole = [record for record in sac if not record.setting]
        columns = {
            "mean ECE": Column("mean ECE", unit="%"),
            "more": Column("more than with all rows", unit="points"),
            "spread": Column("spread over draws", unit="points"),
            "same": Column("same set as all rows", unit="%", digits=1),
        }

        def cell(key: str, column: str) -> Cell:
            own = select(sac, variant=key, severity=over)
            if column == "mean ECE":
                return show.mean_cell(own)
            if column == "spread":
                return Cell(_spread(own))
            compare = show.difference if column == "more" else show.same_set
            return show.percent(None if key == whole[0].variant else compare(own, whole))

        sizes = show.table(
            f"Number of target rows looked at, {show.severities_in_words(over)}",
            labels_of(sac),
            columns,
            cell,
            note=f"{OVER_SPLITS} Spread over draws: standard deviation of the ECE of one target "
            "when other rows are drawn.",
            corner="Rows looked at",
        )
        mean_ece = show.severity_table(records, severities, title=f"Mean {title}")
        figures: dict[str, FigureData] = {
            "peek": show.severity_boxes(sac, severities, title=title, note=_PEEK_BOXES),
            "peek-size": _sizes_figure(records, sac, over),
        }
        return Findings({"mean-ece": mean_ece, "peek-size": sizes}, figures)


def _spread(records: Sequence[Record]) -> float | None:
    """Standard deviation of the ECE over the draws for one target of one split, in percent.

    The variances of all targets and splits are averaged. ``None`` with one draw.
    """
    values: dict[tuple[int, str], list[float]] = {}
    for record in records:
        values.setdefault((record.split, record.target), []).append(record.ece)
    variances = [np.var(each, ddof=1) for each in values.values() if len(each) > 1]
    return 100 * float(np.sqrt(np.mean(variances))) if variances else None


def _sizes_figure(records: Sequence[Record], sac: Sequence[Record], over: Span) -> Lines:
    """Mean ECE against the number of rows: over all severities next to others, and by severity."""
    whole = [record for record in sac if not record.setting and record.severity is not None]
    base, label = whole[0].variant, whole[0].label.rpartition(",")[0]
    rows = {int(record.setting): record.variant for record in sac if record.setting}
    rows.setdefault(max(record.n for record in whole), base)
    x = {size: float(size) for size in sorted(rows)}

    def ece(size: int, severities: Span) -> Cell:
        """With one standard deviation over the draws to either side."""
        own = select(sac, variant=rows[size], severity=severities)
        value, half = show.mean_cell(own).number, _spread(own)
        if half is None or value is None:
            return Cell(value)
        return Cell(value, value - half, value + half)

    axis: dict[str, Any] = {"x_label": "target rows looked at, all of them last", "log_x": True}
    title = f"mean of {show.severities_in_words(over)}"
    overall = show.panel({base: label}, x, lambda _, size: ece(size, over), title=title, **axis)
    # Methods that look at no rows or know the labels, as level lines; Vanilla is far above.
    others = [r for r in records if r.method not in ("sac", "vanilla")]
    level = show.panel(
        labels_of(others),
        x,
        lambda key, _: Cell(show.ece(others, variant=key, severity=over).value),
        **axis,
    )
    overall = replace(overall, series=overall.series + level.series)
    title = "How many target rows have to be looked at"
    return show.lines(title, overall, intervals="bands", note=_BAND)

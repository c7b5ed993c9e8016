"""Studies of methods under shift: synthetic and natural, by distance, and by rows looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import pi, sqrt

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
        records = select(records, severity=show.severities_of(records))
        title = "Mean ECE over corruptions"
        tables = {
            "mean-ece": show.severity_table(records, title),
            "full": show.full_table(records),
        }
        if any(record.temperature and record.method != "vanilla" for record in records):
            tables["temperatures"] = show.temperature_table(records)
        if any(record.chosen for record in records):
            tables["chosen"] = show.chosen_table(records, self.ladder.sets)
        boxes = show.severity_boxes(records, "ECE of every corruption")
        means = show.severity_lines(records, title)
        return Findings(tables, {"ece-means": means, "ece-boxes": boxes})


# --------------------------------------------------------------------------------------
# Natural shift
# --------------------------------------------------------------------------------------

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

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """ECE by method and set, the sets in numbers, and a figure."""
        titles = {CLEAN: "clean test images", **{s.name: s.title for s in self.plan.shifts.sets}}
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
    """Every set in numbers: its size, what that does to an ECE, the model itself."""
    columns = {
        "n": Column("images", digits=0),
        "accuracy": Column("accuracy", unit="%"),
        "raw_confidence": Column("confidence", unit="%"),
        "by chance": Column("by chance", unit="%", group="ECE"),
        "standard error": Column("standard error", unit="%", group="ECE"),
    }

    def cell(target: str, column: str) -> Cell:
        here = select(records, target=target)
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


# --------------------------------------------------------------------------------------
# Which distance chooses the surrogate set
# --------------------------------------------------------------------------------------


class Distances(Study):
    """SAC with several distances between target and surrogate sets, as the plan lists them."""

    title = "The distance that chooses the surrogate set"

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Boxes and means by severity, and how often two distances choose the same set."""
        labels = labels_of(select(records, method="sac"))

        def agreement(pair: tuple[str, str], span: Span) -> Cell:
            one, other = (select(records, variant=key, severity=span) for key in pair)
            return show.percent(show.same_set(one, other))

        tables = {
            "mean-ece": show.severity_table(records, "Mean ECE by distance"),
            "agreement": show.table(
                "Targets for which the same surrogate set is chosen",
                {(a, b): f"{labels[a]} and {labels[b]}" for a, b in combinations(labels, 2)},
                show.percents(show.spans(records), digits=1),
                agreement,
                corner="Pair",
            ),
        }
        boxes = show.severity_boxes(records, "ECE by distance and severity")
        return Findings(tables, {"distances": boxes})


# --------------------------------------------------------------------------------------
# How few target rows SAC has to look at
# --------------------------------------------------------------------------------------

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
        sac, title = select(records, method="sac"), "ECE by the number of target rows looked at"
        over = show.shifted(show.severities_of(records))
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
        mean_ece = show.severity_table(records, f"Mean {title}")
        figures: dict[str, FigureData] = {
            "peek": show.severity_boxes(sac, title),
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
    """Mean ECE against the number of rows, next to methods that look at none or know the labels."""
    whole = [record for record in sac if not record.setting and record.severity is not None]
    base, label = whole[0].variant, whole[0].label.rpartition(",")[0]
    rows = {int(record.setting): record.variant for record in sac if record.setting}
    rows.setdefault(max(record.n for record in whole), base)
    # Vanilla is far above.
    others = labels_of(r for r in records if r.method not in ("sac", "vanilla"))

    def ece(key: str, size: int) -> Cell:
        """With one standard deviation over the draws to either side."""
        own = select(records, variant=rows[size] if key == base else key, severity=over)
        value, half = show.mean_cell(own).number, _spread(own)
        ends = () if half is None or value is None else (value - half, value + half)
        return Cell(value, *ends)

    panel = show.panel(
        {base: label, **others},
        {size: float(size) for size in sorted(rows)},
        ece,
        x_label="target rows looked at, all of them last",
        title=f"mean of {show.severities_in_words(over)}",
        log_x=True,
    )
    title = "How many target rows have to be looked at"
    return show.lines(title, panel, intervals="bands", note=_BAND)

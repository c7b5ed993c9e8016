"""Natural shift: every method on images that were collected otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

from shiftcal._registry import suggest
from shiftcal.errors import InputError
from shiftcal.studies.catalog._natural_sets import (
    CLEAN_TITLE,
    ShownSet,
    labels_of,
    natural_lines,
    natural_table,
    sets_table,
    shown_sets,
)
from shiftcal.studies.catalog._pairs import in_points
from shiftcal.studies.catalog.base import Findings, Study, compared
from shiftcal.studies.comparing import below, difference, verdict
from shiftcal.studies.paper import METHODS, TABLE_2, published
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.results import Results, mean_over_splits
from shiftcal.studies.saying import changed_choice, flags_raised, ranking, transcal_readings
from shiftcal.studies.variant import Variant


@final
class Natural(Study):
    """Which method keeps confidences true on images of the same classes from another source?

    Every natural set of the plan, whole, beside the clean test images if the plan asks for
    severity 0. Table 2 of the paper has this layout; its numbers stand beside ours where a set is
    one of the paper's.
    """

    title: ClassVar[str] = "Natural shift"

    def check(self, plan: Plan) -> None:
        """Refuse a plan without natural sets, or whose sets cannot be told apart in a table."""
        super().check(plan)
        if not plan.shifts.sets:
            raise InputError(
                "the study 'natural' needs a natural set at least: [[shifts.sets]] with name = ... "
                "and images = ...; the plan has none."
            )
        for each in plan.shifts.sets:
            if each.column is not None and each.column not in TABLE_2:
                raise InputError(
                    f"column of the set {each.name!r} must be one of the paper's Table 2; got "
                    f"{each.column!r}. {suggest(each.column, list(TABLE_2))}"
                )
        columns = [each.column for each in plan.shifts.sets if each.column is not None]
        titles = [CLEAN_TITLE, *(each.title for each in plan.shifts.sets)]
        for names, what in ((columns, "column"), (titles, "title")):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f"each set needs a {what} of its own; {name!r} came twice.")

    def variants(self, plan: Plan) -> list[Variant]:
        """The methods of the plan on all of its targets."""
        return compared(plan)

    def findings(self, results: Results) -> Findings:
        """The paper's table, the sets in numbers, and both as a figure."""
        shown = shown_sets(results)
        if not shown:
            return Findings({}, {}, ("No record of this study is of a natural set.",))
        tables = {
            "natural": natural_table(shown),
            "sets": sets_table(shown, bins=results.plan.bins),
        }
        return Findings(tables, {"natural": natural_lines(shown)}, remarks(results.plan, shown))


def remarks(plan: Plan, shown: Sequence[ShownSet]) -> tuple[str, ...]:
    """The order of the methods on every set, beside the paper's, and what was noticed."""
    labels = labels_of(shown)
    found = _best_of_all(shown)
    for each in shown:
        found += ranking(each.records, labels, where=f"on {each.title}") + _beside_paper(each)
    natural = [r for each in shown for r in each.records if r.severity is None]
    found += transcal_readings(plan, natural, where="over the natural sets")
    found += changed_choice([r for each in shown for r in each.records])
    return (*found, *flags_raised([r for each in shown for r in each.records], labels))


def _best_of_all(shown: Sequence[ShownSet]) -> list[str]:
    """Whether SAC or STS is the best on every natural set, each against the lowest of the others.

    It counts as the best if it is below in the mean over splits, and the interval says so.
    """
    labels, kept, told = labels_of(shown), [], []
    for each in (each for each in shown if each.records[0].severity is None):
        means = {
            r.variant: mean_over_splits(each.of(r.variant)).value
            for r in each.records
            if r.method != "oracle"
        }
        ours = [key for key in means if key in ("sac", "sts")]
        others = [key for key in means if key not in ours]
        if not ours or not others:
            continue
        one, other = (min(keys, key=means.__getitem__) for keys in (ours, others))
        change = difference(each.of(one), each.of(other))
        assert change is not None
        kept.append(below(change))
        told.append(
            f"on {each.title} {labels[one]} against {labels[other]}, the lowest of the others, "
            f"{in_points(change)}"
        )
    if not told:
        return []
    known = sum(each.paper is not None for each in shown)
    which = f"{known} of them the paper's" if known else "none of them the paper's"
    return [
        f"The paper's claim that SAC or STS is the best on natural shifts {verdict(kept)} here, on "
        f"{sum(kept)} of {len(kept)} sets ({which}): {'; '.join(told)}. The "
        "intervals do not cover which images a set has."
    ]


def _beside_paper(shown: ShownSet) -> list[str]:
    """The best of the methods that the paper has too, here and there."""
    means = {
        r.method: 100 * mean_over_splits(shown.of(r.variant)).value
        for r in shown.records
        if r.variant == r.method and published(shown.column, r.variant, r.method) is not None
    }
    if shown.paper is None or len(means) < 2:
        return []
    theirs = shown.paper.ece
    here, there = min(means, key=means.__getitem__), min(means, key=theirs.__getitem__)
    others = "as in the paper" if here == there else f"{METHODS[there]} in the paper"
    return [
        f"Of the {len(means)} methods that the paper has too, {METHODS[here]} is the lowest "
        f"here on {shown.title} ({means[here]:.2f} %), {others} ({theirs[there]:.2f} %)."
    ]

"""Every setting of the ablation beside the one fixed beforehand: the plan's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal.studies.catalog._ablation.answers import averaged, labels_of, settings_of, span
from shiftcal.studies.catalog._ablation.questions import QUESTIONS, Question
from shiftcal.studies.catalog._pairs import ece_difference, in_points, paired
from shiftcal.studies.catalog.base import compared
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits, select
from shiftcal.studies.variant import Variant


def settings_said(
    question: Question, records: Sequence[Record], severities: Sequence[int], plan: Plan
) -> Iterator[str]:
    """How much every setting changes the mean ECE, a sentence for each method.

    Every setting is compared with the plan's own, on the same targets of the same splits. The best
    of those measured is no reference: it would be the best by chance too.

    Args:
        question: What is varied.
        records: Of all panels.
        severities: Of all targets, rising.
        plan: Which has the setting that the others are compared with.
    """
    shifted = select(records, severity=averaged(severities))
    here = select(shifted, panel=question.name)
    variants = {variant.key: variant for variant in compared(plan)}
    for key, label in labels_of(here).items():
        if key not in variants:
            continue
        reference = _reference(question, select(shifted, variant=key), plan, variants[key])
        usual = question.own(plan, variants[key])
        own = select(here, variant=key)
        changes = {
            setting: change
            for setting in settings_of(question, own)
            if setting != usual
            and (change := paired(select(own, setting=setting), reference, ece_difference))
        }
        if changes:
            mean = 100 * mean_over_splits(reference).value
            yield (
                f"{question.name.capitalize()}: {label} with {question.in_words(usual)}, as the "
                f"plan has it, has a mean ECE of {mean:.2f} % over {span(severities)}. "
                f"{_grouped(question, changes)}."
            )


def _reference(
    question: Question, records: Sequence[Record], plan: Plan, variant: Variant
) -> list[Record]:
    """Records under the plan's own setting: those of the same panel, or else of another."""
    for each in (question, *QUESTIONS.values()):
        own = select(records, panel=each.name, setting=each.own(plan, variant))
        if own:
            return own
    return []


def _grouped(question: Question, changes: dict[str, Mean]) -> str:
    """The settings with a larger error, with a smaller one, and those not told apart."""
    groups: dict[str, list[str]] = {}
    for setting, change in changes.items():
        told = f"{question.in_words(setting)} ({in_points(change)})"
        groups.setdefault(_direction(change), []).append(told)
    order = ("larger", "smaller", "not told apart by the splits", "in the one split there is")
    parts = [f"{name}: {', '.join(groups[name])}" for name in order if name in groups]
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _direction(change: Mean) -> str:
    if change.low is None or change.high is None:
        return "in the one split there is"
    if change.low > 0:
        return "larger"
    return "smaller" if change.high < 0 else "not told apart by the splits"

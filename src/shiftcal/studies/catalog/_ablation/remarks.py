"""The answers of the ablation in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal.studies.catalog._ablation.answers import averaged, span
from shiftcal.studies.catalog._ablation.claim import claim_said
from shiftcal.studies.catalog._ablation.compared import settings_said
from shiftcal.studies.catalog._ablation.questions import FINE, PARTS, QUESTIONS
from shiftcal.studies.catalog._ablation.shares import (
    ADAPTATION,
    LABELS,
    SURROGATES,
    difference,
)
from shiftcal.studies.catalog._pairs import in_points
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import select


def remarks(records: Sequence[Record], severities: Sequence[int], plan: Plan) -> tuple[str, ...]:
    """The paper's claim; what the parts give; every setting beside the plan's; range of ladders.

    Args:
        records: Of all panels.
        severities: Of all targets, rising.
        plan: Which has the setting that all others are compared with.
    """
    parts = select(records, panel=PARTS)
    said = [*claim_said(parts), *_of_parts(parts, severities)]
    for question in QUESTIONS.values():
        if question.words:
            said += settings_said(question, records, severities, plan)
    said += _of_range(select(records, panel=FINE))
    if said and len({record.split for record in records}) > 1:
        said.append(
            "Differences are taken target by target within each split; ± is a 95 % interval over "
            "the splits."
        )
    return tuple(said)


def _of_parts(records: Sequence[Record], severities: Sequence[int]) -> Iterator[str]:
    over = averaged(severities)
    for step, words in (
        (SURROGATES, "fitting one temperature on all surrogate sets (TS to STS)"),
        (ADAPTATION, "choosing a surrogate set for the target (STS to SAC)"),
        (LABELS, "knowing the target's labels (SAC to the oracle)"),
    ):
        found = difference(records, step, over)
        if found is not None:
            yield f"Over {span(severities)}, {words} changes the mean ECE by {in_points(found)}."
    for step in (SURROGATES, ADAPTATION):
        each = {s: difference(records, step, [s]) for s in severities}
        worse = [str(s) for s, found in each.items() if found is not None and found.value > 0]
        if worse:
            yield (
                f"{step.after.upper()} has a larger mean ECE than {step.before.upper()} at "
                f"severity {_listed(worse)}."
            )


def _of_range(records: Sequence[Record]) -> Iterator[str]:
    """How often a target was outside of what a ladder covers."""
    told = []
    for ladder in dict.fromkeys(record.setting for record in records):
        own = select(records, setting=ladder, method="sac")
        if own:
            outside = sum("outside-range" in record.flags.split() for record in own)
            told.append(f"{outside} of {len(own)} with the ladder {ladder}")
    if told:
        yield (
            "Of SAC's evaluations, the mean confidence of the target was outside the range of the "
            f"surrogate sets in {_listed(told)}."
        )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

"""The answers of the ablation in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftcal.studies.catalog._ablation.answers import averaged, labels_of, settings_of, span
from shiftcal.studies.catalog._ablation.questions import FINE, PARTS, QUESTIONS, Question
from shiftcal.studies.catalog._ablation.shares import (
    ADAPTATION,
    LABELS,
    SURROGATES,
    difference,
)
from shiftcal.studies.catalog._pairs import ece_difference, paired
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits, select


def remarks(records: Sequence[Record], severities: Sequence[int]) -> tuple[str, ...]:
    """What the parts give; for each question the best and the worst setting; the range of ladders.

    Args:
        records: Of all panels.
        severities: Of all targets, rising.
    """
    said = list(_of_parts(select(records, panel=PARTS), severities))
    for question in QUESTIONS.values():
        if question.words:
            said += _of_settings(question, select(records, panel=question.name), severities)
    said += _of_range(select(records, panel=FINE))
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
            yield f"Over {span(severities)}, {words} {_changes(found)}."
    for step in (SURROGATES, ADAPTATION):
        each = {s: difference(records, step, [s]) for s in severities}
        worse = [str(s) for s, found in each.items() if found is not None and found.value > 0]
        if worse:
            yield (
                f"{step.after.upper()} has a larger mean ECE than {step.before.upper()} at "
                f"severity {_listed(worse)}."
            )


def _of_settings(
    question: Question, records: Sequence[Record], severities: Sequence[int]
) -> Iterator[str]:
    shifted = select(records, severity=averaged(severities))
    for key, label in labels_of(records).items():
        own = select(shifted, variant=key)
        groups = {s: select(own, setting=s) for s in settings_of(question, own)}
        means = {s: mean_over_splits(group).value for s, group in groups.items()}
        if len(means) < 2:
            continue
        best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        found = paired(groups[best], groups[worst], ece_difference)
        if found is None:
            continue
        yield (
            f"{question.name.capitalize()}: {label} has its least mean ECE over "
            f"{span(severities)}, {100 * means[best]:.2f} %, with {question.in_words(best)}, and "
            f"its largest, {100 * means[worst]:.2f} %, with {question.in_words(worst)}; the one "
            f"instead of the other {_changes(found)}."
        )


def _of_range(records: Sequence[Record]) -> Iterator[str]:
    """How often a target was outside of what a ladder covers."""
    told = []
    for ladder in dict.fromkeys(record.setting for record in records):
        own = select(records, setting=ladder, method="sac")
        if own:
            outside = sum("outside-range" in record.flags.split() for record in own)
            told.append(f"{100 * outside / len(own):.0f} % with the ladder {ladder}")
    if told:
        yield (
            "The mean confidence of the target was outside the range of the surrogate sets in "
            f"{_listed(told)} of SAC's evaluations."
        )


def _changes(found: Mean) -> str:
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f" (95 % interval over splits {100 * found.low:+.2f} to {100 * found.high:+.2f})"
    return f"changes the mean ECE by {100 * found.value:+.2f} points{interval}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

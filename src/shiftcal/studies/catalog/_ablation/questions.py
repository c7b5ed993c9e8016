"""The questions of the ablation, each with what is evaluated for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shiftcal.studies.catalog.base import compared, ladder_of
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.variant import Ladder, Variant

_SURROGATES = ("sts", "sac")


@dataclass(frozen=True)
class Question:
    """One panel of the study.

    Attributes:
        name: Of the panel, as a plan says it.
        x_label: What is varied.
        words: A setting in words, with ``{}`` where the setting goes; empty if the methods
            themselves are compared.
        variants: What is evaluated, from the plan and the values of the options.
        own: The setting that the plan itself has for one of its methods.
        numeric: Whether the settings are numbers.
        log_x: Whether equal distances are equal ratios.
    """

    name: str
    x_label: str
    words: str
    variants: Callable[[Plan, Mapping[str, Any]], Iterator[Variant]]
    own: Callable[[Plan, Variant], str]
    numeric: bool = False
    log_x: bool = False

    def in_words(self, setting: str) -> str:
        """A setting as a text shows it."""
        return self.words.format(f"{int(setting):,}" if self.numeric else setting)


def spread(severities: Sequence[int], n_sets: int) -> tuple[int, ...]:
    """So many sets, the clean one among them, spread evenly over a ladder.

    Set ``i`` of ``J`` stands at ``i m / (J - 1)`` of the ``m`` steps, rounded to the nearest, a
    half up: the clean set and the strongest are always there. Of severities 1 to 5, two sets are
    the clean one and 5, three have 3 and 5 beside it, four 2, 3 and 5, five 1, 3, 4 and 5.

    Args:
        severities: Of the whole ladder, rising.
        n_sets: With the clean set; at most one more than there are severities.
    """
    steps = len(severities)
    places = [(2 * i * steps + n_sets - 1) // (2 * (n_sets - 1)) for i in range(1, n_sets)]
    return tuple(severities[place - 1] for place in places)


def _parts(plan: Plan, _: Mapping[str, Any]) -> Iterator[Variant]:
    return (replace(variant, panel=PARTS) for variant in compared(plan))


def _sets(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    ladder = ladder_of(plan)
    for count in sorted(options["sets"]):
        if count <= len(ladder.severities) + 1:
            fewer = replace(ladder, severities=spread(ladder.severities, count))
            yield from _each(plan, SETS, str(count), ladder=fewer)


def _spacing(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    ladder = ladder_of(plan)
    for severities in options["spacings"]:
        if set(severities) <= set(ladder.severities):
            other = replace(ladder, severities=tuple(severities))
            yield from _each(plan, SPACING, _joined(severities), ladder=other)


def _images(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    whole = plan.calibration.images
    for size in sorted(options["images"]):
        if size <= whole:
            # All of them are named as all, so that they are not drawn from.
            ladder = replace(ladder_of(plan), images=size if size < whole else None)
            yield from _each(plan, IMAGES, str(size), ladder=ladder, of=("ts", *_SURROGATES))


def _maps(plan: Plan, options: Mapping[str, Any]) -> Iterator[Variant]:
    for name in options["maps"]:
        yield from _each(plan, MAP, name, settings={"map": name})


def _fine(plan: Plan, _: Mapping[str, Any]) -> Iterator[Variant]:
    own = {ladder.name: ladder for ladder in plan.ladders}
    if not own:
        return
    ladders = [ladder_of(plan)]
    ladders += [
        Ladder(name, tuple(range(1, len(ladder.strengths) + 1)))
        for name, ladder in own.items()
        if name != plan.calibration.corruption
    ]
    # What makes surrogate sets for one ladder is a target for none: all are compared on the same.
    made_of = {ladder.corruption for ladder in own.values()}
    for ladder in ladders:
        for variant in _each(plan, FINE, ladder.corruption, ladder=ladder):
            fair = tuple(each for each in variant.targets if each.corruption not in made_of)
            yield replace(variant, targets=fair)


def _each(
    plan: Plan,
    panel: str,
    setting: str,
    *,
    ladder: Ladder | None = None,
    settings: Mapping[str, Any] | None = None,
    of: tuple[str, ...] = _SURROGATES,
) -> Iterator[Variant]:
    """The plan's own lines of some methods, under one setting."""
    for variant in compared(plan):
        if variant.method in of:
            yield replace(
                variant,
                panel=panel,
                setting=setting,
                ladder=ladder or variant.ladder,
                settings={**variant.settings, **(settings or {})},
            )


def _joined(severities: Sequence[int]) -> str:
    return "-".join(map(str, severities))


def _map_of(_: Plan, variant: Variant) -> str:
    return str(variant.settings.get("map", "temperature"))


PARTS, SETS, SPACING = "what the parts give", "number of sets", "spacing"
IMAGES, MAP, FINE = "calibration images", "map", "fine ladder"
QUESTIONS = {
    question.name: question
    for question in (
        Question(PARTS, "Targets", "", _parts, lambda *_: ""),
        Question(
            SETS,
            "Number of sets J",
            "J = {}",
            _sets,
            lambda plan, _: str(len(plan.calibration.severities) + 1),
            numeric=True,
        ),
        Question(
            SPACING,
            "Severities beside the clean set",
            "severities {}",
            _spacing,
            lambda plan, _: _joined(plan.calibration.severities),
        ),
        Question(
            IMAGES,
            "Calibration images",
            "{} images",
            _images,
            lambda plan, _: str(plan.calibration.images),
            numeric=True,
            log_x=True,
        ),
        Question(MAP, "Calibration map", "map {}", _maps, _map_of),
        Question(
            FINE,
            "Ladder of surrogate sets",
            "ladder {}",
            _fine,
            lambda plan, _: plan.calibration.corruption,
        ),
    )
}

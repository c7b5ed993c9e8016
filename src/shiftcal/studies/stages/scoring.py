"""From images to stored scores: a bank of the source under all corruptions, a file for the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shiftcal._files import make_folder
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.scoring._score_file import score_file
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.kept_features import may_give_features
from shiftcal.scoring.run import Reporting
from shiftcal.scoring.shard import Condition
from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.plan.checking import MARK
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.stages.digests import TRAIN, digest, digest_of, made_of
from shiftcal.studies.stages.ready_made import check_read, open_made, taking_as_stored
from shiftcal.studies.stages.sources import Sources
from shiftcal.studies.stages.stored import (
    as_images_of_a_run,
    drop_replaced,
    note_digest,
    read_bank,
)
from shiftcal.studies.variant import Variant, set_name
from shiftcal.surrogates.build import build_bank
from shiftcal.surrogates.folder import read_document
from shiftcal.surrogates.synthesize import Options


@dataclass(frozen=True)
class Means:
    """How the scoring is done; nothing of it changes a result.

    Attributes:
        engine: Where; ``None`` is one worker in this process.
        cache: Folder of finished shards, shared between runs.
        reporting: How progress is told.
    """

    engine: Engine | None = None
    cache: str | os.PathLike[str] | None = None
    reporting: Reporting = field(default_factory=Reporting)


@dataclass(frozen=True)
class Wanted:
    """Which sets a study scores.

    Attributes:
        conditions: Of the source images, made on the fly; the clean one first.
        made: Ready-made ones: where the images are, by name of the set.
        own: Natural targets.
    """

    conditions: tuple[Condition, ...]
    made: dict[str, str]
    own: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all of them."""
        on_the_fly = (condition_name(condition) for condition in self.conditions)
        return (*on_the_fly, *self.made, *self.own)


def condition_name(condition: Condition) -> str:
    """The name of the set that a condition makes."""
    name = "" if condition.corruption is None else condition.corruption.name
    return set_name(name.partition(MARK)[0], condition.severity)


def which(condition: Condition) -> tuple[str | None, int]:
    """By what a bank's document tells its sets apart."""
    corruption = condition.corruption
    return None if corruption is None else corruption.name, condition.severity


def wanted_of(plan: Plan, variants: Sequence[Variant]) -> Wanted:
    """What the variants of a plan learn from and are evaluated on."""
    pairs = dict.fromkeys(
        (variant.ladder.corruption, severity)
        for variant in variants
        for severity in variant.ladder.severities
    )
    pairs |= dict.fromkeys(
        (target.corruption, target.severity)
        for variant in variants
        for target in variant.targets
        if target.severity
    )
    own = {ladder.name: ladder for ladder in plan.ladders}
    conditions, made = [Condition()], {}
    corruptions = {name: _corruption(plan, name) for name, _ in pairs}
    for name, severity in pairs:
        if plan.shifts.made is None or name in own:
            conditions.append(_condition(corruptions[name], severity))
        else:
            text = plan.shifts.made.replace("{corruption}", name)
            made[set_name(name, severity)] = text.replace("{severity}", str(severity))
    natural = {t.name: None for v in variants for t in v.targets if t.natural}
    return Wanted(tuple(conditions), made, tuple(natural))


def _condition(corruption: Corruption, severity: int) -> Condition:
    if not 1 <= severity <= corruption.severities:
        raise InputError(
            f"{corruption.name.partition(MARK)[0]} has the severities 1 to "
            f"{corruption.severities}; the plan asks for {severity}."
        )
    return Condition(corruption, severity)


def _corruption(plan: Plan, name: str) -> Corruption:
    for ladder in plan.ladders:
        if ladder.name == name:
            from shiftcal.corruptions import Strengths

            # Files of other strengths under the same name stay what they are.
            told = f"{ladder.name}{MARK}{digest(ladder.corruption, ladder.strengths)}"
            return Strengths(ladder.corruption, ladder.strengths, name=told)
    return as_corruption(name)


def score_sets(
    sources: Sources,
    wanted: Wanted,
    folder: Path,
    means: Means,
    *,
    check: Callable[[], None] = lambda: None,
) -> tuple[Archive, int]:
    """Have all sets scored below the folder of a run, whatever was done before.

    A plan with another model or other images is scored in folders of its own, so that nothing is
    mixed; anything else of a plan can change, and only what is missing is scored.

    Args:
        sources: The model and the images.
        wanted: Which sets.
        folder: Of the run.
        means: How it is done.
        check: Called before the index is written; raises if it must not be.

    Returns:
        The archive, and how many images were scored by this call.

    Raises:
        InputError: If the model fails, or ready-made images are others than the clean ones.
        FileError: If something cannot be written; what is done is kept.
    """
    bank = folder / "scores" / f"source-{digest_of(sources)}"
    make_folder(bank.parent)
    made = open_made(sources, wanted.made)
    read_bank(bank)
    with as_images_of_a_run(bank):
        built = build_bank(
            sources.model,
            sources.images,
            bank,
            conditions=wanted.conditions,
            options=options_of(sources, means),
        )
    document = read_document(bank)
    there = {(entry["corruption"], entry["severity"]): entry for entry in document["sets"]}
    entries = {}
    for condition in wanted.conditions:
        entry = there[which(condition)]
        file = f"scores/{bank.name}/{entry['file']}"
        entries[condition_name(condition)] = Entry(file, entry["key"], sha256=entry["sha256"])
    others = _Others(sources, bank.with_name(f"sets-{digest_of(sources)}"), means)
    for name, images in made.items():
        entries[name] = others.score(name, images)
    for name in wanted.own:
        entries[name] = others.score(name, sources.sets[name], own=True)
    train = None if sources.train is None else others.score(TRAIN, sources.train, own=True)
    model = {**document["origin"]["model"], **_about(sources)}
    archive = Archive(folder, entries, train, model, made_of(sources.plan))
    check_read(archive, wanted.made)
    check()
    archive.write()
    return archive, built.computed + others.computed


def options_of(sources: Sources, means: Means) -> Options:
    """How the bank of the source is made; targets keep their features, too."""
    plan = sources.plan
    return Options(
        seed=plan.shifts.seed,
        table=plan.shifts.table,
        dtype=plan.model.dtype,
        engine=means.engine,
        cache=means.cache,
        features="all" if may_give_features(sources.model) else "none",
        reporting=means.reporting,
    )


class _Others:
    """Sets with files of their own, scored one after the other."""

    def __init__(self, sources: Sources, folder: Path, means: Means) -> None:
        self.sources, self.folder, self.means = sources, folder, means
        self.computed = 0

    def score(self, name: str, images: ImageSet, *, own: bool = False) -> Entry:
        """Have the scores of a set in its file."""
        make_folder(self.folder)
        file = self.folder / f"{name}.npz"
        drop_replaced(file)
        scored = score_file(
            taking_as_stored(self.sources.model, images),
            images,
            file,
            dtype=self.sources.plan.model.dtype,
            engine=self.means.engine,
            cache=self.means.cache,
            reporting=self.means.reporting,
        )
        self.computed += scored.computed
        where = f"scores/{self.folder.name}/{name}.npz"
        return Entry(where, scored.key, own, sha256=note_digest(file))


def _about(sources: Sources) -> dict[str, object]:
    return {"spec": sources.plan.model.spec[0], "images": sources.images.name}

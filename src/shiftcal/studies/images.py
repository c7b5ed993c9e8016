"""Studies on images of one model: every set scored once, evaluated split by split."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from shiftcal.datasets import ImageSet, as_image_set, class_groups, grouped
from shiftcal.errors import FileError, InputError
from shiftcal.files import make_folder, sha256_of
from shiftcal.models import GroupedModel, Model, as_model
from shiftcal.models.resolve import stored_spec
from shiftcal.registry import STUDIES
from shiftcal.scoring.shards import Condition, may_give_features
from shiftcal.studies import plan as plans
from shiftcal.studies import sources
from shiftcal.studies.evaluation import Evaluation, key_of, seed_of
from shiftcal.studies.plan import CLEAN, Plan, uses_bank, uses_features
from shiftcal.studies.records import Findings, Record, Study
from shiftcal.studies.sources import PLAN, Archive, Entry, Means
from shiftcal.surrogates.bank import read_description
from shiftcal.surrogates.build import build_bank


class ImagesPipeline:
    """A study on images of one model.

    Attributes:
        plan: The plan with the alternatives that exist, and nothing that does not.
        missing: What was left out because it is missing.
        title: Of the report.
        stage: What computing is called.
        how: Where the numbers come from, in Markdown.
        variants: What is evaluated.
        conditions: Versions of the images that are scored, by name, the clean one first.
        archive: The scores.
    """

    stage = "scoring"
    how = (
        "The numbers come from rows of [`records.csv`](records.csv): means over targets and "
        "splits, geometric means of temperatures, shares of choices; or else from the stored "
        "scores in `scores/`. A row names the seed of its split, its file of logits and the "
        "temperature; `studies.Run(folder).recompute(record)` computes it again."
    )
    study: Study
    missing: tuple[str, ...] = ()
    archive: Archive
    model: Model
    images: ImageSet
    train: ImageSet | None
    sets: dict[str, ImageSet]

    def __init__(self, plan: Plan) -> None:
        self.plan, self.study = plan, STUDIES.get(plan.study)(plan)
        self.title, self.variants = self.study.title, self.study.variants()
        targets = {target for variant in self.variants for target in variant.targets}
        if not any(target.severity or not self.study.by_severity for target in targets):
            raise InputError(
                f"{plan.where} compares nothing: it needs methods, and [shifts] corruptions and "
                "severities to compare them on; the corruption of the surrogate sets is left out."
            )
        # Each once, in the order of the variants.
        pairs = {(v.ladder.corruption, s): 0 for v in self.variants for s in v.ladder.severities}
        pairs |= {
            (t.corruption, t.severity): 0 for v in self.variants for t in v.targets if t.severity
        }
        corruptions = {name: plans.corruption_of(plan, name) for name, _ in pairs}
        for name, severity in pairs:
            plans.check_severity(plan, name, severity)
        self.conditions = {CLEAN: Condition()} | {
            plans.set_name(name, severity): Condition(corruptions[name], severity)
            for name, severity in pairs
        }
        for each in plan.shifts.sets:
            if each.name in (*self.conditions, "train"):
                raise InputError(f"{plan.where} [shifts.sets] name {each.name!r} is taken.")
        shifts = {**asdict(plan.shifts), "corruptions": None, "severities": None}
        ladders = list(map(asdict, plan.ladders))
        self.made_of = plans.digest(asdict(plan.model), asdict(plan.data), shifts, ladders)

    @classmethod
    def opened(cls, plan: Plan, *, skip_missing: bool) -> ImagesPipeline:
        """Of a plan whose model and images are opened, before anything is written.

        Args:
            plan: The plan.
            skip_missing: Whether missing natural targets are left out, and methods whose training
                images are missing.

        Raises:
            MissingData: Naming everything that is missing, and where to get it.
            InputError: If something exists and cannot be used, such as too few images.
        """
        cls(plan)  # raises before anything is opened
        search, data = sources.Search(), plan.data

        def load(spec: str) -> Model:
            named = {"where": plan.where, "name_it": plans.NAME_IT}
            return as_model(stored_spec(spec, **named) if plan.stored else spec)

        spec, model = search.first("the model", plan.model.spec, load, data.fetch)
        opener = partial(as_image_set, labels=data.labels)
        where, images = search.first("the images", data.images, opener, data.fetch)
        methods, train = plan.methods, None
        needing = [method.label for method in methods if uses_features(method.name)]
        if needing:
            what = f"training images ([data] train), for {', '.join(needing)}"
            opener = partial(as_image_set, labels=data.train_labels)
            place, train = search.first(what, data.train, opener, data.fetch, optional=True)
            if place is None:
                methods = tuple(method for method in methods if not uses_features(method.name))
            else:
                data = replace(data, train=(place,))
        sets, kept = {}, []
        for each in plan.shifts.sets:
            opener = partial(as_image_set, labels=each.labels)
            place, own = search.first(each.title, each.images, opener, each.fetch, optional=True)
            if own is not None and place is not None:
                sources.check_labels(own, each.title)
                sets[each.name] = _in_groups(plan, own)
                kept.append(replace(each, images=(place,)))
        missing = search.left_out(skip=skip_missing)
        assert spec and model is not None and where and images is not None  # noqa: PT018
        if train is not None and not may_give_features(model):
            raise InputError(
                f"{', '.join(needing)} need features, and the model {spec} gives none. Name a "
                "layer in its text (features_from=...), or leave the methods out."
            )
        sources.check_labels(images, "the set of images")
        pipeline = cls(
            replace(
                plan,
                model=replace(plan.model, spec=(spec,)),
                data=replace(data, images=(where,)),
                shifts=replace(plan.shifts, sets=tuple(kept)),
                methods=methods,
            )
        )
        pipeline.missing, pipeline.sets, pipeline.train = missing, sets, None
        groups = plan.model.groups
        pipeline.model = model if groups is None else GroupedModel(model, class_groups(groups))
        pipeline.images = sources.limited(_in_groups(plan, images), data.limit, "the images")
        if train is not None:
            train = _in_groups(plan, train)
            pipeline.train = sources.limited(train, data.train_limit, "the training images")
        tested = {name: len(own) for name, own in sets.items()}
        tested["the test part of the images"] = len(pipeline.images) - plan.calibration.images
        for what, n in tested.items():
            sources.check_bins(n, plan.bins, what)
        return pipeline

    @classmethod
    def stored(cls, plan: Plan, folder: Path) -> ImagesPipeline:
        """Of a run whose sets are all scored.

        Raises:
            FileError: If scores are missing, or of another model or other images.
        """
        pipeline = cls(plan)
        archive = pipeline.archive = Archive.open(folder, plan.calibration.images)
        wanted = {*pipeline.conditions, *(each.name for each in plan.shifts.sets)}
        if not wanted <= archive.entries.keys() or archive.made_of != pipeline.made_of:
            raise FileError(
                f"{folder / PLAN} asks for other sets, another model or other images than were "
                f"scored. {sources.repair(folder)}"
            )
        return pipeline

    def compute(self, folder: Path, means: Means, workers: int) -> dict[str, int]:
        """Score all sets below the folder of a run: a bank of the images, a file for each other.

        A plan with another model or other images is scored in its own folders, so that nothing is
        mixed; of any other change only what is missing is scored.

        Returns:
            How many images were scored.

        Raises:
            InputError: If the model fails.
            FileError: If something cannot be written; what is done is kept.
        """
        from shiftcal.scoring.api import score_file

        plan, model = self.plan, self.model
        decided = plans.digest(
            model.fingerprint or secrets.token_hex(8),
            model.engine,
            model.preprocessing.to_dict(),
            (plan.model.groups, plan.shifts.seed),
            (plan.data.images, plan.data.labels, plan.data.limit),
        )
        bank, others = (folder / "scores" / f"{kind}-{decided}" for kind in ("source", "sets"))
        make_folder(others)
        computed = build_bank(
            model,
            self.images,
            bank,
            conditions=tuple(self.conditions.values()),
            seed=plan.shifts.seed,
            features="all" if may_give_features(model) else "none",
            **vars(means),
        ).computed
        document, entries = read_description(bank), {}
        there = {(entry["corruption"], entry["severity"]): entry for entry in document["sets"]}
        for name, (corruption, severity) in self.conditions.items():
            entry = there[None if corruption is None else corruption.name, severity]
            entries[name] = Entry(f"scores/{bank.name}/{entry['file']}", entry["sha256"])
        more = self.sets if self.train is None else {**self.sets, "train": self.train}
        for name, images in more.items():
            file = others / f"{name}.npz"
            computed += score_file(model, images, file, **vars(means)).computed
            entries[name] = Entry(file.relative_to(folder).as_posix(), sha256_of(file))
        train = entries.pop("train", None)
        named = {"spec": plan.model.spec[0], "images": self.images.name}
        about = {**document["origin"]["model"], **named}
        self.archive = Archive(folder, entries, train, about, self.made_of, plan.calibration.images)
        self.archive.write()
        return {"scored": computed}

    def cells(self) -> list[Evaluation]:
        """What is evaluated, in the order of the records: split by split, variant by variant.

        Methods that learn from the clean set alone do not depend on the others, and those that use
        no features not on the training images.
        """
        plan, archive, cells = self.plan, self.archive, []
        for split in plan.seeds:
            for variant in self.variants:
                sets = variant.ladder.sets if uses_bank(variant.method) else (CLEAN,)
                learned = (
                    [archive.entries[name].sha256 for name in sets],
                    variant.ladder.images,
                    plan.calibration.images,
                    (plan.bins, *plan.metrics) if plan.metrics else plan.bins,
                    archive.train and uses_features(variant.method) and archive.train.sha256,
                    split,
                )
                for target in variant.targets:
                    file, content = archive.entries[target.name]
                    for draw in range(variant.draws):
                        seed = seed_of(variant, draw, split, target)
                        key = key_of(variant, *learned, content, target.natural, draw, seed)
                        made = Evaluation(variant, target, split, draw, key, file, plan.metrics)
                        cells.append(made)
        return cells

    def data_of(self, cell: Evaluation) -> Archive:
        """The scores that a cell is evaluated on."""
        return self.archive

    def findings(self, records: Sequence[Record]) -> Findings:
        """Tables and figures."""
        return self.study.findings(records, self.archive)

    def about(self) -> dict[str, Any]:
        """What ``run.json`` holds in addition."""
        return {"model": self.archive.model}


def _in_groups(plan: Plan, images: ImageSet) -> ImageSet:
    """The same with classes put together, if the plan does; images of other classes are left out.

    Sets that have the names of the groups already stay as they are, and so do those without
    labels, which only training images can be.
    """
    if plan.model.groups is None or images.labels is None:
        return images
    groups = class_groups(plan.model.groups)
    there = images.classes is not None and set(images.classes) <= set(groups)
    return images if there else grouped(images, groups)

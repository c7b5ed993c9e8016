"""The model and the images of a plan, opened and scored; what is missing is explained."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from shiftcal.corruptions import Corruption, Strengths, as_corruption
from shiftcal.datasets import ImageSet, as_image_set, calibration_split, class_groups, grouped
from shiftcal.errors import FileError, InputError, InputWarning, MissingData, MissingExtra
from shiftcal.files import make_folder
from shiftcal.models import GroupedModel, Model, Outputs, as_model
from shiftcal.models.resolve import stored_spec
from shiftcal.scoring.api import score_file
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.run import Reporting, first_images
from shiftcal.scoring.work import Condition, ForeignLabels, may_give_features, model_labels
from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.plan import CLEAN, MARK, NAME_IT, Plan, Variant, set_name, uses_features
from shiftcal.surrogates.build import Options, build_bank
from shiftcal.surrogates.folder import digest_of as sha256_of
from shiftcal.surrogates.folder import read_document

Place = TypeVar("Place")
T = TypeVar("T")
# Places and sets that are listed in a message; a study may want a hundred ready-made sets.
_SHOWN = 3
# Images in a bin of the ECE, below which noise is most of what it measures.
_A_BIN = 10


@dataclass(frozen=True)
class Means:
    """How the scoring is done; nothing of it changes a result.

    Attributes:
        engine: Where; default: one worker in this process.
        cache: Folder of finished shards, shared between runs.
        reporting: How progress is shown.
    """

    engine: Engine | None = None
    cache: str | os.PathLike[str] | None = None
    reporting: Reporting = field(default_factory=Reporting)


# --------------------------------------------------------------------------------------
# Alternatives tried one after the other
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Missing:
    """Something that is in none of the places a plan names.

    Attributes:
        what: In words.
        tried: Every place with the reason, a line each.
        fetch: What to get, and where to put it; may be empty.
        optional: Whether the study can be run without.
    """

    what: str
    tried: tuple[str, ...]
    fetch: str = ""
    optional: bool = False

    def __str__(self) -> str:
        lines = [f"  {self.what}", *(f"    {line}" for line in self.tried[:_SHOWN])]
        more = len(self.tried) - _SHOWN
        return "\n".join([*lines, f"    and {more} more"] if more > 0 else lines)


class Search:
    """Alternatives tried one after the other; what is missing is collected.

    Args:
        skip: Whether optional things are left out if they are missing.
    """

    def __init__(self, *, skip: bool) -> None:
        self.skip = skip
        self.missing: list[Missing] = []

    def first(
        self,
        what: str,
        places: Sequence[Place],
        open_one: Callable[[Place], T],
        fetch: str = "",
        *,
        optional: bool = False,
    ) -> tuple[Place, T] | tuple[None, None]:
        """The first alternative that exists, and what it opens as.

        Raises:
            InputError: If one exists and cannot be used.
        """
        reasons = []
        for place in places:
            try:
                return place, open_one(place)
            except (MissingData, MissingExtra, FileError) as error:
                absent = isinstance(error, (MissingData, MissingExtra)) or isinstance(
                    error.__cause__, FileNotFoundError
                )
                if not absent:
                    raise
                shown = " + ".join(place) if isinstance(place, tuple) else place
                reasons.append(f"{shown}: {error}")
        reasons = reasons or ["the plan names none"]
        self.missing.append(Missing(what, tuple(reasons), fetch, optional))
        return None, None

    def left_out(self) -> tuple[str, ...]:
        """What is left out because it is missing.

        Raises:
            MissingData: Naming everything that is missing and needed.
        """
        needed = [each for each in self.missing if not (self.skip and each.optional)]
        if not needed:
            return tuple(map(str, self.missing))
        blocks = ["the study needs data that is missing:"]
        for fetch in dict.fromkeys(each.fetch for each in needed):
            blocks += [str(each) for each in needed if each.fetch == fetch]
            blocks += [f"  To get it: {fetch}"] if fetch else []
        blocks.append("Then run the same command again; or name another folder with --data.")
        names = "; ".join(each.what for each in needed if each.optional)
        if names:
            blocks.append(f"--skip-missing runs without: {names}.")
        raise MissingData("\n".join(blocks))


# --------------------------------------------------------------------------------------
# The model and the images
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sources:
    """The model and the images of a plan, opened.

    Attributes:
        plan: The plan with the alternatives that exist, and nothing that does not.
        model: The classifier.
        images: To calibrate and to test on.
        train: Training images; ``None`` if no method needs their features.
        sets: Natural targets by name.
        missing: What was left out because it is missing.
    """

    plan: Plan
    model: Model
    images: ImageSet
    train: ImageSet | None
    sets: dict[str, ImageSet]
    missing: tuple[str, ...] = ()


def open_sources(plan: Plan, *, skip_missing: bool = False) -> Sources:
    """Open the model and the images of a plan.

    Args:
        plan: The plan.
        skip_missing: Whether missing natural targets are left out, and methods whose training
            images are missing.

    Raises:
        MissingData: Naming everything that is missing, and where to get it.
        InputError: If something exists and cannot be used: too few images, labels that are none of
            the model's.
    """
    search, data = Search(skip=skip_missing), plan.data

    def load(spec: str) -> Model:
        safe = stored_spec(spec, where=plan.where, name_it=NAME_IT) if plan.stored else spec
        return as_model(safe)

    spec, model = search.first("the model", plan.model.spec, load, data.fetch)
    where, images = search.first("the images", data.images, _opener(data.labels), data.fetch)
    needing = [method.label for method in plan.methods if uses_features(method.name)]
    train = None
    if needing:
        what = f"training images ([data] train), for {', '.join(needing)}"
        opener = _opener(data.train_labels)
        place, train = search.first(what, data.train, opener, data.fetch, optional=True)
        data = data if place is None else replace(data, train=(place,))
    sets, kept = {}, []
    for each in plan.shifts.sets:
        opener = _opener(each.labels)
        place, found = search.first(each.title, each.images, opener, each.fetch, optional=True)
        if found is None or place is None:
            continue
        if found.labels is None:
            raise InputError(
                f"{each.title} has no labels, which the evaluation needs. Name a file of them in "
                "the plan: labels = ..."
            )
        sets[each.name] = found
        kept.append(replace(each, images=(place,)))
    missing = search.left_out()
    assert spec is not None
    assert model is not None
    assert where is not None
    assert images is not None
    plan = replace(
        plan,
        model=replace(plan.model, spec=(spec,)),
        data=replace(data, images=(where,)),
        shifts=replace(plan.shifts, sets=tuple(kept)),
    )
    if needing and train is None:
        usable = tuple(method for method in plan.methods if not uses_features(method.name))
        plan = replace(plan, methods=usable)
    if plan.model.batch_size is not None:
        model.batch_size = plan.model.batch_size
    if plan.model.groups is not None:
        model = GroupedModel(model, class_groups(plan.model.groups))
        sets = {name: _in_groups(plan, each) for name, each in sets.items()}
    if train is not None:
        if one_output(model, images).features is None:
            raise InputError(
                f"{', '.join(needing)} need features, and the model {spec} gives none. Name a "
                "layer in its text (features_from=...), or leave the methods out."
            )
        train = limited(_in_groups(plan, train), data.train_limit, "the training images")
    images = same_choice(plan, images)
    sources = Sources(plan, model, images, train, sets, missing)
    _check(sources)
    return sources


def _opener(labels: str | None) -> Callable[[str], ImageSet]:
    return lambda spec: as_image_set(spec, labels=labels)


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


def same_choice(plan: Plan, images: ImageSet) -> ImageSet:
    """Of the source images, or of ready-made versions of them, those that a plan uses.

    Decided by the labels, which all versions have in common: by groups and by the limit.
    """
    return limited(_in_groups(plan, images), plan.data.limit, "the images")


def limited(images: ImageSet, limit: int | None, what: str, *, stratified: bool = True) -> ImageSet:
    """A choice of the images, if there are more.

    Args:
        images: All of them.
        limit: How many at most; ``None`` is all.
        what: Their name in messages.
        stratified: Whether every class has its share, if there are labels.
    """
    if limit is None or limit >= len(images):
        return images
    known = images.labels if stratified else None
    labels = np.zeros(len(images), np.intp) if known is None else known
    chosen, _ = calibration_split(labels, n=limit, seed=0)
    return images.subset(chosen, name=f"{limit:,} of {what} ({images.name})")


def one_output(model: Model, images: ImageSet) -> Outputs:
    """The model's output for one image: how many classes and features it has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # one image cannot tell probabilities
        return model.outputs(first_images(images, model, 1))


def check_bins(test: int, bins: int, what: str) -> None:
    """Reject a test set with fewer images than bins of the ECE; warn of a few images a bin."""
    if test < bins:
        raise InputError(
            f"{what} must have an image for each of the {bins:,} bins of the ECE; there are "
            f"{test:,}. Lower bins, or leave it out."
        )
    if test < _A_BIN * bins:
        warnings.warn(
            f"{what}: {test:,} images are tested on, in {bins:,} bins of the ECE. With fewer than "
            f"{_A_BIN} in a bin it is mostly noise, and too large. Lower bins.",
            InputWarning,
            stacklevel=4,
        )


def _check(sources: Sources) -> None:
    """Reject images that are too few, or labels that the model does not know, before scoring."""
    plan, images, model = sources.plan, sources.images, sources.model
    known, calibration = images.labels, plan.calibration.images
    k = 0 if known is None else len(np.unique(known))
    if calibration < k:
        raise InputError(
            f"{plan.where} [calibration] images must be at least the {k:,} classes, or some have "
            f"no image to calibrate on; got {calibration:,}."
        )
    if len(images) - calibration >= plan.bins:  # fewer are rejected with the variants
        check_bins(len(images) - calibration, plan.bins, "the test part of the images")
    for name, each in sources.sets.items():
        if len(each) < plan.bins:
            check_bins(len(each), plan.bins, f"the set {name}")
    others = {f"the set {each.title}": sources.sets[each.name] for each in plan.shifts.sets}
    if sources.train is not None:
        others["the training images"] = sources.train
    if not others:
        return
    k = len(model.classes) if model.classes else one_output(model, images).logits.shape[1]
    for name, each in others.items():
        try:
            model_labels(each, model, k)
        except ForeignLabels as error:
            raise InputError(f"{name}: {error}") from error


# --------------------------------------------------------------------------------------
# Which sets are scored
# --------------------------------------------------------------------------------------


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
        return (*map(_set_of, self.conditions), *self.made, *self.own)


def _set_of(condition: Condition) -> str:
    """The name of the set that a condition makes."""
    name = "" if condition.corruption is None else condition.corruption.name
    return set_name(name.partition(MARK)[0], condition.severity)


def wanted_of(plan: Plan, variants: Sequence[Variant]) -> Wanted:
    """What the variants of a plan learn from and are evaluated on."""
    pairs = dict.fromkeys((v.ladder.corruption, s) for v in variants for s in v.ladder.severities)
    targets = [target for variant in variants for target in variant.targets]
    pairs |= dict.fromkeys((t.corruption, t.severity) for t in targets if t.severity)
    own = {ladder.name for ladder in plan.ladders}
    conditions, made = [Condition()], {}
    corruptions = {name: _corruption(plan, name) for name, _ in pairs}
    for name, severity in pairs:
        if plan.shifts.made is not None and name not in own:
            text = plan.shifts.made.replace("{corruption}", name)
            made[set_name(name, severity)] = text.replace("{severity}", str(severity))
            continue
        if severity > corruptions[name].severities:
            raise InputError(
                f"{name} has the severities 1 to {corruptions[name].severities}; the plan asks for "
                f"{severity}."
            )
        conditions.append(Condition(corruptions[name], severity))
    natural = dict.fromkeys(target.name for target in targets if target.natural)
    return Wanted(tuple(conditions), made, tuple(natural))


def _corruption(plan: Plan, name: str) -> Corruption:
    for ladder in plan.ladders:
        if ladder.name == name:
            # Files of other strengths under the same name stay what they are.
            unique = f"{ladder.name}{MARK}{digest(ladder.corruption, ladder.strengths)}"
            return Strengths(ladder.corruption, ladder.strengths, name=unique)
    return as_corruption(name)


def digest(*entries: object) -> str:
    """A short digest of entries of a plan."""
    return hashlib.blake2b(json.dumps(entries).encode(), digest_size=4).hexdigest()


def made_of(plan: Plan) -> str:
    """A digest of what a plan says about its model and images."""
    model, data, shifts = plan.model, plan.data, plan.shifts
    return digest(
        (model.spec, model.groups, model.batch_size, model.dtype),
        (data.images, data.labels, data.limit, data.train, data.train_labels, data.train_limit),
        (shifts.seed, shifts.table, shifts.made),
        [(each.name, each.images, each.labels) for each in shifts.sets],
        [(each.name, each.corruption, each.strengths) for each in plan.ladders],
    )


# --------------------------------------------------------------------------------------
# From images to stored scores
# --------------------------------------------------------------------------------------


def score_sets(sources: Sources, wanted: Wanted, folder: Path, means: Means) -> tuple[Archive, int]:
    """Score all sets below the folder of a run: a bank of the source, a file for each other set.

    A plan with another model or other images is scored in its own folders, so that nothing is
    mixed; of any other change only what is missing is scored.

    Args:
        sources: The model and the images.
        wanted: Which sets.
        folder: Of the run.
        means: How it is done.

    Returns:
        The archive, and how many images were scored by this call.

    Raises:
        InputError: If the model fails, or ready-made images differ from the clean ones.
        FileError: If something cannot be written; what is done is kept.
    """
    plan, model = sources.plan, sources.model
    made = _open_made(sources, wanted.made)
    decided = digest(
        model.fingerprint or secrets.token_hex(8),
        model.engine,
        model.preprocessing.to_dict(),
        (plan.model.groups, plan.model.batch_size, plan.model.dtype),
        (plan.data.images, plan.data.labels, plan.data.limit),
        (plan.shifts.seed, plan.shifts.table),
    )
    bank, others = (folder / "scores" / f"{kind}-{decided}" for kind in ("source", "sets"))
    make_folder(bank.parent)
    options = Options(
        seed=plan.shifts.seed,
        table=plan.shifts.table,
        dtype=plan.model.dtype,
        engine=means.engine,
        cache=means.cache,
        features="all" if may_give_features(model) else "none",
        reporting=means.reporting,
    )
    built = build_bank(model, sources.images, bank, conditions=wanted.conditions, options=options)
    document, computed = read_document(bank), built.computed
    there = {(entry["corruption"], entry["severity"]): entry for entry in document["sets"]}
    entries = {}
    for condition in wanted.conditions:
        corruption = condition.corruption
        entry = there[None if corruption is None else corruption.name, condition.severity]
        file = f"scores/{bank.name}/{entry['file']}"
        entries[_set_of(condition)] = Entry(file, entry["key"], sha256=entry["sha256"])
    known: dict[str, str] = {}
    with suppress(FileError):  # an earlier run knows the checksums of its files
        earlier = Archive.open(folder)
        files = [*earlier.entries.values(), *([earlier.train] if earlier.train else [])]
        known = {entry.file: entry.sha256 for entry in files}

    def score(name: str, images: ImageSet, *, own: bool = False) -> Entry:
        nonlocal computed
        make_folder(others)
        file, where = others / f"{name}.npz", f"scores/{others.name}/{name}.npz"
        if where in known and file.exists() and sha256_of(file) != known[where]:
            file.unlink()  # damaged or replaced
        scored = score_file(
            _taking_as_stored(model, images),
            images,
            file,
            dtype=plan.model.dtype,
            engine=means.engine,
            cache=means.cache,
            reporting=means.reporting,
        )
        computed += scored.computed
        return Entry(where, scored.key, own, sha256=sha256_of(file))

    entries |= {name: score(name, images) for name, images in made.items()}
    entries |= {name: score(name, sources.sets[name], own=True) for name in wanted.own}
    train = None if sources.train is None else score("train", sources.train, own=True)
    about = {"spec": plan.model.spec[0], "images": sources.images.name}
    archive = Archive(
        folder, entries, train, {**document["origin"]["model"], **about}, made_of(plan)
    )
    for name, spec in wanted.made.items():
        if not np.array_equal(archive.scores(name).labels, archive.scores(CLEAN).labels):  # type: ignore[arg-type]
            raise InputError(
                f"images of {name} ({spec}) and of the clean set that could be read must be the "
                "same ones. Get the damaged files again."
            )
    archive.write()
    return archive, computed


def check_made(made: Mapping[str, str]) -> None:
    """Open ready-made images before hours of scoring.

    Raises:
        MissingData: Naming those that are missing.
    """
    search = Search(skip=False)
    for name, spec in made.items():
        search.first(name, (spec,), as_image_set)
    if search.missing:
        names = [each.what for each in search.missing]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        what = (
            f"{len(names)} of {len(made)} sets of ready-made corrupted images ([shifts] made): "
            f"{', '.join(names[:_SHOWN])}{more}; the first:"
        )
        search.missing = [Missing(what, search.missing[0].tried)]
        search.left_out()


def _open_made(sources: Sources, specs: Mapping[str, str]) -> dict[str, ImageSet]:
    """Ready-made versions of the source images, row by row the same ones: the split is shared."""
    made = {name: same_choice(sources.plan, as_image_set(spec)) for name, spec in specs.items()}
    for name, images in made.items():
        if not _same_labels(images, sources.images):
            raise InputError(
                f"the images of {name} ({specs[name]}) must be those of the clean set, in its "
                f"order, with their labels; they are {len(images):,}, "
                f"{'without labels' if images.labels is None else 'with other labels'}, and it has "
                f"{len(sources.images):,}. Name the clean images they were made of."
            )
    return made


def _same_labels(images: ImageSet, clean: ImageSet) -> bool:
    if images.labels is None or clean.labels is None or len(images) != len(clean):
        return False
    if images.classes is None or clean.classes is None:
        return np.array_equal(images.labels, clean.labels)
    place = {name: index for index, name in enumerate(clean.classes)}
    known = np.array([place.get(name, -1) for name in images.classes])
    return np.array_equal(known[images.labels], clean.labels)


def _taking_as_stored(model: Model, images: ImageSet) -> Model:
    """The model without resizing, for images that were resized and cropped when they were made.

    ImageNet-C is such a set, and the photographs it was made of are not: one model serves both.
    """
    if images.ready_made is None or model.preprocessing.resize is None:
        return model
    taken = copy.copy(model)
    taken.preprocessing = replace(model.preprocessing, resize=None)
    return taken

"""The model and the images of a plan, opened and scored, and the scored sets on disk."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import secrets
import shlex
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions import Corruption, Strengths, as_corruption
from shiftcal.datasets import ImageSet, as_image_set, calibration_split, class_groups, grouped
from shiftcal.errors import FileError, InputError, InputWarning, MissingData, MissingExtra
from shiftcal.files import make_folder, parsing, read_document, sha256_of, write_document
from shiftcal.models import GroupedModel, Model, as_model
from shiftcal.models.resolve import stored_spec
from shiftcal.progress import Reporting
from shiftcal.scores import read_scores
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.shards import Condition, may_give_features
from shiftcal.studies.plan import CLEAN, MARK, NAME_IT, Plan, uses_features
from shiftcal.studies.study import Ladder, Target, Variant, set_name
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.bank import read_description
from shiftcal.surrogates.build import build_bank
from shiftcal.types import Floats, Labels, Logits

PLAN, INDEX = "plan.toml", "scores/index.json"
_FORMAT: dict[str, Any] = {"format": "shiftcal-study-scores", "version": 3}
# Bytes of scores that are kept in memory, since many variants are evaluated on one set.
_KEPT_BYTES = 1 << 30
Place = TypeVar("Place")
T = TypeVar("T")
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


def digest(*entries: object) -> str:
    """A short digest of entries of a plan."""
    return hashlib.blake2b(json.dumps(entries).encode(), digest_size=4).hexdigest()


class Search:
    """Alternatives tried one after the other; what is missing is collected."""

    def __init__(self) -> None:
        self._missing: list[tuple[str, str, str, bool]] = []

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
        lines = [f"  {what}"]
        for place in places:
            try:
                return place, open_one(place)
            except (MissingData, MissingExtra, FileError) as error:
                missing = isinstance(error, (MissingData, MissingExtra))
                if not missing and not isinstance(error.__cause__, FileNotFoundError):
                    raise
                shown = " + ".join(place) if isinstance(place, tuple) else place
                lines.append(f"    {shown}: {error}")
        text = "\n".join(lines if places else [*lines, "    the plan names none"])
        self._missing.append((what, text, fetch, optional))
        return None, None

    def left_out(self, *, skip: bool) -> tuple[str, ...]:
        """What is left out because it is missing.

        Args:
            skip: Whether optional things are left out if they are missing.

        Raises:
            MissingData: Naming everything that is missing and needed.
        """
        needed: dict[str, list[str]] = {}
        for _, text, fetch, optional in self._missing:
            if not (skip and optional):
                needed.setdefault(fetch, []).append(text)
        if not needed:
            return tuple(text for _, text, _, _ in self._missing)
        blocks = ["the study needs data that is missing:"]
        for fetch, texts in needed.items():
            blocks += [*texts, f"  To get it: {fetch}"] if fetch else texts
        blocks.append("Then run the same command again; or name another folder with --data.")
        names = "; ".join(what for what, _, _, optional in self._missing if optional)
        if names and not skip:
            blocks.append(f"--skip-missing runs without: {names}.")
        raise MissingData("\n".join(blocks))


def check_bins(test: int, bins: int, what: str) -> None:
    """Reject a test set with fewer images than bins of the ECE; warn of a few images a bin."""
    if test < bins:
        raise InputError(
            f"{what} must have an image for each of the {bins:,} bins of the ECE, better ten; "
            f"there are {max(test, 0):,}. Lower bins, or leave it out."
        )
    if test < _A_BIN * bins:
        warnings.warn(
            f"{what}: {test:,} images are tested on, in {bins:,} bins of the ECE. With fewer than "
            f"{_A_BIN} in a bin it is mostly noise, and too large. Lower bins.",
            InputWarning,
            stacklevel=4,
        )


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
        InputError: If something exists and cannot be used, such as too few images.
    """
    search, data = Search(), plan.data

    def load(spec: str) -> Model:
        safe = stored_spec(spec, where=plan.where, name_it=NAME_IT) if plan.stored else spec
        return as_model(safe)

    def labelled(labels: str | None) -> Callable[[str], ImageSet]:
        return lambda spec: as_image_set(spec, labels=labels)

    spec, model = search.first("the model", plan.model.spec, load, data.fetch)
    where, images = search.first("the images", data.images, labelled(data.labels), data.fetch)
    needing = [method.label for method in plan.methods if uses_features(method.name)]
    train = None
    if needing:
        what = f"training images ([data] train), for {', '.join(needing)}"
        opener = labelled(data.train_labels)
        place, train = search.first(what, data.train, opener, data.fetch, optional=True)
        data = data if place is None else replace(data, train=(place,))
    sets, kept = {}, []
    for each in plan.shifts.sets:
        opener = labelled(each.labels)
        place, found = search.first(each.title, each.images, opener, each.fetch, optional=True)
        if found is not None and place is not None:
            sets[each.name] = found
            kept.append(replace(each, images=(place,)))
            check_labels(found, each.title)
    missing = search.left_out(skip=skip_missing)
    assert spec and model is not None and where and images is not None  # noqa: PT018
    methods = plan.methods
    if needing and train is None:
        methods = tuple(method for method in methods if not uses_features(method.name))
    plan = replace(
        plan,
        model=replace(plan.model, spec=(spec,)),
        data=replace(data, images=(where,)),
        shifts=replace(plan.shifts, sets=tuple(kept)),
        methods=methods,
    )
    if train is not None and not may_give_features(model):
        raise InputError(
            f"{', '.join(needing)} need features, and the model {spec} gives none. Name a "
            "layer in its text (features_from=...), or leave the methods out."
        )
    model.batch_size = plan.model.batch_size or model.batch_size
    if plan.model.groups is not None:
        model = GroupedModel(model, class_groups(plan.model.groups))
        sets = {name: _in_groups(plan, each) for name, each in sets.items()}
    if train is not None:
        train = limited(_in_groups(plan, train), data.train_limit, "the training images")
    images = _same_choice(plan, images)
    check_labels(images, "the set of images")
    classes = len(np.unique(images.labels))  # type: ignore[arg-type]
    if plan.calibration.images < classes:
        raise InputError(
            f"{plan.where} [calibration] images must be at least the {classes:,} classes, or some "
            f"have no image to calibrate on; got {plan.calibration.images:,}."
        )
    check_bins(len(images) - plan.calibration.images, plan.bins, "the test part of the images")
    for name, natural in sets.items():
        if len(natural) < plan.bins:
            check_bins(len(natural), plan.bins, f"the set {name}")
    return Sources(plan, model, images, train, sets, missing)


def check_labels(images: ImageSet, what: str) -> None:
    """Reject images that cannot be judged."""
    if images.labels is None:
        raise InputError(
            f"{what} has no labels, which the evaluation needs. Name a file of them in the plan: "
            "labels = ..."
        )


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


def _same_choice(plan: Plan, images: ImageSet) -> ImageSet:
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


# --------------------------------------------------------------------------------------
# Which sets are scored
# --------------------------------------------------------------------------------------


def wanted_of(
    plan: Plan, variants: Sequence[Variant]
) -> tuple[dict[str, Condition], dict[str, str]]:
    """Versions of the images that variants learn from and are evaluated on, by name of the set.

    Returns:
        What is made on the fly, the clean set first; where ready-made images are.
    """
    pairs = dict.fromkeys((v.ladder.corruption, s) for v in variants for s in v.ladder.severities)
    pairs |= dict.fromkeys(
        (t.corruption, t.severity) for v in variants for t in v.targets if t.severity
    )
    own = {ladder.name for ladder in plan.ladders}
    conditions, made = {CLEAN: Condition()}, {}
    corruptions = {name: _corruption(plan, name) for name, _ in pairs}
    for name, severity in pairs:
        if plan.shifts.made is not None and name not in own:
            text = plan.shifts.made.replace("{corruption}", name)
            made[set_name(name, severity)] = text.replace("{severity}", str(severity))
        elif severity > corruptions[name].severities:
            raise InputError(
                f"{name} has the severities 1 to {corruptions[name].severities}; the plan asks for "
                f"{severity}."
            )
        else:
            conditions[set_name(name, severity)] = Condition(corruptions[name], severity)
    return conditions, made


def _corruption(plan: Plan, name: str) -> Corruption:
    for ladder in plan.ladders:
        if ladder.name == name:
            # Files of other strengths under the same name stay what they are.
            unique = f"{ladder.name}{MARK}{digest(ladder.corruption, ladder.strengths)}"
            return Strengths(ladder.corruption, ladder.strengths, name=unique)
    return as_corruption(name)


def made_of(plan: Plan) -> str:
    """A digest of what a plan says about its model and images."""
    shifts = {**asdict(plan.shifts), "corruptions": None, "severities": None}
    return digest(asdict(plan.model), asdict(plan.data), shifts, list(map(asdict, plan.ladders)))


# --------------------------------------------------------------------------------------
# The scored sets of a run on disk
# --------------------------------------------------------------------------------------


def repair(folder: Path) -> str:
    """How to make everything a run lacks, and nothing else."""
    plan = folder / PLAN
    name = shlex.quote(str(plan)) if plan.exists() else "PLAN"
    return f"Make it again: shiftcal reproduce {name} -o {shlex.quote(str(folder))}"


@dataclass(frozen=True)
class Entry:
    """Where a set is.

    Attributes:
        file: Its scores, from the folder of the run.
        key: Digest of what made them.
        own: Whether it has its own images, not those of the clean set.
        sha256: Of the file.
    """

    file: str
    key: str
    own: bool
    sha256: str


class Stored(NamedTuple):
    """A scored set.

    Attributes:
        logits: ``(n, k)``.
        labels: ``(n,)``; ``None`` for the training images, whose labels nobody needs.
        features: ``(n, d)``, if the model gave them.
    """

    logits: Logits
    labels: Labels | None
    features: Floats | None

    def part(self, rows: NDArray[np.intp]) -> Stored:
        """Some of the rows."""
        parts = (None if each is None else each[rows] for each in self)
        return Stored(*parts)  # type: ignore[arg-type]


class Split(NamedTuple):
    """Sorted rows of the clean set and of its corrupted versions, to calibrate and to test on."""

    calibration: NDArray[np.intp]
    test: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Archive:
    """The scored sets of a run.

    Attributes:
        folder: Of the run.
        entries: The sets by name.
        train: The training images' scores, if there are any.
        model: What is known of the model.
        made_of: Digest of what the plan says about model and images.
        images: How many of the images are calibrated on; the others are tested on.
    """

    folder: Path
    entries: dict[str, Entry]
    train: Entry | None = None
    model: dict[str, Any] = field(default_factory=dict)
    made_of: str = ""
    images: int = 0
    _kept: OrderedDict[str, Stored] = field(default_factory=OrderedDict, repr=False)

    @classmethod
    def open(cls, folder: Path, images: int = 0) -> Archive:
        """The archive of a run whose sets are all scored.

        Args:
            folder: Of the run.
            images: How many of the images are calibrated on.

        Raises:
            FileError: If it is missing or damaged.
        """
        read = read_document(folder / INDEX, "an index of scores", fix=repair(folder), **_FORMAT)
        entries = {name: Entry(**entry) for name, entry in read["sets"].items()}
        train = None if read["train"] is None else Entry(**read["train"])
        return cls(folder, entries, train, read["model"], read["made_of"], images)

    def write(self) -> None:
        """Write the index, whole or not at all."""
        content = {
            "model": self.model,
            "made_of": self.made_of,
            "train": None if self.train is None else asdict(self.train),
            "sets": {name: asdict(entry) for name, entry in self.entries.items()},
        }
        write_document(self.folder / INDEX, content, indent=1, **_FORMAT)

    def scores(self, name: str) -> Stored:
        """The scores of a set.

        Raises:
            FileError: If the file is missing, damaged or replaced.
        """
        found = self._kept.pop(name, None) or self._read(self.entries[name])
        self._kept[name] = found  # used last
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return found

    def train_features(self) -> Floats | None:
        """Features of the training images, ``(m, d)``."""
        return None if self.train is None else self._read(self.train).features

    def split(self, seed: int) -> Split:
        """Which rows are calibrated on and which are tested on, decided by labels and seed."""
        return Split(*calibration_split(self._labels, n=self.images, seed=seed))

    def bank(self, ladder: Ladder, seed: int) -> SurrogateBank:
        """The surrogate sets of a ladder: the calibration rows of a split, or a part of them."""
        rows, labels = self.split(seed).calibration, self._labels
        if ladder.images is not None and ladder.images < len(rows):
            rows = rows[calibration_split(labels[rows], n=ladder.images, seed=seed)[0]]
        sets = []
        for severity, name in zip((0, *ladder.severities), ladder.sets, strict=True):
            logits, _, features = self.scores(name).part(rows)
            made_by = {"corruption": ladder.corruption} if severity else {"features": features}
            sets.append(SurrogateSet(logits, labels[rows], name, severity=severity, **made_by))
        return SurrogateBank(sets)

    def rows(self, target: Target, seed: int) -> Stored:
        """The test rows of a target: all of them if it has its own images."""
        stored = self.scores(target.name)
        return stored if target.natural else stored.part(self.split(seed).test)

    @property
    def _labels(self) -> Labels:
        labels = self.scores(CLEAN).labels
        assert labels is not None
        return labels

    def _read(self, entry: Entry) -> Stored:
        file, fix = self.folder / entry.file, repair(self.folder)
        with parsing(file, "scores", fix=fix):
            if not file.exists() or sha256_of(file) != entry.sha256:
                raise FileError(f"{file} is missing, damaged or was replaced. {fix}")
            found = read_scores(file)
            return Stored(found.logits(), found.labels, found.features)

    def __getstate__(self) -> dict[str, Any]:
        # A worker that was started before may be in another folder than this process is by now.
        return {**self.__dict__, "folder": self.folder.absolute(), "_kept": OrderedDict()}


def _size(stored: Stored) -> int:
    return stored.logits.nbytes + (0 if stored.features is None else stored.features.nbytes)


# --------------------------------------------------------------------------------------
# From images to stored scores
# --------------------------------------------------------------------------------------


def score_sets(
    sources: Sources,
    conditions: dict[str, Condition],
    made: dict[str, str],
    folder: Path,
    means: Means,
) -> tuple[Archive, int]:
    """Score all sets below the folder of a run: a bank of the source, a file for each other set.

    A plan with another model or other images is scored in its own folders, so that nothing is
    mixed; of any other change only what is missing is scored.

    Args:
        sources: The model and the images.
        conditions: Versions of the images that are made on the fly, by name.
        made: Where ready-made versions are, by name.
        folder: Of the run.
        means: How it is done.

    Returns:
        The archive, and how many images were scored by this call.

    Raises:
        InputError: If the model fails, or ready-made images differ from the clean ones.
        FileError: If something cannot be written; what is done is kept.
    """
    from shiftcal.scoring.api import score_file

    plan, model = sources.plan, sources.model
    opened = {name: _open_made(sources, name, spec) for name, spec in made.items()}
    decided = digest(
        model.fingerprint or secrets.token_hex(8),
        model.engine,
        model.preprocessing.to_dict(),
        (plan.model.groups, plan.model.batch_size, plan.model.dtype),
        (plan.data.images, plan.data.labels, plan.data.limit),
        (plan.shifts.seed, plan.shifts.table),
    )
    bank, others = (folder / "scores" / f"{kind}-{decided}" for kind in ("source", "sets"))
    make_folder(others)
    common: dict[str, Any] = {"dtype": plan.model.dtype, **vars(means)}
    built = build_bank(
        model,
        sources.images,
        bank,
        conditions=tuple(conditions.values()),
        seed=plan.shifts.seed,
        table=plan.shifts.table,
        features="all" if may_give_features(model) else "none",
        **common,
    )
    document, computed = read_description(bank), built.computed
    there = {(entry["corruption"], entry["severity"]): entry for entry in document["sets"]}
    entries = {}
    for name, condition in conditions.items():
        corruption = condition.corruption
        entry = there[None if corruption is None else corruption.name, condition.severity]
        file = f"scores/{bank.name}/{entry['file']}"
        entries[name] = Entry(file, entry["key"], False, entry["sha256"])
    known: dict[str, str] = {}
    with suppress(FileError):  # an earlier run knows the checksums of its files
        earlier = Archive.open(folder)
        files = [*earlier.entries.values(), *([earlier.train] if earlier.train else [])]
        known = {entry.file: entry.sha256 for entry in files}

    def score(name: str, images: ImageSet, *, own: bool = False) -> Entry:
        nonlocal computed
        file, where = others / f"{name}.npz", f"scores/{others.name}/{name}.npz"
        if where in known and file.exists() and sha256_of(file) != known[where]:
            file.unlink()  # damaged or replaced
        scored = score_file(_taking_as_stored(model, images), images, file, **common)
        computed += scored.computed
        return Entry(where, scored.key, own, sha256_of(file))

    entries |= {name: score(name, images) for name, images in opened.items()}
    entries |= {name: score(name, own, own=True) for name, own in sources.sets.items()}
    train = None if sources.train is None else score("train", sources.train, own=True)
    known_of_model = {**document["origin"]["model"], "spec": plan.model.spec[0]}
    known_of_model["images"] = sources.images.name
    archive = Archive(
        folder, entries, train, known_of_model, made_of(plan), plan.calibration.images
    )
    for name, place in made.items():
        if not np.array_equal(archive.scores(name).labels, archive.scores(CLEAN).labels):  # type: ignore[arg-type]
            raise InputError(
                f"images of {name} ({place}) and of the clean set that could be read "
                "must be the same ones. Get the damaged files again."
            )
    archive.write()
    return archive, computed


def check_made(made: dict[str, str]) -> None:
    """Open ready-made images before hours of scoring.

    Raises:
        MissingData: Naming those that are missing.
    """
    missing = {}
    for name, spec in made.items():
        try:
            as_image_set(spec)
        except MissingData as error:
            missing[name] = str(error)
    if missing:
        raise MissingData(
            f"{len(missing)} of {len(made)} sets of ready-made corrupted images ([shifts] made) "
            f"are missing: {', '.join(missing)}; the first: {next(iter(missing.values()))}"
        )


def _open_made(sources: Sources, name: str, spec: str) -> ImageSet:
    """Ready-made versions of the source images, row by row the same ones: the split is shared."""
    images, clean = _same_choice(sources.plan, as_image_set(spec)), sources.images
    labels = images.labels
    if labels is not None and images.classes is not None and clean.classes is not None:
        place = {name: index for index, name in enumerate(clean.classes)}
        labels = np.array([place.get(name, -1) for name in images.classes])[labels]
    if labels is None or not np.array_equal(labels, clean.labels):  # type: ignore[arg-type]
        raise InputError(
            f"the images of {name} ({spec}) must be those of the clean set, in its order, with "
            f"their labels; they are {len(images):,} with other labels or none, and it has "
            f"{len(clean):,}. Name the clean images they were made of."
        )
    return images


def _taking_as_stored(model: Model, images: ImageSet) -> Model:
    """The model without resizing, for images that were resized and cropped when they were made.

    ImageNet-C is such a set, and the photographs it was made of are not: one model serves both.
    """
    if images.ready_made is None or model.preprocessing.resize is None:
        return model
    taken = copy.copy(model)
    taken.preprocessing = replace(model.preprocessing, resize=None)
    return taken

"""From a model and labelled inputs to a bank, in memory or on disk."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, to_array
from shiftcal.corruptions import (
    Corruption,
    InputCorruption,
    as_corruption,
    as_input_corruption,
    corrupt_inputs,
)
from shiftcal.corruptions.inputs import count_inputs
from shiftcal.errors import FileError, InputError
from shiftcal.files import NpzStream, atomic_write
from shiftcal.models import Model, Preprocessing, as_model
from shiftcal.models.resolve import stored_spec
from shiftcal.scoring.api import ModelOfInputs
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.run import (
    Finished,
    Reporting,
    as_engine,
    cache_folder,
    gathered,
    left_out,
    make_work,
    run_job,
    warn_of_bad,
    write_set,
)
from shiftcal.scoring.store import FolderStore, Notes, alone_in, workshop
from shiftcal.scoring.work import (
    SHARD_SIZE,
    Condition,
    Job,
    Work,
    check_which,
    digest_of_labels,
    keeps_features,
    model_labels,
)
from shiftcal.surrogates.bank import SurrogateBank, SurrogateSet, labels_per_set, set_name
from shiftcal.surrogates.folder import FORMAT, VERSION, digest_of, document_text, read_document
from shiftcal.types import Labels

# --------------------------------------------------------------------------------------
# From a model and labelled images to a bank in memory.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """What may be said about the making of a bank, and does not decide which sets it has.

    Attributes:
        seed: Fixes the random numbers of the corruptions.
        table: Whose strengths; ``"auto"`` goes by the size of the images.
        dtype: What logits are stored as, ``"float32"`` or ``"float16"``.
        engine: Where the work is done; ``None`` is one worker in this process.
        shard_size: Images that are scored and kept together.
        cache: Folder of finished shards, to be shared between banks; ``None`` is that of the
            environment variable ``SHIFTCAL_CACHE``, if there is one.
        features: Which sets keep the features of a model that gives them: ``"clean"``, ``"all"``
            or ``"none"``.
        relabel: Whether labels and classes of a bank that is there are replaced if they are others.
        reporting: How progress is told.
    """

    seed: int = 0
    table: str = "auto"
    dtype: str = "float32"
    engine: Engine | None = None
    shard_size: int = SHARD_SIZE
    cache: str | os.PathLike[str] | None = None
    features: str = "clean"
    relabel: bool = False
    reporting: Reporting = field(default_factory=Reporting)


def synthesize_in_memory(
    model: object,
    images: object,
    labels: object,
    conditions: Sequence[Condition],
    *,
    options: Options,
) -> SurrogateBank:
    """A bank of these sets; see :meth:`SurrogateBank.synthesize`."""
    folder = cache_folder(options.cache)
    work = labelled_work(model, images, labels, options, notes=Notes(cache=folder))
    size = check_count(options.shard_size, name="shard_size")
    job = Job(work, tuple(conditions), shard_size=size, lasting=folder is not None)
    store = FolderStore(cache=folder)
    done = run_job(job, store, as_engine(options.engine), options.reporting)
    warn_of_bad(job, done.outlines[conditions[0]].bad)
    sets = [_set(job, store, c, done=done, position=j) for j, c in enumerate(conditions)]
    return SurrogateBank(sets, classes=work.model.classes, origin=origin_of(job, done))


def labelled_work(
    model: object,
    images: object,
    labels: object,
    options: Options,
    *,
    notes: Notes | None = None,
    before: int | None = None,
) -> Work:
    """Work whose images have labels.

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        labels: As for :meth:`SurrogateBank.synthesize`.
        options: How the bank is made.
        notes: Where a batch size that was found is kept.
        before: The batch size of a bank that is to be added to.

    Raises:
        InputError: If they have none.
    """
    features = check_which(options.features)
    work = make_work(
        model,
        images,
        labels,
        seed=options.seed,
        table=options.table,
        dtype=options.dtype,
        notes=notes,
        before=before,
    )
    if work.images.labels is None:
        raise InputError(
            f"{work.images.name} has no labels, and a surrogate bank needs them. Pass labels, on "
            "the command line --labels FILE, or put the images into one folder a class."
        )
    return replace(work, features=features)


def labels_of(done: Finished) -> Labels:
    """The labels of a finished job of labelled work."""
    assert done.labels is not None
    return done.labels


def origin_of(job: Job, done: Finished) -> dict[str, Any]:
    """How a bank was made, as JSON can hold it."""
    clean = done.outlines[job.conditions[0]]
    return {
        **job.origin(),
        "seed": job.work.seed,
        "table": job.work.table,
        "n_classes": clean.k,
        "labels": digest_of_labels(labels_of(done)),
        "left_out": left_out(job, clean.bad),
    }


def _set(
    job: Job, store: FolderStore, condition: Condition, *, done: Finished, position: int
) -> SurrogateSet:
    logits, features = gathered(job, condition, store)
    corruption = None if condition.corruption is None else condition.corruption.name
    return SurrogateSet(
        logits,
        labels_of(done)[done.outlines[condition].rows],
        set_name(position, corruption, condition.severity),
        corruption=corruption,
        severity=condition.severity,
        features=features,
    )


# --------------------------------------------------------------------------------------
# From a model and labelled images to a bank on disk, resumed and extended by the same call.
# --------------------------------------------------------------------------------------

# Below the bank's folder: what is finished of sets that are not.
WORKSHOP = ".work"
_SIZE = "shard_size"


@dataclass(frozen=True)
class Built:
    """What came of building a bank.

    Attributes:
        folder: Where it is.
        sets: Names of the sets it has now.
        added: Sets that this run added.
        computed: Images that were scored by this run.
        left_out: Images that could not be read: index, id and reason of each.
    """

    folder: Path
    sets: tuple[str, ...]
    added: int
    computed: int
    left_out: list[dict[str, Any]]


def build_bank(
    model: object,
    images: object,
    folder: str | os.PathLike[str],
    *,
    labels: object = None,
    conditions: Sequence[Condition],
    options: Options,
) -> Built:
    """Have a bank with these sets in a folder.

    What is finished is kept below the folder until the bank is, so that the same call goes on where
    it was broken off, and the files are the same to the byte as if it had not been. Sets that the
    bank has are not made again; others are added to it. Other labels or classes for the same images
    are refused, or with ``options.relabel`` put into the sets there are, unscored. Processes that
    build one bank at the same time share the work.

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        folder: The folder; made if it is not there.
        labels: As for :meth:`SurrogateBank.synthesize`.
        conditions: The sets, the clean one first.
        options: How it is made.

    Raises:
        InputError: If something given cannot be used, or the model fails.
        FileError: If the folder holds something else, or a bank made otherwise.
    """
    target = Path(folder)
    _check_free(target)
    cache = cache_folder(options.cache)
    with workshop(target / WORKSHOP, host=target) as unfinished:
        bank = _read(target)
        work = labelled_work(
            model,
            images,
            labels,
            options,
            notes=Notes(unfinished, cache),
            before=None if bank is None else bank["origin"]["model"]["batch_size"],
        )
        job = Job(work, tuple(conditions), shard_size=check_count(options.shard_size, name=_SIZE))
        if bank is not None and options.relabel:
            with alone_in(unfinished):
                bank = _relabelled(target, job)
        missing = job.conditions if bank is None else _lacking(target, bank, job)
        if not missing:
            return _built(target, added=0, computed=0)
        job.conditions = missing
        store = FolderStore(unfinished / "shards", cache=cache)
        try:
            done = run_job(job, store, as_engine(options.engine), options.reporting)
            with alone_in(unfinished):
                added = _add(target, job, store, done)
        finally:
            store.close()
        warn_of_bad(job, done.outlines[missing[0]].bad)
    return _built(target, added=added, computed=done.computed)


def _file(condition: Condition) -> str:
    if condition.corruption is None:
        return "clean.npz"
    return f"{condition.corruption.name}-{condition.severity}.npz"


def _check_free(target: Path) -> None:
    """Refuse a folder that holds something else than a bank, finished or begun."""
    try:
        # One look at all of it: another process may be finishing the bank.
        names = sorted(entry.name for entry in target.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        what = "is a file" if target.is_file() else f"cannot be read ({error.strerror or error})"
        raise FileError(f"{target} {what}. Name a folder for the bank.") from error
    if names and not {"bank.json", WORKSHOP} & set(names):
        raise FileError(
            f"{target} holds {names[0]!r} and is no bank. Name a new folder for the bank."
        )


def _read(target: Path) -> dict[str, Any] | None:
    """The bank that is there, if there is one, and if it can be added to.

    Raises:
        FileError: If it does not say how it was made.
    """
    if not (target / "bank.json").exists():
        return None
    bank = read_document(target)
    try:
        for get in _DECIDING.values():
            get(bank["origin"])
        bank["origin"]["labels"], bank["origin"]["n_classes"], bank["classes"]
        known = all({"file", "name", "key"} <= set(entry) for entry in bank["sets"])
    except (KeyError, TypeError):
        known = False
    if not known:
        raise FileError(
            f"{target} holds a bank that does not say how it was made, as those of "
            "SurrogateBank.save, so that nothing can be added to it. Name a new folder."
        )
    return bank


def _lacking(target: Path, bank: dict[str, Any], job: Job) -> tuple[Condition, ...]:
    """Which sets of a job a bank has not, or has no more: a file that was damaged is made again.

    Raises:
        FileError: If the bank is of another model, of other images or made with other settings.
    """
    _check_same_origin(target, bank, job)
    labels, classes = _labels_now(target, bank, job), job.work.model.classes
    if classes is not None and list(classes) != bank["classes"]:
        raise FileError(
            f"{target} holds a bank with classes {_few(bank['classes'])}, now they are "
            f"{_few(classes)}. Give the same --classes to add to it; --relabel (relabel=True) puts "
            "these into the bank, and no image is scored again."
        )
    before, after = bank["origin"]["labels"], digest_of_labels(labels)
    if before != after:
        raise FileError(
            f"{target} holds a bank with labels {_short(before)}, now they are {_short(after)}. "
            "Give the same --labels and --classes to add to it; --relabel (relabel=True) puts "
            "these into the bank, and no image is scored again."
        )
    keys = {entry["file"]: entry["key"] for entry in bank["sets"]}
    for condition in job.conditions:
        found = keys.get(_file(condition), key := job.set_key(condition))
        if found != key:
            raise FileError(
                f"{target} has a set {_file(condition)} that was made "
                f"{_otherwise(job, condition, found, bank.get('written_by'))}"
            )
    sound = {entry["file"] for entry in bank["sets"] if _is_sound(target, entry)}
    return tuple(c for c in job.conditions if _file(c) not in sound)


def _check_same_origin(target: Path, bank: dict[str, Any], job: Job) -> None:
    """Refuse a bank whose logits are of another model, of other images or made otherwise."""
    now = {**job.origin(), "seed": job.work.seed, "table": job.work.table}
    for what, get in _DECIDING.items():
        before, after = get(bank["origin"]), get(now)
        if before != after:
            before, after = _apart(before, after)
            raise FileError(
                f"{target} holds a bank with {what} {_short(before)}, now it is {_short(after)}. "
                "Give the same to add to it, or name a new folder."
            )


def _labels_now(target: Path, bank: dict[str, Any], job: Job) -> Labels:
    """The labels of all images as columns of the bank's logits.

    Raises:
        InputError: If the model's classes are too many or too few for them, or not the images'.
    """
    k, classes = bank["origin"]["n_classes"], job.work.model.classes
    if classes is not None and len(classes) != k:
        raise InputError(
            f"{target} holds a bank of {k} classes, so --classes (classes=...) must name {k}; got "
            f"{_few(classes)}."
        )
    labels = model_labels(job.work.images, job.work.model, k)
    assert labels is not None
    return labels


def _relabelled(target: Path, job: Job) -> dict[str, Any]:
    """Put the labels and classes of a job into the bank that is there, whose logits stay."""
    bank = _read(target)
    assert bank is not None
    _check_same_origin(target, bank, job)
    labels = _labels_now(target, bank, job)
    digest, classes = digest_of_labels(labels), job.work.model.classes
    names = None if classes is None else list(classes)
    if (digest, names) == (bank["origin"]["labels"], bank["classes"]):
        return bank
    kept = np.delete(labels, [one["index"] for one in bank["origin"]["left_out"]])
    # A set whose file is not sound is scored again later, with the new labels.
    for entry in (one for one in bank["sets"] if _is_sound(target, one)):
        file = target / entry["file"]
        with atomic_write(file) as temporary, np.load(file) as stored, NpzStream(temporary) as new:
            for name in stored.files:
                new.array(name, kept.astype(np.int64) if name == "labels" else stored[name])
        entry["sha256"] = digest_of(file)
    bank["classes"], bank["origin"]["labels"] = names, digest
    _write(target, bank)
    return bank


def _few(classes: Sequence[str] | None) -> str:
    names = list(classes or ())
    return f"{len(names)} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})" if names else "none"


def _otherwise(job: Job, condition: Condition, found: str, written_by: object) -> str:
    """How a set of another key was made, and what to do."""
    wanted = keeps_features(job.work.features, condition)
    if found == job.set_key(condition, features=not wanted):
        before, now = ("without", "with") if wanted else ("with", "without")
        return (
            f"otherwise: {before} features, now it is to be {now} them. Give the same features=, "
            "on the command line --features, or name a new folder."
        )
    return f"otherwise: by {written_by}, or by another corruption of that name. Name a new folder."


def _is_sound(target: Path, entry: dict[str, Any]) -> bool:
    """Whether the file of a set is there and is what was written."""
    try:
        return digest_of(target / entry["file"]) == entry.get("sha256")
    except OSError:
        return False


# Those that change the digests of others stand first.
_DECIDING: dict[str, Callable[[dict[str, Any]], Any]] = {
    "the model": lambda origin: origin["model"]["fingerprint"],
    "the engine": lambda origin: origin["model"]["engine"],
    "the preprocessing": lambda origin: origin["model"]["preprocessing"],
    "batch size": lambda origin: origin["model"]["batch_size"],
    "shard size": lambda origin: origin["shard_size"],
    "images": lambda origin: origin["images"]["digest"],
    "dtype": lambda origin: origin["dtype"],
    "seed": lambda origin: origin["seed"],
    "table": lambda origin: origin["table"],
}


def _apart(before: object, after: object) -> tuple[object, object]:
    """Of settings with names, those that differ."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return before, after
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    told = [
        ", ".join(f"{name} {settings.get(name)}" for name in names) for settings in (before, after)
    ]
    return told[0], told[1]


def _short(value: object) -> object:
    digest = isinstance(value, str) and len(value) >= 32 and " " not in value
    return f"{str(value)[:12]}..." if digest else value


def _add(target: Path, job: Job, store: FolderStore, done: Finished) -> int:
    """Write the sets of a job that the bank has not, then the document that names them."""
    bank = _read(target)
    # Another process may have finished one in the meantime.
    wanted = job.conditions if bank is None else _lacking(target, bank, job)
    document = _new(job, done) if bank is None else bank
    labels = labels_of(done)
    for condition in wanted:
        file = target / _file(condition)
        with atomic_write(file) as temporary, NpzStream(temporary) as archive:
            about = done.outlines[condition]
            write_set(archive, job, condition, store, about=about, labels=labels)
        entry = _entry(file, condition, job.set_key(condition))
        names = [known["file"] for known in document["sets"]]
        if entry["file"] in names:
            document["sets"][names.index(entry["file"])] = entry
        else:
            document["sets"].append(entry)
    _write(target, document)
    return len(wanted)


def _write(target: Path, document: dict[str, Any]) -> None:
    with atomic_write(target / "bank.json") as temporary:
        temporary.write_text(document_text(document), "utf-8")


def _new(job: Job, done: Finished) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"shiftcal {version('shiftcal')}",
        "input": "logits",
        "classes": job.work.model.classes,
        "origin": origin_of(job, done),
        "sets": [],
    }


def _entry(file: Path, condition: Condition, key: str) -> dict[str, Any]:
    corruption = None if condition.corruption is None else condition.corruption.name
    return {
        "file": file.name,
        "name": set_name(condition.severity, corruption, condition.severity),
        "corruption": corruption,
        "severity": condition.severity,
        "sha256": digest_of(file),
        "key": key,
    }


def _built(target: Path, *, added: int, computed: int) -> Built:
    bank = read_document(target)
    names = tuple(entry["name"] for entry in bank["sets"])
    return Built(target, names, added, computed, bank["origin"]["left_out"])


# --------------------------------------------------------------------------------------
# Which sets a bank shall have: the clean one, then each corruption at each severity.
# --------------------------------------------------------------------------------------


def conditions_of(corruption: object, severities: Sequence[int] | int | None) -> list[Condition]:
    """Conditions of the sets, the clean one first.

    Args:
        corruption: A name, a corruption or a function; or a list of names and corruptions. A list
            of functions is one corruption, a function for each severity.
        severities: Which ones, in rising order; ``None`` is all that a corruption has.

    Raises:
        InputError: If a corruption is named twice, or has no such severity.
    """
    several = isinstance(corruption, (list, tuple)) and all(
        isinstance(each, (str, Corruption)) for each in corruption
    )
    made = [as_corruption(each) for each in (corruption if several else [corruption])]  # type: ignore[attr-defined]
    names = [each.name for each in made]
    if not names or len(set(names)) < len(names):
        raise InputError(f"corruption must be given, each once; got {names}.")
    found = [Condition()]
    for each in made:
        found += [Condition(each, level) for level in levels_of(each, severities)]
    return found


def levels_of(corruption: Corruption | InputCorruption, severities: object) -> list[int]:
    """Which severities of a corruption are wanted, in rising order.

    Args:
        corruption: The corruption.
        severities: One or several; ``None`` is all that it has.

    Raises:
        InputError: If it has no such severity.
    """
    most = corruption.severities
    if severities is None:
        return list(range(1, most + 1))
    return [check_count(level, name="severity", most=most) for level in _levels(severities)]


def _levels(severities: object) -> list[int]:
    given = list(severities) if isinstance(severities, Iterable) else [severities]
    if not given:
        raise InputError("severities must name one at least, or be left out for all of them.")
    return sorted({check_count(level, name="severity") for level in given})


# --------------------------------------------------------------------------------------
# From a model and labelled inputs of any kind to a bank in memory.
# --------------------------------------------------------------------------------------

_NO_MISSING = (
    " The corruption leaves missing values, and the model may be unable to take them: put an "
    'imputer in front of it, or pass MissingValues(fill="median").'
)


@dataclass(frozen=True)
class OfInputs:
    """What a bank is made of; see :meth:`SurrogateBank.from_inputs`.

    Attributes:
        model: The classifier or function.
        inputs: The inputs as they are.
        labels: Theirs.
        features: Theirs, for methods that need them.
        classes: Names of the classes.
        input: What the model gives.
    """

    model: object
    inputs: Any
    labels: object
    features: object
    classes: Sequence[str] | None
    input: str | None


def bank_of_inputs(
    given: OfInputs, corruption: object, severities: object, *, seed: int
) -> SurrogateBank:
    """A bank of the inputs as they are, then of each corruption at each severity.

    Args:
        given: The model, the inputs and what is known of them.
        corruption: One or several; see :meth:`SurrogateBank.from_inputs`.
        severities: Which ones; ``None`` is all that a corruption has.
        seed: Fixes the random numbers.
    """
    count_inputs(given.inputs)
    key = check_count(seed, name="seed", least=0, most=2**128)
    ladders = [each.fitted_to(given.inputs) for each in _several(corruption)]
    steps = [(each, level) for each in ladders for level in levels_of(each, severities)]
    model = ModelOfInputs(given.model, input=given.input, classes=given.classes)
    # A function may change what it is given, and all other sets are made of these inputs.
    unchanged = corrupt_inputs(given.inputs, ladders[0], severity=0)
    clean = model.scores(unchanged, where="the inputs as they are")
    labels = _class_indices(given.labels, model)
    (checked,) = labels_per_set(labels, [clean.values.shape], clean.classes)
    sets = [
        SurrogateSet(
            clean.logits(), checked, "clean", severity=0, features=_copy_of(given.features)
        )
    ]
    for each, level in steps:
        name = set_name(len(sets), each.name, level)
        made = corrupt_inputs(given.inputs, each, severity=level, seed=key)
        hint = _NO_MISSING if each.may_lose_values else ""
        logits = model.scores(made, where=f"the set {name!r}", hint=hint).logits()
        sets.append(SurrogateSet(logits, checked, name, corruption=each.name, severity=level))
    origin = {"corruptions": [each.description for each in ladders], "seed": key}
    return SurrogateBank(sets, classes=clean.classes, input=model.input, origin=origin)


def _several(corruption: object) -> list[InputCorruption]:
    """One corruption, or those of a list; a list of functions is one, a function a severity."""
    known = [_is_known(x) for x in corruption] if isinstance(corruption, (list, tuple)) else []
    if any(known) and not all(known):
        raise InputError(
            "corruption must be a list of names and corruptions, or one of functions, which are "
            "the severities of one ladder; got both. Wrap a function that is a ladder of its own: "
            "corruptions.CustomInputs(function)."
        )
    several = isinstance(corruption, (list, tuple)) and all(known)
    made = [as_input_corruption(x) for x in (corruption if several else [corruption])]  # type: ignore[attr-defined]
    names = [each.name for each in made]
    if not names or len(set(names)) < len(names):
        raise InputError(f"corruption must be given, each once; got {names}.")
    return made


def _is_known(each: object) -> bool:
    """Whether it is a name, a corruption or the class of one, and no function."""
    is_class = isinstance(each, type) and issubclass(each, InputCorruption)
    return is_class or isinstance(each, (str, InputCorruption))


def _class_indices(labels: object, model: ModelOfInputs) -> NDArray[Any] | object:
    """Labels of a classifier as positions among its classes; those of a function as they are."""
    if model.labels is None:
        return labels
    given = to_array(labels, name="labels")
    if given.ndim != 1:
        raise InputError(
            f"labels must have shape (n,); got shape {given.shape}. Pass labels.ravel() if it is a "
            "column."
        )
    position = {name: i for i, name in enumerate(model.labels.tolist())}
    for row, label in enumerate(given.tolist()):
        if label not in position:
            shown = ", ".join(map(repr, list(position)[:10]))
            raise InputError(
                f"labels must be what the classifier calls its classes ({shown}); that of row {row}"
                f" is {label!r}. Pass them as they were passed to fit."
            )
    return np.array([position[label] for label in given.tolist()], dtype=np.intp)


def _copy_of(features: object) -> Any:
    return None if features is None else np.array(to_array(features, name="features"))


# --------------------------------------------------------------------------------------
# The accuracy of a model on labelled images, as they are and corrupted.
# --------------------------------------------------------------------------------------


class MeasuredAccuracy:
    """Runs a model over the same images again and again, and counts what is right.

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        labels: As for :meth:`SurrogateBank.synthesize`.
        options: How they are scored.

    Attributes:
        n_classes: Columns of the model's logits, once it has run.
    """

    n_classes: int

    def __init__(self, model: object, images: object, labels: object, options: Options) -> None:
        self._folder = cache_folder(options.cache)
        self._options = options
        work = labelled_work(model, images, labels, options, notes=Notes(cache=self._folder))
        size = check_count(options.shard_size, name="shard_size")
        # One job for all, since it knows the digests of the images.
        self._job = Job(work, (Condition(),), shard_size=size, lasting=self._folder is not None)
        self._engine = as_engine(options.engine)
        self._told_of_bad = False

    def clean(self) -> float:
        """On the images as they are."""
        return self._measured((Condition(),))[0]

    def of(self, corruption: Corruption) -> list[float]:
        """At every severity of a corruption, from 1 on."""
        severities = range(1, corruption.severities + 1)
        return self._measured(tuple(Condition(corruption, severity) for severity in severities))

    def _measured(self, conditions: tuple[Condition, ...]) -> list[float]:
        job = self._job
        job.conditions = conditions
        store = FolderStore(cache=self._folder)
        done = run_job(job, store, self._engine, self._options.reporting)
        if not self._told_of_bad:
            warn_of_bad(job, done.outlines[conditions[0]].bad)
            self._told_of_bad = True
        return [self._accuracy(condition, store, done) for condition in conditions]

    def _accuracy(self, condition: Condition, store: FolderStore, done: Finished) -> float:
        logits, _ = gathered(self._job, condition, store)
        labels = labels_of(done)[done.outlines[condition].rows]
        self.n_classes = int(logits.shape[1])
        return float(np.mean(logits.argmax(axis=1) == labels))


# --------------------------------------------------------------------------------------
# The model a bank was made with, so that new images are treated as its own were.
# --------------------------------------------------------------------------------------


def model_of_bank(
    folder: str | os.PathLike[str], model: Model | None = None, batch_size: int | None = None
) -> Model:
    """The model of a bank, with the bank's preprocessing.

    Args:
        folder: The bank's folder.
        model: The model, if it is at hand, which is not changed; otherwise it is made of the text
            the bank holds, if that is read as data.
        batch_size: Images given to the model at once; as in the bank if left out.

    Raises:
        FileError: If the bank does not say how it was made.
        InputError: If the model is another than that of the bank, or must be named by the user.
    """
    source = Path(folder)
    origin = read_document(source).get("origin")
    try:
        told = origin["model"]  # type: ignore[index]
        preprocessing = Preprocessing.from_dict(told["preprocessing"])
        fingerprint, spec, size = told["fingerprint"], told["spec"], int(told["batch_size"])
    except (TypeError, KeyError, ValueError) as error:
        raise FileError(
            f"{source} does not say which model it was made with: only banks of `shiftcal bank` "
            "or SurrogateBank.synthesize do. Name the model and leave the bank out."
        ) from error
    if model is None:
        model = as_model(stored_spec(spec, where=source, name_it="--model {}"))
    model = copy.copy(model)
    model.preprocessing = preprocessing
    model.batch_size = batch_size or size
    if model.fingerprint != fingerprint:
        raise InputError(
            f"{source} was made with another model (fingerprint {fingerprint[:12]}...; this one "
            f"has {str(model.fingerprint)[:12]}...). Scores of one model say nothing about banks "
            "of another: name the same model, or leave the bank out."
        )
    return model

"""From a model and labelled inputs to a bank, in memory or in a folder that is resumed."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from shiftcal.checks import check_count, to_array
from shiftcal.corruptions import (
    Corruption,
    as_corruption,
)
from shiftcal.errors import FileError, InputError
from shiftcal.files import NpzStream, atomic_write, checksum_of, remove_orphans, sha256_of
from shiftcal.models import Model, Preprocessing, as_model
from shiftcal.models.resolve import stored_spec
from shiftcal.progress import Reporting
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.shards import (
    CLEAN,
    Condition,
    Finished,
    Job,
    ShardStore,
    cache_folder,
    digest_of_labels,
    model_labels,
    run_job,
    unfinished_work,
)
from shiftcal.surrogates.bank import (
    WORK,
    SurrogateBank,
    SurrogateSet,
    entry_of,
    read_description,
    set_name,
    write_description,
)
from shiftcal.types import Labels

T = TypeVar("T")


def synthesize_in_memory(
    model: object,
    images: object,
    labels: object,
    conditions: Sequence[Condition],
    *,
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    reporting: Reporting | None = None,
    **options: Any,
) -> SurrogateBank:
    """A bank of these sets; see :meth:`SurrogateBank.synthesize`."""
    folder = cache_folder(cache)
    job = labelled_job(model, images, labels, conditions, lasting=folder is not None, **options)
    done = run_job(job, ShardStore(cache=folder), engine, reporting or Reporting())
    done.warn_of_bad()
    assert done.labels is not None
    truth, sets = done.labels[done.rows], []
    for condition in conditions:
        name, corruption = _name(condition)
        logits, features = done.arrays(condition)
        sets.append(SurrogateSet(logits, truth, name, corruption, condition.severity, features))
    return SurrogateBank(sets, classes=done.classes, origin=_origin(done))


def _name(condition: Condition) -> tuple[str, str | None]:
    """The name of a set, and that of its corruption."""
    corruption = None if condition.corruption is None else condition.corruption.name
    return set_name(condition.severity, corruption, condition.severity), corruption


def labelled_job(
    model: object, images: object, labels: object, conditions: Sequence[Condition], **options: Any
) -> Job:
    """A job whose images have labels; options as for :class:`shiftcal.scoring.shards.Job`."""
    job = Job(model, images, labels, conditions=tuple(conditions), **options)
    if job.images.labels is None:
        raise InputError(
            f"{job.images.name} has no labels, and a bank needs them. Pass labels (--labels FILE)."
        )
    return job


def _settings(job: Job) -> dict[str, Any]:
    """What the sets of one bank must have in common, for JSON."""
    images = {"name": job.images.name, "digest": job.image_digest()}
    return {**job.origin(), "images": images, "seed": job.seed, "table": job.table}


def _origin(done: Finished) -> dict[str, Any]:
    """How a bank was made, for JSON."""
    return {
        **_settings(done.job),
        "n_classes": done.k,
        "labels": digest_of_labels(done.labels),
        "left_out": done.left_out,
    }


@dataclass(frozen=True)
class Built:
    """What :func:`build_bank` did.

    Attributes:
        folder: Where the bank is.
        sets: Names of the sets it has now.
        added: Sets that this run added.
        computed: Images that this run scored.
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
    relabel: bool = False,
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    reporting: Reporting | None = None,
    **options: Any,
) -> Built:
    """Make a bank with these sets in a folder, or add those it lacks.

    Finished shards are kept in the folder until the bank is complete, so the same call resumes,
    and the files are the same to the byte as if it had not been interrupted.

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        folder: The folder; made if it does not exist.
        labels: As for :meth:`SurrogateBank.synthesize`.
        conditions: The sets, the clean one first.
        relabel: Replace other labels or classes in the bank; nothing is scored again.
        engine: As for :meth:`SurrogateBank.synthesize`.
        cache: As for :meth:`SurrogateBank.synthesize`.
        reporting: How progress is reported.
        **options: ``seed``, ``table``, ``dtype``, ``features`` and ``shard_size``, as for
            :class:`shiftcal.scoring.shards.Job`.

    Raises:
        InputError: If something given cannot be used, or the model fails.
        FileError: If the folder holds something else, or a bank made in another way.
    """
    target = Path(folder)
    _check_free(target)
    job = labelled_job(model, images, labels, conditions, **options)
    try:
        with unfinished_work(target / WORK, target) as work:
            remove_orphans(target)
            bank = _stored(target)
            if bank is not None:
                _check_same(target, bank, job, relabel=relabel)
                job.conditions = tuple(c for c in conditions if not _is_sound(target, bank, c))
            added, computed = len(job.conditions), 0
            if added:
                store = ShardStore(work, cache=cache_folder(cache))
                done = run_job(job, store, engine, reporting or Reporting())
                computed = done.computed
                bank = _add(target, bank, done)
                done.warn_of_bad()
    finally:
        if target.is_dir() and not any(target.iterdir()):
            target.rmdir()
    assert bank is not None
    names = tuple(entry["name"] for entry in bank["sets"])
    return Built(target, names, added, computed, bank["origin"]["left_out"])


def _file(condition: Condition) -> str:
    if condition.corruption is None:
        return "clean.npz"
    return f"{condition.corruption.name}-{condition.severity}.npz"


def _check_free(target: Path) -> None:
    """Reject a folder that holds something else than a bank, finished or begun."""
    if target.is_file():
        raise FileError(f"{target} is a file. Name a folder for the bank.")
    names = sorted(entry.name for entry in target.iterdir()) if target.exists() else []
    if names and not {"bank.json", WORK} & set(names):
        raise FileError(
            f"{target} holds {names[0]!r} and is not a bank. Name a new folder for the bank."
        )


def _stored(target: Path) -> dict[str, Any] | None:
    """The description of the bank in a folder, if there is one and it says how it was made."""
    if not (target / "bank.json").exists():
        return None
    bank = read_description(target)
    if not (bank.get("origin") or {}).get("model") or any("key" not in e for e in bank["sets"]):
        raise FileError(
            f"{target} holds a bank that does not say how it was made, such as one of "
            "SurrogateBank.save, so nothing can be added to it. Name a new folder."
        )
    return bank


def _check_same(target: Path, bank: dict[str, Any], job: Job, *, relabel: bool) -> None:
    """Reject a bank made in another way; with ``relabel`` put labels and classes of a job into it.

    Raises:
        FileError: If it is of another model, of other images or made with other settings.
    """
    origin = bank["origin"]
    for (what, before), after in zip(
        _deciding(origin).items(), _deciding(_settings(job)).values(), strict=True
    ):
        if before == after:
            continue
        was, now = before, after
        if isinstance(before, dict) and isinstance(after, dict):
            differ = [key for key in before | after if before.get(key) != after.get(key)]
            was, now = ({key: one.get(key) for key in differ} for one in (before, after))
        raise FileError(
            f"{target} holds a bank with {what} {was}, now it is {now}. Give the same to add to "
            "it, or name a new folder."
        )
    k, classes = origin["n_classes"], job.model.classes
    if classes is not None and len(classes) != k:
        raise InputError(f"{target} holds a bank of {k} classes; got {len(classes)} names.")
    labels = model_labels(job.images, job.model, k)
    assert labels is not None
    names = bank["classes"] if classes is None else list(classes)
    if (names, digest_of_labels(labels)) != (bank["classes"], origin["labels"]):
        if not relabel:
            raise FileError(
                f"{target} holds a bank with labels or classes other than these. Give the same to "
                "add to it, or put these into it with --relabel (relabel=True): no image is "
                "scored again."
            )
        _relabel(target, bank, labels, names)
    stored = {entry["file"]: entry["key"] for entry in bank["sets"]}
    for condition in job.conditions:
        key = _key(job, condition)
        if stored.get(_file(condition), key) != key:
            raise FileError(
                f"{target} has a set {_file(condition)} that was made in another way: with other "
                f"features (--features), by another corruption of that name, or by "
                f"{bank['written_by']}. Give the same options, or name a new folder."
            )


def _deciding(origin: dict[str, Any]) -> dict[str, Any]:
    """What must be the same to add to a bank; what changes the digests of others comes first."""
    model = origin["model"]
    return {
        "the model": model["fingerprint"],
        "the engine": model["engine"],
        "the preprocessing": model["preprocessing"],
        "batch size": model["batch_size"],
        "shard size": origin["shard_size"],
        "images": origin["images"]["digest"],
        "dtype": origin["dtype"],
        "seed": origin["seed"],
        "table": origin["table"],
    }


def _key(job: Job, condition: Condition) -> str:
    return checksum_of({"shards": job.keys(condition)})


def _relabel(target: Path, bank: dict[str, Any], labels: Labels, classes: list[str] | None) -> None:
    """Put labels and classes into the bank in a folder, whose logits stay."""
    kept = np.delete(labels, [one["index"] for one in bank["origin"]["left_out"]]).astype(np.int64)
    for entry in bank["sets"]:
        file = target / entry["file"]
        # A set whose file is damaged is scored again later, with the new labels.
        if file.exists() and sha256_of(file) == entry["sha256"]:
            with atomic_write(file) as new, np.load(file) as old, NpzStream(new) as archive:
                for name in old.files:
                    archive.array(name, kept if name == "labels" else old[name])
            entry["sha256"] = sha256_of(file)
    bank["classes"] = classes
    bank["origin"]["labels"] = digest_of_labels(labels)
    write_description(target, bank)


def _is_sound(target: Path, bank: dict[str, Any], condition: Condition) -> bool:
    """Whether the bank has the set of a condition and its file is what was written."""
    file = target / _file(condition)
    digests = {entry["file"]: entry["sha256"] for entry in bank["sets"]}
    return file.exists() and digests.get(file.name) == sha256_of(file)


def _add(target: Path, bank: dict[str, Any] | None, done: Finished) -> dict[str, Any]:
    """Write the sets of a job, then the description that names them."""
    job = done.job
    if bank is None:
        origin = _origin(done)
        bank = {"input": "logits", "classes": done.classes, "origin": origin, "sets": []}
    entries = {entry["file"]: entry for entry in bank["sets"]}
    for condition in job.conditions:
        file = target / _file(condition)
        with atomic_write(file) as temporary, NpzStream(temporary) as archive:
            done.write_set(archive, condition)
        entry = entry_of(file, *_name(condition), condition.severity)
        entries[file.name] = {**entry, "key": _key(job, condition)}
    bank["sets"] = list(entries.values())
    write_description(target, bank)
    return read_description(target)


def conditions_of(corruption: object, severities: Sequence[int] | int | None) -> list[Condition]:
    """Conditions of the sets, the clean one first.

    Args:
        corruption: A name, a corruption or a function; or a list of names and corruptions. A list
            of functions is one corruption, a function for each severity.
        severities: Which ones; ``None`` is all that a corruption has.

    Raises:
        InputError: If a corruption is named twice, or has no such severity.
    """
    made = corruptions_of(corruption, (str, Corruption), as_corruption)
    return [CLEAN, *(Condition(*step) for step in steps_of(made, severities))]


def corruptions_of(
    corruption: object, kinds: tuple[type, ...], make: Callable[[object], T]
) -> list[T]:
    """One corruption, or those of a list; a list of functions is one, a function a severity."""
    listed = corruption if isinstance(corruption, (list, tuple)) else [corruption]
    functions = listed and not any(isinstance(one, kinds) for one in listed)
    return [make(corruption)] if functions else [make(one) for one in listed]


def steps_of(made: Sequence[Any], severities: object) -> list[tuple[Any, int]]:
    """Each corruption at each severity, in rising order; ``None`` is all that it has."""
    names = [each.name for each in made]
    if not names or len(set(names)) < len(names):
        raise InputError(f"corruption must be given, each once; got {names}.")
    if severities is None:
        return [(each, level) for each in made for level in range(1, each.severities + 1)]
    given = severities if isinstance(severities, Iterable) else [severities]
    levels = sorted({check_count(level, name="severity") for level in given})
    if not levels:
        raise InputError("severities must name at least one, or be left out for all of them.")
    return [
        (each, check_count(level, name="severity", most=each.severities))
        for each in made
        for level in levels
    ]


def model_of_bank(
    folder: str | os.PathLike[str], model: Model | None = None, batch_size: int | None = None
) -> Model:
    """The model of a bank, with the bank's preprocessing.

    Args:
        folder: The bank's folder.
        model: The model, if it is at hand, which is not changed; otherwise it is made of the text
            the bank holds, if that is read as data.
        batch_size: Images per call of the model; default: as in the bank.

    Raises:
        FileError: If the bank does not say how it was made.
        InputError: If the model is another than that of the bank, or must be named by the user.
    """
    source = Path(folder)
    bank = read_description(source)
    try:
        made = bank["origin"]["model"]
        preprocessing = Preprocessing.from_dict(made["preprocessing"])
        fingerprint, spec, size = made["fingerprint"], made["spec"], int(made["batch_size"])
    except (TypeError, KeyError, ValueError) as error:
        raise FileError(
            f"{source} does not say which model it was made with. Name the model, not the bank."
        ) from error
    if model is None:
        model = as_model(stored_spec(spec, where=source, name_it="--model {}"))
    model = copy.copy(model)
    model.preprocessing = preprocessing
    model.batch_size = batch_size or size
    if model.fingerprint != fingerprint:
        raise InputError(
            f"{source} was made with another model, whose scores say nothing about this one. Name "
            "the same model, or leave the bank out."
        )
    return model


def class_indices(labels: object, classes: Any) -> Labels:
    """Labels of a classifier as positions among its classes."""
    given = to_array(labels, name="labels")
    if given.ndim != 1:
        raise InputError(f"labels must have shape (n,); got shape {given.shape}.")
    position = {name: i for i, name in enumerate(classes.tolist())}
    if unknown := [label for label in given.tolist() if label not in position]:
        raise InputError(
            f"labels must be what the classifier calls its classes ({list(position)[:10]}); got "
            f"{unknown[0]!r}. Pass them as they were passed to fit."
        )
    return np.array([position[label] for label in given.tolist()], dtype=np.intp)

"""From a model and labelled images to a bank on disk, resumed and extended by the same call."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._checks import check_count
from shiftcal._files import atomic_write
from shiftcal.errors import FileError
from shiftcal.scoring.gather import write_set
from shiftcal.scoring.job import Job
from shiftcal.scoring.kept_features import keeps_features
from shiftcal.scoring.labels import digest_of_labels, model_labels
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.run import Finished, run_job, warn_of_bad
from shiftcal.scoring.setup import as_engine, cache_folder
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.sharing import alone_in
from shiftcal.scoring.store import FolderStore, Store
from shiftcal.scoring.workshop import workshop
from shiftcal.surrogates.bank import set_name
from shiftcal.surrogates.folder import FORMAT, VERSION, digest_of, read_document
from shiftcal.surrogates.synthesize import Options, labelled_work, labels_of, origin_of

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
    bank has are not made again; others are added to it. Processes that build one bank at the same
    time share the work.

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
        missing = job.conditions if bank is None else _lacking(target, bank, job)
        if not missing:
            return _built(target, added=0, computed=0)
        job.conditions = missing
        store = FolderStore(unfinished / "shards", cache=cache)
        try:
            done = run_job(job, store, as_engine(options.engine), options.reporting)
            with alone_in(target):
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
    work = job.work
    k = bank["origin"]["n_classes"]
    now = {
        **job.origin(),
        "seed": work.seed,
        "table": work.table,
        "n_classes": k,
        "labels": digest_of_labels(model_labels(work.images, work.model, k)),
    }
    for what, get in _DECIDING.items():
        before, after = get(bank["origin"]), get(now)
        if before != after:
            before, after = _apart(before, after)
            raise FileError(
                f"{target} holds a bank with {what} {_short(before)}, now it is {_short(after)}. "
                "Give the same to add to it, or name a new folder."
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
    "labels": lambda origin: origin["labels"],
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


def _add(target: Path, job: Job, store: Store, done: Finished) -> int:
    """Write the sets of a job that the bank has not, then the document that names them."""
    bank = _read(target)
    # Another process may have finished one in the meantime.
    wanted = job.conditions if bank is None else _lacking(target, bank, job)
    document = _new(job, done) if bank is None else bank
    labels = labels_of(done)
    for condition in wanted:
        file = target / _file(condition)
        with atomic_write(file) as temporary:
            about = done.outlines[condition]
            write_set(temporary, job, condition, store, about=about, labels=labels)
        entry = _entry(file, condition, job.set_key(condition))
        names = [known["file"] for known in document["sets"]]
        if entry["file"] in names:
            document["sets"][names.index(entry["file"])] = entry
        else:
            document["sets"].append(entry)
    with atomic_write(target / "bank.json") as temporary:
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return len(wanted)


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

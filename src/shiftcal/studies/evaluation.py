"""From stored scores to records: what was evaluated before is not evaluated again."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from shiftcal import methods, metrics
from shiftcal.datasets import calibration_split
from shiftcal.errors import FitWarning, InputError
from shiftcal.files import atomic_write, make_folder
from shiftcal.maps import Temperature
from shiftcal.methods import Method
from shiftcal.numerics.softmax import p_max
from shiftcal.scoring.run import Reporting, showing
from shiftcal.scoring.work import one_blas_thread
from shiftcal.studies.archive import Archive, Entry, Split, Stored
from shiftcal.studies.plan import (
    CLEAN,
    ORACLE,
    Ladder,
    Plan,
    Target,
    Variant,
    uses_bank,
    uses_features,
)
from shiftcal.studies.records import Record
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.types import Floats

EVALUATED = "evaluated"
# Raise it with every change after which the same scores and settings give another outcome, even in
# the last digit: of a method, a map, a metric, a split or a draw.
FORMAT = 2
# Targets per task of a worker: what Ctrl-C loses, and what methods are fitted for.
_TARGETS = 12
T = TypeVar("T")


# --------------------------------------------------------------------------------------
# One variant on one target: fitted, adapted, judged
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Numbers of one variant on one target; fields as in :class:`Record`."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    n_sets: int
    n_calibration: int
    n: int
    ece: float
    debiased_ece: float
    nll: float
    brier: float
    accuracy: float
    confidence: float
    raw_confidence: float
    temperature: float | None
    chosen: str
    flags: str


@dataclass(frozen=True, eq=False)
class Fitted:
    """A method that has learned what it can before it sees a target.

    Attributes:
        method: The method; ``None`` is the oracle, which learns from each target's labels.
        n_sets: How many sets it learned from.
        n_calibration: Images in each.
    """

    method: Method | None
    n_sets: int
    n_calibration: int


def bank_of(archive: Archive, ladder: Ladder, split: Split, *, seed: int) -> SurrogateBank:
    """The surrogate sets of a ladder: the calibration rows of a split, or a part of them.

    Args:
        archive: The scores.
        ladder: Which sets, and how many images.
        split: Whose calibration rows.
        seed: Of the split; decides which part of the rows is taken.
    """
    rows = split.calibration
    if ladder.images is not None and ladder.images < len(rows):
        labels = archive.scores(CLEAN).labels
        assert labels is not None
        rows = rows[calibration_split(labels[rows], n=ladder.images, seed=seed)[0]]
    sets = []
    for severity, name in zip((0, *ladder.severities), ladder.sets, strict=True):
        stored = archive.scores(name)
        assert stored.labels is not None
        features = stored.features[rows] if stored.features is not None and not severity else None
        sets.append(
            SurrogateSet(
                stored.logits[rows],
                stored.labels[rows],
                name,
                corruption=ladder.corruption if severity else None,
                severity=severity,
                features=features,
            )
        )
    return SurrogateBank(sets)


def rows_of(stored: Stored, target: Target, split: Split) -> Stored:
    """The test rows of a target: all of them if it has its own images."""
    if target.natural:
        return stored
    rows = split.test
    assert stored.labels is not None
    features = None if stored.features is None else stored.features[rows]
    return Stored(stored.logits[rows], stored.labels[rows], features)


def fitted(
    variant: Variant, bank: SurrogateBank, train_features: Callable[[], Floats | None]
) -> Fitted:
    """The variant's method, fitted to a bank.

    Args:
        variant: What.
        bank: Its surrogate sets.
        train_features: Reads features of training images, for methods that need them.
    """
    if variant.method == ORACLE:
        return Fitted(None, 1, len(bank.clean))
    method: Method = methods.get(variant.method)(**variant.settings)
    features = train_features() if method.uses_features else None
    if method.uses_features and features is None:
        raise InputError(
            f"{variant.label} needs features of training images, and there are none: name them in "
            "the plan, [data] train = ..., with a model that gives features."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # what matters comes again as a flag
        method.fit(bank, source_features=features)
    return Fitted(method, len(bank) if method.uses_bank else 1, len(bank.clean))


def judged(made: Fitted, target: Stored, *, bins: int, seed: int | None = None) -> Outcome:
    """Adapt to a target and compare its calibrated confidences with its labels.

    Args:
        made: A fitted method.
        target: Test rows with labels.
        bins: Of the ECE.
        seed: Of the method's own draw; default: that of its settings.
    """
    method, labels = made.method, target.labels
    assert labels is not None
    chosen, flags = "", ""
    temperature: float | None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        if method is None:  # the oracle: temperature scaling on the target's own labels
            scaling = Temperature().fit(target.logits, labels)
            temperature, probs = scaling.temperature_, scaling.predict_proba(target.logits)
        else:
            if seed is not None:
                method.set_params(seed=seed)
            selection = method.adapt(target.logits, target.features)
            probs = method.predict_proba(target.logits)
            temperature, chosen = selection.temperature, selection.set_name or ""
            flags = " ".join(flag.code for flag in selection.flags)
    confidence = probs.max(axis=1)
    correct = probs.argmax(axis=1) == labels
    return Outcome(
        n_sets=made.n_sets,
        n_calibration=made.n_calibration,
        n=len(labels),
        ece=metrics.ece(confidence, correct, n_bins=bins),
        debiased_ece=metrics.debiased_ece(confidence, correct, n_bins=bins),
        nll=metrics.nll(probs, labels),
        brier=metrics.brier(probs, labels),
        accuracy=float(correct.mean()),
        confidence=float(confidence.mean()),
        raw_confidence=float(p_max(target.logits).mean()),
        temperature=temperature,
        chosen=chosen,
        flags=flags,
    )


def seed_of(variant: Variant, draw: int, split: int, target: Target) -> int | None:
    """The seed of one of several draws; ``None`` where there is one, whose settings have it.

    The first four bytes, the lowest first, of the BLAKE2b digest of ``[draw, split, "target"]`` as
    JSON: every draw, split and target has its own rows. Variants have their seeds in common.
    """
    if variant.draws == 1:
        return None
    text = json.dumps([draw, split, target.name]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")


# --------------------------------------------------------------------------------------
# What is to be evaluated, each known by content
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One evaluation.

    Attributes:
        variant: What.
        target: On which target.
        split: Seed of the split.
        draw: Which draw of the method's own.
        seed: Of that draw, if there are several.
        key: Digest of everything that decides the outcome.
        arrays: File of the target's logits, from the folder of the run.
    """

    variant: Variant
    target: Target
    split: int
    draw: int
    seed: int | None
    key: str
    arrays: str

    def record(self, outcome: Outcome) -> Record:
        """The row of ``records.csv``."""
        variant, target = self.variant, self.target
        return Record(
            panel=variant.panel,
            setting=variant.setting,
            variant=variant.key,
            label=variant.label,
            method=variant.method,
            calibration=variant.ladder.corruption,
            split=self.split,
            draw=self.draw,
            target=target.name,
            corruption=target.corruption,
            severity=target.severity,
            **vars(outcome),
            arrays=self.arrays,
            key=self.key,
        )


def key_of(variant: Variant, *content: object) -> str:
    """The digest of a method, its settings and whatever else decides an outcome."""
    method = [version("shiftcal"), FORMAT, variant.method, dict(variant.settings)]
    text = json.dumps([*method, *content], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def cells_of(plan: Plan, variants: Sequence[Variant], archive: Archive) -> Iterator[Cell]:
    """All evaluations of a plan, split by split, variant by variant.

    Methods that learn from the clean set alone do not depend on the others, and those that use no
    features not on the training images.
    """

    def scores(entry: Entry | None) -> tuple[str, str] | None:
        return None if entry is None else (entry.key, entry.sha256)

    for split in plan.seeds:
        for variant in variants:
            sets = variant.ladder.sets if uses_bank(variant.method) else (CLEAN,)
            learned = (
                [scores(archive.entries[name]) for name in sets],
                variant.ladder.images,
                plan.calibration.images,
                plan.bins,
                scores(archive.train) if uses_features(variant.method) else None,
                split,
            )
            for target in variant.targets:
                entry = archive.entries[target.name]
                for draw in range(variant.draws):
                    seed = seed_of(variant, draw, split, target)
                    key = key_of(variant, *learned, scores(entry), target.natural, draw, seed)
                    yield Cell(variant, target, split, draw, seed, key, entry.file)


# --------------------------------------------------------------------------------------
# Outcomes on disk: a file for each target of a split, found again by content
# --------------------------------------------------------------------------------------


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    """Every outcome of a run so far, by key; a damaged file counts as none."""
    found: dict[str, Outcome] = {}
    for file in sorted((folder / EVALUATED).glob("*/*.json")):
        found |= _read(file)
    return found


def _read(file: Path) -> dict[str, Outcome]:
    try:
        return TypeAdapter(dict[str, Outcome]).validate_python(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, RecursionError, ValidationError):
        return {}  # evaluated again


def _keep(folder: Path, name: str, outcomes: dict[str, Outcome]) -> None:
    file = folder / EVALUATED / f"{name}.json"
    make_folder(file.parent)
    with atomic_write(file, durable=False) as temporary:
        merged = {**_read(file), **outcomes}
        document = {key: vars(merged[key]) for key in sorted(merged)}
        temporary.write_text(json.dumps(document, indent=0) + "\n", "utf-8")


# --------------------------------------------------------------------------------------
# Evaluation
# --------------------------------------------------------------------------------------


class Work(Protocol):
    """Some evaluations, done by one worker; can be sent to another process."""

    def outcomes(self) -> Iterator[tuple[str, dict[str, Outcome]]]:
        """Names of files in ``evaluated/`` and the outcomes for them, by key."""


@dataclass(frozen=True)
class TargetsWork:
    """Evaluations of one split on some targets."""

    archive: Archive
    plan: Plan
    cells: tuple[Cell, ...]

    def outcomes(self) -> Iterator[tuple[str, dict[str, Outcome]]]:
        """Target by target; every variant is fitted once, one bank at a time is in memory."""
        seed, archive = self.cells[0].split, self.archive
        split = archive.split(seed, self.plan.calibration.images)
        by_ladder: dict[Ladder, dict[int, Variant]] = {}
        by_target: dict[Target, list[Cell]] = {}
        for cell in self.cells:
            by_ladder.setdefault(cell.variant.ladder, {})[id(cell.variant)] = cell.variant
            by_target.setdefault(cell.target, []).append(cell)
        made: dict[int, Fitted] = {}
        for ladder, variants in by_ladder.items():
            bank = bank_of(archive, ladder, split, seed=seed)
            for which, variant in variants.items():
                made[which] = fitted(variant, bank, archive.train_features)
        for target, cells in by_target.items():
            rows = rows_of(archive.scores(target.name), target, split)
            found = {
                cell.key: judged(made[id(cell.variant)], rows, bins=self.plan.bins, seed=cell.seed)
                for cell in cells
            }
            yield f"split-{seed}/{target.name}", found


def works_of(cells: Sequence[Cell], plan: Plan, archive: Archive, workers: int) -> list[Work]:
    """Cells cut by split, and within a split by target so that workers have equal shares."""
    works: list[Work] = []
    for split in plan.seeds:
        own = [cell for cell in cells if cell.split == split]
        names = list(dict.fromkeys(cell.target.name for cell in own))
        parts = max(workers, -(-len(names) // _TARGETS))
        for part in range(parts):
            wanted = set(names[part::parts])
            chosen = tuple(cell for cell in own if cell.target.name in wanted)
            if chosen:
                works.append(TargetsWork(archive, plan, chosen))
    return works


def evaluate(
    cells: Sequence[Cell],
    works: Callable[[list[Cell]], list[Work]],
    folder: Path,
    *,
    workers: int,
    reporting: Reporting,
) -> tuple[list[Record], int]:
    """Evaluate cells whose outcomes are not in the folder of the run yet.

    Outcomes are stored as they come. The records depend neither on how many workers there are, nor
    on what was done before.

    Args:
        cells: What is wanted, in the order of the records.
        works: Cuts the missing ones into tasks.
        folder: Of the run.
        workers: Processes.
        reporting: How progress is shown.

    Returns:
        The records, and how many evaluations were made by this call.
    """
    known = read_outcomes(folder)
    missing = [cell for cell in cells if cell.key not in known]
    tasks = works(missing)
    bar = showing(
        "evaluating",
        len(missing),
        shown=reporting.shown,
        line=reporting.line,
        unit="evaluations",
    )
    with one_blas_thread(), bar as step, closing(_outcomes(tasks, workers)) as results:
        for name, outcomes in results:
            _keep(folder, name, outcomes)
            known |= outcomes
            step(len(outcomes), kept=False)
    return [cell.record(known[cell.key]) for cell in cells], len(missing)


def _outcomes(tasks: Sequence[Work], workers: int) -> Any:
    if workers == 1 or len(tasks) < 2:
        for task in tasks:
            yield from task.outcomes()
        return
    for found in in_processes(_all_of, [(task,) for task in tasks], workers):
        yield from found


def _all_of(task: Work) -> list[tuple[str, dict[str, Outcome]]]:
    with one_blas_thread():
        return list(task.outcomes())


def in_processes(
    work: Callable[..., T], tasks: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[T]:
    """Results of tasks as they come; closed before the end, running tasks are given up.

    Args:
        work: Called with the parts of a task; both can be sent to another process.
        tasks: What is to be done.
        workers: Processes.
    """
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    from shiftcal.scoring.engines import safe_start

    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    with safe_start():  # workers start here; Ctrl-C ends them from this process
        results = parallel(delayed(work)(*task) for task in tasks)
    try:
        for found in results:  # noqa: UP028
            yield found
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tasks that are given up: the next run does them
            results.close()

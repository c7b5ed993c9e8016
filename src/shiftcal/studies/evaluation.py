"""From stored scores to records: what was evaluated before is not evaluated again."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from shiftcal.errors import FileError, FitWarning
from shiftcal.files import make_folder, read_document, write_document
from shiftcal.maps import Temperature
from shiftcal.methods import Method
from shiftcal.metrics import brier, debiased_ece, ece, facts_of, nll, unchecked
from shiftcal.numerics.blocks import one_blas_thread
from shiftcal.numerics.softmax import p_max
from shiftcal.progress import Reporting, showing
from shiftcal.registry import METHODS, METRICS
from shiftcal.scores import Scores
from shiftcal.scoring import engines
from shiftcal.studies.plan import ORACLE, Ladder, Target, Variant, uses_bank
from shiftcal.studies.records import Record
from shiftcal.studies.sources import Stored
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Floats

EVALUATED = "evaluated"
# Raise it with every change after which the same scores and settings give another outcome, even in
# the last digit: of a method, a map, a metric, a split or a draw.
FORMAT = 2
_FILE: dict[str, Any] = {"format": "shiftcal-study-outcomes", "version": FORMAT}
# Targets per task of a worker: what Ctrl-C loses, and what methods are fitted for.
_TARGETS = 12
T = TypeVar("T")
R = TypeVar("R")
# What an evaluation gives: the fields of a record from ``n_sets`` to ``flags``.
Outcome: TypeAlias = dict[str, Any]


# --------------------------------------------------------------------------------------
# One variant on one target: fitted, adapted, judged
# --------------------------------------------------------------------------------------


def judged(
    method: Method | None,
    target: Scores,
    *,
    bins: int,
    seed: int | None,
    metrics: Sequence[str] = (),
) -> Outcome:
    """Adapt to a target and compare its calibrated confidences with its labels.

    Args:
        method: A fitted method; ``None`` is the oracle.
        target: Test rows with labels.
        bins: Of the ECE.
        seed: Of the method's own draw; ``None`` is that of its settings.
        metrics: Names of others to compute.
    """
    logits, labels = target.logits(), target.labels
    assert labels is not None
    chosen, flags = "", ""
    temperature: float | None
    if method is None:  # the oracle: temperature scaling on the target's own labels
        scaling = Temperature().fit_checked(logits, labels, None)
        temperature, probs = scaling.temperature_, scaling.apply_checked(logits)
    else:
        if seed is not None:
            method.set_params(seed=seed)
        selection = method.adapt(target)
        probs, temperature = method.predict_proba(target), selection.temperature
        chosen, flags = selection.set_name or "", " ".join(flag.code for flag in selection.flags)
    confidence = probs.max(axis=1)
    correct = probs.argmax(axis=1) == labels
    more = {}
    for name in metrics:
        function = METRICS.get(name)
        top1 = facts_of(function).reads == "top1"
        more[name] = float(function(*((confidence, correct) if top1 else (probs, labels))))
    return {
        "n": len(labels),
        "ece": unchecked(ece)(confidence, correct, n_bins=bins),
        "debiased_ece": unchecked(debiased_ece)(confidence, correct, n_bins=bins),
        "nll": unchecked(nll)(probs, labels),
        "brier": unchecked(brier)(probs, labels),
        "accuracy": float(correct.mean()),
        "confidence": float(confidence.mean()),
        "raw_confidence": float(p_max(logits).mean()),
        "temperature": temperature,
        "chosen": chosen,
        "flags": flags,
        **({"metrics": more} if more else {}),
    }


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
class Evaluation:
    """One evaluation.

    Attributes:
        variant: What.
        target: On which target.
        split: Seed of the split.
        draw: Which draw of the method's own.
        key: Digest of everything that decides the outcome.
        arrays: File of the target's logits, from the folder of the run.
        metrics: What else is computed.
    """

    variant: Variant
    target: Target
    split: int
    draw: int
    key: str
    arrays: str
    metrics: tuple[str, ...] = ()

    def record(self, outcome: Outcome) -> Record:
        """The row of ``records.csv``."""
        variant, target = self.variant, self.target
        values: Outcome = {"variant": variant.key, "calibration": variant.ladder.corruption}
        for part, names in (
            (variant, ("panel", "setting", "label", "method")),
            (target, ("corruption", "severity")),
            (self, ("split", "draw", "arrays", "key")),
        ):
            values |= {name: getattr(part, name) for name in names}
        outcome = {name: value for name, value in outcome.items() if name != "metrics"}
        return Record(target=target.name, **values, **outcome)


def key_of(variant: Variant, *content: object) -> str:
    """The digest of a method, its settings and whatever else decides an outcome."""
    method = [version("shiftcal"), FORMAT, variant.method, dict(variant.settings)]
    text = json.dumps([*method, *content], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# --------------------------------------------------------------------------------------
# Evaluation
# --------------------------------------------------------------------------------------


class Data(Protocol):
    """Scores that methods are fitted to and judged on; can be sent to another process."""

    def bank(self, ladder: Ladder, seed: int) -> SurrogateBank:
        """The surrogate sets of a ladder in a split."""

    def train_features(self) -> Floats | None:
        """Features of training images."""

    def rows(self, target: Target, seed: int) -> Stored:
        """The test rows of a target in a split."""


def outcomes_of(part: tuple[Data, Sequence[Evaluation], int]) -> dict[str, Outcome]:
    """Outcomes by key, of cells of one split on the same data, with a number of bins.

    Every variant is fitted once, and one bank at a time is in memory.
    """
    data, cells, bins = part
    seed = cells[0].split
    by_ladder: dict[Ladder, dict[int, Variant]] = {}
    by_target: dict[Target, list[Evaluation]] = {}
    for cell in cells:
        by_ladder.setdefault(cell.variant.ladder, {})[id(cell.variant)] = cell.variant
        by_target.setdefault(cell.target, []).append(cell)
    made: dict[int, tuple[Method | None, Outcome]] = {}
    outcomes = {}
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # what matters is a flag of the record
        for ladder, variants in by_ladder.items():
            bank = data.bank(ladder, seed)
            for which, variant in variants.items():
                method = None
                if variant.method != ORACLE:
                    method = METHODS.get(variant.method)(**variant.settings)
                    features = data.train_features() if method.uses_features else None
                    method.fit(bank, source_features=features)
                n_sets = len(bank) if uses_bank(variant.method) else 1
                made[which] = method, {"n_sets": n_sets, "n_calibration": len(bank.clean)}
        for target, own in by_target.items():
            logits, labels, features = data.rows(target, seed)
            rows = Scores(logits, labels=labels, features=features)
            for cell in own:
                method, sizes = made[id(cell.variant)]
                draw = seed_of(cell.variant, cell.draw, seed, target)
                outcomes[cell.key] = sizes | judged(
                    method, rows, bins=bins, seed=draw, metrics=cell.metrics
                )
    return outcomes


def evaluate(
    cells: Sequence[Evaluation],
    data_of: Callable[[Evaluation], Data],
    folder: Path,
    *,
    bins: int,
    workers: int,
    reporting: Reporting,
) -> tuple[list[Record], int, dict[str, dict[str, float]]]:
    """Evaluate cells whose outcomes are not in the folder of the run yet.

    Outcomes are stored as they come. The records depend neither on how many workers there are, nor
    on what was done before.

    Args:
        cells: What is wanted, in the order of the records.
        data_of: The scores that a cell is evaluated on.
        folder: Of the run.
        bins: Of the ECE.
        workers: Processes.
        reporting: How progress is shown.

    Returns:
        The records, how many evaluations were made by this call, and by key of a record what else
        was computed.
    """
    known: dict[str, Outcome] = {}
    for file in (folder / EVALUATED).glob("*.json"):
        with suppress(FileError):  # a damaged one is evaluated again
            known |= read_document(file, "outcomes", **_FILE)["outcomes"]
    missing = {cell.key: cell for cell in cells if cell.key not in known}
    groups: dict[tuple[Data, int], dict[str, list[Evaluation]]] = {}
    for cell in missing.values():
        targets = groups.setdefault((data_of(cell), cell.split), {})
        targets.setdefault(cell.target.name, []).append(cell)
    parts = []
    for (data, _), targets in groups.items():
        own = list(targets.values())
        n = min(len(own), max(workers, -(-len(own) // _TARGETS)))
        parts += [(data, [cell for some in own[i::n] for cell in some], bins) for i in range(n)]
    make_folder(folder / EVALUATED)
    bar = showing("evaluating", len(missing), **vars(reporting), unit="evaluations")
    with one_blas_thread(), bar as step, closing(in_processes(outcomes_of, parts, workers)) as done:
        for outcomes in done:
            file = folder / EVALUATED / f"{next(iter(outcomes))}.json"
            write_document(file, {"outcomes": outcomes}, durable=False, **_FILE)
            known |= outcomes
            step(len(outcomes), kept=False)
    more = {cell.key: known[cell.key].get("metrics", {}) for cell in cells}
    return [cell.record(known[cell.key]) for cell in cells], len(missing), more


def in_processes(
    work: Callable[[T], R], tasks: Sequence[T], workers: int
) -> Generator[R, None, None]:
    """What tasks give, as it comes; closed before the end, running tasks are given up.

    Args:
        work: Called with a task; both can be sent to another process.
        tasks: What is to be done.
        workers: Processes; with one, the work is done here.
    """
    if workers == 1 or len(tasks) < 2:
        yield from map(work, tasks)
    else:
        yield from engines.in_processes(work, tasks, workers)

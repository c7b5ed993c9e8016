"""Domain adaptation: a network for every task, trainer and seed, calibrated by every method.

The pipeline opens the domains, trains the networks and hands their outputs to the same evaluation,
records and report as every other study.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.adaptation import Adapted, adapt
from shiftcal.adaptation.features import Frozen, content_digest, frozen_features
from shiftcal.adaptation.run import BANK, SOURCE_TRAIN, TARGET, Task
from shiftcal.datasets import ChainImages, ImageSet, as_image_set
from shiftcal.errors import FileError, FitError, InputError
from shiftcal.files import make_folder
from shiftcal.numerics.samples import mean_interval
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures import Lines, Panel
from shiftcal.report.tables import Cell as TableCell
from shiftcal.report.tables import Column, Row, Table
from shiftcal.scoring.run import Reporting, showing
from shiftcal.scoring.work import digest_of_labels
from shiftcal.studies.archive import Stored, repair, write_json
from shiftcal.studies.catalog.base import Findings
from shiftcal.studies.evaluation import Cell, Outcome, Work, fitted, in_processes, judged, key_of
from shiftcal.studies.plan import (
    CLEAN,
    NAME_IT,
    AdaptationPlan,
    DomainPlan,
    Ladder,
    Pair,
    Target,
    TrainerPlan,
    Variant,
    chosen_by,
    set_name,
    uses_features,
)
from shiftcal.studies.records import Record
from shiftcal.studies.sources import Means, Search, check_bins, digest, limited
from shiftcal.studies.tables import ECE, marked, mean_cell, series, temperature_cell
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.folder import digest_of as sha256_of

# Raise it with every change of what a trainer or its training computes from the same numbers.
_TRAINING_FORMAT = 1
_INDEX = "trainings/index.json"
_FORMAT, _VERSION = "shiftcal-study-trainings", 1
_SOURCE_ONLY = "source-only"
_TRAININGS = "trainings.csv"


# --------------------------------------------------------------------------------------
# The networks of a plan
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """One network.

    Attributes:
        pair: The task.
        trainer: The trainer.
        seed: Of split and training.
        place: Its folder, from that of the run, named by a digest of all that decides the network:
            another plan or other images have another.
        failed: Why it diverged; empty if it did not.
    """

    pair: Pair
    trainer: TrainerPlan
    seed: int
    place: str
    failed: str = ""

    @property
    def title(self) -> str:
        """In messages."""
        return f"{self.trainer.label} on {self.pair.title}, seed {self.seed}"

    @property
    def identity(self) -> tuple[str, str, int]:
        """Task, trainer and seed."""
        return self.pair.name, self.trainer.key, self.seed


def _all_trainings(plan: AdaptationPlan) -> Iterator[Training]:
    """Seed by seed, task by task, without places."""
    for seed in plan.seeds:
        for pair in plan.pairs:
            for trainer in plan.trainers:
                yield Training(pair, trainer, seed, "")


def _write_index(run: Path, trainings: Sequence[Training], images: Mapping[str, int]) -> None:
    networks = [[*t.identity, t.place, t.failed] for t in trainings]
    head = {"format": _FORMAT, "version": _VERSION}
    write_json(run / _INDEX, {**head, "images": images, "networks": networks})


def _read_index(plan: AdaptationPlan, run: Path) -> tuple[list[Training], dict[str, int]]:
    """The trainings of a finished run, and how many images each domain has.

    Raises:
        FileError: If a network that the plan asks for is missing, or the index is damaged.
    """
    file = run / _INDEX
    try:
        document = json.loads(file.read_text("utf-8"))
        if (document["format"], document["version"]) != (_FORMAT, _VERSION):
            raise ValueError("another format or version")
        known = {
            (str(task), str(trainer), int(seed)): (str(place), str(failed))
            for task, trainer, seed, place, failed in document["networks"]
        }
        images = {str(name): int(n) for name, n in document["images"].items()}
    except OSError as error:
        raise FileError(
            f"{run} has no finished trainings: {file} could not be read "
            f"({error.strerror or error}). Continue the study: {repair(run)}"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{file} is damaged. Write it again: {repair(run)}") from error
    trainings = []
    for training in _all_trainings(plan):
        place, failed = known.get(training.identity, ("", ""))
        found = replace(training, place=place, failed=failed)
        inside = place.startswith("trainings/") and ".." not in Path(place).parts
        if not inside or not (failed or _finished(run, found)):
            raise FileError(
                f"{run} has no network of {training.title}, which its plan asks for. Run the plan "
                f"again: {repair(run)}"
            )
        trainings.append(found)
    return trainings, images


def _finished(run: Path, training: Training) -> bool:
    return (run / training.place / "adapt.json").is_file()


def _diverged(run: Path, training: Training) -> Path:
    return (run / training.place).with_suffix(".diverged.json")


def _failure(run: Path, training: Training) -> str:
    """Why a training diverged with this version of shiftcal; the same seed would again."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        document = json.loads(_diverged(run, training).read_text("utf-8"))
        if document["shiftcal"] == version("shiftcal"):
            return str(document["reason"])
    return ""


# --------------------------------------------------------------------------------------
# The pipeline
# --------------------------------------------------------------------------------------


class NetworksPipeline:
    """A study of domain adaptation: every method on every trained network.

    In records the panel is the trainer, the target the task, the split the seed.
    """

    title = "Domain adaptation"
    how = (
        "The numbers come from rows of [`records.csv`](records.csv), one for each method on each "
        "trained network: panel is the trainer, target the task, split the seed. "
        f"[`data/{_TRAININGS}`](data/{_TRAININGS}) has the networks themselves in numbers. A row "
        "names its file of logits of the held-out target; the surrogate sets, the features of the "
        "source and the weights are in the same folder. `studies.Run(folder).recompute(record)` "
        "computes it again."
    )

    def __init__(self, plan: AdaptationPlan) -> None:
        self.plan = plan
        self.missing: tuple[str, ...] = ()
        self.images: dict[str, ImageSet] = {}
        self.counts: dict[str, int] = {}
        self.backbone: Any = None
        self.trainings: list[Training] = []
        self.run = Path()

    @classmethod
    def opened(cls, plan: AdaptationPlan, *, skip_missing: bool) -> NetworksPipeline:
        """Of a plan whose domains and backbone are opened, before anything is written.

        Raises:
            MissingData: Naming everything that is missing, and where to get it.
            InputError: If something exists and cannot be used.
        """
        from shiftcal.adaptation.loop import resolve_device

        try:
            resolve_device(plan.training.device)
        except InputError as error:
            raise InputError(f"{plan.where} [training] {error}") from error
        search = Search(skip=skip_missing)
        text, backbone = search.first("the backbone", plan.network.backbone, _backbone(plan))
        needed = {name for task in plan.tasks for name in task}
        images: dict[str, ImageSet] = {}
        domains = []
        for domain in (domain for domain in plan.domains if domain.name in needed):
            opener = partial(_open_images, domain)
            place, found = search.first(
                domain.title, domain.images, opener, domain.fetch, optional=True
            )
            if place is not None and found is not None:
                images[domain.name] = found
                domains.append(replace(domain, images=(place,)))
        tasks = tuple(task for task in plan.tasks if images.keys() >= set(task))
        if not tasks:
            search.skip = False
        missing = search.left_out()
        assert text is not None
        used = {name for task in tasks for name in task}
        pipeline = cls(
            replace(
                plan,
                network=replace(plan.network, backbone=(text,)),
                domains=tuple(domain for domain in domains if domain.name in used),
                tasks=tasks,
            )
        )
        plan = pipeline.plan
        pipeline.missing, pipeline.backbone = missing, backbone
        pipeline.images = {
            domain.name: limited(
                images[domain.name],
                domain.limit,
                domain.title,
                stratified=plan.is_source(domain),  # labels of a mere target have no say
            )
            for domain in plan.domains
        }
        pipeline.counts = {name: len(each) for name, each in pipeline.images.items()}
        pipeline._check()
        return pipeline

    @classmethod
    def stored(cls, plan: AdaptationPlan, folder: Path) -> NetworksPipeline:
        """Of a run whose networks are all trained.

        Raises:
            FileError: If a network is missing.
        """
        pipeline = cls(plan)
        pipeline.run = folder
        pipeline.trainings, pipeline.counts = _read_index(plan, folder)
        return pipeline

    def _check(self) -> None:
        """Reject images that cannot be judged; warn of an ECE of a few images a bin."""
        tested: dict[int, str] = {}
        for pair in self.plan.pairs:
            if self.images[pair.target.name].labels is None:
                raise InputError(
                    f"{pair.target.title} has no labels, which the evaluation needs. Name a file "
                    "of them in the plan: labels = ..."
                )
            held_out = self._task(pair).split(self.plan.seeds[0]).held_out
            tested.setdefault(len(held_out), pair.target.title)
        fewest = min(tested)
        check_bins(fewest, self.plan.bins, f"the held-out half of {tested[fewest]}")

    def _task(self, pair: Pair) -> Task:
        return Task(self.images[pair.source.name], self.images[pair.target.name])

    def compute(
        self, folder: Path, means: Means, workers: int, lap: Callable[[str], None]
    ) -> dict[str, int]:
        """Compute frozen features, then train all networks that are not trained yet."""
        self.run = folder
        features: dict[str, Frozen] = {}
        scored = 0
        if self.plan.network.frozen:
            features, scored = self._features(means)
            lap("features")
        self.trainings = list(self._placed(features, means.reporting))
        left = [t for t in self.trainings if not _finished(folder, t) and not t.failed]
        jobs = [self._job(training, features) for training in left]
        threads = self.plan.training.threads or (1 if self.plan.network.frozen else None)
        if threads is None:
            results = _one_by_one(jobs, workers, means.reporting)
        else:
            jobs = [replace(job, threads=threads) for job in jobs]
            results = _at_once(jobs, max(1, workers // threads), means.reporting)
        with closing(results):  # type: ignore[type-var]
            for training, reason in results:
                if reason:
                    note = {"shiftcal": version("shiftcal"), "reason": reason}
                    write_json(_diverged(folder, training), note)
        self.trainings = [
            t if _finished(folder, t) else replace(t, failed=_failure(folder, t))
            for t in self.trainings
        ]
        _write_index(folder, self.trainings, self.counts)
        lap("training")
        return {"scored": scored, "trained": len(jobs)}

    def _features(self, means: Means) -> tuple[dict[str, Frozen], int]:
        """Frozen features of every domain; a source has those of the surrogate sets, too."""
        plan, found, scored = self.plan, {}, 0
        for domain in plan.domains:
            name = digest(plan.network.backbone, *plan.images_of(domain))
            folder = self.run / "features" / f"{domain.name}-{name}"
            make_folder(folder.parent)
            before = 0
            with suppress(FileError):
                before = len(Frozen.open(folder).document["sets"])
            features = frozen_features(
                self.backbone,
                self.images[domain.name],
                folder,
                corruption=plan.calibration.corruption,
                severities=plan.calibration.severities if plan.is_source(domain) else (),
                engine=means.engine,
                cache=means.cache,
                reporting=means.reporting,
            )
            added = len(features.document["sets"]) - before
            scored += added * len(self.images[domain.name])
            found[domain.name] = features
        return found, scored

    def _placed(self, features: Mapping[str, Frozen], reporting: Reporting) -> Iterator[Training]:
        """All trainings with their folders, decided by the plan and by images and labels."""
        plan = self.plan
        content = {
            name: [
                features[name].identity if features else content_digest(images, reporting),
                digest_of_labels(images.labels),
                images.classes,
            ]
            for name, images in self.images.items()
        }
        for training in _all_trainings(plan):
            pair, chosen = training.pair, chosen_by(plan, training.trainer)
            decided = digest(
                _TRAINING_FORMAT,
                content[pair.source.name],
                content[pair.target.name],
                asdict(plan.network),
                chosen.name,
                sorted(chosen.trainer.to_dict().items()),
                sorted(chosen.settings.to_dict().items()),
                None if plan.network.frozen else chosen.transform,
                (plan.training.select, plan.training.precision),
                asdict(plan.calibration),
            )
            named = f"{training.trainer.key}-{decided}"
            place = f"trainings/{pair.name}/{named}/seed-{training.seed}"
            placed = replace(training, place=place)
            yield replace(placed, failed=_failure(self.run, placed))

    def _job(self, training: Training, features: Mapping[str, Frozen]) -> _Job:
        plan, pair = self.plan, training.pair
        options: dict[str, Any] = {
            "trainer": training.trainer.name,
            "recipe": plan.training.recipe,
            "changes": {**plan.training.settings, **training.trainer.settings},
            "transform": plan.training.transform,
            "seed": training.seed,
            "corruption": plan.calibration.corruption,
            "severities": plan.calibration.severities,
            "select": plan.training.select,
            "device": plan.training.device,
            "precision": plan.training.precision,
        }
        if features:
            options["features"] = (features[pair.source.name], features[pair.target.name])
        else:
            options["backbone"] = plan.network.backbone[0]
        # A worker that was started before may be in another folder than this process is by now.
        folder = (self.run / training.place).absolute()
        source, target = self.images[pair.source.name], self.images[pair.target.name]
        return _Job(training, folder, source, target, options)

    def cells(self) -> list[Cell]:
        """Every method on every network, known by its bank, its source and its target."""
        plan, made = self.plan, []
        ladder = Ladder(plan.calibration.corruption, plan.calibration.severities)
        for training in self._done():
            place, task = self.run / training.place, training.pair.name
            try:
                bank, train, target = (
                    sha256_of(place / name) for name in (f"{BANK}/bank.json", SOURCE_TRAIN, TARGET)
                )
            except OSError as error:
                raise FileError(
                    f"{error.filename} could not be read ({error.strerror or error}). Remove the "
                    f"folder {place} and make it again: {repair(self.run)}"
                ) from error
            for method in plan.methods:
                variant = Variant(
                    method.key,
                    method.label,
                    method.name,
                    ladder,
                    (Target(task, task, None),),
                    method.settings,
                    panel=training.trainer.key,
                )
                features = train if uses_features(method.name) else None
                key = key_of(variant, bank, target, features, plan.bins)
                arrays = f"{training.place}/{TARGET}"
                made.append(Cell(variant, variant.targets[0], training.seed, 0, None, key, arrays))
        return made

    def works(self, cells: Sequence[Cell], workers: int) -> list[Work]:
        """The methods on one network each."""
        by_network: dict[tuple[str, str, int], list[Cell]] = {}
        for cell in cells:
            place = cell.target.name, cell.variant.panel, cell.split
            by_network.setdefault(place, []).append(cell)
        run = self.run.absolute()
        return [
            NetworkWork(run, training, self.plan.bins, tuple(by_network[training.identity]))
            for training in self._done()
            if training.identity in by_network
        ]

    def findings(self, records: Sequence[Record]) -> Findings:
        """Tables and figures."""
        facts = [_open_network(self.run, training).facts for training in self._done()]
        failures = [(*t.identity, t.failed) for t in self.trainings if t.failed]
        return findings_of(AdaptationResults(self.plan, tuple(records), tuple(facts)), failures)

    def about(self) -> dict[str, Any]:
        """How many images each domain has, and how many trainings diverged."""
        return {"diverged": sum(bool(t.failed) for t in self.trainings), "domains": self.counts}

    def _done(self) -> list[Training]:
        return [training for training in self.trainings if not training.failed]


def _backbone(plan: AdaptationPlan) -> Callable[[str], Any]:
    from shiftcal.adaptation.features import as_feature_model
    from shiftcal.adaptation.network import make_backbone, stored_backbone

    make: Callable[[Any], Any] = as_feature_model if plan.network.frozen else make_backbone
    if not plan.stored:
        return make
    return lambda text: make(
        stored_backbone(text, pretrained=True, where=plan.where, name_it=NAME_IT)
    )


def _open_images(domain: DomainPlan, texts: tuple[str, ...]) -> ImageSet:
    parts = [as_image_set(text) for text in texts]
    joined = parts[0] if len(parts) == 1 else ChainImages(parts, name=domain.title)
    return joined if domain.labels is None else as_image_set(joined, labels=domain.labels)


# --------------------------------------------------------------------------------------
# Training
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Job:
    """One training with its images and options; can be sent to another process."""

    training: Training
    folder: Path
    source: ImageSet
    target: ImageSet
    options: Mapping[str, Any]
    threads: int | None = None

    def done(self, **more: Any) -> tuple[Training, str]:
        """Train, and store the outputs; with the reason if it diverged."""
        from shiftcal.models.pytorch import torch_threads

        make_folder(self.folder.parent)
        with torch_threads(self.threads):
            try:
                adapt(self.source, self.target, self.folder, **self.options, **more)
            except FitError as error:
                # Its advice is for somebody who trains one network.
                return self.training, f"{str(error).partition('. ')[0].removesuffix('.')}."
        return self.training, ""


def _one_by_one(
    jobs: list[_Job], workers: int, reporting: Reporting
) -> Iterator[tuple[Training, str]]:
    """Each shows its own progress, and has processes that read images for it."""
    for number, job in enumerate(jobs, 1):
        if reporting.line is not None:
            reporting.line(f"training {number} of {len(jobs)}: {job.training.title}")
        yield job.done(workers=0 if workers == 1 else workers, reporting=reporting)


def _at_once(
    jobs: list[_Job], workers: int, reporting: Reporting
) -> Iterator[tuple[Training, str]]:
    """Several at a time; progress is how many are done."""
    bar = showing(
        "training", len(jobs), shown=reporting.shown, line=reporting.line, unit="trainings"
    )
    with bar as step:
        if workers == 1 or len(jobs) < 2:
            results: Iterator[tuple[Training, str]] = map(_quietly, jobs)
        else:
            results = in_processes(_quietly, [(job,) for job in jobs], workers)
        for found in results:
            step(1, kept=False)
            yield found


def _quietly(job: _Job) -> tuple[Training, str]:
    return job.done(reporting=Reporting(shown=False))


# --------------------------------------------------------------------------------------
# Outputs of a trained network
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """One trained network in numbers; fractions, not percent.

    Attributes:
        task: Name of the task.
        trainer: Key of the trainer.
        seed: Of split and training.
        n_calibration: Images of the source that were not trained on.
        source_accuracy: On them.
        source_confidence: Mean confidence on them.
        n_target: Images of the target that training never saw.
        target_accuracy: On them.
        target_confidence: Mean confidence on them.
    """

    task: str
    trainer: str
    seed: int
    n_calibration: int
    source_accuracy: float
    source_confidence: float
    n_target: int
    target_accuracy: float
    target_confidence: float


@dataclass(frozen=True, eq=False)
class _Network:
    """Outputs of a trained network: surrogate sets, held-out target, features of the source."""

    training: Training
    adapted: Adapted
    bank: SurrogateBank
    target: Stored

    @property
    def facts(self) -> Facts:
        """The network in numbers."""
        clean, target = self.bank.clean, self.target
        return Facts(
            *self.training.identity,
            n_calibration=len(clean),
            source_accuracy=float((clean.logits.argmax(axis=1) == clean.labels).mean()),
            source_confidence=float(p_max(clean.logits).mean()),
            n_target=len(target.logits),
            target_accuracy=float((target.logits.argmax(axis=1) == target.labels).mean()),
            target_confidence=float(p_max(target.logits).mean()),
        )


def _open_network(run: Path, training: Training) -> _Network:
    """The outputs of a training.

    Raises:
        FileError: If they are missing or damaged.
    """
    try:
        adapted = Adapted.open(run / training.place)
        scores = adapted.target
        target = Stored(scores.logits(), scores.labels, scores.features)
        if target.labels is None:
            raise FileError(f"{run / training.place / TARGET} has no labels.")
        sets = [
            SurrogateSet(
                each.logits,
                each.labels,
                set_name(each.corruption or "", each.severity or 0),
                each.corruption,
                each.severity,
                each.features,
            )
            for each in adapted.bank
        ]
        return _Network(training, adapted, SurrogateBank(sets), target)
    except (FileError, InputError) as error:
        raise FileError(f"{error} Make it again: {repair(run)}") from error


@dataclass(frozen=True)
class NetworkWork:
    """Evaluations of methods on one network."""

    run: Path
    training: Training
    bins: int
    cells: tuple[Cell, ...]

    def outcomes(self) -> Iterator[tuple[str, dict[str, Outcome]]]:
        """All of them at once."""
        network = _open_network(self.run, self.training)
        outcomes = {}
        for cell in self.cells:
            made = fitted(cell.variant, network.bank, lambda: network.adapted.source_features)
            outcomes[cell.key] = judged(made, network.target, bins=self.bins)
        task, trainer, seed = self.training.identity
        yield f"split-{seed}/{task}.{trainer}", outcomes


# --------------------------------------------------------------------------------------
# Tables and figures
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AdaptationResults:
    """Records and facts of a study.

    Attributes:
        plan: The plan as it was run.
        records: Every evaluation; panel is the trainer, target the task, split the seed.
        facts: Of every network.
    """

    plan: AdaptationPlan
    records: tuple[Record, ...]
    facts: tuple[Facts, ...] = ()

    @cached_property
    def variants(self) -> dict[str, str]:
        """Labels of the methods by key, in the order of the plan."""
        return {method.key: method.label for method in self.plan.methods}

    @cached_property
    def trainers(self) -> tuple[TrainerPlan, ...]:
        """Those with records."""
        there = {record.panel for record in self.records}
        return tuple(trainer for trainer in self.plan.trainers if trainer.key in there)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The tasks with records."""
        there = {record.target for record in self.records}
        return tuple(pair for pair in self.plan.pairs if pair.name in there)

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], list[Record]]:
        found: dict[tuple[str, str, str], list[Record]] = {}
        for record in self.records:
            found.setdefault((record.panel, record.variant, record.target), []).append(record)
        return found

    def at(self, trainer: str, variant: str, task: str) -> list[Record]:
        """The records of one trainer, method and task: one for each seed."""
        return self._index.get((trainer, variant, task), [])

    def over_tasks(self, trainers: Sequence[str], variant: str) -> list[Record]:
        """The records of a method over all tasks and some trainers.

        A seed of which one of them is missing is left out, so that means over seeds are of like
        with like.
        """
        found = [self.at(trainer, variant, p.name) for trainer in trainers for p in self.pairs]
        whole = set.intersection(*({r.split for r in each} for each in found)) if found else set()
        return [record for each in found for record in each if record.split in whole]

    def by_task(self, trainer: str, variant: str) -> list[list[Record]]:
        """The records task by task, and over all tasks if there are several."""
        found = [self.at(trainer, variant, pair.name) for pair in self.pairs]
        return [*found, self.over_tasks([trainer], variant)] if len(found) > 1 else found

    @property
    def titles(self) -> list[str]:
        """Headers for :meth:`by_task`."""
        names = [pair.title for pair in self.pairs]
        return [*names, "Avg"] if len(names) > 1 else names

    @property
    def uncalibrated(self) -> str:
        """The method whose records show the networks themselves: one that changes no prediction."""
        methods = {record.variant: record.method for record in self.records}
        for wanted in ("vanilla", "ts", "sts", "sac"):
            for key in self.variants:
                if methods.get(key) == wanted:
                    return key
        return next(iter(self.variants))

    @property
    def note(self) -> str:
        """What the intervals are."""
        if len(self.plan.seeds) > 1:
            return (
                "Intervals: 95 %, over the seeds; each has a split of source and target and a "
                "training of its own. Seeds share images, so that they are somewhat narrow."
            )
        return (
            "One seed: one split of source and target and one training each, and so no intervals."
        )


def findings_of(
    results: AdaptationResults, failures: Sequence[tuple[str, str, int, str]] = ()
) -> Findings:
    """Tables and figures of a run.

    Args:
        results: Of the run.
        failures: Task, trainer, seed and reason of every training that diverged.
    """
    data = {_TRAININGS: trainings_to_csv(results.facts, failures)}
    if not results.records:
        return Findings({}, {}, data)
    tables = {"ece-by-trainer": _trainer_table(results), "accuracy": _accuracy_table(results)}
    tables |= {f"ece-{trainer.key}": _task_table(results, trainer) for trainer in results.trainers}
    tables["temperatures"] = _temperature_table(results)
    if results.facts:
        tables["confidence"] = _confidence_table(results)
    figures = {"ece-by-trainer": _trainer_lines(results), "accuracy": _accuracy_lines(results)}
    return Findings(tables, figures, data)


def trainings_to_csv(facts: Sequence[Facts], failures: Sequence[tuple[str, str, int, str]]) -> str:
    """Networks in numbers with all digits, then those that diverged with their reason."""
    text = io.StringIO(newline="")
    names = [field.name for field in fields(Facts)]
    writer = csv.DictWriter(text, [*names, "failed"], lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(asdict(each) for each in facts)
    for task, trainer, seed, reason in failures:
        writer.writerow({"task": task, "trainer": trainer, "seed": seed, "failed": reason})
    return text.getvalue()


def _task_table(results: AdaptationResults, trainer: TrainerPlan) -> Table:
    """ECE of every method on every task, and the mean: the layout of the paper's Table 3."""
    rows = [
        Row(
            label,
            tuple(mean_cell(each) for each in results.by_task(trainer.key, key)),
            ranked=key != "oracle",
        )
        for key, label in results.variants.items()
    ]
    columns = [Column(title, unit="%", lower_is_better=True) for title in results.titles]
    title = f"ECE with {trainer.label}"
    return marked(Table(title, tuple(columns), tuple(rows), note=results.note, corner="Method"))


_BY_TRAINER = "ECE by trainer"


def _trainer_table(results: AdaptationResults) -> Table:
    """Mean ECE over tasks of every method with every trainer: the layout of the paper's Table 4."""
    adapting = [trainer.key for trainer in results.trainers if trainer.name != _SOURCE_ONLY]
    groups = {trainer.label: [trainer.key] for trainer in results.trainers}
    if len(adapting) > 1:
        groups["mean, adapted"] = adapting
    rows = [
        Row(
            label,
            tuple(mean_cell(results.over_tasks(keys, key)) for keys in groups.values()),
            ranked=key != "oracle",
        )
        for key, label in results.variants.items()
    ]
    columns = [Column(name, unit="%", lower_is_better=True) for name in groups]
    tasks = f"Means over {len(results.pairs)} tasks. " if len(results.pairs) > 1 else ""
    note = f"{tasks}{results.note}"
    return marked(Table(_BY_TRAINER, tuple(columns), tuple(rows), note=note, corner="Method"))


def _accuracies(results: AdaptationResults, trainer: TrainerPlan) -> list[TableCell]:
    groups = results.by_task(trainer.key, results.uncalibrated)
    return [mean_cell(each, lambda record: record.accuracy) for each in groups]


def _accuracy_table(results: AdaptationResults) -> Table:
    """Accuracy on the held-out target of every trainer on every task, and the mean."""
    columns = [Column(title, unit="%", digits=1, lower_is_better=False) for title in results.titles]
    rows = [Row(each.label, tuple(_accuracies(results, each))) for each in results.trainers]
    title = "Accuracy on the target"
    return marked(Table(title, tuple(columns), tuple(rows), note=results.note, corner="Trainer"))


def _temperature_table(results: AdaptationResults) -> Table:
    """The temperature of every method with every trainer, a geometric mean over tasks."""
    rows = []
    for key, label in results.variants.items():
        own = [results.over_tasks([trainer.key], key) for trainer in results.trainers]
        if any(record.temperature for each in own for record in each if record.method != "vanilla"):
            rows.append(Row(label, tuple(map(temperature_cell, own)), ranked=False))
    return Table(
        "Temperature",
        tuple(Column(trainer.label) for trainer in results.trainers),
        tuple(rows),
        note=f"Geometric means over tasks and seeds. {results.note}",
        corner="Method",
    )


def _confidence_table(results: AdaptationResults) -> Table:
    """Accuracy and confidence of every trainer's networks, on calibration images and target."""
    chosen = {record.variant for record in results.records if record.chosen}
    choosing = {key: label for key, label in results.variants.items() if key in chosen}
    groups = {"source": "source, not trained on", "target": "target, held out"}
    places = [(side, name) for side in groups for name in ("accuracy", "confidence")]
    columns = [Column(name, unit="%", digits=1, group=groups[side]) for side, name in places]
    columns += [
        Column("clean set chosen", unit="%", digits=1, group=label) for label in choosing.values()
    ]
    rows = []
    for trainer in results.trainers:
        own = [facts for facts in results.facts if facts.trainer == trainer.key]
        cells = [_mean_fact(own, f"{side}_{name}") for side, name in places]
        for key in choosing:
            chose = [r for r in results.records if (r.panel, r.variant) == (trainer.key, key)]
            share = [100 * (record.chosen == CLEAN) for record in chose]
            cells.append(TableCell(float(np.mean(share)) if share else None))
        rows.append(Row(trainer.label, tuple(cells), ranked=False))
    note = (
        f"Means over tasks. {results.note} Where the clean set is chosen, SAC divides by the "
        "temperature of TS."
    )
    title = "Confidence of the networks"
    return Table(title, tuple(columns), tuple(rows), note=note, corner="Trainer")


def _mean_fact(facts: Sequence[Facts], name: str) -> TableCell:
    if not facts:
        return TableCell(None)
    by_seed: dict[int, list[float]] = {}
    for each in facts:
        by_seed.setdefault(each.seed, []).append(100 * getattr(each, name))
    value, low, high = mean_interval([float(np.mean(own)) for own in by_seed.values()])
    if low is None or high is None:
        return TableCell(value)
    return TableCell(value, max(0.0, low), min(100.0, high))


def _trainer_lines(results: AdaptationResults) -> Lines:
    """Mean ECE over tasks of every method, trainer by trainer."""
    trainers = results.trainers
    drawn = [
        series(key, label, [mean_cell(results.over_tasks([t.key], key)) for t in trainers])
        for key, label in results.variants.items()
    ]
    names = tuple(trainer.label for trainer in trainers)
    panel = Panel(x=names, series=tuple(drawn), x_label="Trainer")
    return Lines(panels=(panel,), y_label=f"mean {ECE}", title=_BY_TRAINER, note=results.note)


def _accuracy_lines(results: AdaptationResults) -> Lines:
    """Accuracy on the held-out target of every trainer, task by task."""
    drawn = [
        series(f"trainer-{each.key}", each.label, _accuracies(results, each))
        for each in results.trainers
    ]
    panel = Panel(x=tuple(results.titles), series=tuple(drawn), x_label="Task")
    title = "Accuracy on the target"
    return Lines(panels=(panel,), y_label="accuracy (%)", title=title, note=results.note)

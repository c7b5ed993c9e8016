"""Domain adaptation: a network for every task, trainer and seed, calibrated by every method.

The pipeline opens the domains, trains the networks and hands their outputs to the same evaluation,
records and report as every other study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.adaptation import Adapted, adapt, run
from shiftcal.adaptation.network import make_backbone, stored_backbone
from shiftcal.adaptation.trainers import Choice, choose
from shiftcal.datasets import ChainImages, ImageSet, as_image_set
from shiftcal.errors import FileError, FitError
from shiftcal.files import make_folder, parsing, read_document, sha256_of, write_document
from shiftcal.numerics.softmax import p_max
from shiftcal.progress import Reporting, showing
from shiftcal.report.tables import Cell, Column
from shiftcal.scoring.shards import digest_of_labels
from shiftcal.studies import plan as plans
from shiftcal.studies import records as show
from shiftcal.studies import sources
from shiftcal.studies.evaluation import Evaluation, in_processes, key_of
from shiftcal.studies.plan import AdaptationPlan, Ladder, NamedPlan, Pair, Target, Variant
from shiftcal.studies.records import Findings, Record, mean_over_splits, select, to_csv
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Floats

# Raise it with every change of what a trainer or its training computes from the same numbers.
_TRAINING_FORMAT = 1
_INDEX = "trainings/index.json"
_INDEX_FORMAT: dict[str, Any] = {"format": "shiftcal-study-trainings", "version": 3}
_TRAININGS = "trainings.csv"
_NOTE = (
    "Intervals: 95 %, over the seeds; each has a split of source and target and a training of its "
    "own. Seeds share images, so that they are somewhat narrow."
)


# --------------------------------------------------------------------------------------
# The networks of a plan
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Training:
    """One network.

    Attributes:
        pair: The task.
        trainer: The trainer.
        seed: Of split and training.
        folder: Of its outputs, named by a digest of all that decides the network: another plan or
            other images have another.
        failed: Why it diverged; empty if it did not.
    """

    pair: Pair
    trainer: NamedPlan
    seed: int
    folder: Path = Path()
    failed: str = ""

    @property
    def identity(self) -> tuple[str, str, int]:
        """Task, trainer and seed."""
        return self.pair.name, self.trainer.key, self.seed

    @property
    def finished(self) -> bool:
        """Whether its outputs are stored."""
        return (self.folder / "adapt.json").is_file()

    def bank(self, ladder: Ladder | None = None, seed: int = 0) -> SurrogateBank:
        """The surrogate sets of the source, named as in records."""
        sets = Adapted.open(self.folder).bank
        names = [plans.set_name(each.corruption or "", each.severity or 0) for each in sets]
        return SurrogateBank([replace(s, name=name) for s, name in zip(sets, names, strict=True)])

    def train_features(self) -> Floats | None:
        """Of the source images that were trained on."""
        return Adapted.open(self.folder).source_features

    def rows(self, target: Target | None = None, seed: int = 0) -> sources.Stored:
        """The held-out target."""
        scores = Adapted.open(self.folder).target
        return sources.Stored(scores.logits(), scores.labels, scores.features)

    def facts(self) -> AdaptationFacts:
        """The network in numbers."""
        clean = self.bank().clean
        sides: list[float] = []
        for each in (sources.Stored(clean.logits, clean.labels, None), self.rows()):
            confidence = float(p_max(each.logits).mean())
            sides += [len(each.logits), float(each.correct.mean()), confidence]
        return AdaptationFacts(*self.identity, *sides)  # type: ignore[arg-type]


def _all_trainings(plan: AdaptationPlan) -> list[Training]:
    """Seed by seed, task by task, without folders."""
    each = product(plan.seeds, plan.pairs, plan.trainers)
    return [Training(pair, trainer, seed) for seed, pair, trainer in each]


def _read_index(folder: Path) -> list[Any]:
    """Task, trainer, seed, folder and reason of failure of every network."""
    fix = sources.repair(folder)
    document = read_document(folder / _INDEX, "an index of trainings", fix=fix, **_INDEX_FORMAT)
    networks: list[Any] = document["networks"]
    return networks


@dataclass(frozen=True)
class AdaptationFacts:
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


# --------------------------------------------------------------------------------------
# The pipeline
# --------------------------------------------------------------------------------------


class NetworksPipeline:
    """A study of domain adaptation: every method on every trained network.

    In records the panel is the trainer, the target the task, the split the seed. Attributes are
    those of :class:`shiftcal.studies.images.ImagesPipeline`.
    """

    title, stage = "Domain adaptation", "training"
    how = (
        "The numbers come from rows of [`records.csv`](records.csv), one for each method on each "
        "trained network: panel is the trainer, target the task, split the seed. A row names its "
        f"file of logits; [`data/{_TRAININGS}`](data/{_TRAININGS}) has the networks in numbers. "
        "`studies.Run(folder).recompute(record)` computes a row again."
    )
    missing: tuple[str, ...] = ()
    folder: Path
    backbone: Any

    def __init__(self, plan: AdaptationPlan) -> None:
        self.plan = plan
        self.images: dict[str, ImageSet] = {}
        self.trainings: dict[tuple[str, str, int], Training] = {}
        for severity in plan.calibration.severities:
            plans.check_severity(plan, plan.calibration.corruption, severity)

    @classmethod
    def opened(cls, plan: AdaptationPlan, *, skip_missing: bool) -> NetworksPipeline:
        """Of a plan whose domains and backbone are opened, before anything is written.

        Raises:
            MissingData: Naming everything that is missing, and where to get it.
            InputError: If something exists and cannot be used.
        """
        for trainer in plan.trainers:
            _chosen(plan, trainer)  # raises
        search, images, domains = sources.Search(), {}, []
        text, backbone = search.first("the backbone", plan.network.backbone, _backbone(plan))
        needed = {name for task in plan.tasks for name in task}
        for domain in (domain for domain in plan.domains if domain.name in needed):
            what, opener = (domain.title, domain.images), partial(_open_images, domain)
            place, found = search.first(*what, opener, domain.fetch, optional=True)
            if place is not None and found is not None:
                images[domain.name] = found
                domains.append(replace(domain, images=(place,)))
        tasks = tuple(task for task in plan.tasks if images.keys() >= set(task))
        missing = search.left_out(skip=skip_missing and bool(tasks))
        assert text is not None
        used = {name for task in tasks for name in task}
        plan = replace(
            plan,
            network=replace(plan.network, backbone=(text,)),
            domains=tuple(domain for domain in domains if domain.name in used),
            tasks=tasks,
        )
        pipeline = cls(plan)
        pipeline.missing, pipeline.backbone = missing, backbone
        for domain in plan.domains:
            # Labels of a mere target have no say.
            choice = (images[domain.name], domain.limit, domain.title)
            chosen = sources.limited(*choice, stratified=plan.is_source(domain))
            pipeline.images[domain.name] = chosen
        for source, target in tasks:
            sources.check_labels(pipeline.images[target], target)
            task = run.Task(pipeline.images[source], pipeline.images[target])
            n = len(task.split(plan.seeds[0]).held_out)
            sources.check_bins(n, plan.bins, f"the held-out half of {target}")
        return pipeline

    @classmethod
    def stored(cls, plan: AdaptationPlan, folder: Path) -> NetworksPipeline:
        """Of a run whose networks are all trained.

        Raises:
            FileError: If a network is missing.
        """
        pipeline = cls(plan)
        pipeline.folder, networks = folder, _read_index(folder)
        known = {tuple(who): (place, failed) for *who, place, failed in networks}
        for training in _all_trainings(plan):
            place, failed = known.get(training.identity, ("", ""))
            found = replace(training, folder=folder / "trainings" / place, failed=failed)
            if not failed and not found.finished:
                raise FileError(
                    f"{folder} has no network of {training.trainer.label} on "
                    f"{training.pair.title}, seed {training.seed}. {sources.repair(folder)}"
                )
            pipeline.trainings[training.identity] = found
        return pipeline

    def compute(self, folder: Path, means: sources.Means, workers: int) -> dict[str, int]:
        """Compute frozen features, then train all networks that are not trained yet."""
        plan, reporting = self.plan, means.reporting
        # A worker that was started before may be in another folder than this process is by now.
        self.folder = folder.absolute()
        features, scored = self._features(means) if plan.network.frozen else ({}, 0)
        self.trainings = {t.identity: t for t in self._placed(features, reporting)}
        left = [t for t in self.trainings.values() if not t.finished and not t.failed]
        shared: dict[str, Any] = {**vars(plan.training), **vars(plan.calibration)}
        changes, threads = shared.pop("settings"), shared.pop("threads")
        threads = threads or (1 if plan.network.frozen else None)
        if threads is None:  # each shows its own progress, and has processes that read images
            bar, at_once = replace(reporting, shown=False), 1
            shared |= {"reporting": reporting, "workers": 0 if workers == 1 else workers}
        else:
            bar, at_once = reporting, max(1, workers // threads)
            shared["reporting"] = Reporting(shown=False)
        tasks = []
        for training in left:
            pair, trainer = training.pair, training.trainer
            names = (pair.source.name, pair.target.name)
            options = {**shared, "trainer": trainer.name, "seed": training.seed}
            options["changes"] = {**changes, **trainer.settings}
            if features:
                options["features"] = tuple(features[name] for name in names)
            else:
                options["backbone"] = plan.network.backbone[0]
            source, target = (self.images[name] for name in names)
            tasks.append((training, source, target, options, threads))
        progress = showing("training", len(left), **vars(bar), unit="trainings")
        with progress as step, closing(in_processes(_trained, tasks, at_once)) as results:
            for training in results:
                self.trainings[training.identity] = training
                step(1, kept=False)
        networks = [[*t.identity, self._place(t), t.failed] for t in self.trainings.values()]
        write_document(self.folder / _INDEX, {"networks": networks}, indent=1, **_INDEX_FORMAT)
        return {"scored": scored, "trained": len(left)}

    def _place(self, training: Training) -> str:
        return training.folder.relative_to(self.folder / "trainings").as_posix()

    def _features(self, means: sources.Means) -> tuple[dict[str, run.Frozen], int]:
        """Frozen features of every domain; a source has those of the surrogate sets, too."""
        plan, found, scored = self.plan, {}, 0
        for domain in plan.domains:
            source, images = plan.is_source(domain), self.images[domain.name]
            chosen = (domain.images, domain.labels, domain.limit, domain.limit and source)
            name = plans.digest(plan.network.backbone, *chosen)
            folder = self.folder / "features" / f"{domain.name}-{name}"
            make_folder(folder.parent)
            before = 0
            with suppress(FileError):
                before = len(run.Frozen.open(folder).document["sets"])
            features = run.frozen_features(
                self.backbone,
                images,
                folder,
                corruption=plan.calibration.corruption,
                severities=plan.calibration.severities if source else (),
                **vars(means),
            )
            scored += (len(features.document["sets"]) - before) * len(images)
            found[domain.name] = features
        return found, scored

    def _placed(
        self, features: Mapping[str, run.Frozen], reporting: Reporting
    ) -> Iterator[Training]:
        """All trainings with their folders, decided by the plan and by images and labels."""
        plan = self.plan
        content = {
            name: [
                features[name].identity if features else run.content_digest(images, reporting),
                digest_of_labels(images.labels),
                images.classes,
            ]
            for name, images in self.images.items()
        }
        failures = {}  # the same seed would diverge again
        with suppress(FileError):
            failures = {place: failed for *_, place, failed in _read_index(self.folder)}
        for training in _all_trainings(plan):
            pair, chosen = training.pair, _chosen(plan, training.trainer)
            decided = plans.digest(
                _TRAINING_FORMAT,
                content[pair.source.name],
                content[pair.target.name],
                asdict(plan.network),
                chosen.name,
                sorted(chosen.trainer.to_dict().items()),
                sorted(chosen.settings.to_dict().items()),
                None if plan.network.frozen else chosen.transform,
                asdict(plan.calibration),
            )
            named = f"{training.trainer.key}-{decided}"
            folder = self.folder / "trainings" / pair.name / named / f"seed-{training.seed}"
            placed = replace(training, folder=folder)
            yield replace(placed, failed=failures.get(self._place(placed), ""))

    def cells(self) -> list[Evaluation]:
        """Every method on every network, known by its bank, its source and its target."""
        plan, made = self.plan, []
        ladder = Ladder(plan.calibration.corruption, plan.calibration.severities)
        for (task, trainer, seed), training in self.trainings.items():
            if training.failed:
                continue
            folder, on = training.folder, (Target(task, task, None),)
            files = [folder / name for name in (f"{run.BANK}/bank.json", run.TARGET)]
            train = folder / run.SOURCE_TRAIN
            with parsing(folder, "a trained network", fix=sources.repair(self.folder)):
                *content, features = (sha256_of(file) for file in (*files, train))
            arrays = files[-1].relative_to(self.folder).as_posix()
            for each in plan.methods:
                named = (each.key, each.label, each.name, ladder, on, each.settings)
                variant = Variant(*named, panel=trainer)
                used = features if plans.uses_features(each.name) else None
                key = key_of(variant, *content, used, plan.bins, *plan.metrics)
                made.append(Evaluation(variant, on[0], seed, 0, key, arrays, plan.metrics))
        return made

    def data_of(self, cell: Evaluation) -> Training:
        """The network of a cell."""
        return self.trainings[cell.target.name, cell.variant.panel, cell.split]

    def findings(self, records: Sequence[Record]) -> Findings:
        """Tables and figures."""
        trainings = self.trainings.values()
        facts = [training.facts() for training in trainings if not training.failed]
        columns, lost = ("task", "trainer", "seed"), (t for t in trainings if t.failed)
        failed = [dict(zip(columns, t.identity, strict=True), failed=t.failed) for t in lost]
        return findings_of(self.plan, records, facts, failed)

    def about(self) -> dict[str, Any]:
        """How many trainings diverged."""
        return {"diverged": sum(bool(training.failed) for training in self.trainings.values())}


def _chosen(plan: AdaptationPlan, trainer: NamedPlan) -> Choice:
    """A trainer with its options and settings as a plan wants it.

    Raises:
        UnknownName: If there is no such recipe.
        InputError: If an option cannot be used.
    """
    return choose(
        trainer.name,
        recipe=plan.training.recipe,
        changes={**plan.training.settings, **trainer.settings},
        transform=plan.training.transform,
        frozen=plan.network.frozen,
        backbone=plan.network.backbone[0],
    )


def _backbone(plan: AdaptationPlan) -> Callable[[str], Any]:
    make: Callable[[Any], Any] = run.as_feature_model if plan.network.frozen else make_backbone
    if not plan.stored:
        return make
    return lambda text: make(
        stored_backbone(text, pretrained=True, where=plan.where, name_it=plans.NAME_IT)
    )


def _open_images(domain: plans.DomainPlan, texts: tuple[str, ...]) -> ImageSet:
    parts = [as_image_set(text) for text in texts]
    joined = parts[0] if len(parts) == 1 else ChainImages(parts, name=domain.title)
    return joined if domain.labels is None else as_image_set(joined, labels=domain.labels)


def _trained(task: tuple[Training, ImageSet, ImageSet, dict[str, Any], int | None]) -> Training:
    """Train, and store the outputs; with the reason if it diverged."""
    from shiftcal.models.pytorch import torch_threads

    training, source, target, options, threads = task
    make_folder(training.folder.parent)
    with torch_threads(threads):
        try:
            adapt(source, target, training.folder, **options)
        except FitError as error:
            # Its advice is for somebody who trains one network.
            return replace(training, failed=f"{str(error).partition('. ')[0].rstrip('.')}.")
    return training


# --------------------------------------------------------------------------------------
# Tables and figures
# --------------------------------------------------------------------------------------


def findings_of(
    plan: AdaptationPlan,
    records: Sequence[Record],
    facts: Sequence[AdaptationFacts] = (),
    failed: Sequence[dict[str, Any]] = (),
) -> Findings:
    """Tables and figures of a run.

    Args:
        plan: The plan as it was run.
        records: Every evaluation; panel is the trainer, target the task, split the seed.
        facts: Of every network.
        failed: Task, trainer, seed and reason of every training that diverged.
    """
    data = {_TRAININGS: to_csv(AdaptationFacts, [*facts, *failed], "failed")}
    if not records:
        return Findings({}, {}, data)
    index: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        index.setdefault((record.panel, record.variant, record.target), []).append(record)
    panels, _, targets = map(set, zip(*index, strict=True))
    variants = {method.key: method.label for method in plan.methods}
    trainers = {each.key: each.label for each in plan.trainers if each.key in panels}
    tasks: dict[tuple[str, ...], str] = {
        (pair.name,): pair.title for pair in plan.pairs if pair.name in targets
    }
    every = tuple(name for (name,) in tasks)
    if len(every) > 1:
        tasks[every] = "Avg"
    groups: dict[tuple[str, ...], str] = {(key,): label for key, label in trainers.items()}
    adapting = tuple(t.key for t in plan.trainers if t.key in trainers and t.name != "source-only")
    adapted = {adapting: "mean, adapted"} if len(adapting) > 1 else {}
    # A method that changes no prediction: its records show the networks themselves.
    keeping = ("vanilla", "ts", "sts", "sac")
    raw = next((r.variant for r in records if r.method in keeping), records[0].variant)

    def over(panels: Sequence[str], variant: str, names: Sequence[str]) -> list[Record]:
        """Records of a method over trainers and tasks.

        A seed of which one is missing is left out, so that means over seeds are of like with like.
        """
        found = [index.get((panel, variant, name), []) for panel in panels for name in names]
        whole = set.intersection(*({record.split for record in own} for own in found))
        return [record for own in found for record in own if record.split in whole]

    def ece(variant: str, panels: Sequence[str]) -> Cell:
        return show.mean_cell(over(panels, variant, every))

    def accuracy(panel: str, names: Sequence[str]) -> Cell:
        return show.mean_cell(over((panel,), raw, names), "accuracy")

    chosen = {record.variant for record in records if record.chosen}
    sides = {"source": "source, not trained on", "target": "target, held out"}
    columns = {
        (side, name): Column(name, unit="%", digits=1, group=group)
        for side, group in sides.items()
        for name in ("accuracy", "confidence")
    } | {
        ("chosen", key): Column("clean set chosen", unit="%", digits=1, group=label)
        for key, label in variants.items()
        if key in chosen
    }

    def confidence(trainer: str, column: tuple[str, str]) -> Cell:
        """Of the networks themselves, on calibration images and target."""
        side, name = column
        if side == "chosen":
            choices = select(records, panel=trainer, variant=name)
            share = [100 * (record.chosen == plans.CLEAN) for record in choices]
            return Cell(float(np.mean(share)) if share else None)
        own = [f for f in facts if f.trainer == trainer]
        numbers = ((f.seed, 100 * getattr(f, f"{side}_{name}")) for f in own)
        mean = mean_over_splits(numbers, least=0.0, most=100.0)
        return Cell(*mean[:3] if mean else (None,))

    means = f"Means over {len(every)} tasks. " if len(every) > 1 else ""
    by_trainer, on_target = "ECE by trainer", "Accuracy on the target"
    best = show.percents(groups | adapted, lower_is_better=True)
    tables = {
        "ece-by-trainer": show.table(by_trainer, variants, best, ece, note=f"{means}{_NOTE}"),
        "accuracy": show.table(
            on_target,
            trainers,
            show.percents(tasks, digits=1, lower_is_better=False),
            accuracy,
            note=_NOTE,
            corner="Trainer",
        ),
    }
    for key, label in trainers.items():
        tables[f"ece-{key}"] = show.table(
            f"ECE with {label}",
            variants,
            show.percents(tasks, lower_is_better=True),
            lambda variant, names, key=key: show.mean_cell(over((key,), variant, names)),  # type: ignore[misc]
            note=_NOTE,
        )
    tables["confidence"] = show.table(
        "Confidence of the networks",
        trainers,
        columns,
        confidence,
        note=f"Means over tasks. {_NOTE} Where the clean set is chosen, SAC divides by the "
        "temperature of TS.",
        corner="Trainer",
    )
    drawn = show.panel(variants, groups, ece, x_label="Trainer")
    accuracies = show.panel(trainers, tasks, accuracy, x_label="Task")
    figures = {
        "ece-by-trainer": show.lines(by_trainer, drawn, note=_NOTE),
        "accuracy": show.lines(on_target, accuracies, y_label="accuracy (%)", note=_NOTE),
    }
    return Findings(tables, figures, data)

"""A study from images to tables and figures, and a run on disk."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.files import atomic_write, make_folder
from shiftcal.markup import code, heading, inline, paragraphs
from shiftcal.registry import suggest
from shiftcal.report.figures import write_figure
from shiftcal.report.tables import to_markdown, write_table
from shiftcal.scores import Scores
from shiftcal.scoring.work import one_blas_thread
from shiftcal.studies.archive import INDEX, PLAN, Archive, repair, write_json
from shiftcal.studies.catalog.base import Findings, ladder_of, study_of, variants_of
from shiftcal.studies.evaluation import Cell, Work, bank_of, cells_of, evaluate, rows_of, works_of
from shiftcal.studies.plan import CLEAN, AdaptationPlan, AnyPlan, Plan, Target, read_plan, to_toml
from shiftcal.studies.records import Record, Results, read_records, write_records
from shiftcal.studies.sources import (
    Means,
    Sources,
    check_made,
    made_of,
    open_sources,
    score_sets,
    wanted_of,
)
from shiftcal.studies.tables import of_one_split
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Floats

RECORDS, ABOUT, PAGE, LIST, SPLITS = (
    "records.csv", "run.json", "report.md", "report.json", "splits",
)  # fmt: skip
TABLES, FIGURES, DATA = "tables", "figures", "data"
# What a run stores before its records; one of them exists as soon as it has begun.
_BEGUN = ("scores", "features", "trainings")
_PACKAGES = ("shiftcal", "numpy", "scipy", "scikit-learn", "numba", "torch")


# --------------------------------------------------------------------------------------
# What differs between studies of images and of domain adaptation
# --------------------------------------------------------------------------------------


class Pipeline(Protocol):
    """A plan from images to cells that can be evaluated.

    Attributes:
        plan: The plan with the alternatives that exist, and nothing that does not.
        missing: What was left out because it is missing.
        title: Of the report.
        how: Where the numbers come from, in Markdown.
    """

    plan: Any
    missing: tuple[str, ...]
    title: str
    how: str

    def compute(
        self, folder: Path, means: Means, workers: int, lap: Callable[[str], None]
    ) -> dict[str, int]:
        """Store all scores below the folder of a run; how many images and trainings that took."""

    def cells(self) -> list[Cell]:
        """What is evaluated, in the order of the records."""

    def works(self, cells: Sequence[Cell], workers: int) -> list[Work]:
        """Cells cut into tasks."""

    def findings(self, records: Sequence[Record]) -> Findings:
        """Tables and figures."""

    def about(self) -> dict[str, Any]:
        """What ``run.json`` holds in addition."""


class ImagesPipeline:
    """A study on images of one model: every set scored once, evaluated split by split."""

    how = (
        "The numbers come from rows of [`records.csv`](records.csv): means over targets and "
        "splits, geometric means of temperatures, shares of choices. What is in no row, such as a "
        "density, is computed from the stored scores in `scores/`, and written to `data/` if it is "
        "a table. A row names the seed of its split, whose images are in `splits/`, its file of "
        "logits and the temperature; `studies.Run(folder).recompute(record)` computes it again."
    )

    def __init__(
        self, plan: Plan, *, sources: Sources | None = None, archive: Archive | None = None
    ) -> None:
        self.plan, self._sources, self._archive = plan, sources, archive
        self.missing = () if sources is None else sources.missing
        n = len(sources.images if sources is not None else self.archive.scores(CLEAN).logits)
        self.variants = variants_of(plan, n)
        self.wanted = wanted_of(plan, self.variants)
        self.study = study_of(plan)
        self.title = self.study.title

    @classmethod
    def opened(cls, plan: Plan, *, skip_missing: bool) -> ImagesPipeline:
        """Of a plan whose model and images are opened, before anything is written."""
        study_of(plan)
        sources = open_sources(plan, skip_missing=skip_missing)
        pipeline = cls(sources.plan, sources=sources)
        check_made(pipeline.wanted.made)
        return pipeline

    @classmethod
    def stored(cls, plan: Plan, folder: Path) -> ImagesPipeline:
        """Of a run whose sets are all scored.

        Raises:
            FileError: If scores are missing, or of another model or other images.
        """
        pipeline = cls(plan, archive=Archive.open(folder))
        lacking = [n for n in pipeline.wanted.names if n not in pipeline.archive.entries]
        if lacking:
            raise FileError(
                f"{folder} has no scores of {lacking[0]}, which its plan asks for. Run the plan "
                f"again: {repair(folder)}"
            )
        if pipeline.archive.made_of != made_of(plan):
            raise FileError(
                f"{folder / PLAN} names another model or other images than were scored. Run the "
                f"plan: {repair(folder)}"
            )
        return pipeline

    @property
    def archive(self) -> Archive:
        """The scores."""
        assert self._archive is not None
        return self._archive

    def compute(
        self, folder: Path, means: Means, workers: int, lap: Callable[[str], None]
    ) -> dict[str, int]:
        """Score all sets."""
        assert self._sources is not None
        self._archive, scored = score_sets(self._sources, self.wanted, folder, means)
        lap("scoring")
        return {"scored": scored}

    def cells(self) -> list[Cell]:
        """Every variant on every target in every split."""
        return list(cells_of(self.plan, self.variants, self.archive))

    def works(self, cells: Sequence[Cell], workers: int) -> list[Work]:
        """Some targets of a split each."""
        return works_of(cells, self.plan, self.archive, workers)

    def findings(self, records: Sequence[Record]) -> Findings:
        """What the study shows."""
        found = self.study.findings(Results(self.plan, tuple(records), self.archive))
        if len(self.plan.seeds) > 1:
            return found
        tables = {
            name: replace(table, note=of_one_split(table.note))
            for name, table in found.tables.items()
        }
        figures = {
            name: replace(figure, note=of_one_split(figure.note))
            for name, figure in found.figures.items()
        }
        return replace(found, tables=tables, figures=figures)

    def about(self) -> dict[str, Any]:
        """The model, and digests of the splits, whose rows are written to ``splits/``."""
        folder = self.archive.folder / SPLITS
        make_folder(folder)
        digests = {}
        for seed in self.plan.seeds:
            split = self.archive.split(seed, self.plan.calibration.images)
            rows = {"calibration": split.calibration, "test": split.test}
            digests[str(seed)] = {name: _sha256(each) for name, each in rows.items()}
            file = folder / f"seed-{seed}.npz"
            with atomic_write(file, durable=False) as temporary, temporary.open("wb") as opened:
                np.savez(opened, calibration=split.calibration, test=split.test)
        _drop_splits(self.archive.folder, but=self.plan.seeds)
        return {"model": self.archive.model, "splits": digests}


def _sha256(rows: NDArray[np.intp]) -> str:
    """Of row numbers as little-endian 64-bit integers."""
    return hashlib.sha256(np.ascontiguousarray(rows, dtype="<i8").tobytes()).hexdigest()


def _drop_splits(folder: Path, *, but: Sequence[int] = ()) -> None:
    kept = {f"seed-{seed}.npz" for seed in but}
    for file in (folder / SPLITS).glob("seed-*.npz"):
        if file.name not in kept and file.stem.removeprefix("seed-").isdecimal():
            file.unlink(missing_ok=True)


def _check_alone() -> None:
    """Reject being one of several processes that torchrun has started."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if all(name in os.environ for name in names) and os.environ["WORLD_SIZE"] != "1":
        raise InputError(
            f"a study must be run by one process; torchrun has started {os.environ['WORLD_SIZE']}. "
            "Start it without torchrun: --workers, with [training] threads in the plan, trains "
            "several networks at once."
        )


def _pipeline_of(plan: AnyPlan) -> Any:
    if isinstance(plan, AdaptationPlan):
        from shiftcal.studies.domain_adaptation import NetworksPipeline

        return NetworksPipeline
    return ImagesPipeline


# --------------------------------------------------------------------------------------
# Reproduce and rebuild
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """A finished run.

    Attributes:
        folder: Where it is.
        findings: Tables and figures.
        scored: Images that were scored by this call.
        evaluated: Evaluations made by this call.
        records: Evaluations in all.
        seconds: By stage.
        missing: What was left out because it is missing.
        trained: Trainings made by this call; ``None`` for a study that trains nothing.
    """

    folder: Path
    findings: Findings
    scored: int
    evaluated: int
    records: int
    seconds: dict[str, float]
    missing: tuple[str, ...] = ()
    trained: int | None = None


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """A stage is over."""
        now = time.perf_counter()
        self.seconds[stage], self._last = round(now - self._last, 2), now


def reproduce(
    plan: AnyPlan,
    folder: str | os.PathLike[str],
    *,
    means: Means | None = None,
    workers: int = 1,
    skip_missing: bool = False,
) -> Done:
    """Run a study; run again, it resumes where it stopped, and redoes only what a change requires.

    Args:
        plan: The plan.
        folder: Where everything is written: ``plan.toml``, ``scores/``, ``splits/``,
            ``evaluated/``, ``records.csv``, ``tables/``, ``figures/``, ``data/``, ``report.md``,
            ``report.json``, ``run.json``; for domain adaptation ``features/`` and ``trainings/``
            instead of scores and splits.
        means: How the scoring is done.
        workers: Processes that evaluate, and train.
        skip_missing: Whether natural targets, training images and domains that are missing are
            left out.

    Raises:
        MissingData: If data is missing; the message says what to get and where to put it.
        InputError: If the plan cannot be run.
        FileError: If something cannot be written; what is done is kept.
    """
    _check_alone()
    check_count(workers, name="workers")
    means, clock, target = means or Means(), _Clock(), Path(folder)
    _check_free(target)
    pipeline: Pipeline = _pipeline_of(plan).opened(plan, skip_missing=skip_missing)
    make_folder(target)
    earlier, text = _read_about(target), to_toml(pipeline.plan)
    _begin(target, text)
    clock.lap("opening")
    counts = pipeline.compute(target, means, workers, clock.lap)
    return _finished(pipeline, target, text, means, workers, clock, earlier, counts)


def rebuild(
    folder: str | os.PathLike[str], *, means: Means | None = None, workers: int = 1
) -> Done:
    """Make records, tables and figures of a run again from its stored scores; no model is run.

    Args:
        folder: Of the run.
        means: How progress is shown.
        workers: Processes that evaluate what is not evaluated yet.

    Raises:
        FileError: If scores are missing.
    """
    _check_alone()
    check_count(workers, name="workers")
    clock, target = _Clock(), Path(folder)
    plan, earlier = Run(target).plan, _read_about(target)
    text = (target / PLAN).read_bytes().decode()
    pipeline: Pipeline = _pipeline_of(plan).stored(plan, target)
    left_out = earlier.get("left_out")
    pipeline.missing = tuple(map(str, left_out)) if isinstance(left_out, list) else ()
    clock.lap("opening")
    counts = {"scored": 0, **({"trained": 0} if isinstance(plan, AdaptationPlan) else {})}
    return _finished(pipeline, target, text, means or Means(), workers, clock, earlier, counts)


def _finished(
    pipeline: Pipeline,
    folder: Path,
    text: str,
    means: Means,
    workers: int,
    clock: _Clock,
    earlier: dict[str, Any],
    counts: dict[str, int],
) -> Done:
    """Everything that needs stored scores only."""
    check = partial(_check_still, folder, text)
    check()
    works = partial(pipeline.works, workers=workers)
    records, evaluated = evaluate(
        pipeline.cells(), works, folder, workers=workers, reporting=means.reporting
    )
    check()
    write_records(records, folder / RECORDS)
    clock.lap("evaluation")
    findings = pipeline.findings(records)
    _write_report(findings, pipeline, folder)
    check()
    clock.lap("report")
    scored, trained = counts["scored"], counts.get("trained")
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    about = {
        "study": pipeline.plan.study,
        "versions": versions,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        # Of the last run that scored or trained any.
        "images_scored": scored or earlier.get("images_scored", 0),
        **({} if trained is None else {"trainings": trained or earlier.get("trainings", 0)}),
        "evaluations": evaluated,
        "records": len(records),
        "seconds": clock.seconds,
        "left_out": list(pipeline.missing),
        **pipeline.about(),
    }
    write_json(folder / ABOUT, about)
    return Done(
        folder,
        findings,
        scored,
        evaluated,
        len(records),
        clock.seconds,
        pipeline.missing,
        trained,
    )


# --------------------------------------------------------------------------------------
# The folder of a run
# --------------------------------------------------------------------------------------


def _read_about(folder: Path) -> dict[str, Any]:
    """What the last run wrote; nothing if there was none, or its file is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        document = json.loads((folder / ABOUT).read_text("utf-8"))
        if isinstance(document, dict):
            return document
    return {}


def _check_free(folder: Path) -> None:
    """Reject a folder that holds something else than a run."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror or error}.") from error
    if not names:
        return
    begun = PLAN in names and any(name in names for name in _BEGUN)
    if begun or (folder / INDEX).exists() or (PLAN in names and _is_ours(folder / PLAN)):
        return
    raise FileError(
        f"{folder} holds {PLAN if PLAN in names else names[0]!r} and is not the folder of a study. "
        "Name a new one."
    )


def _is_ours(file: Path) -> bool:
    """Whether a plan was written by a run: as plans are written, with nothing added."""
    try:
        text = file.read_text("utf-8")
        return to_toml(read_plan(text)) == text
    except (OSError, ValueError):
        return False


def _begin(folder: Path, text: str) -> None:
    """Write the plan; remove what an earlier plan led to, but for scores and outcomes."""
    file = folder / PLAN
    try:
        if file.exists() and file.read_bytes() == text.encode():
            return
        for name in (ABOUT, PAGE, RECORDS, *_listed(folder), LIST):
            (folder / name).unlink(missing_ok=True)
        _drop_splits(folder)
    except OSError as error:
        raise FileError(
            f"{folder} could not be cleared of the last run: {error.strerror or error}."
        ) from error
    with atomic_write(file) as temporary:
        temporary.write_text(text, "utf-8")


def _check_still(folder: Path, text: str) -> None:
    """Reject a folder whose plan has changed since the run began."""
    try:
        same = (folder / PLAN).read_bytes() == text.encode()
    except OSError:
        same = False
    if not same:
        raise FileError(
            f"another run with another plan is using this folder: {folder / PLAN} is no longer the "
            "plan that this run began with. Scores and evaluations are kept. Name another folder "
            "for one of them, or run them one after the other."
        )


# --------------------------------------------------------------------------------------
# The report
# --------------------------------------------------------------------------------------


def _write_report(findings: Findings, pipeline: Pipeline, folder: Path) -> None:
    """Write ``tables/``, ``figures/``, ``data/`` and ``report.md`` into the folder of a run.

    Each file is written whole or not at all, the page last. Files are listed in ``report.json``
    before they are written, so that those of an earlier report, finished or not, can be removed;
    nothing is removed that no report listed.
    """
    files = [f"{TABLES}/{name}.{kind}" for name in findings.tables for kind in ("md", "csv", "tex")]
    files += [
        f"{FIGURES}/{name}.{kind}" for name in findings.figures for kind in ("png", "svg", "json")
    ]
    files += [f"{DATA}/{name}" for name in findings.data]
    for name in (TABLES, FIGURES, *((DATA,) if findings.data else ())):
        make_folder(folder / name)
    stale = [name for name in _listed(folder) if name not in files]
    write_json(folder / LIST, {"files": [*files, *stale]})
    for name, table in findings.tables.items():
        write_table(table, folder / TABLES, name)
    for name, figure in findings.figures.items():
        write_figure(figure, folder / FIGURES, name)
    for name, text in findings.data.items():
        with atomic_write(folder / DATA / name) as temporary:
            temporary.write_text(text, "utf-8")
    with atomic_write(folder / PAGE) as temporary:
        temporary.write_bytes(_page(findings, pipeline).encode())
    for name in stale:
        with suppress(OSError):
            (folder / name).unlink()
    write_json(folder / LIST, {"files": files})


def _listed(folder: Path) -> list[str]:
    """Files that earlier reports wrote; a damaged list is empty, and other folders are ignored."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        names = json.loads((folder / LIST).read_text("utf-8"))["files"]
        return [name for name in names if _is_output(name)]
    return []


def _is_output(name: object) -> bool:
    parts = PurePosixPath(name).parts if isinstance(name, str) else ()
    return len(parts) == 2 and parts[0] in (TABLES, FIGURES, DATA) and parts[1] not in (".", "..")


def _page(findings: Findings, pipeline: Pipeline) -> str:
    """Figures, then tables, as Markdown; a table next to the figure of the same title."""
    sections: dict[str, list[str]] = {}
    for name, figure in findings.figures.items():
        title = figure.title or name
        sections.setdefault(title, []).append(f"![{inline(title)}]({FIGURES}/{name}.png)")
    for name, table in findings.tables.items():
        text = to_markdown(replace(table, title="")).strip()
        sections.setdefault(table.title or name, []).append(text)
    if pipeline.missing:
        sections = {"Left out, because it is missing": [code(*pipeline.missing)], **sections}
    sections["Where the numbers come from"] = [pipeline.how.strip()]
    sections["The plan"] = [code(to_toml(pipeline.plan), language="toml")]
    parts = [heading(pipeline.title, level=1), paragraphs(pipeline.plan.about or "")]
    for title, blocks in sections.items():
        parts += [heading(title, level=2), *blocks]
    return "\n\n".join(filter(None, parts)) + "\n"


# --------------------------------------------------------------------------------------
# A run on disk
# --------------------------------------------------------------------------------------


class Run:
    """A run on disk.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @property
    def plan(self) -> AnyPlan:
        """The plan as it was run.

        Raises:
            FileError: If it is missing or damaged.
        """
        file = self.folder / PLAN
        try:
            return read_plan(file.read_text("utf-8"), where=str(file))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise FileError(
                f"{self.folder} is not the folder of a study: {file} could not be read ({reason}). "
                f"If it holds scores, run the plan again, which uses them: {repair(self.folder)}"
            ) from error

    @property
    def records(self) -> list[Record]:
        """Every evaluation.

        Raises:
            FileError: If the table is missing, or not the one that the run wrote.
        """
        records = read_records(self.folder / RECORDS)
        n = _read_about(self.folder).get("records")
        if type(n) is int and n != len(records):
            raise FileError(
                f"{self.folder / RECORDS} has {len(records):,} rows, and {ABOUT} says {n:,}: rows "
                "were lost or added, or a run was interrupted. Make it again: shiftcal reproduce "
                f"{shlex.quote(str(self.folder))}"
            )
        return records

    @property
    def archive(self) -> Archive:
        """The stored scores."""
        return Archive.open(self.folder)

    def recompute(self, record: Record) -> Record:
        """A record computed again from the stored logits, by the plan and the seeds it names.

        Raises:
            InputError: If no such evaluation is in the plan.
        """
        plan = self.plan
        pipeline: Pipeline = _pipeline_of(plan).stored(plan, self.folder)
        for cell in pipeline.cells():
            place = (*cell.variant.identity, cell.target.name, cell.split, cell.draw)
            if place == (
                record.panel,
                record.setting,
                record.variant,
                record.calibration,
                record.target,
                record.split,
                record.draw,
            ):
                with one_blas_thread():
                    ((_, outcomes),) = pipeline.works([cell], workers=1)[0].outcomes()
                return replace(record, **vars(outcomes[cell.key]))
        raise InputError(
            f"the plan of {self.folder} has no evaluation of {record.label} on {record.target} "
            f"with surrogate sets of {record.calibration} in split {record.split}, draw "
            f"{record.draw}."
        )


@dataclass(frozen=True, eq=False)
class Task:
    """A target of a study in its first split.

    Attributes:
        bank: The plan's surrogate sets, of the calibration rows.
        target: Test rows of the target, with labels.
        source_features: Of training images, if the study has them.
        files: What it was read from; the index has the checksums of all scores.
    """

    bank: SurrogateBank
    target: Scores
    source_features: Floats | None
    files: tuple[Path, ...]


def task_of(folder: Path, name: str | None) -> Task:
    """A target of a study that has been run.

    Args:
        folder: Of the run.
        name: Of the target, as in records.

    Raises:
        UnknownName: If the study has no such target.
        InputError: If none is named, or the study trained a network for every target.
        FileError: If scores are missing.
    """
    run = Run(folder)
    plan = run.plan
    if isinstance(plan, AdaptationPlan):
        trained = sorted(folder.glob("trainings/*/*/seed-*/adapt.json"))
        hint = f"none in {folder / 'trainings'} is finished."
        if trained:
            hint = f"shiftcal report {shlex.quote(str(trained[0].parent))} -o report.html"
        raise InputError(f"{folder} has a network for every target. Name one: {hint}")
    archive = run.archive
    if name is None:
        raise InputError(
            f"{folder} is a study with several targets. Name one of them after it: "
            f"{', '.join(archive.entries)}."
        )
    if name not in archive.entries:
        raise UnknownName(
            f"{folder} has no target {name!r}. {suggest(name, list(archive.entries))}"
        )
    seed = plan.seeds[0]
    split = archive.split(seed, plan.calibration.images)
    target = Target(name, name, None if archive.entries[name].own else 0)
    rows = rows_of(archive.scores(name), target, split)
    return Task(
        bank_of(archive, ladder_of(plan), split, seed=seed),
        Scores(rows.logits, labels=rows.labels, features=rows.features, source=name),
        archive.train_features(),
        (folder / PLAN, folder / INDEX),
    )

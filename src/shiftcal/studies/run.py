"""A study from images to tables and figures, and a run on disk."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.checks import check_count
from shiftcal.errors import FileError, InputError
from shiftcal.files import atomic_write, lock, make_folder
from shiftcal.markup import code, heading, inline, paragraphs
from shiftcal.report.figures import write_figure
from shiftcal.report.tables import to_markdown, write_table
from shiftcal.scoring.shards import one_blas_thread
from shiftcal.studies.evaluation import EVALUATED, Cell, Data, cells_of, evaluate, outcomes_of
from shiftcal.studies.plan import AdaptationPlan, AnyPlan, Plan, plan_text, read_plan, to_toml
from shiftcal.studies.records import Record, Results, read_records, write_records
from shiftcal.studies.sources import (
    PLAN,
    Archive,
    Means,
    Sources,
    check_made,
    made_of,
    open_sources,
    repair,
    score_sets,
    wanted_of,
)
from shiftcal.studies.study import Findings, study_of, variants_of
from shiftcal.studies.tables import of_one_split

RECORDS, ABOUT, PAGE, LIST = "records.csv", "run.json", "report.md", "report.json"
# A run has one of these folders as soon as it has begun.
BEGUN = (EVALUATED, "scores", "trainings")
_PACKAGES = ("shiftcal", "numpy", "scipy", "scikit-learn", "numba", "torch")


# --------------------------------------------------------------------------------------
# What differs between studies of images and of domain adaptation
# --------------------------------------------------------------------------------------


class ImagesPipeline:
    """A study on images of one model: every set scored once, evaluated split by split.

    Attributes:
        plan: The plan with the alternatives that exist, and nothing that does not.
        missing: What was left out because it is missing.
        title: Of the report.
        how: Where the numbers come from, in Markdown.
        sources: The model and the images, of a plan that is to be computed.
        archive: The scores.
    """

    how = (
        "The numbers come from rows of [`records.csv`](records.csv): means over targets and "
        "splits, geometric means of temperatures, shares of choices. What is in no row, such as a "
        "density, is computed from the stored scores in `scores/`, and written to `data/` if it is "
        "a table. A row names the seed of its split, whose images are in `splits/`, its file of "
        "logits and the temperature; `studies.Run(folder).recompute(record)` computes it again."
    )

    sources: Sources
    archive: Archive

    def __init__(self, plan: Plan, missing: tuple[str, ...] = ()) -> None:
        self.plan, self.missing = plan, missing
        self.variants = variants_of(plan)
        self.conditions, self.made = wanted_of(plan, self.variants)
        self.title = study_of(plan).title

    @classmethod
    def opened(cls, plan: Plan, *, skip_missing: bool) -> ImagesPipeline:
        """Of a plan whose model and images are opened, before anything is written."""
        variants_of(plan)
        sources = open_sources(plan, skip_missing=skip_missing)
        pipeline = cls(sources.plan, sources.missing)
        pipeline.sources = sources
        check_made(pipeline.made)
        return pipeline

    @classmethod
    def stored(cls, plan: Plan, folder: Path) -> ImagesPipeline:
        """Of a run whose sets are all scored.

        Raises:
            FileError: If scores are missing, or of another model or other images.
        """
        pipeline = cls(plan)
        archive = pipeline.archive = Archive.open(folder, plan.calibration.images)
        natural = (each.name for each in plan.shifts.sets)
        wanted = {*pipeline.conditions, *pipeline.made, *natural}
        if not wanted <= archive.entries.keys() or archive.made_of != made_of(plan):
            raise FileError(
                f"{folder / PLAN} asks for other sets, another model or other images than were "
                f"scored. {repair(folder)}"
            )
        return pipeline

    def compute(
        self, folder: Path, means: Means, workers: int, lap: Callable[[str], None]
    ) -> dict[str, int]:
        """Store all scores below the folder of a run; how many images and trainings that took."""
        sets = (self.conditions, self.made)
        self.archive, scored = score_sets(self.sources, *sets, folder, means)
        lap("scoring")
        return {"scored": scored}

    def cells(self) -> list[Cell]:
        """What is evaluated, in the order of the records."""
        return list(cells_of(self.plan, self.variants, self.archive))

    def data_of(self, cell: Cell) -> Data:
        """The scores that a cell is evaluated on."""
        return self.archive

    def findings(self, records: Sequence[Record]) -> Findings:
        """Tables and figures."""
        found = study_of(self.plan).findings(Results(self.plan, tuple(records), self.archive))
        if len(self.plan.seeds) > 1:
            return found
        tables, figures = found.tables, found.figures
        return replace(
            found,
            tables={name: replace(t, note=of_one_split(t.note)) for name, t in tables.items()},
            figures={name: replace(f, note=of_one_split(f.note)) for name, f in figures.items()},
        )

    def write_more(self) -> list[str]:
        """Write the rows of every split; the names of the files."""
        make_folder(self.archive.folder / "splits")
        files = {f"splits/seed-{seed}.npz": self.archive.split(seed) for seed in self.plan.seeds}
        for name, split in files.items():
            place = self.archive.folder / name
            with atomic_write(place, durable=False) as temporary, temporary.open("wb") as file:
                np.savez(file, calibration=split.calibration, test=split.test)
        return list(files)

    def about(self) -> dict[str, Any]:
        """What ``run.json`` holds in addition."""
        return {"model": self.archive.model}


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
        FileError: If something cannot be written, or another process uses the folder; what is done
            is kept.
    """
    check_count(workers, name="workers")
    means, clock, target = means or Means(), _Clock(), Path(folder)
    _check_free(target)
    pipeline = _pipeline_of(plan).opened(plan, skip_missing=skip_missing)
    make_folder(target / EVALUATED)
    with lock(target / PLAN, by="run"):
        earlier = _begin(target, to_toml(pipeline.plan))
        clock.lap("opening")
        counts = pipeline.compute(target, means, workers, clock.lap)
        return _finished(pipeline, target, means, workers, clock, earlier, counts)


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
    check_count(workers, name="workers")
    clock, target = _Clock(), Path(folder)
    plan, earlier = Run(target).plan, _read_json(target / ABOUT)
    pipeline = _pipeline_of(plan).stored(plan, target)
    pipeline.missing = tuple(map(str, earlier.get("left_out", ())))
    clock.lap("opening")
    counts = {"scored": 0, **({"trained": 0} if isinstance(plan, AdaptationPlan) else {})}
    with lock(target / PLAN, by="run"):
        return _finished(pipeline, target, means or Means(), workers, clock, earlier, counts)


def _finished(
    pipeline: Any,
    folder: Path,
    means: Means,
    workers: int,
    clock: _Clock,
    earlier: dict[str, Any],
    counts: dict[str, int],
) -> Done:
    """Everything that needs stored scores only."""
    plan, scored, trained = pipeline.plan, counts["scored"], counts.get("trained")
    records, evaluated = evaluate(
        pipeline.cells(),
        pipeline.data_of,
        folder,
        bins=plan.bins,
        workers=workers,
        reporting=means.reporting,
    )
    write_records(records, folder / RECORDS)
    clock.lap("evaluation")
    findings = pipeline.findings(records)
    _write_report(findings, pipeline, folder)
    clock.lap("report")
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    about = {
        "study": plan.study,
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
    _write_json(folder / ABOUT, about)
    seconds, missing = clock.seconds, pipeline.missing
    return Done(folder, findings, scored, evaluated, len(records), seconds, missing, trained)


# --------------------------------------------------------------------------------------
# The folder of a run
# --------------------------------------------------------------------------------------


def _write_json(file: Path, document: Any) -> None:
    with atomic_write(file) as temporary:
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _read_json(file: Path) -> dict[str, Any]:
    """What the last run wrote; nothing if there was none, or its file is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        document = json.loads(file.read_text("utf-8"))
        if isinstance(document, dict):
            return document
    return {}


def _check_free(folder: Path) -> None:
    """Reject a folder that holds something else than a run."""
    try:
        names = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror or error}.") from error
    if names and not any((folder / name).is_dir() for name in BEGUN):
        raise FileError(
            f"{folder} holds {names[0]!r} and is not the folder of a study. Name a new one."
        )


def _begin(folder: Path, text: str) -> dict[str, Any]:
    """Write the plan; what the last run with the same plan wrote about itself.

    What an earlier plan led to is removed, but for scores and outcomes.
    """
    file = folder / PLAN
    try:
        if file.exists() and file.read_bytes() == text.encode():
            return _read_json(folder / ABOUT)
        listed = _read_json(folder / LIST).get("files", ())
        outputs = r"(tables|figures|data|splits)/[\w-][\w.-]*"
        ours = [name for name in map(str, listed) if re.fullmatch(outputs, name)]
        for name in (ABOUT, PAGE, RECORDS, *ours, LIST):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise FileError(
            f"{folder} could not be cleared of the last run: {error.strerror or error}."
        ) from error
    with atomic_write(file) as temporary:
        temporary.write_text(text, "utf-8")
    return {}


def _write_report(findings: Findings, pipeline: Any, folder: Path) -> None:
    """Write ``tables/``, ``figures/``, ``data/`` and ``report.md`` into the folder of a run.

    Each file is written whole or not at all, the page last. Files are listed in ``report.json``
    before they are written, so that a run with another plan can remove them; nothing is removed
    that is not listed.
    """
    more = pipeline.write_more()
    texts = {f"data/{name}": text for name, text in findings.data.items()}
    files = [f"tables/{name}.{end}" for name in findings.tables for end in ("md", "csv", "tex")]
    files += [
        f"figures/{name}.{end}" for name in findings.figures for end in ("png", "svg", "json")
    ]
    _write_json(folder / LIST, {"files": [*files, *texts, *more]})
    for name in ("tables", "figures", *(("data",) if texts else ())):
        make_folder(folder / name)
    for name, table in findings.tables.items():
        write_table(table, folder / "tables", name)
    for name, figure in findings.figures.items():
        write_figure(figure, folder / "figures", name)
    for name, text in texts.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(text, "utf-8")
    with atomic_write(folder / PAGE) as temporary:
        temporary.write_bytes(_page(findings, pipeline).encode())


def _page(findings: Findings, pipeline: Any) -> str:
    """Figures, then tables, as Markdown; a table next to the figure of the same title."""
    sections: dict[str, list[str]] = {}
    for name, figure in findings.figures.items():
        title = figure.title or name
        sections.setdefault(title, []).append(f"![{inline(title)}](figures/{name}.png)")
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
            text, where = plan_text(file)
        except FileError as error:
            raise FileError(
                f"{self.folder} is not the folder of a study: {error} If it holds scores, they are "
                f"used. {repair(self.folder)}"
            ) from error
        return read_plan(text, where=where)

    @property
    def records(self) -> list[Record]:
        """Every evaluation.

        Raises:
            FileError: If the table is missing, or not the one that the run wrote.
        """
        records = read_records(self.folder / RECORDS)
        n = _read_json(self.folder / ABOUT).get("records", len(records))
        if n != len(records):
            raise FileError(
                f"{self.folder / RECORDS} has {len(records):,} rows, and {ABOUT} says {n}: rows "
                "were lost or added, or a run was interrupted. Make it again: shiftcal reproduce "
                f"{shlex.quote(str(self.folder))}"
            )
        return records

    @property
    def archive(self) -> Archive:
        """The stored scores."""
        plan = self.plan
        return Archive.open(self.folder, plan.calibration.images if isinstance(plan, Plan) else 0)

    def recompute(self, record: Record) -> Record:
        """A record computed again from the stored logits, by the plan and the seeds it names.

        Raises:
            InputError: If no such evaluation is in the plan.
        """
        plan = self.plan
        pipeline = _pipeline_of(plan).stored(plan, self.folder)
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
                    (outcomes,) = outcomes_of(pipeline.data_of(cell), [cell], plan.bins)
                return replace(record, **outcomes[cell.key])
        raise InputError(
            f"the plan of {self.folder} has no evaluation of {record.label} on {record.target} "
            f"with surrogate sets of {record.calibration} in split {record.split}, draw "
            f"{record.draw}."
        )

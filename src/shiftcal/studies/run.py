"""A study from images to tables and figures, and a run on disk."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shiftcal.checks import check_count
from shiftcal.errors import FileError, InputError
from shiftcal.files import atomic_write, lock, make_folder, remove_orphans
from shiftcal.markup import code, heading, inline, paragraphs
from shiftcal.report.figures import write_figure
from shiftcal.report.tables import to_markdown, write_table
from shiftcal.studies.evaluation import EVALUATED, evaluate, outcomes_of
from shiftcal.studies.plan import AdaptationPlan, AnyPlan, plan_text, read_plan, to_toml
from shiftcal.studies.records import Findings, Record, read_records, to_csv, with_metrics
from shiftcal.studies.sources import PLAN, Means

RECORDS, ABOUT, PAGE, LIST = "records.csv", "run.json", "report.md", "report.json"
# A run has one of these folders as soon as it has begun.
BEGUN = (EVALUATED, "scores", "trainings")
_PACKAGES = ("shiftcal", "numpy", "scipy", "scikit-learn", "torch")


def _pipeline_of(plan: AnyPlan) -> Any:
    if isinstance(plan, AdaptationPlan):
        from shiftcal.studies.domain_adaptation import NetworksPipeline

        return NetworksPipeline
    from shiftcal.studies.images import ImagesPipeline

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


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note how long a stage takes."""
    begun = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - begun, 2)


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
        folder: Where everything is written: ``plan.toml``, ``scores/``, ``evaluated/``,
            ``records.csv``, ``tables/``, ``figures/``, ``data/``, ``report.md``, ``report.json``,
            ``run.json``; for domain adaptation ``features/`` and ``trainings/`` instead of scores.
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
    means, target, seconds = means or Means(), Path(folder), dict[str, float]()
    _check_free(target)
    with _timed(seconds, "opening"):
        pipeline = _pipeline_of(plan).opened(plan, skip_missing=skip_missing)
        make_folder(target / EVALUATED)
    with lock(target / PLAN, by="run"):
        remove_orphans(target)
        _begin(target, to_toml(pipeline.plan))
        with _timed(seconds, pipeline.stage):
            counts = pipeline.compute(target, means, workers)
        return _finished(pipeline, target, means, workers, seconds, counts)


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
    target, seconds = Path(folder), dict[str, float]()
    with _timed(seconds, "opening"):
        plan = Run(target).plan
        pipeline = _pipeline_of(plan).stored(plan, target)
        pipeline.missing = tuple(map(str, _read_json(target / ABOUT).get("left_out", ())))
    counts = {"scored": 0, **({"trained": 0} if isinstance(plan, AdaptationPlan) else {})}
    with lock(target / PLAN, by="run"):
        return _finished(pipeline, target, means or Means(), workers, seconds, counts)


def _finished(
    pipeline: Any,
    folder: Path,
    means: Means,
    workers: int,
    seconds: dict[str, float],
    counts: dict[str, int],
) -> Done:
    """Everything that needs stored scores only."""
    plan = pipeline.plan
    how: dict[str, Any] = {"bins": plan.bins, "workers": workers, "reporting": means.reporting}
    with _timed(seconds, "evaluation"):
        records, evaluated, more = evaluate(pipeline.cells(), pipeline.data_of, folder, **how)
        _write(folder / RECORDS, to_csv(Record, records))
    with _timed(seconds, "report"):
        findings = pipeline.findings(records)
        if plan.metrics:
            findings = with_metrics(findings, records, more)
        _write_report(findings, pipeline, folder)
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    numbers = {**counts, "evaluated": evaluated, "records": len(records)}
    about = {
        "study": plan.study,
        "versions": versions,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        **numbers,
        "seconds": seconds,
        "left_out": list(pipeline.missing),
        **pipeline.about(),
    }
    _write_json(folder / ABOUT, about)
    return Done(folder, findings, **numbers, seconds=seconds, missing=pipeline.missing)


# --------------------------------------------------------------------------------------
# The folder of a run
# --------------------------------------------------------------------------------------


def _write(file: Path, text: str) -> None:
    with atomic_write(file) as temporary:
        temporary.write_bytes(text.encode())


def _write_json(file: Path, document: Any) -> None:
    _write(file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _read_json(file: Path) -> dict[str, Any]:
    """What the last run wrote; nothing if there was none, or its file is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        document = json.loads(file.read_text("utf-8"))
        if isinstance(document, dict):
            return document
    return {}


def _check_free(folder: Path) -> None:
    """Reject a folder that holds something else than a run."""
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if names and not any((folder / name).is_dir() for name in BEGUN):
        raise FileError(
            f"{folder} holds {names[0]!r} and is not the folder of a study. Name a new one."
        )


def _begin(folder: Path, text: str) -> None:
    """Write the plan; what another plan led to is removed, but for scores and outcomes."""
    file = folder / PLAN
    if file.exists() and file.read_bytes() == text.encode():
        return
    listed = map(str, _read_json(folder / LIST).get("files", ()))
    ours = [name for name in listed if re.fullmatch(r"(tables|figures|data)/[\w-][\w.-]*", name)]
    for name in (ABOUT, PAGE, RECORDS, *ours, LIST):
        (folder / name).unlink(missing_ok=True)
    _write(file, text)


def _write_report(findings: Findings, pipeline: Any, folder: Path) -> None:
    """Write ``tables/``, ``figures/``, ``data/`` and ``report.md`` into the folder of a run.

    Each file is written whole or not at all, the page last. Files are listed in ``report.json``
    before they are written, so that a run with another plan can remove them; nothing is removed
    that is not listed.
    """
    kinds = {
        "tables": (findings.tables, (".md", ".csv")),
        "figures": (findings.figures, (".png", ".svg", ".json")),
        "data": (findings.data, ("",)),
    }
    files = [
        f"{kind}/{name}{end}" for kind, (own, ends) in kinds.items() for name in own for end in ends
    ]
    _write_json(folder / LIST, {"files": files})
    for kind, (own, _) in kinds.items():
        if own:
            make_folder(folder / kind)
    for name, table in findings.tables.items():
        write_table(table, folder / "tables", name)
    for name, figure in findings.figures.items():
        write_figure(figure, folder / "figures", name)
    for name, text in findings.data.items():
        _write(folder / "data" / name, text)
    _write(folder / PAGE, _page(findings, pipeline))


def _page(findings: Findings, pipeline: Any) -> str:
    """Figures, then tables, as Markdown; a table next to the figure of the same title."""
    sections: dict[str, list[str]] = {}
    if pipeline.missing:
        sections["Left out, because it is missing"] = [code(*pipeline.missing)]
    for name, figure in findings.figures.items():
        title = figure.title or name
        sections.setdefault(title, []).append(f"![{inline(title)}](figures/{name}.png)")
    for name, table in findings.tables.items():
        text = to_markdown(replace(table, title="")).strip()
        sections.setdefault(table.title or name, []).append(text)
    sections["Where the numbers come from"] = [pipeline.how]
    sections["The plan"] = [code(to_toml(pipeline.plan), language="toml")]
    parts = [heading(pipeline.title, level=1), paragraphs(pipeline.plan.about)]
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
        text, where = plan_text(self.folder / PLAN)
        return read_plan(text, where=where)

    @property
    def records(self) -> list[Record]:
        """Every evaluation.

        Raises:
            FileError: If the table is missing or damaged.
        """
        return read_records(self.folder / RECORDS)

    def recompute(self, record: Record) -> Record:
        """A record computed again from the stored logits, by the plan and the seeds it names.

        Raises:
            InputError: If no such evaluation is in the plan.
        """
        plan = self.plan
        pipeline = _pipeline_of(plan).stored(plan, self.folder)
        for cell in pipeline.cells():
            if cell.key == record.key:
                (outcome,) = outcomes_of((pipeline.data_of(cell), [cell], plan.bins)).values()
                outcome.pop("metrics", None)
                return replace(record, **outcome)
        raise InputError(
            f"the plan of {self.folder} has no evaluation of {record.label} on {record.target} in "
            f"split {record.split}, draw {record.draw}, with the key {record.key}."
        )

"""From records and stored scores to tables, figures and one page that shows them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shiftcal._files import atomic_write, make_folder
from shiftcal.report.figures.base import write_figure
from shiftcal.report.page import (
    Bullets,
    Code,
    Figure,
    Heading,
    Markdown,
    Page,
    Paragraph,
    write_page,
)
from shiftcal.report.tables.table import Table
from shiftcal.report.tables.write import write_table
from shiftcal.studies.adapting.plan import AnyPlan
from shiftcal.studies.catalog.base import Findings, Study
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.results import Results
from shiftcal.studies.showing import of_one_split
from shiftcal.studies.stages.written import replacing

TABLES, FIGURES, DATA, PAGE = "tables", "figures", "data", "report.md"
_TABLE, _FIGURE = ("md", "csv", "tex"), ("png", "svg", "json")
_HOW = (
    "The numbers come from rows of [`records.csv`](records.csv): means over targets and splits, "
    "geometric means of temperatures, shares of choices. What is in no row, such as a density or "
    "the distance to each surrogate set, is computed from the stored scores in `scores/`{data}. A "
    "row names its split's seed, whose images are in `splits/`, the file of logits it was computed "
    "from, and the temperature; `studies.Run(folder).recompute(record)` computes it again from "
    "them."
)
_KEPT = ", and written to [`data/`](data)"


def report(study: Study, results: Results, *, missing: tuple[str, ...] = ()) -> Findings:
    """Write ``tables/``, ``figures/``, ``data/`` and ``report.md`` into the folder of a run.

    Each file is written whole or not at all, the page last. What an earlier report wrote and this
    one does not is removed; files that no report wrote stay.

    Args:
        study: Whose findings.
        results: Of the run.
        missing: What was left out because it was not there.

    Raises:
        FileError: If something cannot be written.
    """
    findings = study.findings(results)
    if len(results.plan.seeds) == 1:
        findings = _of_one_split(findings)
    how = _HOW.format(data=_KEPT if findings.data else "")
    about = AboutRun(results.archive.folder, results.plan, study.title, how, missing)
    write_findings(findings, about)
    return findings


@dataclass(frozen=True)
class AboutRun:
    """What a report says beside the findings.

    Attributes:
        folder: Of the run.
        plan: As it was run.
        title: Of the page.
        how: Where the numbers come from, in Markdown.
        missing: What was left out because it was not there.
    """

    folder: Path
    plan: AnyPlan
    title: str
    how: str
    missing: tuple[str, ...] = ()


def write_findings(findings: Findings, about: AboutRun) -> None:
    """Write them as :func:`report` does."""
    folder = about.folder
    for name in (TABLES, FIGURES, *((DATA,) if findings.data else ())):
        make_folder(folder / name)
    with replacing(folder, _files(findings)):
        for name, table in findings.tables.items():
            write_table(table, folder / TABLES, name)
        for name, figure in findings.figures.items():
            write_figure(figure, folder / FIGURES, name)
        for name, text in findings.data.items():
            with atomic_write(folder / DATA / name) as temporary:
                temporary.write_text(text, "utf-8")
        write_page(_page(findings, about), folder / PAGE)


def _of_one_split(findings: Findings) -> Findings:
    """The same, with notes that speak of no intervals."""
    tables = {
        name: replace(table, note=of_one_split(table.note))
        for name, table in findings.tables.items()
    }
    figures = {
        name: replace(figure, note=of_one_split(figure.note))
        for name, figure in findings.figures.items()
    }
    return replace(findings, tables=tables, figures=figures)


def _files(findings: Findings) -> list[str]:
    """What is written for findings, from the folder of the run; the page always is."""
    tables = [f"{TABLES}/{name}.{ending}" for name in findings.tables for ending in _TABLE]
    figures = [f"{FIGURES}/{name}.{ending}" for name in findings.figures for ending in _FIGURE]
    return [*tables, *figures, *(f"{DATA}/{name}" for name in findings.data)]


def _page(findings: Findings, about: AboutRun) -> Page:
    plan, missing = about.plan, about.missing
    parts: list[object] = [Paragraph(plan.about)] if plan.about else []
    parts += [Bullets(tuple(findings.remarks))]
    if missing:
        parts += [Heading("Left out, because it is not there"), Code("\n".join(missing))]
    for title, shown in _by_title(findings).items():
        parts += [Heading(title), *shown]
    parts += [Heading("Where the numbers come from"), Markdown(about.how)]
    parts += [Heading("The plan"), Code(to_toml(plan), language="toml")]
    return Page(about.title, tuple(parts))  # type: ignore[arg-type]


def _by_title(findings: Findings) -> dict[str, list[Figure | Table]]:
    """Figures, then tables; a table beside the figure that has its title."""
    found: dict[str, list[Figure | Table]] = {}
    for name, figure in findings.figures.items():
        title = figure.title or name
        found.setdefault(title, []).append(Figure(f"{FIGURES}/{name}.png", alt=title))
    for name, table in findings.tables.items():
        found.setdefault(table.title or name, []).append(replace(table, title=""))
    return found

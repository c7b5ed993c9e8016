"""From records and stored scores to tables, figures and one page that shows them all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shiftcal.errors import FileError
from shiftcal.report.figures.base import write_figure
from shiftcal.report.page import Code, Figure, Heading, Markdown, Page, Paragraph, write_page
from shiftcal.report.tables.write import write_table
from shiftcal.studies.catalog.base import Findings, Study
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.results import Results

TABLES, FIGURES, PAGE = "tables", "figures", "report.md"
_HOW = (
    "Every number is a mean of rows of [`records.csv`](records.csv). A row names its split's seed, "
    "whose images are in `splits/`, the file of logits it was computed from, and the temperature; "
    "`studies.Run(folder).recompute(record)` computes it again from them."
)


def report(study: Study, results: Results, *, missing: tuple[str, ...] = ()) -> Findings:
    """Write ``tables/``, ``figures/`` and ``report.md`` into the folder of a run.

    Args:
        study: Whose findings.
        results: Of the run.
        missing: What was left out because it was not there.

    Raises:
        FileError: If something cannot be written.
    """
    folder = results.archive.folder
    findings = study.findings(results)
    for name in (TABLES, FIGURES):
        _make(folder / name)
    for name, table in findings.tables.items():
        write_table(table, folder / TABLES, name)
    for name, figure in findings.figures.items():
        write_figure(figure, folder / FIGURES, name)
    write_page(_page(study, results, findings, missing), folder / PAGE)
    return findings


def _page(study: Study, results: Results, findings: Findings, missing: tuple[str, ...]) -> Page:
    plan = results.plan
    parts: list[object] = [Paragraph(plan.about)] if plan.about else []
    parts += [Markdown("\n".join(f"- {remark}" for remark in findings.remarks))]
    if missing:
        parts += [Heading("Left out, because it is not there"), Code("\n".join(missing))]
    for name, figure in findings.figures.items():
        title = figure.title or name
        parts += [Heading(title), Figure(f"{FIGURES}/{name}.png", alt=title)]
    for name, table in findings.tables.items():
        parts += [Heading(table.title or name), replace(table, title="")]
    parts += [Heading("Where the numbers come from"), Markdown(_HOW)]
    parts += [Heading("The plan"), Code(to_toml(plan), language="toml")]
    return Page(study.title, tuple(parts))  # type: ignore[arg-type]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} could not be made: {error.strerror or error}.") from error

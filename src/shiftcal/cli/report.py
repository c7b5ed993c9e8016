"""``shiftcal report``: all that is known of a calibration, on one offline page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli._inputs import check_output
from shiftcal.cli._named import BankPlace, TargetFile, TargetLabels, TargetPlace, named
from shiftcal.cli._options import (
    Bank,
    Bins,
    BootstrapSeed,
    Json,
    Level,
    Resamples,
    SourceTrain,
    Surrogates,
)
from shiftcal.cli._report import Report
from shiftcal.cli._report_files import ReportFiles
from shiftcal.cli._report_making import ReportSource, check_wanted, make
from shiftcal.cli._report_study import ReportStudy, is_study
from shiftcal.cli._streams import progress
from shiftcal.errors import FileError

if TYPE_CHECKING:
    from shiftcal.report.html import ReportFacts

_SUFFIXES = (".html", ".htm")


def report(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Page to write, ending in .html."),
    ],
    bank_place: BankPlace = None,
    target_place: TargetPlace = None,
    target: TargetFile = None,
    bank: Bank = None,
    surrogate: Surrogates = None,
    labels: TargetLabels = None,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The images that were scored, as for `shiftcal score`; the page shows those whose "
            "confidence changed most.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Method that the page is about; the others stand beside it.",
        ),
    ] = "rehearsal",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of --method, as for `shiftcal fit`."
        ),
    ] = None,
    source_train: SourceTrain = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    bins: Bins = 15,
    level: Level = 0.95,
    resamples: Resamples = 400,
    seed: BootstrapSeed = 0,
    as_json: Json = False,
) -> Report:
    """Write a page: can confidences be trusted, and what to do."""
    from shiftcal._optional import require
    from shiftcal.cli._card_files import made_on

    if output.suffix.lower() not in _SUFFIXES:
        raise FileError(
            f"{output} must end in .html: a report is a page for a browser. "
            f"Name it {output.with_suffix('.html') if output.name else 'report.html'}."
        )
    said = named(
        (bank_place, target_place),
        bank=bank, surrogates=surrogate, target=target, source_train=source_train,
    )  # fmt: skip
    source: ReportSource
    if said.bank is not None and is_study(said.bank):
        source = ReportStudy.named(said, labels=labels, images=images)
    else:
        source = ReportFiles.named(said, labels=labels, images=images)
    check_output(output, inputs=list(source.all()))
    require("jinja2", extra="report", needed_by="shiftcal report")
    from shiftcal.report.html import Judging, Provenance, write_report

    options = {
        "--method": method,
        "--set": set_,
        "--title": title,
        "--bins": bins,
        "--level": level,
        "--resamples": resamples,
        "--seed": seed,
    }
    judging = Judging(bins, level, resamples, seed)
    check_wanted(method, set_ or [], judging)
    with progress(f"making a report of {source.target}"):
        facts = make(
            source,
            method=method,
            settings=set_ or [],
            title=title or "",
            judging=judging,
            provenance=Provenance(
                date=made_on(),
                command=_command(output, source.options(), options),
                usage=source.usage(method, set_ or [], judging),
                files=source.digests(),
            ),
        )
        write_report(facts, output)
    document = {"output": output, "report": facts.to_dict()}
    return Report("report", document, _text(facts, output), as_json)


def _command(output: Path, named: Sequence[str], options: Mapping[str, Any]) -> str:
    """The command with every option that was given, and with what decides the numbers."""
    words = ["shiftcal", "report", *named, "-o", str(output)]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else [name, str(one)]
    return shlex.join(words)


def _text(facts: ReportFacts, output: Path) -> str:
    verdict = facts.verdict
    lines = [verdict.headline, verdict.reason, *verdict.advice]
    serious = dict.fromkeys(note.code for note in facts.warnings if note.serious)
    if serious:
        lines.append(f"flagged: {', '.join(serious)}")
    # Spaces that do not break are for the page.
    text = "\n".join(line.replace("\u00a0", " ") for line in lines)
    return f"{text}\n\nwritten to {output}"

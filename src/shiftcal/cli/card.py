"""``shiftcal card``: what is known of a calibration, as markdown and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import _tables
from shiftcal.cli._card_files import CardFiles, is_card, made_on
from shiftcal.cli._inputs import check_output
from shiftcal.cli._options import Bins, BootstrapSeed, Json, Level, SourceTrain
from shiftcal.cli._report import Report
from shiftcal.cli._streams import progress
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.cards import CalibrationCard


def card(
    bank: Annotated[
        Path,
        typer.Argument(
            metavar="BANK",
            help="Folder of a surrogate bank, or a scores file of the labelled clean set alone. "
            "Or the .json file of a card, to write its markdown anew.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the card, ending in .md; the JSON goes beside it.",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Method to fit on the bank; rehearsal unless told otherwise."
        ),
    ] = None,
    fitted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A method that `shiftcal fit` fitted on this bank, instead."
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scores file of the target. Labels, if it has any, judge the choice; the method "
            "does not see them.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels of the target, as for `shiftcal evaluate`."),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Estimates the target's accuracy without labels; rehearsed unless told "
            "otherwise, none for no estimate.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the card.")] = None,
    notes: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What else is to stand below the title.")
    ] = None,
    source_train: SourceTrain = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of --method, as for `shiftcal fit`."
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="Parts of the calibration rows, each judged by a fit on the others; 5 unless "
            "told, 2 from 2,000 rows on.",
        ),
    ] = None,
    bins: Bins = 15,
    level: Level = 0.95,
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Bootstrap draws behind an interval; 0 for no intervals."
        ),
    ] = 400,
    seed: BootstrapSeed = 0,
    as_json: Json = False,
) -> Report:
    """Write down what is known of a calibration, for people and for programs."""
    options = {
        "--method": method,
        "--fitted": fitted,
        "--target": target,
        "--labels": labels,
        "--estimator": estimator,
        "--title": title,
        "--notes": notes,
        "--source-train": source_train,
        "--set": set_,
        "--folds": folds,
    }
    measuring = {"--bins": bins, "--level": level, "--resamples": resamples, "--seed": seed}
    from shiftcal.cards import Judging, Provenance
    from shiftcal.cards.card import json_beside, markdown_file, refuse_to_replace

    beside = json_beside(markdown_file(output))
    if is_card(bank):
        return _again(bank, output, options, as_json=as_json)
    files = CardFiles(bank, fitted, target, labels, source_train)
    for file in (output, beside):
        check_output(file, inputs=list(files.all()))
    refuse_to_replace(beside)
    date = made_on()
    with progress("making the card"):
        made = files.make_card(
            method=method,
            settings=set_ or [],
            estimator=estimator,
            judging=Judging(bins, level, resamples, seed, folds),
            provenance=Provenance(
                date=date,
                command=_command(bank, output, {**options, **measuring}),
                files=files.digests(),
            ),
            title=title or "",
            notes=notes or "",
        )
        made.save(output)
    document = {"output": output, "json_output": beside, "card": made.to_dict()}
    return Report("card", document, _text(made, f"{output} and {beside}"), as_json)


def _again(source: Path, output: Path, options: Mapping[str, Any], *, as_json: bool) -> Report:
    """The markdown of a card that is there, and nothing else."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(
            f"{source} is a card, whose markdown is written anew as it is: {given[0]} changes "
            "nothing of it. Leave that out, or give the bank."
        )
    check_output(output, inputs=[source])
    from shiftcal._files import atomic_write
    from shiftcal.cards import read_card

    made = read_card(source)
    with atomic_write(output) as temporary:
        temporary.write_bytes(made.to_bytes())
    document = {"output": output, "json_output": source, "card": made.to_dict()}
    return Report("card", document, _text(made, str(output)), as_json)


def _command(bank: Path, output: Path, options: Mapping[str, Any]) -> str:
    """The command with every option that was given, and with what decides the numbers."""
    words = ["shiftcal", "card", str(bank), "-o", str(output)]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else [name, str(one)]
    return shlex.join(words)


def _text(made: CalibrationCard, written: str) -> str:
    lines = [f"{made.method.name} on {_tables.count_of(len(made.bank), 'set')}"]
    if made.choice is not None:
        lines[0] += f": {made.choice}"
    if made.on_target is not None and made.on_target.after is not None:
        before, after = made.on_target.before["ece"], made.on_target.after["ece"]
        lines.append(
            f"ECE on the target: {_tables.fraction(before.value)} before, "
            f"{_tables.fraction(after.value)} after"
        )
    if made.estimate is not None:
        lines.append(f"{made.estimate}, by {made.estimate.estimator}")
    limits = _tables.count_of(len(made.limits), "limit")
    lines.append(f"written to {written}, with {limits} to be read")
    return "\n".join(lines)

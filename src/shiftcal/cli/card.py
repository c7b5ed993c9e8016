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
from shiftcal.cli._named import Named, TargetFile, TargetLabels, TargetPlace, named
from shiftcal.cli._options import Bins, BootstrapSeed, Json, Level, SourceTrain
from shiftcal.cli._report import Report
from shiftcal.cli._streams import progress
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.cards import CalibrationCard


def card(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the card, ending in .md; the JSON goes beside it.",
        ),
    ],
    bank_place: Annotated[
        Path | None,
        typer.Argument(
            metavar="BANK",
            show_default=False,
            help="Folder of a surrogate bank, or a scores file of the labelled clean set alone; "
            "the same as --bank. Or the .json file of a card, to write its markdown anew.",
        ),
    ] = None,
    target_place: TargetPlace = None,
    target: TargetFile = None,
    bank: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of a saved surrogate bank, instead of BANK."),
    ] = None,
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
    labels: TargetLabels = None,
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
    """Write down what is known of a calibration. For people and for programs."""
    said = named(
        (bank_place, target_place),
        bank=bank, surrogates=None, target=target, source_train=source_train,
    )  # fmt: skip
    source = _source(said)
    options = {
        "--method": method,
        "--fitted": fitted,
        "--target": said.target,
        "--labels": labels,
        "--estimator": estimator,
        "--title": title,
        "--notes": notes,
        "--source-train": said.source_train,
        "--set": set_,
        "--folds": folds,
    }
    measuring = {"--bins": bins, "--level": level, "--resamples": resamples, "--seed": seed}
    from shiftcal.cards import Judging, Provenance
    from shiftcal.cards.card import json_beside, markdown_file, refuse_to_replace

    beside = json_beside(markdown_file(output))
    if is_card(source):
        return _again(source, output, options, as_json=as_json)
    files = CardFiles(source, fitted, said.target, labels, said.source_train)
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
                command=_command(source, output, {**options, **measuring}),
                files=files.digests(),
            ),
            title=title or "",
            notes=notes or "",
        )
        made.save(output)
    document = {"output": output, "json_output": beside, "card": made.to_dict()}
    return Report("card", document, _text(made, f"{output} and {beside}"), as_json)


def _source(said: Named) -> Path:
    """The bank, or the one file that stands in its place."""
    source = said.one_source()
    if source is None:
        raise InputError("the bank is missing. Name its folder: shiftcal card BANK -o FILE.")
    return source


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

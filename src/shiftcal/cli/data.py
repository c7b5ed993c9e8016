"""``shiftcal data``: list, check and download published data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.options import Json
from shiftcal.cli.output import Report, in_bytes, transfer
from shiftcal.registry import DATA_SETS

if TYPE_CHECKING:
    from shiftcal.datasets.fetch import Findings

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set; `shiftcal data list` lists them.")
]


def list_sets(as_json: Json = False) -> Report:
    """List the published data sets that are known by name."""
    rows: list[list[str]] = []
    described: list[dict[str, Any]] = []
    for name in DATA_SETS.names():
        about = DATA_SETS.get(name)
        described.append(
            {
                "name": name,
                "title": about.title,
                "n_classes": about.n_classes,
                "homepage": about.homepage,
                "licence": about.licence,
                "parts": {part.name: part.n for part in about.parts},
                "downloads": [source.url for source in about.downloads],
                "by_hand": about.by_hand,
            }
        )
        sizes = [source.size for source in about.downloads]
        size = "by hand" if not sizes else in_bytes(sum(sizes)) if all(sizes) else "yes"
        n = sum(part.n for part in about.parts)
        rows.append([name, about.title, f"{about.n_classes:,}", f"{n:,}", size, about.licence])
    text = _tables.table(
        ["name", "data set", "classes", "images", "download", "licence"],
        rows,
        right=["classes", "images", "download"],
    )
    return Report("data list", {"data_sets": described}, text, as_json)


def check(
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of your copy of it.")],
    part: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Check this part of it only. Repeatable."),
    ] = None,
    all_images: Annotated[
        bool,
        typer.Option("--all-images", help="Decode every image, not 100 spread over each part."),
    ] = False,
    as_json: Json = False,
) -> Report:
    """Say whether a copy of a data set is complete, or what is wrong."""
    from shiftcal.corruptions.corruption import bar
    from shiftcal.datasets.fetch import check_data_set, was_fetched

    with bar(f"checking {path.name}", shown=None) as step:
        found = check_data_set(
            name,
            path,
            parts=part or (),
            sample=None if all_images else 100,
            progress=lambda _, done, total: step(done, total or 1),
        )
    listed, about = DATA_SETS.canonical(name), DATA_SETS.get(name)
    document = {
        "name": listed,
        "path": path,
        "complete": found.complete,
        "parts": found.parts,
        "checksums": found.checksums,
        "files_verified": found.verified,
        "files_altered": found.altered,
        "files_absent": found.absent,
    }
    advice = ""
    if not found.complete:
        again = " --again" if was_fetched(about, path) else ""
        command = f"To download it: shiftcal data get {listed} --to {path}{again}"
        advice = f"{_shortcoming(found)} {command if about.downloads else about.by_hand}"
    return Report("data check", document, _finding_text(found), as_json, bad_input=advice)


def get(
    name: Name,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            "--output",
            "-o",
            metavar="DIR",
            help="Folder to download it into; by default one of its name.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Download it even if it is there, to repair a bad copy."),
    ] = False,
    keep_archives: Annotated[
        bool, typer.Option("--keep-archives", help="Keep archives after unpacking them.")
    ] = False,
    as_json: Json = False,
) -> Report:
    """Download a data set, or the rest of it."""
    from shiftcal.datasets.fetch import get_data_set

    listed, about = DATA_SETS.canonical(name), DATA_SETS.get(name)
    folder = to or Path(listed)
    with transfer() as progress:
        fetched = get_data_set(
            name, folder, again=again, keep_archives=keep_archives, progress=progress
        )
    document = {"name": listed, "folder": folder, "licence": about.licence, "files": fetched}
    rows = [
        [
            file.file,
            "downloaded" if file.new else "was there already",
            "verified" if file.verified else "none is published",
        ]
        for file in fetched
    ]
    done = _tables.table(["file", "", "checksum"], rows) if rows else "It was there already."
    by_hand = f"\nby hand  {about.by_hand}" if about.by_hand else ""
    text = (
        f"{done}\n\n"
        f"in       {folder}\n"
        f"licence  {about.licence}{by_hand}\n"
        f"check    shiftcal data check {listed} {folder}"
    )
    return Report("data get", document, text, as_json)


def _finding_text(found: Findings) -> str:
    rows = [
        [part.name, part.state, f"{part.expected:,}", f"{part.found:,}", f"{part.decoded:,}"]
        for part in found.parts
    ]
    numbers = ["must be", "there are", "looked at"]
    lines = [_tables.table(["part", "state", *numbers], rows, right=numbers), ""]
    lines += [f"{part.name}: {text}" for part in found.parts for text in part.problems]
    lines += found.altered
    absent = ", ".join(found.absent[:3])
    if len(found.absent) > 3:
        absent += f" and {len(found.absent) - 3:,} more"
    states = {part.state for part in found.parts}
    if states != {"complete"} and absent:
        lines.append(f"missing files: {absent}.")
    if states == {"missing"}:
        pass
    elif found.checksums == "none known":
        lines.append("checksums: none known; no checksum is published for the files of this set.")
    elif found.verified:
        lines.append(f"checksums: {len(found.verified):,} files are as published.")
    elif found.checksums == "absent" and states == {"complete"}:
        lines.append(f"checksums: none compared; they are published for {absent}.")
    return "\n".join(lines).rstrip()


def _shortcoming(found: Findings) -> str:
    """What is not complete, in a sentence."""
    problems = []
    for state in ("missing", "wrong"):
        if n := sum(part.state == state for part in found.parts):
            problems.append(f"{n} of {len(found.parts)} parts {'is' if n == 1 else 'are'} {state}")
    if found.altered:
        problems.append(f"{len(found.altered):,} files have another checksum")
    return f"the copy is not complete: {', '.join(problems)}."

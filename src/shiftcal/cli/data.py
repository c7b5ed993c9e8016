"""``shiftcal data``: published data sets listed, checked and fetched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import _tables
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._transfer import in_bytes, transfer

if TYPE_CHECKING:
    from shiftcal.datasets.about import About
    from shiftcal.datasets.check import Findings, PartFinding

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set; `shiftcal data list` lists them.")
]


def list_sets(as_json: Json = False) -> Report:
    """List the published data sets that are known by name."""
    from shiftcal import datasets
    from shiftcal.datasets.known import known

    sets = [(name, known(name)[2]) for name in datasets.names()]
    document = {"data_sets": [_described(name, about) for name, about in sets]}
    text = _tables.table(
        ["name", "data set", "classes", "images", "download", "licence"],
        [
            [name, a.title, f"{a.n_classes:,}", f"{_images(a):,}", _download(a), a.licence]
            for name, a in sets
        ],
        right=["classes", "images", "download"],
    )
    return Report("data list", document, text, as_json)


def check(
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of your copy of it.")],
    part: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Look for this part of it only. Repeatable."),
    ] = None,
    all_images: Annotated[
        bool,
        typer.Option("--all-images", help="Decode every image, not 100 spread over each part."),
    ] = False,
    as_json: Json = False,
) -> Report:
    """Say whether a copy of a data set is complete, or what is wrong."""
    from shiftcal.corruptions._progress import bar
    from shiftcal.datasets.check import check_data_set
    from shiftcal.datasets.known import known

    with bar(f"checking {path.name}", shown=None) as step:
        found = check_data_set(
            name,
            path,
            parts=part or (),
            sample=None if all_images else 100,
            step=lambda _, done, total: step(done, total),
        )
    listed, _, about = known(name)
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
    advice = "" if found.complete else f"{_shortcoming(found)} {_advice(listed, about, path)}"
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
            help="Folder to fetch it into; by default one of its name.",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Fetch it even if it is there, to mend a bad copy.")
    ] = False,
    keep_archives: Annotated[
        bool, typer.Option("--keep-archives", help="Leave archives there after unpacking them.")
    ] = False,
    as_json: Json = False,
) -> Report:
    """Fetch a data set, or the rest of it, from its official addresses."""
    from shiftcal.datasets.get import get_data_set
    from shiftcal.datasets.known import known

    listed, _, about = known(name)
    folder = to or Path(listed)
    with transfer() as watch:
        fetched = get_data_set(name, folder, again=again, keep_archives=keep_archives, watch=watch)
    document = {"name": listed, "folder": folder, "licence": about.licence, "files": fetched}
    rows = [
        [
            file.file,
            "fetched" if file.new else "was there already",
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


def _described(name: str, about: About) -> dict[str, Any]:
    return {
        "name": name,
        "title": about.title,
        "n_classes": about.n_classes,
        "homepage": about.homepage,
        "licence": about.licence,
        "parts": {part.name: part.n for part in about.parts},
        "downloads": [source.url for source in about.downloads],
        "by_hand": about.by_hand,
    }


def _images(about: About) -> int:
    return sum(part.n for part in about.parts)


def _download(about: About) -> str:
    if not about.downloads:
        return "by hand"
    sizes = [source.size for source in about.downloads]
    return in_bytes(sum(sizes)) if all(sizes) else "yes"


def _finding_text(found: Findings) -> str:
    rows = [
        [part.name, part.state, f"{part.expected:,}", f"{part.found:,}", f"{part.decoded:,}"]
        for part in found.parts
    ]
    numbers = ["must be", "there are", "looked at"]
    lines = [_tables.table(["part", "state", *numbers], rows, right=numbers), ""]
    lines += [f"{part.name}: {text}" for part in found.parts for text in part.problems]
    lines += found.altered
    incomplete = [part for part in found.parts if part.state != "complete"]
    if incomplete and found.absent:
        lines.append(f"missing files: {_few(found.absent)}.")
    if any(part.state != "missing" for part in found.parts):
        lines += _checksum_lines(found, incomplete=bool(incomplete))
    return "\n".join(lines).rstrip()


def _checksum_lines(found: Findings, *, incomplete: bool) -> list[str]:
    if found.checksums == "none known":
        return ["checksums: none known; no checksum is published for the files of this set."]
    if found.verified:
        return [f"checksums: {len(found.verified):,} files are as published."]
    if found.checksums == "absent" and not incomplete:
        return [f"checksums: none compared; they are published for {_few(found.absent)}."]
    return []


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _shortcoming(found: Findings) -> str:
    """What is not as it should be, in a sentence."""
    told = [_counted(found.parts, state) for state in ("missing", "wrong")]
    if found.altered:
        told.append(f"{len(found.altered):,} files have another checksum")
    return f"the copy is not complete: {', '.join(text for text in told if text)}."


def _counted(parts: tuple[PartFinding, ...], state: str) -> str:
    n = sum(part.state == state for part in parts)
    return f"{n} of {len(parts)} parts {'is' if n == 1 else 'are'} {state}" if n else ""


def _advice(name: str, about: About, path: Path) -> str:
    from shiftcal.datasets.get import RECEIPT

    if not about.downloads:
        return about.by_hand
    again = " --again" if (path / RECEIPT).exists() else ""
    return f"To fetch it: shiftcal data get {name} --to {path}{again}"

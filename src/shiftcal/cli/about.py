"""``shiftcal list``, ``doctor`` and ``data``: what there is, what is installed, and data sets."""

from __future__ import annotations

import importlib
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from shiftcal.cli import inputs
from shiftcal.cli.output import Report, facts, progress, table
from shiftcal.registry import (
    CORRUPTIONS,
    DATA_SETS,
    ESTIMATORS,
    MAPS,
    METHODS,
    METRICS,
    STUDIES,
    TRAINERS,
)

# Kinds that are listed by default, with the headers of their tables; the others by name only.
_TABLES = {
    "methods": (METHODS, ("method", "needs besides the bank", "what it does")),
    "maps": (MAPS, ("map", "keeps the predicted class", "what it does")),
    "metrics": (METRICS, ("metric", "better", "what it is")),
    "corruptions": (CORRUPTIONS, ("corruption", "group", "random", "what it does")),
}
_NAMES = {"estimators": ESTIMATORS, "trainers": TRAINERS, "studies": STUDIES}


def list_names(
    kind: Annotated[
        str | None,
        Argument(
            metavar="KIND", help=f"{', '.join([*_TABLES, *_NAMES])}; default: the first four."
        ),
    ] = None,
) -> Report:
    """List methods, calibration maps, metrics and corruptions. One line each.

    Example:
        shiftcal list methods
    """
    from shiftcal.checks import check_choice

    if kind is not None:
        check_choice(kind, (*_TABLES, *_NAMES), name="KIND")
    if kind in _NAMES:
        names = _NAMES[kind].names()
        text = table((_NAMES[kind].noun,), [[name] for name in names])
        return Report({kind: [{"name": name} for name in names]}, text)
    document: dict[str, Any] = {}
    blocks = []
    for one in _TABLES if kind is None else [kind]:
        registry, header = _TABLES[one]
        names = inputs.method_names() if one == "methods" else registry.names()
        entries = [_entry(one, name, registry.get(name)) for name in names]
        document[one] = [entry for entry, _ in entries]
        rows = [[entry["name"], *middle, entry["summary"]] for entry, middle in entries]
        blocks.append(table(header, rows))
    return Report(document, "\n\n".join(blocks))


def _entry(kind: str, name: str, entry: Any) -> tuple[dict[str, Any], list[str]]:
    """What is known of an entry, and the columns between its name and its summary."""
    from shiftcal.metrics import facts_of

    known: dict[str, Any] = {"name": name, "summary": summary_of(entry)}
    if kind == "metrics":
        better = facts_of(entry).better
        return known | {"better": better}, [better]
    if kind == "corruptions":
        known |= {"group": entry.group, "random": entry.random, "severities": entry().severities}
        return known, [entry.group, "yes" if entry.random else "no"]
    if kind == "maps":
        keeps = entry.preserves_accuracy
        known |= {"preserves_accuracy": keeps, "settings": inputs.settings_of(entry)}
        return known, ["yes" if keeps else "no"]
    flags = {key: getattr(entry, key) for key in ("uses_target", "uses_features", "uses_mixed")}
    needs = "target" if entry.uses_target else "-"
    if entry.uses_features:
        needs = "target; features of training, clean set and target"
    if entry.uses_mixed:
        needs = "target; scores of its images, mixed (in Python)"
    return known | flags | {"settings": inputs.settings_of(entry)}, [needs]


def summary_of(entry: Any) -> str:
    """The first line of its docstring."""
    return (entry.__doc__ or "").strip().partition("\n")[0].replace("``", "")


# --- doctor -------------------------------------------------------------------------------------

# A requirement such as: pillow>=10.3; extra == 'images'
_REQUIREMENT = re.compile(r"([\w.-]+)\s*>=\s*([\w.]+)[^;]*(?:;.*extra\s*==\s*['\"]([\w-]+)['\"])?")
# Import name, where it differs from the name of the package.
_MODULES = {"scikit-learn": "sklearn", "pillow": "PIL"}


def doctor(imports: bool = False) -> Report:
    """Show what is installed, and what is missing or broken.

    Example:
        shiftcal doctor

    Args:
        imports: Also import every installed package: slow, but detects broken installations.
    """
    import shiftcal
    from shiftcal.numerics.blocks import kernels

    packages: dict[str, list[dict[str, Any]]] = {}
    with progress("checking the installation"):
        for text in metadata.requires("shiftcal") or []:
            found = _REQUIREMENT.match(text)
            if found and found[3] not in ("dev", "all"):
                package = _package(found[1], found[2], imports)
                packages.setdefault(found[3] or "", []).append(package)
    core, extras = packages.pop(""), dict(sorted(packages.items()))
    problems = [f"{one['name']}: {one['problem']}" for one in core if one["problem"]]
    problems += [  # a missing extra is none
        f"{one['name']} (extra {extra}): {one['problem']}"
        for extra, listed in extras.items()
        for one in listed
        if one["problem"] and one["installed"]
    ]
    place = Path(shiftcal.__file__).parent
    program = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "location": str(place),
        "kernels": kernels.simd,
    }
    complete = {extra: not any(one["problem"] for one in extras[extra]) for extra in extras}
    document = {
        "program": program,
        "core": core,
        "extras": {e: {"complete": complete[e], "packages": extras[e]} for e in extras},
        "problems": problems,
    }
    rows = [
        [extra, one["name"], one["installed"] or "-", one["least"], one["problem"] or "ok"]
        for extra, listed in {"": core, **extras}.items()
        for one in listed
    ]
    missing = ",".join(extra for extra in extras if not complete[extra])
    blocks = [
        facts(list(program.items())),
        table(["extra", "package", "installed", "at least", ""], rows),
        *([f"pip install 'shiftcal[{missing}]'"] if missing else []),
        "\n".join(problems) or "no problems found",
    ]
    return Report(document, "\n\n".join(blocks), failed_gate="; ".join(problems))


def _package(name: str, least: str, imports: bool) -> dict[str, Any]:
    installed, problem = None, ""
    try:
        installed = metadata.version(name)
        have, need = ([*map(int, re.findall(r"\d+", one)[:3])] for one in (installed, least))
        if have < need:
            problem = f"older than {least}"
        elif imports:
            importlib.import_module(_MODULES.get(name, name.replace("-", "_")))
    except metadata.PackageNotFoundError:
        problem = "not installed"
    except Exception as error:  # a broken package may raise anything
        problem = f"import fails: {type(error).__name__}: {error}"
    return {"name": name, "least": least, "installed": installed, "problem": problem}


# --- data sets ----------------------------------------------------------------------------------

SetName = Annotated[
    str, Argument(metavar="NAME", help="A data set; `shiftcal data list` lists them.")
]


def list_sets() -> Report:
    """List the published data sets that are known by name.

    Example:
        shiftcal data list
    """
    from rich.filesize import decimal

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
                "parts": dict(about.counts),
                "downloads": [source.url for source in about.downloads],
                "by_hand": about.by_hand,
            }
        )
        sizes = [source.size for source in about.downloads]
        size = "by hand" if not sizes else decimal(sum(sizes)) if all(sizes) else "yes"
        n = sum(about.counts.values())
        rows.append([name, about.title, f"{about.n_classes:,}", f"{n:,}", size, about.licence])
    header = ["name", "data set", "classes", "images", "download", "licence"]
    return Report({"data_sets": described}, table(header, rows, right=header[2:5]))


def check(
    name: SetName,
    path: Annotated[Path, Argument(metavar="PATH")],
    part: Annotated[list[str] | None, Option(metavar="PART")] = None,
    all_images: bool = False,
) -> Report:
    """Say whether a copy of a data set is complete, or what is wrong.

    Example:
        shiftcal data check cifar10 data/cifar10

    Args:
        path: Folder of your copy of it.
        part: Check this part of it only. Repeatable.
        all_images: Decode every image, not 100 spread over each part.
    """
    from shiftcal.datasets.fetch import check_data_set, was_fetched
    from shiftcal.progress import bar

    with bar(f"checking {path.name}") as step:
        found = check_data_set(
            name,
            path,
            parts=part or (),
            sample=None if all_images else 100,
            progress=lambda done, total: step(done, total or 1),
        )
    listed, about = DATA_SETS.canonical(name), DATA_SETS.get(name)
    document = {
        "name": listed,
        "path": path,
        "complete": found.complete,
        "parts": found.parts,
        "files_altered": found.altered,
    }
    advice = ""
    if not found.complete:
        again = " --again" if was_fetched(about, path) else ""
        command = f"To download it: shiftcal data get {listed} --to {path}{again}"
        bad = [part.name for part in found.parts if part.state != "complete"]
        wrong = ", ".join(bad) if bad else f"{len(found.altered):,} files have another checksum"
        fix = command if about.downloads else about.by_hand
        advice = f"the copy is not complete: {wrong}. {fix}"
    rows = [
        [part.name, part.state, f"{part.expected:,}", f"{part.found:,}", f"{part.decoded:,}"]
        for part in found.parts
    ]
    numbers = ["must be", "there are", "looked at"]
    lines = [table(["part", "state", *numbers], rows, right=numbers)]
    lines += [f"{part.name}: {text}" for part in found.parts for text in part.problems]
    return Report(document, "\n".join([*lines, *found.altered]), bad_input=advice)


def get(
    name: SetName,
    to: Annotated[Path | None, Option("--to", "--output", "-o", metavar="DIR")] = None,
    again: bool = False,
) -> Report:
    """Download a data set, or the rest of it.

    Example:
        shiftcal data get cifar10 --to data/cifar10

    Args:
        to: Folder to download it into; default: one of its name.
        again: Download it even if it is there, to repair a bad copy.
    """
    from shiftcal.datasets.fetch import get_data_set
    from shiftcal.progress import bar

    listed, about = DATA_SETS.canonical(name), DATA_SETS.get(name)
    folder = to or Path(listed)
    with bar(f"downloading {listed}") as step:
        fetched = get_data_set(
            name,
            folder,
            again=again,
            progress=lambda done, total: step(done, total or done or 1),
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
    done = table(["file", "", "checksum"], rows) if rows else "It was there already."
    pairs = [
        ("in", folder),
        ("licence", about.licence),
        ("by hand", about.by_hand),
        ("check", f"shiftcal data check {listed} {folder}"),
    ]
    return Report(document, f"{done}\n\n{facts(pairs)}")

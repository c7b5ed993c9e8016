"""``shiftcal list``, ``doctor`` and ``data``: what there is, what is installed, and data sets."""

from __future__ import annotations

import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from shiftcal.cli import inputs
from shiftcal.cli.output import Report, facts, table
from shiftcal.registry import (
    CORRUPTIONS,
    DATA_SETS,
    ESTIMATORS,
    MAPS,
    METHODS,
    METRICS,
    TRAINERS,
)

# What is listed, with the keys that the printed table shows; by default the first four.
_KINDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    # Table 1 of the paper
    "methods": (METHODS, ("under_shift", "no_features", "no_retuning", "no_target")),
    "maps": (MAPS, ("preserves_accuracy",)),
    "metrics": (METRICS, ("better",)),
    "corruptions": (CORRUPTIONS, ("group", "random", "severities")),
    "estimators": (ESTIMATORS, ()),
    "trainers": (TRAINERS, ("recipes",)),
}


def list_names(
    kind: Annotated[str | None, Argument(metavar="KIND")] = None,
) -> Report:
    """List methods, maps, metrics and corruptions.

    Example:
        shiftcal list methods

    Args:
        kind: methods, maps, metrics, corruptions, estimators or trainers; default: the first four.
    """
    from shiftcal.checks import check_choice

    kinds = list(_KINDS)[:4] if kind is None else [check_choice(kind, tuple(_KINDS), name="KIND")]
    document: dict[str, Any] = {}
    blocks = []
    for one in kinds:
        registry, keys = _KINDS[one]
        names = inputs.method_names() if one == "methods" else registry.names()
        entries = document[one] = [_entry(one, name, registry.get(name)) for name in names]
        columns = ("name", *keys, "summary")
        rows = [[entry[key] for key in columns] for entry in entries]
        header = [registry.noun, *(key.replace("_", " ") for key in columns[1:])]
        blocks.append(table(header, rows))
    return Report(document, "\n\n".join(blocks))


def _entry(kind: str, name: str, entry: Any) -> dict[str, Any]:
    """What is known of an entry; its summary is the first line of its docstring."""
    from shiftcal.metrics import facts_of

    summary = (entry.__doc__ or "").strip().partition("\n")[0].replace("``", "")
    known: dict[str, Any] = {"name": name, "summary": summary}
    if kind == "metrics":
        return known | {"better": facts_of(entry).better}
    if kind == "corruptions":
        return known | {
            "group": entry.group,
            "random": entry.random,
            "severities": entry().severities,
        }
    if kind == "trainers":
        prepared = {recipe: entry.prepared(recipe) for recipe in sorted(entry.recipes)}
        numbers = {
            recipe: {"options": trainer.to_dict(), "settings": settings.to_dict()}
            for recipe, (trainer, settings) in prepared.items()
        }
        return known | {"label": entry.label, "recipes": list(prepared), "numbers": numbers}
    if kind == "methods":
        needs = ("uses_target", "uses_bank", "uses_features", "uses_mixed", "corrects")
        known |= {key: getattr(entry, key) for key in needs} | {
            "under_shift": entry.uses_target or entry.uses_bank,
            "no_features": not entry.uses_features,
            "no_retuning": not (entry.uses_features or entry.uses_mixed),
            "no_target": not entry.uses_target,
        }
    else:
        known |= {key: getattr(entry, key) for key in _KINDS[kind][1]}
    return known if kind == "estimators" else known | {"settings": inputs.settings_of(entry)}


# --- doctor -------------------------------------------------------------------------------------

# A requirement such as: pillow>=10.3; extra == 'images'
_REQUIREMENT = re.compile(r"([\w.-]+)\s*>=\s*([\w.]+)[^;]*(?:;.*extra\s*==\s*['\"]([\w-]+)['\"])?")


def doctor() -> Report:
    """Check the installation: versions, and extras that are missing.

    Example:
        shiftcal doctor
    """
    import shiftcal
    from shiftcal.numerics.blocks import kernels

    packages: dict[str, list[dict[str, Any]]] = {}
    for text in metadata.requires("shiftcal") or []:
        found = _REQUIREMENT.match(text)
        if found and found[3] not in ("dev", "all"):
            packages.setdefault(found[3] or "", []).append(_package(found[1], found[2]))
    core, extras = packages.pop(""), dict(sorted(packages.items()))
    listed = [("", one) for one in core]
    listed += [(extra, one) for extra in extras for one in extras[extra]]
    problems = [  # a missing extra is none
        f"{one['name']}{f' (extra {extra})' if extra else ''}: {one['problem']}"
        for extra, one in listed
        if one["problem"] and (one["installed"] or not extra)
    ]
    complete = {extra: not any(one["problem"] for one in extras[extra]) for extra in extras}
    document: dict[str, Any] = {
        "program": {
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "location": str(Path(shiftcal.__file__).parent),
            "kernels": kernels.simd,
        },
        "core": core,
        "extras": {e: {"complete": complete[e], "packages": extras[e]} for e in extras},
        "problems": problems,
    }
    keys = ("name", "installed", "least", "problem")
    rows = [[extra, *(one[key] for key in keys)] for extra, one in listed]
    missing = ",".join(extra for extra in extras if not complete[extra])
    blocks = [
        facts(document["program"]),
        table(["extra", "package", "installed", "at least", "problem"], rows),
        *([f"pip install 'shiftcal[{missing}]'"] if missing else []),
        "\n".join(problems) or "no problems found",
    ]
    return Report(document, "\n\n".join(blocks), failed_gate="; ".join(problems))


def _package(name: str, least: str) -> dict[str, Any]:
    installed, problem = None, ""
    try:
        installed = metadata.version(name)
        have, need = ([*map(int, re.findall(r"\d+", one)[:3])] for one in (installed, least))
        if have < need:
            problem = f"older than {least}"
    except metadata.PackageNotFoundError:
        problem = "not installed"
    return {"name": name, "least": least, "installed": installed, "problem": problem}


# --- data sets ----------------------------------------------------------------------------------

SetName = Annotated[str, Argument(metavar="NAME")]


def list_sets() -> Report:
    """List the published data sets that are known by name.

    Example:
        shiftcal data list
    """
    from rich.filesize import decimal

    rows: list[list[Any]] = []
    described: list[dict[str, Any]] = []
    for name in DATA_SETS.names():
        about = DATA_SETS.get(name)
        keys = ("title", "n_classes", "homepage", "licence", "by_hand")
        described.append(
            {
                "name": name,
                **{key: getattr(about, key) for key in keys},
                "parts": dict(about.counts),
                "downloads": [source.url for source in about.downloads],
            }
        )
        sizes = [source.size for source in about.downloads]
        size = "by hand" if not sizes else decimal(sum(sizes)) if all(sizes) else "yes"
        n = sum(about.counts.values())
        rows.append([name, about.title, about.n_classes, n, size, about.licence])
    header = ["name", "data set", "classes", "images", "download", "licence"]
    return Report({"data_sets": described}, table(header, rows))


def check(
    name: SetName,
    path: Annotated[Path, Argument(metavar="PATH")],
    part: Annotated[list[str] | None, Option(metavar="PART")] = None,
    all_images: bool = False,
) -> Report:
    """Check whether a copy of a data set is complete.

    Example:
        shiftcal data check cifar10 data/cifar10

    Args:
        name: A data set; `shiftcal data list` lists them.
        path: Folder of your copy of it.
        part: Check this part of it only. Repeatable.
        all_images: Decode every image, not only 100 of each part.
    """
    from shiftcal.datasets.fetch import check_data_set
    from shiftcal.progress import bar

    with bar(f"checking {path.name}", unit="images") as step:
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
    rows = [
        [part.name, part.state, part.expected, part.found, part.decoded] for part in found.parts
    ]
    lines = [table(["part", "state", "expected", "found", "decoded"], rows)]
    lines += [f"{part.name}: {text}" for part in found.parts for text in part.problems]
    lines += found.altered
    advice = ""
    if not found.complete:
        command = f"To download it: shiftcal data get {listed} -o {path} --again"
        advice = f"the copy is not complete. {command if about.downloads else about.by_hand}"
    return Report(document, "\n".join(lines), bad_input=advice)


def get(
    name: SetName,
    to: Annotated[Path | None, Option("--output", "-o", "--to", metavar="DIR")] = None,
    again: bool = False,
) -> Report:
    """Download a data set, or the rest of it.

    Example:
        shiftcal data get cifar10 -o data/cifar10

    Args:
        name: A data set; `shiftcal data list` lists them.
        to: Folder to download it into; default: the name of the data set.
        again: Download it even if it is there, to repair a bad copy.
    """
    from shiftcal.datasets.fetch import get_data_set
    from shiftcal.progress import bar

    listed, about = DATA_SETS.canonical(name), DATA_SETS.get(name)
    folder = to or Path(listed)
    with bar(f"downloading {listed}", unit="bytes") as step:
        fetched = get_data_set(
            name,
            folder,
            again=again,
            progress=lambda done, total: step(done, total or done or 1),
        )
    document = {"name": listed, "folder": folder, "licence": about.licence, "files": fetched}
    rows = [[file.file, file.new, file.verified] for file in fetched]
    more = {"by hand": about.by_hand, "check": f"shiftcal data check {listed} {folder}"}
    text = facts({"folder": folder, "licence": about.licence, **more})
    return Report(document, f"{table(['file', 'new', 'checksum verified'], rows)}\n\n{text}")

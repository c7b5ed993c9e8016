"""``shiftcal doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import importlib
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.options import Json
from shiftcal.cli.output import Report, progress

# A requirement such as: pillow>=10.3; extra == 'images'
_REQUIREMENT = re.compile(r"([\w.-]+)\s*>=\s*([\w.]+)[^;]*(?:;.*extra\s*==\s*['\"]([\w-]+)['\"])?")
# Import name, where it differs from the name of the package.
_MODULES = {"scikit-learn": "sklearn", "pillow": "PIL"}


def doctor(
    imports: Annotated[
        bool,
        typer.Option(
            "--imports",
            help="Also import every installed package: slow, but detects broken installations.",
        ),
    ] = False,
    as_json: Json = False,
) -> Report:
    """Show what is installed, and what is missing or broken."""
    import shiftcal

    packages: dict[str, list[dict[str, Any]]] = {}
    with progress("checking the installation"):
        for text in metadata.requires("shiftcal") or []:
            found = _REQUIREMENT.match(text)
            if found and found[3] not in ("dev", "all"):
                package = _package(found[1], found[2], imports)
                packages.setdefault(found[3] or "", []).append(package)
    document: dict[str, Any] = {
        "program": {
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "location": str(Path(shiftcal.__file__).parent),
            "kernels": _kernel_folder(Path(shiftcal.__file__).parent),
        },
        "core": packages.pop(""),
        "extras": {
            extra: {"complete": not any(one["problem"] for one in listed), "packages": listed}
            for extra, listed in sorted(packages.items())
        },
    }
    problems = [f"{one['name']}: {one['problem']}" for one in document["core"] if one["problem"]]
    problems += [  # a missing extra is none
        f"{one['name']} (extra {extra}): {one['problem']}"
        for extra, listed in sorted(packages.items())
        for one in listed
        if one["problem"] and one["installed"]
    ]
    document["problems"] = problems
    return Report("doctor", document, _text(document), as_json, failed_gate="; ".join(problems))


def _kernel_folder(package: Path) -> str | None:
    """The folder that holds all compiled kernels, as numba chooses it; ``None``: nowhere."""
    import numba

    from shiftcal.numerics.jit import to_read

    try:
        folder = Path(numba.njit(to_read, cache=True).stats.cache_path)
    except Exception:  # numba has no class for a cache that cannot be written
        return None
    # There is one folder for each folder of sources.
    return str(package if folder.name == "__pycache__" else folder.parent)


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


def _text(document: dict[str, Any]) -> str:
    listed = [("", document["core"])]
    listed += [(extra, state["packages"]) for extra, state in document["extras"].items()]
    rows = [
        [extra, one["name"], one["installed"] or "-", one["least"], one["problem"] or "ok"]
        for extra, packages in listed
        for one in packages
    ]
    lacking = [extra for extra, state in document["extras"].items() if not state["complete"]]
    install = [f"pip install 'shiftcal[{','.join(lacking)}]'"] if lacking else []
    return "\n\n".join(
        [
            _tables.facts(list(document["program"].items())),
            _tables.table(["extra", "package", "installed", "at least", ""], rows),
            *install,
            "\n".join(document["problems"]) or "no problems found",
        ]
    )

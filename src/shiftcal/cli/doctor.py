"""``shiftcal doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import _tables
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._streams import progress

if TYPE_CHECKING:
    from shiftcal.cli._doctor_packages import Package

# What an extra is for, in the words of somebody who does not have it.
_FOR = {
    "parquet": "scores and data sets in .parquet and Arrow files",
    "images": "image files",
    "onnx": "ONNX models, and export to them",
    "torch": "PyTorch models, and domain adaptation",
    "skops": "scikit-learn models in .skops files",
    "plot": "figures",
    "report": "HTML reports",
    "ray": "scoring on a cluster",
    "monitor": "Prometheus metrics of shiftcal monitor",
}


def doctor(
    imports: Annotated[
        bool,
        typer.Option(
            "--imports",
            help="Import every installed package too: takes long, and finds broken installations.",
        ),
    ] = False,
    as_json: Json = False,
) -> Report:
    """Say what is installed, and what is missing or in the way."""
    from shiftcal.cli import _doctor_machine
    from shiftcal.cli._doctor_packages import required

    with progress("looking around"):
        by_extra = required(imported=imports)
        document: dict[str, Any] = {
            "program": _doctor_machine.program(),
            "core": [one.to_dict() for one in by_extra.pop("", [])],
            "extras": {
                extra: {"complete": not _lacking(packages), "packages": _plain(packages)}
                for extra, packages in sorted(by_extra.items())
            },
            "threads": _doctor_machine.threads(),
            "kernel_cache": _doctor_machine.kernel_cache(),
            "score_cache": _doctor_machine.score_cache(),
            "temporary": _doctor_machine.temporary(),
            "terminal": _doctor_machine.terminal(),
            "data": os.environ.get("SHIFTCAL_DATA"),
        }
    document["problems"] = _problems(document)
    wrong = document["problems"]
    gate = f"{_tables.count_of(len(wrong), 'problem')}: {'; '.join(wrong)}" if wrong else ""
    return Report("doctor", document, _text(document), as_json, failed_gate=gate)


def _lacking(packages: list[Package]) -> list[Package]:
    return [one for one in packages if one.problem]


def _plain(packages: list[Package]) -> list[dict[str, Any]]:
    return [one.to_dict() for one in packages]


def _problems(document: dict[str, Any]) -> list[str]:
    """What keeps shiftcal from working as it should; an extra that is not installed does not."""
    wrong = [f"{one['name']}: {one['problem']}" for one in document["core"] if one["problem"]]
    for extra, state in document["extras"].items():
        wrong += [
            f"{one['name']} (extra {extra}): {one['problem']}"
            for one in state["packages"]
            if one["problem"] and one["installed"] is not None
        ]
    folders = (document["temporary"]["problem"], _told_of(document["score_cache"]))
    return wrong + [text for text in folders if text]


def _told_of(cache: dict[str, Any]) -> str:
    return cache["problem"] and f"SHIFTCAL_CACHE: {cache['problem']}"


def _text(document: dict[str, Any]) -> str:
    program, threads = document["program"], document["threads"]
    cache, temporary = document["kernel_cache"], document["temporary"]
    named = ", ".join(f"{k}={v}" for k, v in threads["environment"].items())
    kept = "kernels are compiled anew in each process: " + cache["problem"]
    pairs = [
        ("python", f"{program['python']} ({program['executable']})"),
        ("platform", program["platform"]),
        ("shiftcal", program["location"]),
        ("processors", f"{threads['usable']} of {threads['processors']}{named and f'; {named}'}"),
        ("compiled kernels", kept if cache["problem"] else cache["path"]),
        ("SHIFTCAL_CACHE", document["score_cache"]["path"] or "not set (no shards are shared)"),
        ("temporary files", f"{temporary['path']}, {temporary['free_bytes'] / 2**30:.1f} GiB free"),
        ("SHIFTCAL_DATA", document["data"] or "not set (only tests and benchmarks use it)"),
    ]
    core = [
        [p["name"], p["installed"] or "-", p["least"], p["problem"] or "ok"]
        for p in document["core"]
    ]
    extras = [_extra_row(extra, state) for extra, state in document["extras"].items()]
    wrong = document["problems"]
    end = [f"  {text}" for text in wrong] if wrong else ["nothing is wrong"]
    return "\n".join(
        [
            _tables.facts(pairs),
            "",
            _tables.table(["package", "installed", "at least", ""], core),
            "",
            _tables.table(["extra", "", "for", "to install"], extras),
            "",
            *end,
        ]
    )


def _extra_row(extra: str, state: dict[str, Any]) -> list[str]:
    lacking = [f"{p['name']} {p['problem']}" for p in state["packages"] if p["problem"]]
    there = [f"{p['name']} {p['installed']}" for p in state["packages"]]
    install = f"pip install 'shiftcal[{extra}]'" if lacking else ""
    return [extra, ", ".join(lacking or there), _FOR.get(extra, ""), install]

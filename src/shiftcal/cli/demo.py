"""``shiftcal demo``: the real thing, on data that everybody has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._scoring import reporting
from shiftcal.cli._streams import complain, stdout_kept_for_results

if TYPE_CHECKING:
    from shiftcal.demo import Found


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the files: a new one, or its own."
        ),
    ] = Path("shiftcal-demo"),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Use CIFAR-10 and a ResNet-20 in this folder instead of scikit-learn's digits; "
            "needs torch.",
        ),
    ] = None,
    as_json: Json = False,
) -> Report:
    """See it work in a minute: model, shift, methods, report."""
    with _explained(), stdout_kept_for_results():
        found = _run(output, data)
    from shiftcal.cli._demo_text import text_of

    return Report("demo", found.to_dict(), text_of(found), as_json)


def _run(output: Path, data: Path | None) -> Found:
    from shiftcal.cli._demo_steps import Steps
    from shiftcal.demo import cifar_subject, digits_subject, run_demo
    from shiftcal.demo.run import STEPS

    words = ["shiftcal", "demo", "-o", str(output)]
    if data is not None:
        words += ["--data", str(data)]
    return run_demo(
        digits_subject if data is None else partial(cifar_subject, data.expanduser()),
        "digits" if data is None else "cifar10",
        output,
        telling=Steps(STEPS),
        reporting=reporting(),
        command=shlex.join(words),
    )


@contextmanager
def _explained() -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        complain("note", "the same command goes on where this one stopped.")
        raise

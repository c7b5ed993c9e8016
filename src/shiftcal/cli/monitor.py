"""``shiftcal monitor``: a stream of logits in, lines, events and confidences out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shiftcal.cli._monitor_options import Outputs, Sources
from shiftcal.cli._monitor_spec import Fitting
from shiftcal.cli._monitor_watch import watch
from shiftcal.cli._report import Ended


def monitor(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC",
            help="A saved monitor (.json), or the folder of a surrogate bank on which one is "
            "fitted at the start.",
        ),
    ],
    follow: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Read the scores files of this folder as they appear, in the order of their "
            "names, instead of standard input.",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="With --follow: end when all files that are there are read."),
    ] = False,
    settle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="With --follow: how long a file must not have changed before it is read; 1 "
            "unless told. 0 if files are always renamed into place.",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="npy|arrow|jsonl",
            help="Format of standard input; its first bytes tell it unless told.",
        ),
    ] = None,
    max_batch_rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Refuse batches of more rows.")
    ] = 65536,
    on_error: Annotated[
        str,
        typer.Option(
            metavar="stop|skip", help="What to do at a batch or file that cannot be used."
        ),
    ] = "stop",
    every: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Print a line every N rows; as many as the window has if left out.",
        ),
    ] = None,
    confidences: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Append confidence and predicted class of every row to this file as JSON lines; "
            "- for stdout, with --json.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the running state here; started again with it, the monitor goes on where "
            "it stopped.",
        ),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="With --state: standard input begins at its beginning again, so pass over the "
            "batches that the state has seen.",
        ),
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="outside-bank|shift",
            help="End with status 1 as soon as that begins. Repeatable.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65535, help="Serve metrics for Prometheus here; 0 for any port."
        ),
    ] = None,
    metrics_host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Address to serve them at; 127.0.0.1 unless told."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With a bank: method to fit; rehearsal unless told."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="With a bank: a setting of the method. Repeatable."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|none",
            help="With a bank: estimator of accuracy; rehearsed unless told.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With a bank: look at the last N rows."),
    ] = None,
    half_life: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="With a bank: let a row count half after N rows instead."
        ),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(metavar="X", help="With a bank: false alarms to allow in 100,000 clean rows."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With a bank: keep the fitted monitor, as .json."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON lines on stdout, one object each with a 'type'."),
    ] = False,
) -> Ended:
    """Calibrate a stream of logits, and tell when it shifts."""
    return watch(
        spec,
        Fitting(method, set_ or [], estimator, window, half_life, false_alarms, save),
        Sources(follow, once, settle, format_, max_batch_rows, on_error, replay),
        Outputs(
            every=every,
            confidences=confidences,
            state=state,
            fail_on=tuple(fail_on or ()),
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            as_json=as_json,
        ),
    )

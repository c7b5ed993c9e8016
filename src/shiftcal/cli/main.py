"""The program ``shiftcal``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer

from shiftcal.cli.output import (
    BAD_INPUT,
    DONE,
    GATE_FAILED,
    INTERRUPTED,
    Ended,
    Report,
    complain,
    complain_at_length,
    escaped_lines,
    interrupted,
    say,
    status_of,
    to_json,
    warnings_as_lines,
)
from shiftcal.errors import InputError
from shiftcal.registry import imported

# In the order of the work: name, module:function, example.
_COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:demo", "shiftcal demo"),
    "corrupt": (
        "corrupt:corrupt",
        "shiftcal corrupt images/ corrupted/ --corruption pixelate --severity all",
    ),
    "gallery": ("gallery:gallery", "shiftcal gallery photo.jpg -o gallery.png --severity 3"),
    "bank": (
        "bank:bank",
        "shiftcal bank --model model.onnx --images calibration/ --corruption pixelate -o bank/",
    ),
    "train": (
        "train:train",
        "shiftcal train --method cdan --source photos/ --target sketches/ \\\n"
        "    --backbone resnet50 --recipe office-home -o run/",
    ),
    "score": ("score:score", "shiftcal score --bank bank/ --images new-images/ -o target.npz"),
    "merge": ("merge:merge", "shiftcal merge part-1.npz part-2.npz part-3.npz -o target.npz"),
    "fit": (
        "fit:fit",
        "shiftcal fit --method sac -o sac.json \\\n"
        "    --surrogate clean.npz --surrogate s1.npz --surrogate s2.npz",
    ),
    "apply": ("apply:apply", "shiftcal apply sac.json target.npz -o out.npz"),
    "evaluate": ("evaluate:evaluate", "shiftcal evaluate out.npz --max-ece 0.05"),
    "compare": (
        "compare:compare",
        "shiftcal compare --target target.npz \\\n"
        "    --surrogate clean.npz --surrogate s1.npz --surrogate s2.npz",
    ),
    "estimate": ("estimate:estimate", "shiftcal estimate bank/ target.npz"),
    "monitor": (
        "monitor:monitor",
        "shiftcal monitor bank/ --follow scores/ --state monitor.state.json",
    ),
    "report": ("report:report", "shiftcal report bank/ target.npz -o report.html"),
    "export": (
        "export:export",
        "shiftcal export sac.json --onnx model.onnx --target target.npz -o calibrated.onnx",
    ),
    "list": ("listing:list_names", "shiftcal list methods"),
    "doctor": ("doctor:doctor", "shiftcal doctor"),
    "reproduce": (
        "reproduce:reproduce",
        "shiftcal reproduce synthetic --data data -o runs/synthetic",
    ),
}
# The same of the commands below `shiftcal data`.
_DATA_COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("data:list_sets", "shiftcal data list"),
    "check": ("data:check", "shiftcal data check cifar10 data/cifar10"),
    "get": ("data:get", "shiftcal data get cifar10 --to data/cifar10"),
}
# The mark that keeps the lines of a paragraph apart in a help text.
_AS_IT_STANDS = "\b"

app = typer.Typer(
    name="shiftcal",
    # Plain help can be searched, piped and pasted.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"""{_AS_IT_STANDS}
Exit status:
  0    done
  1    done, and a gate such as --max-ece failed
  2    the input, or a part of it, cannot be used
  3    not done: a mistake in shiftcal
  130  interrupted
  143  told to end, by SIGTERM (monitor)""",
)
data_app = typer.Typer(rich_markup_mode=None)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def shiftcal(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    import_: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import this Python module first, for saved classes of your own. Repeatable.",
        ),
    ] = None,
) -> None:
    """Classifier confidences that hold when the data shifts, without labels."""
    for module in import_ or []:
        imported(module)
    if version:
        say(f"shiftcal {installed_version('shiftcal')}")
        raise typer.Exit
    _need_command(context)


@data_app.callback(invoke_without_command=True)
def published_data(context: typer.Context) -> None:
    """List, check and fetch published data sets."""
    _need_command(context)


def _need_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        complain_at_length(f"{context.get_help()}\n")
        raise InputError("no command was given. Choose one of those above.")


def program(words: Sequence[str] = ()) -> Any:
    """The command line program.

    Args:
        words: Only the commands among these are imported, if any is; all by default.
    """
    asked = {word for word in words if word in _COMMANDS or word == "data"}
    for group, commands in ((app, _COMMANDS), (data_app, _DATA_COMMANDS)):
        known = {command.name for command in group.registered_commands}
        for name, (place, example) in commands.items():
            needed = not asked or (name in asked if group is app else "data" in asked)
            if needed and name not in known:
                module, _, attribute = place.partition(":")
                function = getattr(import_module(f"shiftcal.cli.{module}"), attribute)
                group.command(name, epilog=f"{_AS_IT_STANDS}\nExample:\n{example}")(function)
    order = list(_COMMANDS)
    app.registered_commands.sort(key=lambda command: order.index(command.name or ""))
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; nothing is raised.

    Args:
        arguments: What stands after the program's name; ``None`` takes it from ``sys.argv``.
    """
    try:
        with warnings_as_lines() as warned:
            words = sys.argv[1:] if arguments is None else list(arguments)
            outcome = program(words).main(
                words,
                prog_name="shiftcal",
                standalone_mode=False,
            )
        if isinstance(outcome, Ended):
            return outcome.status
        if not isinstance(outcome, Report):  # --help, --version, or Ctrl-C as typer tells it
            return interrupted() if outcome == INTERRUPTED else DONE
        say(to_json(outcome, warnings=warned) if outcome.as_json else escaped_lines(outcome.text))
        if outcome.bad_input:
            complain("error", outcome.bad_input)
            return BAD_INPUT
        if outcome.failed_gate:
            complain("gate failed", outcome.failed_gate)
            return GATE_FAILED
        return DONE
    except BaseException as error:
        return status_of(error)

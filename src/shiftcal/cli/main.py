"""The program ``shiftcal``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer

from shiftcal.cli import data
from shiftcal.cli._errors import BAD_INPUT, DONE, GATE_FAILED, status_of
from shiftcal.cli._interrupt import INTERRUPTED, interrupted
from shiftcal.cli._report import Ended, Report, to_json
from shiftcal.cli._streams import complain, complain_at_length, say, warnings_as_lines
from shiftcal.cli.adapt import adapt
from shiftcal.cli.apply import apply
from shiftcal.cli.bank import bank
from shiftcal.cli.card import card
from shiftcal.cli.compare import compare
from shiftcal.cli.completion import completion
from shiftcal.cli.corrupt import corrupt
from shiftcal.cli.demo import demo
from shiftcal.cli.doctor import doctor
from shiftcal.cli.estimate import estimate
from shiftcal.cli.evaluate import evaluate
from shiftcal.cli.export import export
from shiftcal.cli.fit import fit
from shiftcal.cli.gallery import gallery
from shiftcal.cli.merge import merge
from shiftcal.cli.methods import methods
from shiftcal.cli.monitor import monitor
from shiftcal.cli.report import report
from shiftcal.cli.reproduce import reproduce
from shiftcal.cli.score import score
from shiftcal.errors import InputError

# In the order of the work: name, function, example.
_COMMANDS: dict[str, tuple[Callable[..., Report | Ended], str]] = {
    "demo": (demo, "shiftcal demo"),
    "corrupt": (
        corrupt,
        "shiftcal corrupt images/ corrupted/ --corruption pixelate --severity all",
    ),
    "gallery": (gallery, "shiftcal gallery photo.jpg -o gallery.png --severity 3"),
    "bank": (
        bank,
        "shiftcal bank --model model.onnx --images calibration/ --corruption pixelate -o bank/",
    ),
    "adapt": (
        adapt,
        "shiftcal adapt --method cdan --source photos/ --target sketches/ \\\n"
        "    --backbone resnet50 --recipe office-home -o run/",
    ),
    "score": (score, "shiftcal score --bank bank/ --images new-images/ -o target.npz"),
    "merge": (merge, "shiftcal merge part-1.npz part-2.npz part-3.npz -o target.npz"),
    "fit": (
        fit,
        "shiftcal fit --method sac -o sac.json \\\n"
        "    --surrogate clean.npz --surrogate s1.npz --surrogate s2.npz",
    ),
    "apply": (apply, "shiftcal apply sac.json target.npz -o out.npz"),
    "evaluate": (evaluate, "shiftcal evaluate out.npz --max-ece 0.05"),
    "compare": (
        compare,
        "shiftcal compare --target target.npz \\\n"
        "    --surrogate clean.npz --surrogate s1.npz --surrogate s2.npz",
    ),
    "estimate": (estimate, "shiftcal estimate bank/ target.npz"),
    "monitor": (monitor, "shiftcal monitor bank/ --follow scores/ --state monitor.state.json"),
    "card": (card, "shiftcal card bank/ --target target.npz -o card.md"),
    "report": (report, "shiftcal report bank/ target.npz -o report.html"),
    "export": (
        export,
        "shiftcal export sac.json --onnx model.onnx --target target.npz -o calibrated.onnx",
    ),
    "methods": (methods, "shiftcal methods --json"),
    "doctor": (doctor, "shiftcal doctor"),
    "completion": (
        completion,
        """shiftcal completion bash >> ~/.bashrc
shiftcal completion zsh > ~/.zfunc/_shiftcal        # a folder of $fpath
shiftcal completion fish > ~/.config/fish/completions/shiftcal.fish""",
    ),
    "reproduce": (reproduce, "shiftcal reproduce synthetic --data data -o runs/synthetic"),
}
# The same of the commands below `shiftcal data`.
_DATA_COMMANDS: dict[str, tuple[Callable[..., Report | Ended], str]] = {
    "list": (data.list_sets, "shiftcal data list"),
    "check": (data.check, "shiftcal data check cifar10 data/cifar10"),
    "get": (data.get, "shiftcal data get cifar10 --to data/cifar10"),
}
# The mark that keeps the lines of a paragraph apart in a help text.
_AS_IT_STANDS = "\b"

app = typer.Typer(
    name="shiftcal",
    add_completion=False,
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
for group, commands in ((app, _COMMANDS), (data_app, _DATA_COMMANDS)):
    for name, (command, example) in commands.items():
        group.command(name, epilog=f"{_AS_IT_STANDS}\nExample:\n{example}")(command)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def shiftcal(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Classifier confidences that hold when the data shifts, without labels."""
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


def program() -> Any:
    """The command that typer makes of all of them."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; nothing is raised.

    Args:
        arguments: What stands after the program's name; ``None`` takes it from ``sys.argv``.
    """
    try:
        with warnings_as_lines() as warned:
            outcome = program().main(
                None if arguments is None else list(arguments),
                prog_name="shiftcal",
                standalone_mode=False,
            )
        if isinstance(outcome, Ended):
            return outcome.status
        if not isinstance(outcome, Report):  # --help, --version, or Ctrl-C as typer tells it
            return interrupted() if outcome == INTERRUPTED else DONE
        say(to_json(outcome, warnings=warned) if outcome.as_json else outcome.text)
        if outcome.bad_input:
            complain("error", outcome.bad_input)
            return BAD_INPUT
        if outcome.failed_gate:
            complain("gate failed", outcome.failed_gate)
            return GATE_FAILED
        return DONE
    except BaseException as error:
        return status_of(error)

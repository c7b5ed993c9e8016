"""The program ``shiftcal``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import version as installed_version
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from shiftcal.cli.output import (
    BAD_INPUT,
    DONE,
    GATE_FAILED,
    INTERRUPTED,
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

# Commands in the order of the work, and where their functions are.
_COMMANDS = {
    "demo": "demo:demo",
    "corrupt": "images:corrupt",
    "gallery": "images:gallery",
    "bank": "scoring:bank",
    "train": "train:train",
    "score": "scoring:score",
    "merge": "scoring:merge",
    "fit": "calibrate:fit",
    "apply": "calibrate:apply",
    "evaluate": "evaluate:evaluate",
    "compare": "evaluate:compare",
    "estimate": "evaluate:estimate",
    "monitor": "monitor:monitor",
    "report": "report:report",
    "export": "calibrate:export",
    "list": "about:list_names",
    "doctor": "about:doctor",
    "reproduce": "reproduce:reproduce",
}
_DATA_COMMANDS = {"list": "about:list_sets", "check": "about:check", "get": "about:get"}
_JSON = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")
]
# A parameter in the ``Args`` or ``Attributes`` of a docstring.
_ARGUMENT = re.compile(r"^    (\w+): (.*?)(?=^    \w|^\S|^$|\Z)", re.MULTILINE | re.DOTALL)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
# Keeps the lines of a paragraph apart in a help text.
_VERBATIM = "\b"

app = typer.Typer(
    name="shiftcal",
    rich_markup_mode=None,  # plain help can be searched, piped and pasted
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"""{_VERBATIM}
Exit status:
  0    done
  1    done, and a gate such as --max-ece failed
  2    the input, or a part of it, cannot be used
  3    a bug in shiftcal
  130  interrupted
  143  terminated by SIGTERM (monitor)""",
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
        words: If any of these is a command, only those commands are imported.
    """
    asked = {word for word in words if word in _COMMANDS or word == "data"}
    for group, commands in ((app, _COMMANDS), (data_app, _DATA_COMMANDS)):
        known = {command.name for command in group.registered_commands}
        for name, place in commands.items():
            needed = not asked or (name in asked if group is app else "data" in asked)
            if needed and name not in known:
                module, _, attribute = place.partition(":")
                function = getattr(import_module(f"shiftcal.cli.{module}"), attribute)
                summary, _, described = (inspect.getdoc(function) or "").partition("\n")
                example = described.partition("Example:\n")[2].partition("\n\n")[0].strip()
                epilog = f"{_VERBATIM}\nExample:\n{example}"
                path = name if group is app else f"data {name}"
                group.command(name, help=summary, epilog=epilog)(_command(function, path))
    order = list(_COMMANDS)
    app.registered_commands.sort(key=lambda command: order.index(command.name or ""))
    return typer.main.get_command(app)


def _command(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function as typer takes it: fields of bundles as options, and ``--json``."""
    own = _documented(function)
    bundles: dict[str, Any] = {
        k: p.annotation for k, p in own.items() if is_dataclass(p.annotation)
    }
    fields = {key: _documented(bundle) for key, bundle in bundles.items()}
    parameters = {
        "as_json": inspect.Parameter("as_json", _KEYWORD, default=False, annotation=_JSON)
    }
    for key, parameter in own.items():
        parameters |= fields.get(key, {key: parameter})
    hints = {key: parameter.annotation for key, parameter in parameters.items()}

    def call(**values: Any) -> tuple[str, bool, Report | int]:
        from shiftcal.cli.inputs import check_outputs

        check_outputs(values, hints)
        given = {key: values[key] for key in own if key not in bundles}
        for key, bundle in bundles.items():
            given[key] = bundle(**{field: values[field] for field in fields[key]})
        return name, values["as_json"], function(**given)

    # What must be given comes first, and --json last.
    def rank(parameter: inspect.Parameter) -> tuple[bool, bool]:
        return parameter.name == "as_json", parameter.default is not parameter.empty

    ordered = sorted(parameters.values(), key=rank)
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = hints
    call.__module__ = function.__module__
    return call


def _documented(thing: Any) -> dict[str, inspect.Parameter]:
    """Parameters of a function or a bundle, with the help that its docstring gives them."""
    hints = get_type_hints(thing, include_extras=True)
    texts: dict[str, str] = {}
    for one in reversed(getattr(thing, "__mro__", [thing])):
        texts |= _ARGUMENT.findall(inspect.getdoc(one) or "")
    parameters = {}
    for name, parameter in inspect.signature(thing).parameters.items():
        kind = hints[name]
        if name in texts:
            kind, info = get_args(kind) if get_origin(kind) is Annotated else (kind, typer.Option())
            info = copy(info)
            info.help = " ".join(texts[name].split())
            if isinstance(info, typer.models.OptionInfo) and info.default is ...:
                info.param_decls = (f"--{name.strip('_').replace('_', '-')}",)
            kind = Annotated[kind, info]
        parameters[name] = parameter.replace(kind=_KEYWORD, annotation=kind)
    return parameters


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; nothing is raised.

    Args:
        arguments: The words after the program's name; default: those of ``sys.argv``.
    """
    try:
        with warnings_as_lines() as warned:
            words = sys.argv[1:] if arguments is None else list(arguments)
            outcome = program(words).main(
                words, prog_name="shiftcal", standalone_mode=False, obj=words
            )
        if not isinstance(outcome, tuple):  # --help, --version, or Ctrl-C as typer reports it
            return interrupted() if outcome == INTERRUPTED else DONE
        command, as_json, report = outcome
        if isinstance(report, int):  # it has printed its lines itself
            return report
        text = escaped_lines(report.text)
        say(to_json(command, report.document, warnings=warned) if as_json else text)
        if report.bad_input:
            complain("error", report.bad_input)
            return BAD_INPUT
        if report.failed_gate:
            complain("gate failed", report.failed_gate)
            return GATE_FAILED
        return DONE
    except BaseException as error:
        return status_of(error)

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
from typer.core import TyperCommand, TyperGroup

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
    set_verbosity,
    status_of,
    to_json,
    warnings_as_lines,
)
from shiftcal.errors import InputError
from shiftcal.registry import imported

# Commands by the heading they have in the help, and where their functions are.
_PANELS = {
    "Start": {"demo": "demo:demo", "list": "about:list_names", "doctor": "about:doctor"},
    "Calibrate": {
        "compare": "evaluate:compare",
        "report": "report:report",
        "fit": "calibrate:fit",
        "apply": "calibrate:apply",
        "estimate": "evaluate:estimate",
        "evaluate": "evaluate:evaluate",
    },
    "Production": {"monitor": "monitor:monitor", "export": "calibrate:export"},
    "Images": {
        "corrupt": "images:corrupt",
        "gallery": "images:gallery",
        "bank": "scoring:bank",
        "score": "scoring:score",
        "merge": "scoring:merge",
    },
    "Research": {"train": "train:train", "reproduce": "reproduce:reproduce"},
}
_COMMANDS = {name: place for commands in _PANELS.values() for name, place in commands.items()}
_PANEL_OF = {name: panel for panel, commands in _PANELS.items() for name in commands}
_DATA_COMMANDS = {"list": "about:list_sets", "check": "about:check", "get": "about:get"}
# What every command has.
COMMON = {
    "as_json": ("--json", "Print one JSON document on stdout, and nothing else there."),
    "quiet": ("-q", "--quiet", "Hide progress, notes and warnings."),
    "verbose": (
        "-v",
        "--verbose",
        "Print how long each step takes, and the traceback of an error.",
    ),
}
# A parameter in the ``Args`` or ``Attributes`` of a docstring.
_ARGUMENT = re.compile(r"^    (\w+): (.*?)(?=^    \w|^\S|^$|\Z)", re.MULTILINE | re.DOTALL)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
# Keeps the lines of a paragraph apart in a help text.
_VERBATIM = "\b"
# The range of a number, which messages name where it matters.
_RANGE = re.compile(r"(?:; )?(?:\d+<=)?x(?:[<>]=\d+)?(?=\])")


def record_of(parameter: Any, context: Any) -> tuple[str, str] | None:
    """How an argument or option is written, and what it means, without types and ranges."""
    if (record := parameter.get_help_record(context)) is None:
        return None
    name, text = record
    if parameter.param_type_name == "argument":
        name = parameter.metavar
    return re.sub(r"<([^<>]+)>", r"\1", name), _RANGE.sub("", text).replace("  []", "")


def _format_options(command: Any, context: Any, formatter: Any) -> None:
    """Arguments and options as plain text below the headings of their panels."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        if record := record_of(parameter, context):
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panel = getattr(parameter, "rich_help_panel", None) or kind
            panels.setdefault(panel, []).append(record)
    for panel in sorted(panels, key=lambda name: (name != "Arguments", name != "Options")):
        with formatter.section(panel):
            formatter.write_dl(panels[panel])


class _Command(TyperCommand):
    """A command whose help is plain text in panels: it can be searched, piped and pasted."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = ["[OPTIONS]"]
        for one in self.params:
            if one.param_type_name == "argument":
                name = f"{one.metavar}{'...' if one.nargs == -1 else ''}"
                pieces.append(name if one.required else f"[{name}]")
        return pieces


class _Group(TyperGroup):
    """A group of commands that are listed in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            panels.setdefault(panel, []).append((name, command.get_short_help_str(100)))
        width = max(map(len, self.commands))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in rows])
        _format_options(self, ctx, formatter)


app = typer.Typer(
    name="shiftcal",
    cls=_Group,
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
data_app = typer.Typer(cls=_Group, rich_markup_mode=None)
app.add_typer(data_app, name="data", rich_help_panel="Research")


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
                panel = _PANEL_OF.get(name) if group is app else None
                options: dict[str, Any] = {"help": summary, "epilog": epilog, "cls": _Command}
                group.command(name, rich_help_panel=panel, **options)(_command(function, path))
    order = list(_COMMANDS)
    app.registered_commands.sort(key=lambda command: order.index(command.name or ""))
    return typer.main.get_command(app)


def _command(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function as typer takes it: fields of bundles as options, and what all commands have."""
    own = _documented(function)
    bundles: dict[str, Any] = {
        k: p.annotation for k, p in own.items() if is_dataclass(p.annotation)
    }
    fields = {key: _documented(bundle) for key, bundle in bundles.items()}
    parameters = {}
    for key, (*words, text) in COMMON.items():
        kind = Annotated[bool, typer.Option(*words, help=text)]
        parameters[key] = inspect.Parameter(key, _KEYWORD, default=False, annotation=kind)
    for key, parameter in own.items():
        parameters |= fields.get(key, {key: parameter})
    hints = {key: parameter.annotation for key, parameter in parameters.items()}

    def call(**values: Any) -> tuple[str, bool, Report | int]:
        from shiftcal.cli.inputs import check_outputs

        set_verbosity(values["verbose"] - values["quiet"])
        check_outputs(values, hints)
        given = {key: values[key] for key in own if key not in bundles}
        for key, bundle in bundles.items():
            given[key] = bundle(**{field: values[field] for field in fields[key]})
        as_json = values["as_json"] or values.get("format") == "json"
        return name, as_json, function(**given)

    # What must be given comes first, and what all commands have last.
    def rank(parameter: inspect.Parameter) -> tuple[bool, bool]:
        return parameter.name in COMMON, parameter.default is not parameter.empty

    ordered = sorted(parameters.values(), key=rank)
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = hints
    call.__module__ = function.__module__
    return call


def _documented(thing: Any) -> dict[str, inspect.Parameter]:
    """Parameters of a function or a bundle, with the help that its docstring gives them."""
    hints = get_type_hints(thing, include_extras=True)
    texts: dict[str, str] = {}
    panels: dict[str, str] = {}
    for one in reversed(getattr(thing, "__mro__", [thing])):
        found = dict(_ARGUMENT.findall(inspect.getdoc(one) or ""))
        texts |= found
        if "panel" in vars(one):  # of a bundle
            panels |= dict.fromkeys(found, one.panel)
    parameters = {}
    for name, parameter in inspect.signature(thing).parameters.items():
        kind = hints[name]
        if name in texts:
            kind, info = get_args(kind) if get_origin(kind) is Annotated else (kind, typer.Option())
            info = copy(info)
            info.help = " ".join(texts[name].split())
            info.rich_help_panel = panels.get(name)
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
    set_verbosity(0)
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

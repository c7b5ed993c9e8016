"""What can follow on an unfinished command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shiftcal.cli._completion_values import values_of


@dataclass(frozen=True)
class Candidate:
    """A word that could stand there.

    Attributes:
        word: All of it, with what was typed.
        about: What it means in one line; may be empty.
    """

    word: str
    about: str = ""


@dataclass
class _Place:
    """Where on the line we are: the command so far, and what of it was said."""

    command: Any
    name: str = ""
    said: list[str] = field(default_factory=list)
    n_arguments: int = 0
    awaiting: Any = None

    def read(self, word: str) -> None:
        """Go one word further."""
        if self.awaiting is not None:
            self.awaiting = None
        elif word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            self.said.append(name)
            option = _option(self.command, name)
            if option is not None and not option.is_flag and not equals:
                self.awaiting = option
        elif word in getattr(self.command, "commands", {}):
            self.command = self.command.commands[word]
            self.name = f"{self.name} {word}".strip()
            self.said, self.n_arguments = [], 0
        else:
            self.n_arguments += 1


def candidates(program: Any, words: Sequence[str]) -> list[Candidate]:
    """What the last of the words could become; nothing where any file could stand.

    Args:
        program: The command that typer makes of the application.
        words: Those after the program's name, the last one perhaps unfinished or empty.
    """
    *before, typed = words or [""]
    place = _Place(program)
    for word in before:
        place.read(word)
    return list(_following(place, typed))


def _following(place: _Place, typed: str) -> Iterator[Candidate]:
    if place.awaiting is not None:
        for value in values_of(place.name, place.awaiting, typed):
            yield Candidate(value)
        return
    name, equals, value = typed.partition("=")
    if equals and name.startswith("--"):
        option = _option(place.command, name)
        found = [] if option is None else values_of(place.name, option, value)
        yield from (Candidate(f"{name}={each}") for each in found)
        return
    if typed.startswith("-"):
        yield from _options(place, typed)
        return
    below = getattr(place.command, "commands", {})
    for word, command in below.items():
        if word.startswith(typed) and not command.hidden:
            yield Candidate(word, _first_line(command.help))
    argument = None if below else _argument(place)
    if argument is not None:
        yield from (Candidate(each) for each in values_of(place.name, argument, typed))


def _options(place: _Place, typed: str) -> Iterator[Candidate]:
    for parameter in place.command.params:
        if parameter.param_type_name != "option" or parameter.hidden:
            continue
        if not parameter.multiple and set(parameter.opts) & set(place.said):
            continue
        for name in parameter.opts:
            if name.startswith(typed) and name.startswith("--"):
                yield Candidate(name, _first_line(parameter.help))
    if "--help".startswith(typed):
        yield Candidate("--help", "Show this message and exit.")


def _option(command: Any, name: str) -> Any:
    for parameter in command.params:
        if parameter.param_type_name == "option" and name in parameter.opts:
            return parameter
    return None


def _argument(place: _Place) -> Any:
    arguments = [each for each in place.command.params if each.param_type_name == "argument"]
    if place.n_arguments < len(arguments):
        return arguments[place.n_arguments]
    # The last may be there several times.
    return arguments[-1] if arguments and arguments[-1].nargs == -1 else None


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]

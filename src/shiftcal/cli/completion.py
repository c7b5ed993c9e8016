"""``shiftcal completion``: what a shell needs to complete commands, options and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from shiftcal.cli._options import Json
from shiftcal.cli._report import Ended, Report
from shiftcal.cli._streams import say
from shiftcal.errors import UnknownName

if TYPE_CHECKING:
    from shiftcal.cli._completing import Candidate

# Each asks the program that is being typed what could follow, and falls back on files.
_SCRIPTS = {
    "bash": """\
_shiftcal() {
    local IFS=$'\\n'
    COMPREPLY=($("$1" completion bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
}
complete -o default -F _shiftcal shiftcal""",
    "zsh": """\
#compdef shiftcal
_shiftcal() {
    local -a found
    found=(${(f)"$("${words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#found} )); then
        _describe shiftcal found
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _shiftcal ]]; then
    _shiftcal "$@"
else
    compdef _shiftcal shiftcal
fi""",
    "fish": """\
function __shiftcal_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found (command $words[1] completion fish -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c shiftcal -f -a '(__shiftcal_complete)'""",
}
_QUOTED = re.compile(r"'[^']*'?|\"(?:\\.|[^\"\\])*\"?|\\.|[^\s'\"\\]+|\\$")


def completion(
    shell: Annotated[
        str, typer.Argument(metavar="bash|zsh|fish", help="The shell that is to complete.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(hidden=True, help="The line so far, as the script of a shell gives it."),
    ] = None,
    as_json: Json = False,
) -> Report | Ended:
    """Print the script with which a shell completes what you type."""
    if shell not in _SCRIPTS:
        from shiftcal._registry import suggest

        raise UnknownName(f"no shell is called {shell!r} here. {suggest(shell, list(_SCRIPTS))}")
    if words:
        _answer(shell, words)
        return Ended(0)
    return Report(
        "completion", {"shell": shell, "script": _SCRIPTS[shell]}, _SCRIPTS[shell], as_json
    )


def _answer(shell: str, words: Sequence[str]) -> None:
    from shiftcal.cli._completing import candidates
    from shiftcal.cli.main import program

    asked = split_line(words[0])[1:] if shell == "bash" else list(words)
    found = candidates(program(), asked)
    if found:
        written = _WRITTEN[shell]
        say("\n".join(written(each, asked[-1] if asked else "") for each in found))


def split_line(line: str) -> list[str]:
    """The words of an unfinished line of a shell; the last is empty if a space stands before it."""
    words = [""]
    for blank, text in re.findall(r"(\s+)|((?:" + _QUOTED.pattern + r")+)", line):
        if blank:
            words += [""] if words[-1] else []
        else:
            words[-1] = _unquoted(text)
    return words


def _unquoted(text: str) -> str:
    parts = []
    for part in _QUOTED.findall(text):
        if part[0] in "'\"":
            parts.append(part[1:].removesuffix(part[0]))
        else:
            parts.append(part[1:] if part[0] == "\\" else part)
    return "".join(parts)


def _for_bash(found: Candidate, typed: str) -> str:
    # Readline takes what stands behind = and : for a word of its own, and replaces only that.
    cut = max(typed.rfind("="), typed.rfind(":")) + 1
    return found.word[cut:]


def _for_zsh(found: Candidate, _: str) -> str:
    word = found.word.replace("\\", "\\\\").replace(":", "\\:")
    return f"{word}:{found.about}" if found.about else word


def _for_fish(found: Candidate, _: str) -> str:
    return f"{found.word}\t{found.about}" if found.about else found.word


_WRITTEN: dict[str, Callable[[Candidate, str], str]] = {
    "bash": _for_bash,
    "zsh": _for_zsh,
    "fish": _for_fish,
}

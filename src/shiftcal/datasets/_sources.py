"""From a path to the files of a set: one file, a folder of them, or a pattern with braces."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from shiftcal.errors import FileError, MissingData

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
# More files than any set is cut into; a slip of the finger asks for as many as it likes.
_MOST_FILES = 100_000


def files_of(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, suffix: str
) -> list[Path]:
    """The files that a user means, as absolute paths.

    Args:
        source: A file; a folder, whose files with that suffix are taken in order of their names; a
            pattern such as ``train-{000..009}.tar`` or ``{a,b}.tar``; or a list of files.
        suffix: ``".tar"`` or the like.

    Raises:
        MissingData: If none of them is there.
        FileError: If one of them is not.
    """
    if not isinstance(source, (str, os.PathLike)):
        named = [Path(one) for one in source]
    elif _BRACES.search(os.fspath(source)) and not Path(source).exists():
        named = [Path(one) for one in expand_braces(os.fspath(source))]
    elif Path(source).is_dir():
        named = in_folder(Path(source), suffix)
        if not named:
            raise MissingData(f"{source} holds no file ending in {suffix}. Check the path.")
    else:
        named = [Path(source)]
    if not named:
        raise FileError(f"there must be at least one {suffix} file; got an empty list.")
    gone = [file for file in named if not file.is_file()]
    if gone:
        what = "is not a file" if gone[0].exists() else "does not exist"
        kind = MissingData if len(gone) == len(named) else FileError
        raise kind(f"{gone[0]} {what}. Check the path.")
    return [file.absolute() for file in named]


def in_folder(folder: Path, suffix: str) -> list[Path]:
    """Files of a folder that end so and are not hidden, in order of their names."""
    return sorted(
        file
        for file in folder.iterdir()
        if file.name.lower().endswith(suffix) and not file.name.startswith(".")
    )


def expand_braces(pattern: str) -> Iterator[str]:
    """``a{08..10}b{x,y}`` as ``a08bx``, ``a08by``, ``a09bx`` ...; not one brace inside another.

    Raises:
        FileError: If a brace holds neither a range nor a list, or there are too many.
    """
    parts = _BRACES.split(pattern)
    choices = [_choices(part, pattern) for part in parts[1::2]]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MOST_FILES:
        raise FileError(f"{pattern} stands for {count:,} files; no more than {_MOST_FILES:,} do.")
    for chosen in itertools.product(*choices):
        pairs = itertools.zip_longest(parts[::2], chosen, fillvalue="")
        yield "".join(itertools.chain.from_iterable(pairs))


def _choices(inside: str, pattern: str) -> Sequence[str]:
    if numbers := _RANGE.fullmatch(inside):
        low, high = numbers.groups()
        first, last = int(low), int(high)
        if last - first >= _MOST_FILES:
            raise FileError(
                f"{pattern} stands for {last - first + 1:,} files; no more than {_MOST_FILES:,} do."
            )
        # Zeros in front of either end say how many digits there are.
        width = max(len(low), len(high)) if "0" in (low[0], high[0]) else 0
        return [f"{number:0{width}d}" for number in range(first, last + 1)]
    if "," in inside:
        return inside.split(",")
    raise FileError(
        f"{pattern}: braces hold a range such as {{000..009}} or a list such as {{a,b}}; "
        f"got {{{inside}}}."
    )

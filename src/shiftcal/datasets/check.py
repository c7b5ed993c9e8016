"""Whether a copy of a published data set is complete: counts, classes, images, checksums."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._registry import suggest
from shiftcal.datasets.about import About, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.checksums import checksum, split_digest
from shiftcal.datasets.containers.files import FileImages
from shiftcal.datasets.known import known
from shiftcal.errors import FileError, InputError, MissingData, UnknownName

State = Literal["complete", "missing", "wrong"]
Checksums = Literal["verified", "altered", "absent", "none known", "not compared"]
Step = Callable[[str, int, int], None]
# How many of a kind a report names.
_NAMED = 3
_AT_ONCE = 256
# How the content of a file may be compressed, beside what is published.
_COMPRESSED = (".gz", ".bz2")


@dataclass(frozen=True)
class PartFinding:
    """What was found of one part of a data set.

    Attributes:
        name: Of the part.
        state: ``"missing"`` if none of it is there, ``"wrong"`` if it is not as it must be.
        expected: Images there must be.
        found: Images there are.
        decoded: How many of them were looked at.
        problems: What is missing or wrong, in sentences.
    """

    name: str
    state: State
    expected: int
    found: int
    decoded: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What was found of a data set.

    Attributes:
        parts: Of each part that was looked for.
        verified: Files whose checksum is the published one.
        altered: Files whose checksum is another, with both.
        absent: Files with a published checksum that are not there. A complete set may do without:
            some have several layouts.
        checksums: ``"none known"`` if no checksum of a file is published, so that only numbers of
            images and what can be decoded speak for the copy; ``"absent"`` if it has none of the
            files whose is; ``"not compared"`` if that was not asked for.
    """

    parts: tuple[PartFinding, ...]
    verified: tuple[str, ...]
    altered: tuple[str, ...]
    absent: tuple[str, ...]
    checksums: Checksums

    @property
    def complete(self) -> bool:
        """Whether everything is there and as published."""
        return not self.altered and all(part.state == "complete" for part in self.parts)


def check_data_set(
    name: str,
    root: Path,
    *,
    parts: Sequence[str] = (),
    sample: int | None = 100,
    digests: bool = True,
    step: Step | None = None,
) -> Findings:
    """Compare a copy of a data set with what is known of it.

    Args:
        name: Of the data set.
        root: Its folder.
        parts: Names of the parts to look for; all by default.
        sample: How many images of a part are decoded, spread over it; ``None`` is all.
        digests: Whether to verify checksums of files.
        step: Told what is being looked at, and how much of how much is done.

    Raises:
        UnknownName: If there is no such data set, or no such part of it.
    """
    _, load, about = known(name)
    tell = step or _say_nothing
    found = [
        _check_part(part, load, root, about=about, sample=sample, tell=tell)
        for part in _chosen(about, parts)
    ]
    if not digests:
        return Findings(tuple(found), (), (), (), "not compared")
    return _with_digests(found, about, root, parts=_chosen(about, parts), tell=tell)


def _say_nothing(doing: str, done: int, total: int, /) -> None:
    del doing, done, total


def _chosen(about: About, names: Sequence[str]) -> list[Part]:
    known_parts = {part.name: part for part in about.parts}
    for name in names:
        if name not in known_parts:
            raise UnknownName(
                f"no part of {about.title} is called {name!r}. {suggest(name, list(known_parts))}"
            )
    return [part for part in about.parts if not names or part.name in names]


def _check_part(
    part: Part,
    load: Callable[..., ImageSet],
    root: Path,
    *,
    about: About,
    sample: int | None,
    tell: Step,
) -> PartFinding:
    if not root.is_dir():
        return _not_there(
            part, f"{root} is not a folder." if root.exists() else f"there is no {root}."
        )
    try:
        images = load(root, **part.options)
    except MissingData as error:
        return _not_there(part, str(error))
    except InputError as error:
        return PartFinding(part.name, "wrong", part.n, 0, 0, (str(error),))
    problems = [*_counted(part, images, about), *_gone(images)]
    chosen = _spread(len(images), sample)
    problems += _undecodable(images, chosen, lambda done: tell(part.name, done, len(chosen)))
    state: State = "wrong" if problems else "complete"
    return PartFinding(part.name, state, part.n, len(images), len(chosen), tuple(problems))


def _not_there(part: Part, reason: str) -> PartFinding:
    return PartFinding(part.name, "missing", part.n, 0, 0, (reason,))


def _counted(part: Part, images: ImageSet, about: About) -> list[str]:
    problems = []
    if len(images) != part.n:
        problems.append(f"there must be {part.n:,} images; there are {len(images):,}.")
    if images.classes is not None and len(images.classes) != about.n_classes:
        problems.append(
            f"there must be {about.n_classes:,} classes; there are {len(images.classes):,}."
        )
    if images.labels is None:
        return problems
    n_classes = max(len(images.classes or ()), about.n_classes, int(images.labels.max()) + 1)
    counts = np.bincount(images.labels, minlength=n_classes)
    names = [*(images.classes or ()), *map(str, range(len(images.classes or ()), n_classes))]
    if part.per_class:
        off = np.flatnonzero(counts != part.per_class)
        problems += _listed(
            [f"{names[k]} ({counts[k]:,})" for k in off],
            f"every class must have {part.per_class:,} images; not so",
        )
    elif len(names) == len(images.classes or ()):
        problems += _listed([names[k] for k in np.flatnonzero(counts == 0)], "no images of")
    return problems


def _gone(images: ImageSet) -> list[str]:
    """Files that a list names and the disk does not have."""
    if not isinstance(images, FileImages):
        return []
    gone = [file for file in images.files if not os.path.isfile(images.root / file)]  # noqa: PTH113
    return _listed(gone, "missing files")


def _spread(n: int, sample: int | None) -> NDArray[np.intp]:
    if sample == 0:
        return np.empty(0, np.intp)
    most = n if sample is None else min(sample, n)
    return np.unique(np.linspace(0, n - 1, most).round().astype(np.intp))


def _undecodable(
    images: ImageSet, chosen: NDArray[np.intp], tell: Callable[[int], None]
) -> list[str]:
    bad: list[str] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for start in range(0, len(chosen), _AT_ONCE):
            some = chosen[start : start + _AT_ONCE].tolist()
            bad += [text for text in pool.map(lambda i: _complaint(images, i), some) if text]
            tell(start + len(some))
    return _listed(bad, f"{len(bad):,} of {len(chosen):,} images cannot be read", between=" ")


def _complaint(images: ImageSet, index: int) -> str:
    try:
        images[index]
    except InputError as error:
        return str(error)
    return ""


def _with_digests(
    found: Sequence[PartFinding], about: About, root: Path, *, parts: Sequence[Part], tell: Step
) -> Findings:
    verified, altered, absent = [], [], []
    known_sums = about.checksums(parts)
    for name, text in known_sums.items():
        file = next((root / at for at in about.paths(name) if (root / at).is_file()), None)
        if file is None:
            absent.append(name)
        elif fault := _fault(file, name, text, tell):
            altered.append(fault)
        else:
            verified.append(name)
    state: Checksums = "none known" if not known_sums else "absent"
    if verified or altered:
        state = "altered" if altered else "verified"
    return Findings(tuple(found), tuple(verified), tuple(altered), tuple(absent), state)


def _fault(file: Path, name: str, text: str, tell: Step) -> str:
    """What is wrong with a file that has a checksum; nothing if it is the published one."""
    algorithm, digits = split_digest(text)
    unpacked = file.suffix in _COMPRESSED and not name.endswith(file.suffix)
    try:
        got = checksum(file, algorithm, unpacked=unpacked, step=partial(tell, f"verifying {name}"))
    except FileError as error:
        return f"{name}: {error}"
    return "" if got == digits else f"{name}: its {algorithm} must be {digits}; got {got}."


def _listed(items: Sequence[str], what: str, *, between: str = ", ") -> list[str]:
    """A sentence that names the first few, if there are any."""
    if not items:
        return []
    more = f"{between}and {len(items) - _NAMED:,} more" if len(items) > _NAMED else ""
    return [f"{what}: {between.join(items[:_NAMED])}{more}".rstrip(".") + "."]

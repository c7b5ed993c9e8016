"""What several published data sets share: arrays, lists of files, choices of corruptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from shiftcal.checks import check_count
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.errors import FileError, InputError, MissingData, UnknownName, suggest
from shiftcal.files import naming, read_npy

T = TypeVar("T", str, int)


def array_images(images: Path, labels: Path, *, name: str, classes: Sequence[str]) -> ArrayImages:
    """Images in one ``.npy`` file, mapped, with labels in another.

    Raises:
        MissingData: If there is no file of images.
        FileError: If a file is damaged, the labels are missing, or the two do not fit.
    """
    pixels = read_npy(images, mapped=True)
    if not labels.is_file():
        raise FileError(f"{labels} is missing. Download or write it again.")
    with naming(images):
        return ArrayImages(pixels, name=name, labels=read_npy(labels), classes=classes)


# The groups they are published in; the last were meant for choosing hyper-parameters.
GROUPS = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    "extra": ("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}
CORRUPTIONS = tuple(name for group in GROUPS.values() for name in group)
SEVERITIES = (1, 2, 3, 4, 5)


def wanted_corruptions(
    corruption: str | Sequence[str] | None, present: Sequence[str], *, root: object
) -> list[str]:
    """The corruptions asked for, in that order; default: all that are there, by name.

    Args:
        corruption: A name, several (in a list, or with commas between them), or ``None`` or
            ``"all"``.
        present: Those that are there.
        root: Where that is, for messages.

    Raises:
        MissingData: If none of them is there.
        FileError: If one is not there.
        UnknownName: If one is neither there nor a published one.
    """
    if not present:
        raise MissingData(f"{root} holds no corruption, such as {CORRUPTIONS[0]}.")
    if corruption is None or corruption == "all":
        return sorted(present)
    given = corruption.split(",") if isinstance(corruption, str) else list(corruption)
    names = [str(name).strip() for name in given]
    wanted = _each_once([n if n in present else n.replace("-", "_") for n in names], "corruption")
    for name in wanted:
        if name not in present and name not in CORRUPTIONS:
            known = sorted({*present, *CORRUPTIONS})
            raise UnknownName(f"no corruption is called {name!r}. {suggest(name, known)}")
        if name not in present:
            raise (FileError if set(wanted) & set(present) else MissingData)(
                f"{root} has no {name!r}; it has {', '.join(sorted(present))}. Download it "
                "or leave it out."
            )
    return wanted


def wanted_severities(severity: int | Sequence[int] | str | None) -> list[int]:
    """The severities asked for, in that order; default: all five.

    Args:
        severity: One, several (in a list, or as text with commas), or ``None`` or ``"all"``.
    """
    if severity is None or severity == "all":
        return list(SEVERITIES)
    given: Sequence[object] = severity if isinstance(severity, (list, tuple)) else [severity]
    if isinstance(severity, str):
        given = [int(word) if word.strip().isdecimal() else word for word in severity.split(",")]
    return _each_once([check_count(one, name="severity", most=5) for one in given], "severity")


def _each_once(wanted: list[T], name: str) -> list[T]:
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(f"{name} must name one or more, each once; got {wanted!r}.")
    return wanted


def describe(names: Sequence[str], levels: Sequence[int]) -> str:
    """Corruptions and severities in a few words, such as ``"fog 3"``."""
    what = names[0] if len(names) == 1 else f"{len(names)} corruptions"
    return what if tuple(levels) == SEVERITIES else f"{what} {','.join(map(str, levels))}"

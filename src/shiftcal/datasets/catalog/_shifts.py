"""Which corruptions and severities of a corrupted data set are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal._checks import check_count
from shiftcal._registry import suggest
from shiftcal.errors import FileError, InputError, MissingData, UnknownName

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
    """The names asked for, in the order they were; all that are there if none were, by name.

    Args:
        corruption: A name, several (in a list, or with commas between them), or ``None`` or
            ``"all"``.
        present: Those that are there.
        root: Where that is, for messages.

    Raises:
        MissingData: If none of them is there.
        FileError: If one is not there.
        UnknownName: If one is neither there nor a published one.
        InputError: If one is named twice.
    """
    if not present:
        raise MissingData(
            f"{root} holds no corruption. There must be one or more of {', '.join(CORRUPTIONS)}."
        )
    if corruption is None or corruption == "all":
        return sorted(present)
    names = corruption.split(",") if isinstance(corruption, str) else list(corruption)
    wanted = [str(name).strip() for name in names]
    wanted = [name if name in present else name.replace("-", "_") for name in wanted]
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(f"corruption must name one or more, each once; got {corruption!r}.")
    for name in wanted:
        if name in present:
            continue
        if name in CORRUPTIONS:
            none = not set(wanted) & set(present)
            raise (MissingData if none else FileError)(
                f"{root} has no {name!r}. It holds {', '.join(sorted(present))}. Fetch or make the "
                "rest, or leave it out."
            )
        known = sorted({*present, *CORRUPTIONS})
        raise UnknownName(f"no corruption is called {name!r}. {suggest(name, known)}")
    return wanted


def wanted_severities(severity: int | Sequence[int] | str | None) -> tuple[int, ...]:
    """The severities asked for, in the order they were; all five if none were.

    Args:
        severity: One, several (in a list, or as text with commas), or ``None`` or ``"all"``.

    Raises:
        InputError: If one is not from 1 to 5, or named twice.
    """
    if severity is None or severity == "all":
        return SEVERITIES
    given: Sequence[object] = severity if isinstance(severity, (list, tuple)) else [severity]
    if isinstance(severity, str):
        given = [int(word) if word.strip().isdecimal() else word for word in severity.split(",")]
    levels = tuple(check_count(one, name="severity", most=len(SEVERITIES)) for one in given)
    if not levels or len(set(levels)) < len(levels):
        raise InputError(f"severity must name one or more, each once; got {severity!r}.")
    return levels


def describe(names: Sequence[str], levels: Sequence[int]) -> str:
    """Corruptions and severities in a few words, such as ``"fog 3"``."""
    what = names[0] if len(names) == 1 else f"{len(names)} corruptions"
    return what if tuple(levels) == SEVERITIES else f"{what} {','.join(map(str, levels))}"

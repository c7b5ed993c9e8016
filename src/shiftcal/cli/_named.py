"""Which files are the bank and the target, whether options or places on the line say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from shiftcal.errors import FileError, InputError

BankPlace = Annotated[
    Path | None,
    typer.Argument(
        metavar="BANK",
        show_default=False,
        help="Folder of a surrogate bank, or a scores file of the labelled clean set alone; or the "
        "folder of a run of `shiftcal adapt`, which has a target too. The same as --bank.",
    ),
]
TargetPlace = Annotated[
    Path | None,
    typer.Argument(
        metavar="TARGET",
        show_default=False,
        help="Scores file of the target. The same as --target.",
    ),
]
TargetFile = Annotated[
    Path | None,
    typer.Option(
        "--target",
        metavar="FILE",
        help="Scores file of the target, if it does not stand behind BANK. Labels, if it has any, "
        "judge; nothing else looks at them.",
    ),
]
TargetLabels = Annotated[
    Path | None,
    typer.Option(
        "--labels", metavar="FILE", help="Labels of the target, as for `shiftcal evaluate`."
    ),
]


@dataclass(frozen=True)
class Named:
    """What was named; ``None`` where nothing was.

    Attributes:
        bank: Folder of a bank.
        surrogates: Scores files of surrogate sets in its place.
        target: Scores file of the target.
        source_train: File with features of training samples.
    """

    bank: Path | None
    surrogates: list[Path] | None
    target: Path | None
    source_train: Path | None = None

    def one_source(self) -> Path | None:
        """The bank, or the one file in its place; ``None`` if there are several, or none."""
        several = self.surrogates or []
        return several[0] if len(several) == 1 else self.bank

    def must_have_target(self) -> Path:
        """The target.

        Raises:
            InputError: If none was named.
        """
        if self.target is None:
            raise InputError(
                "the target is missing. Name its scores file as TARGET, or give --target FILE."
            )
        return self.target

    def all(self) -> list[Path]:
        """Every file there is, those of a bank's folder among them."""
        folder = self.bank is not None and self.bank.is_dir()
        inside = list(self.bank.iterdir()) if folder and self.bank is not None else []
        single = [self.target, self.source_train]
        return [*inside, *(self.surrogates or []), *(file for file in single if file is not None)]


def named(
    places: Sequence[Path | None],
    *,
    bank: Path | None,
    surrogates: Sequence[Path] | None,
    target: Path | None = None,
    source_train: Path | None = None,
) -> Named:
    """Which file is which.

    Of those in their places the first is the bank and the second the target, or the only one is
    the target where options name the bank. The folder of a run of ``shiftcal adapt`` is bank,
    target and training features at once.

    Args:
        places: What stands on the line without an option, in order.
        bank: ``--bank``.
        surrogates: ``--surrogate``.
        target: ``--target``.
        source_train: ``--source-train``.

    Raises:
        InputError: If something is named twice.
        FileError: If there is no such bank.
    """
    standing = [place for place in places if place is not None]
    said = Named(bank, list(surrogates or []) or None, target, source_train)
    if bank is None and not surrogates and standing:
        said = _with_bank(said, standing.pop(0))
    if standing and len(places) > 1:
        said = replace(said, target=one_target(standing.pop(0), target))
    if standing:
        raise InputError(
            f"the bank is given twice: {places[0]}, and by an option. Leave one of them out."
        )
    if said.bank is not None and said.surrogates:
        raise InputError("--bank and --surrogate exclude one another. Leave one of them out.")
    if said.bank is not None and not said.bank.exists():
        raise FileError(f"there is no folder {said.bank} of a bank.{_near(said.bank)}")
    return said


def one_target(place: Path | None, option: Path | None) -> Path:
    """The target, which is said in one of two ways.

    Raises:
        InputError: If it is said in both, or in neither.
    """
    if place is not None and option is not None:
        raise InputError(f"the target is given twice: {place} and {option}. Leave one out.")
    return Named(None, None, place or option).must_have_target()


def _with_bank(said: Named, place: Path) -> Named:
    if not place.is_dir() and (place.suffix or place.exists()):
        return replace(said, surrogates=[place])
    if (place / "bank.json").is_file() or not (place / "bank" / "bank.json").is_file():
        return replace(said, bank=place)
    train = place / "source-train.npz"
    return Named(
        place / "bank",
        None,
        said.target or (place / "target.npz"),
        said.source_train or (train if train.is_file() else None),
    )


def _near(path: Path) -> str:
    """A hint at what beside a mistyped path is called nearly so; empty if nothing is."""
    beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, beside, n=1)
    return f" Did you mean '{path.with_name(near[0])}'?" if near else ""

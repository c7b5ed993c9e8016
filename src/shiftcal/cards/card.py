"""The calibration card: what is known of a calibration, for people and for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from shiftcal._files import atomic_write, flush_file
from shiftcal._persistence.coding import decode, encode
from shiftcal.cards.parts import (
    METRICS,
    Applied,
    BankSet,
    Calibration,
    Judging,
    Limit,
    Measured,
    Model,
    Provenance,
    Target,
)
from shiftcal.errors import FileError, InputError
from shiftcal.estimates import AccuracyEstimate
from shiftcal.methods._selection import Selection

FORMAT = "shiftcal-card"
VERSION = 1


@dataclass(frozen=True)
class CalibrationCard:
    """What was calibrated, on which data, how, with what effect, and what is not known.

    :func:`make_card` makes one, :meth:`save` writes it, :func:`read_card` reads it back.

    Attributes:
        title: What it is about.
        notes: Whatever its author wants to say; paragraphs are parted by blank lines.
        model: The model.
        calibration: The calibration samples.
        target: The data the calibration was chosen for, if there was any.
        bank: Every set of the bank, the clean one first.
        method: The calibration method.
        choice: What it chose for the target; ``None`` without one.
        on_bank: Metrics of every set of the bank, after calibration by fits on other rows.
        on_target: Metrics of the target; ``None`` if it has no labels.
        estimate: Its accuracy as estimated without labels; ``None`` if nobody asked.
        judging: How the metrics were measured.
        limits: What the numbers do not cover.
        provenance: How to make the card again.
    """

    title: str
    notes: str
    model: Model
    calibration: Calibration
    target: Target | None
    bank: tuple[BankSet, ...]
    method: Applied
    choice: Selection | None
    on_bank: tuple[Measured, ...]
    on_target: Measured | None
    estimate: AccuracyEstimate | None
    judging: Judging
    limits: tuple[Limit, ...]
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """The card as JSON can hold it; :meth:`from_dict` takes it back."""
        written_by = f"shiftcal {version('shiftcal')}"
        head = {"format": FORMAT, "version": VERSION, "written_by": written_by}
        facts: dict[str, Any] = encode(self, {})
        return {**head, **facts}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The card that :meth:`to_dict` gave the document of.

        Raises:
            InputError: If it is of another kind, from a newer version, or not as it must be.
        """
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise InputError(
                f"a calibration card must have the format {FORMAT!r}; this has none. Cards are "
                "what `shiftcal card` or CalibrationCard.save writes."
            )
        written = document.get("version")
        if type(written) is not int or not 1 <= written <= VERSION:
            raise InputError(
                f"a calibration card of format version {written!r}, written by "
                f"{document.get('written_by')}, cannot be read: this is shiftcal "
                f"{version('shiftcal')}, which reads up to version {VERSION}. Upgrade shiftcal."
            )
        facts = {k: v for k, v in document.items() if k not in ("format", "version", "written_by")}
        try:
            card: Self = decode(facts, cls)
            card._check_parts()
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InputError(
                f"a calibration card must be as `shiftcal card` writes it; this one is damaged "
                f"({type(error).__name__}: {error}). Make the card again."
            ) from error
        return card

    def _check_parts(self) -> None:
        """Raise ``ValueError`` if parts that belong together do not."""
        k = self.model.n_classes
        theirs = None if self.target is None else self.target.label_counts
        per_class = [self.model.classes, self.calibration.label_counts, theirs]
        if any(part is not None and len(part) != k for part in per_class):
            raise ValueError(f"names and counts of classes must be {k}, one for each class")
        if not self.bank or [s.name for s in self.bank] != [one.name for one in self.on_bank]:
            raise ValueError("bank and on_bank must be about the same sets, in order")
        measured = [*self.on_bank, *([] if self.on_target is None else [self.on_target])]
        for told in (part for one in measured for part in (one.before, one.after)):
            if told is not None and set(told) != set(METRICS):
                raise ValueError(f"what is measured must be {', '.join(METRICS)}")

    def to_markdown(self) -> str:
        """The card as markdown, with the tables of code hosts; names are shown as they are."""
        from shiftcal.cards._page import page

        return page(self)

    def to_bytes(self) -> bytes:
        """The markdown in UTF-8.

        A name that is no text, as a file system may hold, has its bytes escaped.
        """
        return self.to_markdown().encode("utf-8", "backslashreplace")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the card as markdown to ``path``, and beside it as JSON under the same name.

        Both are on the disk under temporary names before either is renamed.

        Args:
            path: Ends in ``.md``.

        Raises:
            FileError: If they cannot be written, or the name of the JSON is taken by something
                else; what was there before is unchanged.
        """
        target = markdown_file(path)
        refuse_to_replace(json_beside(target))
        text = self.to_bytes()
        facts = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        with atomic_write(target) as page, atomic_write(json_beside(target)) as document:
            page.write_bytes(text)
            document.write_text(facts, "utf-8")
            flush_file(page)


def read_card(path: str | os.PathLike[str]) -> CalibrationCard:
    """The card in a JSON file that :meth:`CalibrationCard.save` wrote.

    Raises:
        FileError: If it is missing, damaged, of another kind or from a newer version.
    """
    source = Path(path)
    try:
        document = json.loads(source.read_text("utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise FileError(f"{source} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{source} is not a calibration card, or it is damaged: not JSON ({error}). Give the "
            ".json file that `shiftcal card` wrote, or make the card again."
        ) from error
    try:
        return CalibrationCard.from_dict(document)
    except InputError as error:
        raise FileError(f"{source} cannot be used: {error}") from error


def markdown_file(path: str | os.PathLike[str]) -> Path:
    """The path, if a card can be written there.

    Raises:
        FileError: If its name does not end in ``.md``.
    """
    target = Path(path)
    if target.suffix.lower() != ".md":
        raise FileError(
            f"{target} must end in .md: a card is markdown, with JSON beside it. "
            f"Name it {target.with_suffix('.md') if target.name else 'card.md'}."
        )
    return target


def json_beside(markdown: Path) -> Path:
    """Where the JSON of a card goes."""
    return markdown.with_suffix(".json")


def refuse_to_replace(document: Path) -> None:
    """Raise FileError if there is a file of this name that is no card: nobody named it."""
    try:
        found = json.loads(document.read_text("utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileError(
            f"{document} is there and is no calibration card, so that it is not replaced. Give the "
            "card another name."
        )


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")

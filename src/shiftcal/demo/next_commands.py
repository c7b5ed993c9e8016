"""What can be tried on the files of a demonstration."""

from __future__ import annotations

from pathlib import Path

from shiftcal.demo.folder import DemoFolder
from shiftcal.demo.subject import Subject


def next_commands(
    folder: DemoFolder, subject: Subject, *, with_report: bool
) -> tuple[tuple[str, ...], ...]:
    """Four commands, each as its words, that work in this order and each by itself.

    Args:
        folder: Where the files are.
        subject: Whose targets they are about.
        with_report: Whether reports can be made.
    """
    first, second, third = (folder.scores(target.name) for target in subject.targets)
    bank = ("--bank", str(folder.bank))
    compare = ["shiftcal", "compare", *bank, "--target", str(second)]
    if subject.train is not None:
        compare += ["--source-train", str(folder.train)]
    apply = ("shiftcal", "apply", str(folder.method), str(first))
    return (
        (*apply, "-o", str(folder.path / "calibrated.npz")),
        tuple(compare),
        ("shiftcal", "estimate", str(folder.bank), str(third)),
        _page(folder, bank, second) if with_report else _card(folder, second),
    )


def _page(folder: DemoFolder, bank: tuple[str, str], target: Path) -> tuple[str, ...]:
    page = folder.path / f"{target.stem}.html"
    return ("shiftcal", "report", *bank, "--target", str(target), "-o", str(page))


def _card(folder: DemoFolder, target: Path) -> tuple[str, ...]:
    page = folder.path / "card.md"
    return ("shiftcal", "card", str(folder.bank), "--target", str(target), "-o", str(page))

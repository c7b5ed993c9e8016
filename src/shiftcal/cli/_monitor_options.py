"""The options of ``shiftcal monitor`` in groups, checked before any work is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shiftcal.cli._inputs import check_output
from shiftcal.errors import FileError, InputError

FORMATS = ("npy", "arrow", "jsonl")
# What --fail-on names, as the kinds of events that begin it.
GATES = {"outside-bank": "outside-bank", "shift": "shift-began"}
STDOUT = "-"


@dataclass(frozen=True)
class Sources:
    """Where batches come from.

    Attributes:
        follow: The folder to follow; ``None`` for standard input.
        once: Whether to end when its files are read.
        settle: Seconds that a file must stay the same.
        format: Format of standard input, if it was said.
        max_batch_rows: Most rows of a batch.
        on_error: ``"stop"`` or ``"skip"``.
        replay: Whether standard input begins at its beginning again.
    """

    follow: Path | None
    once: bool
    settle: float | None
    format: str | None
    max_batch_rows: int
    on_error: str
    replay: bool

    def check(self, *, state: Path | None) -> None:
        """Refuse what contradicts itself.

        Args:
            state: The file for the running state.

        Raises:
            InputError: Saying what.
        """
        from shiftcal._checks import check_choice

        check_choice(self.on_error, ("stop", "skip"), name="--on-error")
        if self.format is not None:
            check_choice(self.format, FORMATS, name="--format")
        if self.replay and state is None:
            raise InputError(
                "--replay goes with --state FILE, which knows what has been seen. Leave it out, or "
                "name the file."
            )
        if self.follow is None:
            if self.once or self.settle is not None:
                word = "--once" if self.once else "--settle"
                raise InputError(f"{word} goes with --follow DIR. Leave it out, or name a folder.")
            return
        if self.format is not None or self.replay:
            word = "--replay" if self.replay else "--format"
            raise InputError(
                f"{word} is about standard input, which is not read with --follow. Leave one of "
                "them out."
            )
        if not self.follow.is_dir():
            what = "is not a folder" if self.follow.exists() else "does not exist"
            raise FileError(f"{self.follow} {what}. Name the folder that scores files come into.")


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What is given out, and where.

    Attributes:
        every: Rows between two lines; ``None`` for those of the window.
        confidences: The file for confidences, or ``"-"``.
        state: The file for the running state.
        fail_on: Names of gates.
        metrics_port: Port for metrics.
        metrics_host: Address for them.
        as_json: Whether lines are JSON.
    """

    every: int | None
    confidences: str | None
    state: Path | None
    fail_on: tuple[str, ...]
    metrics_port: int | None
    metrics_host: str | None
    as_json: bool

    @property
    def to_stdout(self) -> bool:
        """Whether confidences are printed."""
        return self.confidences == STDOUT

    @property
    def file(self) -> Path | None:
        """The file for confidences, if there is one."""
        return None if self.confidences is None or self.to_stdout else Path(self.confidences)

    @property
    def gates(self) -> frozenset[str]:
        """The kinds of events that end it with status 1."""
        return frozenset(GATES[name] for name in self.fail_on)

    def check(self, spec: Path) -> None:
        """Refuse what contradicts itself, or could not be written.

        Raises:
            InputError: Saying what.
        """
        from shiftcal._checks import check_choice

        for name in self.fail_on:
            check_choice(name, tuple(GATES), name="--fail-on")
        if self.to_stdout and not self.as_json:
            raise InputError(
                "--confidences - puts JSON lines on stdout, where the other lines are text. Give "
                "--json too, or name a file."
            )
        if self.metrics_host is not None and self.metrics_port is None:
            raise InputError(
                "--metrics-host goes with --metrics-port N. Leave it out, or say both."
            )
        written = [path for path in (self.file, self.state) if path is not None]
        for path in written:
            check_output(path, inputs=[spec])
        if len({path.resolve() for path in written}) < len(written):
            raise InputError("--state and --confidences must be two files; both are one.")

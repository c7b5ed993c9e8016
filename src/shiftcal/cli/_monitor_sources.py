"""The batches of standard input or of a folder, from where an earlier run stopped."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.cli._monitor_batches import Broken, Limits
from shiftcal.cli._monitor_follow import Follower, file_item
from shiftcal.cli._monitor_formats import stream_batches
from shiftcal.cli._monitor_intake import Intake
from shiftcal.cli._same_model import warn_of_another_model
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.cli._monitor_batches import Item
    from shiftcal.cli._monitor_halt import Halt
    from shiftcal.cli._monitor_options import Sources
    from shiftcal.cli._monitor_session import Session

_SETTLE = 1.0


def items_of(
    sources: Sources,
    session: Session,
    halt: Halt,
    stream: io.RawIOBase | io.BufferedIOBase | None,
) -> Iterator[Item]:
    """All that comes in.

    Args:
        sources: Where it comes from.
        session: Told when nothing comes; knows what has been read before.
        halt: Asked while waiting.
        stream: Standard input; ``None`` if a folder is followed.
    """
    if stream is None:
        assert sources.follow is not None
        return _of_folder(sources.follow, sources, session, halt)
    limits = Limits(sources.max_batch_rows, session.feeder.monitor.n_classes_)
    items = stream_batches(Intake(stream, halt, session.idle), limits, sources.format)
    return _passed_over(items, session.progress.items) if sources.replay else items


def _of_folder(folder: Path, sources: Sources, session: Session, halt: Halt) -> Iterator[Item]:
    settle = _SETTLE if sources.settle is None else sources.settle
    done = set(session.progress.files)
    follower = Follower(folder, done, halt=halt, idle=session.idle, settle=settle)
    monitor, told = session.feeder.monitor, False
    for path in follower.files(once=sources.once):
        done.add(path.name)
        item = file_item(path, n_classes=monitor.n_classes_, classes=monitor.class_names_)
        if not told:  # once for all files
            told = warn_of_another_model(monitor.method_, Path("the monitor"), path)
        yield item


def _passed_over(items: Iterator[Item], n: int) -> Iterator[Item]:
    """What comes after the first ``n``, which a run before has dealt with."""
    for seen in range(n):
        item = next(items, None)
        if item is None:
            raise InputError(
                f"standard input must begin with the {n:,} batches that the state has seen; it "
                f"ended after {seen:,}. Send the same stream, or leave --replay out and send what "
                "comes after them."
            )
        if isinstance(item, Broken) and item.final:
            raise InputError(str(item))
    yield from items

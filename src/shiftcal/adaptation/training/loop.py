"""Training a network, from wherever it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from shiftcal._files import make_folder
from shiftcal.adaptation.devices import Group, current_group, resolve_device
from shiftcal.adaptation.feeds.base import Feed
from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.training.checkpoint import Checkpoints
from shiftcal.adaptation.training.course import Course, Trained
from shiftcal.adaptation.training.determinism import deterministic
from shiftcal.adaptation.training.ledger import validate_every
from shiftcal.adaptation.training.randomness import kept_generators
from shiftcal.adaptation.training.session import Session
from shiftcal.errors import InputError
from shiftcal.scoring.sharing import alone_in

__all__ = ["Course", "Trained", "train"]


def train(  # noqa: PLR0917 (what is trained, on what, how long, where to, how)
    objective: Any,
    feed: Feed,
    settings: Settings,
    folder: Path,
    course: Course,
    *,
    identity: Mapping[str, Any],
    validate: Callable[[Any], float] | None = None,
) -> Trained:
    """Train a network; it has the selected weights afterwards, and is in evaluation mode.

    Whatever stops the process, the same call goes on from the last checkpoint in ``folder``. On
    the processor of one machine, with the same torch and as many threads, it comes to the same
    weights to the last bit; on a GPU as nearly as torch's deterministic algorithms do. A process
    that finds another at work in the folder waits for it. With several processes, which
    :func:`shiftcal.adaptation.devices.distributed` joins, the first writes and reports.

    Args:
        objective: The network and its loss, new, its weights drawn in a block of
            :func:`shiftcal.adaptation.training.randomness.seeded`. It is moved to the device.
        feed: Batches by number.
        settings: Of the training.
        folder: Where checkpoints and the history are; made if it is not there.
        course: How it is run.
        identity: Everything else that decides the result (data, trainer, backbone ...), as JSON
            can hold it.
        validate: From the classifier, in evaluation mode, to its accuracy on validation images of
            the source; asked some twenty times, and at the end.

    Raises:
        InputError: If there is no such device, or nothing to select by.
        FileError: If the folder holds another training, a damaged checkpoint, or cannot be
            written to.
        FitError: If the training diverges; the last checkpoint is kept.
    """
    if course.select == "source-validation" and validate is None:
        raise InputError(
            "select='source-validation' needs validation images of the source; pass validate."
        )
    group = current_group()
    device = resolve_device(course.device)
    with _place(folder, group), kept_generators(device), deterministic(device):
        objective.to(device)
        kept = Checkpoints(folder, _whole_identity(identity, settings, course, (group, device)))
        session = Session(
            objective, settings, course, group=group, device=device, folder=folder, kept=kept
        )
        resumed_at = session.step
        session.run(feed, validate)
        selected = session.finish()
    return Trained(
        steps=settings.iterations,
        losses=session.last_row,
        resumed_at=resumed_at,
        images_per_second=session.images_per_second,
        selected_step=selected,
    )


def _place(folder: Path, group: Group) -> AbstractContextManager[None]:
    if not group.main:
        return nullcontext()
    make_folder(folder)
    return alone_in(folder)


def _whole_identity(
    identity: Mapping[str, Any], settings: Settings, course: Course, where: tuple[Group, Any]
) -> dict[str, Any]:
    group, device = where
    whole = {
        **identity,
        "settings": settings.to_dict(),
        "seed": course.seed,
        "precision": course.precision,
        "device": device.type,
        "processes": group.world,
        "select": course.select,
    }
    if course.select != "last":
        whole["validate_every"] = validate_every(settings)
    return whole

"""What a network gives for a batch, and for the rows of each domain in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from shiftcal.errors import InputError


class Pass(NamedTuple):
    """What a network gives for a batch.

    Attributes:
        features: After the bottleneck, ``(b, d)``.
        logits: ``(b, k)``.
    """

    features: Any
    logits: Any


class Half:
    """The rows of one domain in a batch of both, as a :class:`Pass` has them; cut when asked for.

    Args:
        whole: What the network gives for the batch.
        start: The first of the rows.
        stop: The one after the last.
    """

    __slots__ = ("start", "stop", "whole")

    def __init__(self, whole: Pass, start: int, stop: int) -> None:
        self.whole = whole
        self.start = start
        self.stop = stop

    @property
    def features(self) -> Any:
        """After the bottleneck, ``(b, d)``."""
        return self.whole.features[self.start : self.stop]

    @property
    def logits(self) -> Any:
        """``(b, k)``."""
        return self.whole.logits[self.start : self.stop]


Domain = Pass | Half


def halves(whole: Pass, n_source: int) -> tuple[Half, Half]:
    """The first ``n_source`` rows of a batch, which are the source's, and the rest."""
    return Half(whole, 0, n_source), Half(whole, n_source, whole.logits.shape[0])


def together(source: Domain, target: Domain) -> Pass:
    """The rows of the source, then as many of the target.

    If they are the two halves of a batch it is that batch itself: nothing is copied, and gradients
    go straight to it. So do not write to it.

    Raises:
        InputError: If one has more rows than the other.
    """
    if isinstance(source, Half) and isinstance(target, Half) and _complete(source, target):
        _check_rows(source.stop, target.stop - target.start)
        return source.whole
    from shiftcal.adaptation._torch import torch

    (ours, of_ours), (theirs, of_theirs) = ((d.features, d.logits) for d in (source, target))
    _check_rows(len(ours), len(theirs))
    return Pass(torch.cat((ours, theirs)), torch.cat((of_ours, of_theirs)))


def _complete(first: Half, second: Half) -> bool:
    return first.whole is second.whole and first.start == 0 and first.stop == second.start


def _check_rows(n_source: int, n_target: int) -> None:
    if n_source != n_target:
        raise InputError(
            "source and target batches must have as many rows each; got "
            f"{n_source} and {n_target}. Drop the rows left over."
        )

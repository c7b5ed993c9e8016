"""What a network gives for a batch, and for the rows of each domain in it."""

from __future__ import annotations

from collections.abc import Iterator
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
    """The rows of one domain in a batch of both, as a :class:`Pass` has them.

    They are cut when they are first asked for, and kept.

    Args:
        whole: What the network gives for the batch.
        start: The first of the rows.
        stop: The one after the last.
    """

    __slots__ = ("_features", "_logits", "start", "stop", "whole")

    def __init__(self, whole: Pass, start: int, stop: int) -> None:
        self.whole = whole
        self.start = start
        self.stop = stop
        self._features: Any = None
        self._logits: Any = None

    @property
    def features(self) -> Any:
        """After the bottleneck, ``(b, d)``."""
        if self._features is None:
            self._features = self.whole.features[self.start : self.stop]
        return self._features

    @property
    def logits(self) -> Any:
        """``(b, k)``."""
        if self._logits is None:
            self._logits = self.whole.logits[self.start : self.stop]
        return self._logits

    def __iter__(self) -> Iterator[Any]:
        """Features and logits, as of a :class:`Pass`."""
        return iter((self.features, self.logits))


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
        _check_as_many(source.stop, target.stop - target.start)
        return source.whole
    from shiftcal.adaptation._torch import torch

    (ours, of_ours), (theirs, of_theirs) = source, target
    _check_as_many(len(ours), len(theirs))
    return Pass(torch.cat((ours, theirs)), torch.cat((of_ours, of_theirs)))


def _complete(first: Half, second: Half) -> bool:
    whole = first.whole
    return (
        whole is second.whole
        and first.start == 0
        and first.stop == second.start
        and second.stop == whole.logits.shape[0]
    )


def _check_as_many(n_source: int, n_target: int) -> None:
    if n_source != n_target:
        raise InputError(
            "source and target batches must have as many rows each; got "
            f"{n_source} and {n_target}. Drop the rows left over."
        )

"""Features, or small images, that are all in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.feeds.base import Batch, Feed
from shiftcal.adaptation.feeds.sampling import SOURCE, TARGET, indices
from shiftcal.errors import InputError

# From the inputs of a batch and (seed, domain, iteration, process) to float32 inputs.
Transform = Callable[[Any, tuple[int, int, int, int]], Any]


class ArrayFeed(Feed):
    """Batches taken from arrays.

    Args:
        source: Inputs of the source, ``(n, ...)``, an array or a tensor; numbers become float32,
            but for uint8, which stay so for the transform.
        labels: Their classes, ``(n,)``.
        target: Inputs of the target, ``(m, ...)``, or ``None``.
        batch_size: Inputs of each domain in a batch of this process.
        seed: Decides the order.
        rank: Which process this is.
        world: How many there are.
        transform: Makes the inputs of a batch into what the network is given; whatever is random
            in it must follow from the numbers it is told.

    Raises:
        InputError: If these do not fit together, or are not all finite.
    """

    def __init__(
        self,
        source: Any,
        labels: Any,
        target: Any = None,
        *,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world: int = 1,
        transform: Transform | None = None,
    ) -> None:
        self._source = _inputs(source, "source", whole=transform is None)
        self._labels = _labels(labels, len(self._source))
        self._target = None
        if target is not None:
            self._target = _inputs(target, "target", whole=transform is None)
            if self._target.shape[1:] != self._source.shape[1:]:
                raise InputError(
                    "source and target must have inputs of one shape; got "
                    f"{tuple(self._source.shape[1:])} and {tuple(self._target.shape[1:])}."
                )
        self._each: dict[str, int] = {
            "batch_size": check_count(batch_size, name="batch_size"),
            "rank": rank,
            "world": world,
        }
        self._seed = check_count(seed, name="seed", least=0, most=2**64 - 1)
        self._transform = transform

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Batches ``first`` to ``last - 1``, in order."""
        for step in range(first, last):
            ours = self._chosen(self._source, step, SOURCE)
            labels = self._labels.index_select(0, ours)
            if self._target is None:
                yield Batch(self._taken(self._source, ours, step, SOURCE), labels, None)
                continue
            theirs = self._chosen(self._target, step, TARGET)
            if self._transform is None:
                source, target = self._halves(ours, theirs)
            else:
                source = self._taken(self._source, ours, step, SOURCE)
                target = self._taken(self._target, theirs, step, TARGET)
            yield Batch(source, labels, target)

    def _halves(self, ours: Any, theirs: Any) -> Any:
        """Inputs of both domains, as the parts of one tensor: whoever joins them copies nothing."""
        b = self._each["batch_size"]
        source, target = self._source.new_empty((2 * b, *self._source.shape[1:])).split(b)
        torch.index_select(self._source, 0, ours, out=source)
        torch.index_select(self._target, 0, theirs, out=target)
        return source, target

    def _chosen(self, inputs: Any, step: int, domain: int) -> Any:
        key = (self._seed, domain)
        return torch.from_numpy(indices(inputs.shape[0], step, key=key, **self._each))

    def _taken(self, inputs: Any, chosen: Any, step: int, domain: int) -> Any:
        taken = inputs.index_select(0, chosen)
        if self._transform is None:
            return taken
        return self._transform(taken, (self._seed, domain, step, self._each["rank"]))


def _inputs(given: Any, name: str, *, whole: bool) -> Any:
    """A tensor in ordinary memory, contiguous, float32 or uint8."""
    if isinstance(given, torch.Tensor):
        tensor = given.detach().cpu()
    else:
        array: NDArray[Any] = np.asarray(given)
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} must be numbers; got dtype {array.dtype}.")
        # Torch takes no array that cannot be written, such as one mapped from a file.
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    if tensor.ndim < 2 or not len(tensor):
        raise InputError(
            f"{name} must have a row for each image, shape (n, ...); got {tuple(tensor.shape)}."
        )
    if tensor.dtype == torch.uint8:
        if whole:
            raise InputError(
                f"{name} must be float if there is no transform; got uint8. "
                "Pass a transform that scales them, or scale them before."
            )
        return tensor.contiguous()
    tensor = tensor.to(torch.float32).contiguous()
    if not torch.isfinite(tensor).all():
        raise InputError(f"{name} must be finite; it holds NaN or infinite numbers.")
    return tensor


def _labels(given: Any, n: int) -> Any:
    """Int64 classes from 0."""
    array = np.asarray(given)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise InputError(
            f"labels must be class indices, one for each of the {n:,} source images; got shape "
            f"{array.shape} of dtype {array.dtype}."
        )
    if array.min() < 0:
        raise InputError(
            f"labels must be class indices from 0; got {int(array.min())}. "
            "Leave images without a label out of the source."
        )
    return torch.from_numpy(array.astype(np.int64))

"""PyTorch modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice, check_not_negative
from shiftcal._optional import require
from shiftcal.errors import InputError
from shiftcal.models._fingerprint import of_object
from shiftcal.models._torch_forward import (
    check_layer,
    first_tensor,
    forward,
    torch_threads,
)
from shiftcal.models._torch_model import TorchNetwork
from shiftcal.models.preprocessing import Preprocessing

_REDUCED = ("float16", "bfloat16")
# Of fewer images than these, as many may differ as of these: one alone says little.
_ENOUGH = 100


class TorchModel(TorchNetwork):
    """An ``nn.Module`` that takes a batch of images and returns logits.

    It runs in evaluation mode and without gradients, on the device and in the precision of its
    parameters, and is left in the mode it was in. The number of threads is torch's own setting,
    unless :meth:`use_threads` says another, which holds while the module runs.

    Args:
        module: The network.
        channels_last: Store batches with their channels last, which is faster on some processors;
            the shapes the network sees are the same.
        features_from: Name of a layer, as in ``module.named_modules()``, whose output is given as
            features: ``(n, d)`` as it is, ``(n, c, h, w)`` as its mean over positions; the last
            output, if the layer runs more than once.
        precision: ``"float16"`` or ``"bfloat16"`` does in it what torch's autocast considers safe;
            the module, which must be in float32, stays as it is. ``None`` takes parameters as they
            are.
        min_agreement: The least part of the images whose class must be that of float32. Batches
            number 1, 2, 4, 8, ... run in both, and an error comes as soon as too many differ; of
            the first 100 images as many may as of 100.
        preprocessing: As for every model; by default that of ``module.preprocessing``, if it has
            one.
        **options: ``classes``, ``output``, ``batch_size``, ``memory_budget`` and ``key``, as for
            every model; the batch size is found by default.

    Attributes:
        agreement: The part of the images that ran in both for which the class is that of float32;
            ``None`` before the first, and without a reduced precision.
    """

    def __init__(
        self,
        module: Any,
        *,
        channels_last: bool = False,
        features_from: str | None = None,
        precision: Literal["float32", "float16", "bfloat16"] | None = None,
        min_agreement: float = 0.99,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        nn = require("torch.nn", extra="torch", needed_by="a PyTorch model")
        if not isinstance(module, nn.Module):
            raise InputError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
        carried = getattr(module, "preprocessing", None)
        if preprocessing is None and isinstance(carried, Preprocessing):
            preprocessing = carried
        super().__init__(preprocessing=preprocessing, **{"batch_size": None, **options})
        if features_from is not None:
            check_layer(module, features_from)
        if precision is not None:
            _check_precision(module, precision)
        self.module = module
        self.channels_last = channels_last
        self.features_from = features_from
        self.precision = precision
        self.min_agreement = _part(min_agreement)
        self.threads = None
        # Batches so far; of the images that ran in both precisions, those of one class, and all.
        self._batches, self._same, self._compared = 0, 0, 0

    @property
    def agreement(self) -> float | None:
        """See the attributes of the class."""
        return self._same / self._compared if self._compared else None

    def _identity(self) -> Iterable[str] | None:
        own = of_object(self.module)
        return None if own is None else ("torch", own)

    def _choices(self) -> Mapping[str, str | None]:
        # float32 is what a module that may be told it has anyway.
        precision = self.precision if self.precision in _REDUCED else None
        return {"precision": precision, "features_from": self.features_from}

    def rehearse(self, batch: NDArray[Any]) -> None:
        """Run a batch in both precisions, as for the first."""
        self._in(self.precision, batch)
        if self.precision in _REDUCED:
            self._in(None, batch)

    def _forward(self, batch: NDArray[Any]) -> Any:
        output = self._in(self.precision, batch)
        if self.precision in _REDUCED:
            self._batches += 1
            if self._batches.bit_count() == 1 or self._too_few():
                self._compare(output, self._in(None, batch))
        return output

    def _in(self, precision: str | None, batch: NDArray[Any]) -> Any:
        with torch_threads(self.threads):
            return forward(
                self.module,
                batch,
                channels_last=self.channels_last,
                precision=precision,
                features_from=self.features_from,
            )

    def _compare(self, output: Any, wanted: Any) -> None:
        ours, theirs = (z[0] if isinstance(z, tuple) else z for z in (output, wanted))
        self._same += int(np.sum(ours.argmax(axis=1) == theirs.argmax(axis=1)))
        self._compared += len(ours)
        if self._too_few():
            raise InputError(
                f"the module in {self.precision} must give the class it gives in float32 for at "
                f"least {self.min_agreement:g} of the images; it does for {self.agreement:.4g} of "
                f"{self._compared}. Leave out precision, or say a smaller min_agreement."
            )

    def _too_few(self) -> bool:
        allowed = (1 - self.min_agreement) * max(self._compared, _ENOUGH)
        return self._compared - self._same > allowed + 1e-9


def _check_precision(module: Any, precision: object) -> None:
    check_choice(precision, ("float32", *_REDUCED), name="precision")
    first = first_tensor(module)
    came = "float32" if first is None else str(first.dtype).removeprefix("torch.")
    if came != "float32":
        raise InputError(
            f"precision must be left out for a module whose parameters are not in float32; got "
            f"{precision!r} for {came}. Or pass module.float()."
        )


def _part(value: object) -> float:
    number = check_not_negative(value, name="min_agreement")
    if number > 1:
        raise InputError(f"min_agreement must be a part of the images, at most 1; got {value!r}.")
    return number

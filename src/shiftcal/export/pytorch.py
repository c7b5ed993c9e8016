"""A fitted calibration as a PyTorch module."""

from __future__ import annotations

from typing import Any

from shiftcal.checks import SMALLEST_PROBABILITY, check_choice
from shiftcal.errors import InputError, require
from shiftcal.export.formulas import applied_map, formula_of, is_fine, probabilities
from shiftcal.maps import Map
from shiftcal.methods import Method

torch: Any = require("torch", extra="torch", needed_by="CalibratedModule")
nn: Any = require("torch.nn", extra="torch", needed_by="CalibratedModule")


class _Tensors:
    """The operations of :mod:`shiftcal.export.formulas` on tensors; ``out`` is the last dtype."""

    exp, log, where, maximum = torch.exp, torch.log, torch.where, torch.maximum

    def __init__(self, out: Any) -> None:
        self.out, self.step = out, torch.finfo(out).eps

    def finished(self, x: Any) -> Any:
        return x.to(self.out)

    def max(self, x: Any) -> Any:
        return x.amax(1, keepdim=True)

    def sum(self, x: Any) -> Any:
        return x.sum(1, keepdim=True)

    def softmax(self, x: Any) -> Any:
        return torch.softmax(x, 1)

    def linear(self, x: Any, weight: Any) -> Any:
        return x * weight if weight.ndim == 1 else x @ weight


class _Calibration(nn.Module):
    """A module whose buffers stay float64 when the network around it becomes half.

    In half precision a temperature has three digits. Where a device has no float64 they become
    float32.
    """

    def __init__(self, applied: Map) -> None:
        super().__init__()
        self.formula, numbers = formula_of(applied)
        self.k = applied.n_classes_
        for name, value in numbers.items():
            self.register_buffer(name, torch.from_numpy(value))

    def forward(self, z: Any) -> Any:
        """Probabilities ``(n, k)`` of logits."""
        numbers = dict(self.named_buffers())
        best = next(iter(numbers.values())).dtype
        out = torch.float64 if z.dtype == torch.float64 else torch.float32
        z = z.to(out if is_fine(self.formula, self.k) else best)
        numbers = {name: one.to(z.dtype) for name, one in numbers.items()}
        return probabilities(_Tensors(out), self.formula, numbers, z, self.k)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(buffer: Any) -> Any:
            try:
                result = fn(buffer)
            except TypeError:  # no float64 on that device
                return fn(buffer.float())
            return result if result.dtype == buffer.dtype else buffer.to(result.device)

        return super()._apply(moved, recurse)


class CalibratedModule(nn.Module):
    """A network that returns calibrated probabilities ``(n, k)``, float32 or float64.

    The numbers of the calibration are buffers under ``calibration``. It goes through
    ``torch.export`` and ``torch.jit.trace`` if the network does.

    Args:
        module: The network, which takes one input and returns one tensor of scores ``(n, k)``.
        fitted: A fitted map, or a fitted method; one that adapts to a target must have done so.
            Adapting it again afterwards changes nothing here.
        input: What the network returns, ``"logits"`` or ``"probabilities"``; default: what
            ``fitted`` was fitted on.

    Raises:
        InputError: If ``module`` is no network, or ``fitted`` nothing that can be exported.
    """

    def __init__(self, module: Any, fitted: Method | Map, *, input: str | None = None) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise InputError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
        applied = applied_map(fitted)
        kind = check_choice(input or fitted.input, ("logits", "probabilities"), name="input")
        self.module, self.calibration = module, _Calibration(applied)
        self.takes_probabilities = kind == "probabilities"
        self._shown = f"calibrated by {fitted.name} ({applied.name})"

    def forward(self, x: Any) -> Any:
        """Calibrated probabilities of what the network returns for ``x``."""
        z, k = self.module(x), self.calibration.k
        if not torch.jit.is_tracing() and tuple(getattr(z, "shape", ()))[1:] != (k,):
            what = tuple(z.shape) if isinstance(z, torch.Tensor) else type(z).__name__
            raise InputError(
                f"the network must return one tensor (n, {k}), a column for each class of the "
                f"calibration; it returned {what}. Wrap it in a module that returns the logits."
            )
        if self.takes_probabilities:
            # Halves have no number as small as the smallest float32.
            z = z if z.dtype == torch.float64 else z.to(torch.float32)
            z = torch.log(torch.clamp(z, min=SMALLEST_PROBABILITY))
        return self.calibration(z)

    def extra_repr(self) -> str:
        """What it is calibrated by."""
        return self._shown

"""A fitted calibration as a PyTorch module."""

from __future__ import annotations

from typing import Any

from shiftcal.checks import SMALLEST_PROBABILITY, check_choice, check_flag
from shiftcal.errors import InputError, require
from shiftcal.export.formulas import applied_map, formula_of, is_fine, probabilities, scores
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import temperature_of

torch: Any = require("torch", extra="torch", needed_by="CalibratedModule")
nn: Any = require("torch.nn", extra="torch", needed_by="CalibratedModule")


class _Tensors:
    """The operations of :mod:`shiftcal.export.formulas` on tensors.

    Args:
        z: Logits, in the precision in which the calibration computes.
        out: Dtype of the probabilities.
    """

    def __init__(self, z: Any, out: Any) -> None:
        self.dtype, self.device, self.out = z.dtype, z.device, out
        self.step, self.tiny = torch.finfo(out).eps, torch.finfo(z.dtype).tiny
        self.exp, self.log, self.rounded, self.where = (
            torch.exp,
            torch.log,
            torch.round,
            torch.where,
        )

    def places(self, n: int) -> Any:
        return torch.arange(n, dtype=self.dtype, device=self.device).unsqueeze(0)

    def finished(self, x: Any) -> Any:
        return x.to(self.out)

    def max(self, x: Any) -> Any:
        return x.amax(1, keepdim=True)

    def sum(self, x: Any) -> Any:
        return x.sum(1, keepdim=True)

    def softmax(self, x: Any) -> Any:
        return torch.softmax(x, 1)

    def maximum(self, x: Any, y: Any) -> Any:
        return torch.clamp(x, min=y)

    def minimum(self, x: Any, y: Any) -> Any:
        return torch.clamp(x, max=y)

    def linear(self, x: Any, weight: Any) -> Any:
        return x * weight if weight.ndim == 1 else x @ weight

    def first_largest(self, x: Any, width: int) -> Any:
        return torch.arange(width, device=self.device).unsqueeze(0) == x.argmax(1, keepdim=True)

    def count_below(self, edges: Any, x: Any) -> Any:
        return torch.bucketize(x, edges)

    def take(self, values: Any, place: Any) -> Any:
        return values[place]

    def falling(self, x: Any, n: int) -> Any:
        return torch.topk(x, n, dim=1).values

    def sums_from_end(self, x: Any, n: int) -> Any:
        return torch.flip(torch.cumsum(torch.flip(x, [1]), 1), [1])


class _Calibration(nn.Module):
    """A module whose buffers stay float64 when the network around it becomes half.

    In half precision a temperature has three digits. Where a device has no float64 they become
    float32.
    """

    def __init__(self, applied: Map, *, logits: bool) -> None:
        super().__init__()
        self.formula, numbers = formula_of(applied)
        self.k, self.gives_logits = applied.n_classes_, logits
        for name, value in numbers.items():
            self.register_buffer(name, torch.from_numpy(value))

    def forward(self, z: Any) -> Any:
        """Probabilities ``(n, k)`` of logits, or numbers whose softmax they are."""
        numbers = dict(self.named_buffers())
        best = next(iter(numbers.values())).dtype
        out = torch.float64 if z.dtype == torch.float64 else torch.float32
        z = z.to(out if is_fine(self.formula, self.k) else best)
        g, p = _Tensors(z, out), {name: one.to(z.dtype) for name, one in numbers.items()}
        if not self.gives_logits:
            return probabilities(g, self.formula, p, z, self.k)
        if self.formula in ("mixed", "table", "beta"):
            return _log(probabilities(g, self.formula, p, z, self.k))
        return scores(g, self.formula, p, z, self.k).to(out)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(buffer: Any) -> Any:
            try:
                result = fn(buffer)
            except TypeError:  # no float64 on that device
                return fn(buffer.float())
            return result if result.dtype == buffer.dtype else buffer.to(result.device)

        return super()._apply(moved, recurse=recurse)


class CalibratedModule(nn.Module):
    """A network that returns calibrated probabilities ``(n, k)``.

    Everything learnt is a buffer below ``calibration``. It goes through ``torch.export`` and
    ``torch.jit.trace`` if the network does. Probabilities are float32, or float64 for a network in
    float64; the calibration keeps its digits when the module is made half, bfloat16 or float.

    Args:
        module: The network: one input, ``(n, k)`` out. ``torch.nn.Identity()`` makes a module of
            the calibration alone, for networks that take more.
        fitted: A fitted map, or a fitted method; one that adapts to a target must have done so.
            What is learnt is copied: adapting the method later changes nothing here.
        input: What the network returns, ``"logits"`` or ``"probabilities"``; by default what
            ``fitted`` was fitted on.
        logits: Return numbers whose softmax are the calibrated probabilities: ``z / T`` for a
            temperature.

    Raises:
        InputError: If ``module`` is no module, or ``fitted`` nothing that can be exported.
    """

    def __init__(
        self,
        module: Any,
        fitted: Method | Map,
        *,
        input: str | None = None,
        logits: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise InputError(
                f"module must be a torch.nn.Module; got {type(module).__name__}. An ONNX file is "
                "calibrated by export.to_onnx, a scikit-learn classifier by "
                "export.CalibratedClassifier."
            )
        applied = applied_map(fitted)
        kind = fitted.input if input is None else input
        check_choice(kind, ("logits", "probabilities"), name="input")
        self.module = module
        self.calibration = _Calibration(applied, logits=check_flag(logits, name="logits"))
        self.takes_probabilities = kind == "probabilities"
        by = fitted.name if isinstance(fitted, Map) else f"{fitted.name} ({applied.name})"
        temperature = temperature_of(applied)
        self._shown = f"calibrated by {by}"
        if temperature is not None:
            self._shown += f", T = {temperature:.4g}"

    def forward(self, x: Any) -> Any:
        """Calibrated probabilities, or logits, of what the network returns for ``x``."""
        z, k = self.module(x), self.calibration.k
        tracing = torch.jit.is_tracing()
        if not isinstance(z, torch.Tensor) or (not tracing and tuple(z.shape[1:]) != (k,)):
            what = tuple(z.shape) if isinstance(z, torch.Tensor) else type(z).__name__
            raise InputError(
                f"the network must return one tensor (n, {k}), a column for each class of the "
                f"calibration; it returned {what}. Wrap it in a module that returns the logits "
                "alone; both must be of one model."
            )
        if self.takes_probabilities:
            # Halves have no number as small as the least float32.
            z = _log(z if z.dtype == torch.float64 else z.to(torch.float32))
        return self.calibration(z)

    def extra_repr(self) -> str:
        """What it is calibrated by."""
        return self._shown


def _log(probs: Any) -> Any:
    """Finite logarithms of probabilities, of which a zero counts as the least float32 there is."""
    return torch.log(torch.clamp(probs, min=SMALLEST_PROBABILITY))

"""A fitted calibration as a PyTorch module.

The modules are written so that TorchScript compiles them: tensors, numbers, and no branch on a
Python object.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftcal.checks import check_choice, check_flag
from shiftcal.errors import InputError, require
from shiftcal.export.formulas import (
    FEW_CLASSES,
    BetaCurve,
    ByEntropy,
    Formula,
    Linear,
    Mixed,
    Scaled,
    Table,
    Top1,
    applied_map,
    formula_of,
)
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import temperature_of
from shiftcal.numerics.top1 import LEAST_SHARE, MARGIN, lowest_top1

torch: Any = require("torch", extra="torch", needed_by="CalibratedModule")
nn: Any = require("torch.nn", extra="torch", needed_by="CalibratedModule")
if TYPE_CHECKING:
    Tensor = Any
else:
    Tensor = torch.Tensor


class Numbers(nn.Module):
    """A module whose buffers stay float64 when the network around it becomes half.

    In half precision a temperature has three digits. Where a device has no float64 they become
    float32.
    """

    def __init__(self, **numbers: Any) -> None:
        super().__init__()
        for name, value in numbers.items():
            self.register_buffer(name, torch.from_numpy(np.array(value, dtype=np.float64)))

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(buffer: Any) -> Any:
            try:
                result = fn(buffer)
            except TypeError:  # no float64 on that device
                return fn(buffer.float())
            return result if result.dtype == buffer.dtype else buffer.to(result.device)

        for child in self.children() if recurse else ():
            child._apply(fn)
        return super()._apply(moved, recurse=False)


def less_largest(z: Tensor) -> Tensor:
    """``z - max z`` of every row, which rounds no difference between large logits."""
    return z - z.amax(1, keepdim=True)


def precise(z: Tensor) -> Tensor:
    """Logits as float64 if they are, else as float32."""
    return z if z.dtype == torch.float64 else z.to(torch.float32)


def fine_enough(z: Tensor, number: Tensor, many: bool) -> Tensor:
    """Logits in a precision that is enough for a softmax.

    Args:
        z: ``(n, k)``.
        number: A buffer, in the best precision there is.
        many: Whether there are more than few classes.
    """
    return z.to(number.dtype) if many else precise(z)


def log_of(probs: Tensor) -> Tensor:
    """Finite logarithms of probabilities, of which a zero counts as the least float32 there is."""
    return torch.log(torch.clamp(probs, min=1.1754943508222875e-38))


def keep_top(probs: Tensor, d: Tensor, like: Tensor) -> Tensor:
    """Probabilities in the precision of the logits, their largest where that of ``d`` is.

    Args:
        probs: ``(n, k)``.
        d: Scores less their largest, ``(n, k)``.
        like: The logits as given.
    """
    below = d < 0
    step = 2.220446049250313e-16
    if like.dtype != torch.float64:
        probs = probs.to(torch.float32)
        step = 1.1920928955078125e-07  # the spacing of floats at one
    others = torch.where(below, probs, torch.zeros_like(probs)).amax(1, keepdim=True)
    raised = torch.maximum(probs, others * (1.0 + step))
    return torch.where(below, probs, raised)


def first_largest(d: Tensor) -> Tensor:
    """True for the first largest of every row ``(n, k)``, and for it alone."""
    places = torch.arange(d.shape[1], device=d.device)
    return places.unsqueeze(0) == d.argmax(1, keepdim=True)


class TableCurve(Numbers):
    """A curve in pieces, of confidences to 12 decimals."""

    def __init__(self, curve: Table) -> None:
        super().__init__(edges=curve.edges, start=curve.start, base=curve.base, slope=curve.slope)

    def forward(self, log_odds: Tensor) -> Tensor:
        """Confidences for log-odds, both ``(n, 1)``."""
        c = torch.round(torch.sigmoid(log_odds) * 1e12) / 1e12
        place = torch.bucketize(c, self.edges)
        return self.base[place] + self.slope[place] * (c - self.start[place])


class BetaRows(Numbers):
    """The curve of beta calibration."""

    def __init__(self, curve: BetaCurve) -> None:
        super().__init__(coefficients=[curve.a, curve.b, curve.m])
        self.farthest = curve.farthest

    def forward(self, log_odds: Tensor) -> Tensor:
        """Confidences for log-odds, both ``(n, 1)``."""
        x = torch.clamp(log_odds, max=self.farthest)
        of_one = torch.log1p(torch.exp(-x))
        a, b, m = self.coefficients[0], self.coefficients[1], self.coefficients[2]
        return torch.sigmoid(b * (x + of_one) - a * of_one + m)


class Top1Rows(Numbers):
    """The predicted class gets the curve's confidence, the others share the rest."""

    def __init__(self, formula: Top1, k: int) -> None:
        super().__init__(lowest=lowest_top1(k))
        curve = formula.curve
        self.curve = TableCurve(curve) if isinstance(curve, Table) else BetaRows(curve)
        self.margin = MARGIN
        self.least = LEAST_SHARE

    def forward(self, z: Tensor) -> Tensor:
        """Probabilities ``(n, k)``."""
        d = less_largest(z.to(self.lowest.dtype))
        predicted = first_largest(d)
        d = torch.where(predicted, torch.full_like(d, -math.inf), d)
        second = d.amax(1, keepdim=True)
        shares = torch.exp(d - second)
        log_odds = -second - torch.log(shares.sum(1, keepdim=True))
        c = torch.clamp(torch.maximum(self.curve(log_odds), self.lowest), max=1.0)
        # Where there is no float64, the least of float32.
        shares = torch.clamp(shares, min=self.least if d.dtype == torch.float64 else 1e-37)
        shares = torch.where(predicted, torch.zeros_like(shares), shares)
        cap = c * (1.0 - self.margin)
        shared = torch.minimum(shares * self.scale(shares, 1.0 - c, cap), cap)
        return torch.where(predicted, c, shared).to(precise(z).dtype)

    def scale(self, shares: Tensor, rest: Tensor, cap: Tensor) -> Tensor:
        """The scale at which ``sum min(cap, scale * share)`` is ``rest``, ``(n, 1)``."""
        falling = torch.topk(shares, shares.shape[1] - 1, dim=1).values
        from_end = torch.flip(torch.cumsum(torch.flip(falling, [1]), 1), [1])
        places = torch.arange(falling.shape[1], device=shares.device)
        scales = (rest - places * cap) / from_end
        # The last always counts: at the lowest confidence all are at the cap, but for rounding.
        fits = (scales * falling <= cap) | (places == falling.shape[1] - 1)
        return scales.gather(1, fits.to(torch.int64).argmax(1, keepdim=True))

    def logits(self, z: Tensor) -> Tensor:
        """``log p``."""
        return log_of(self.forward(z))


class ScaledRows(Numbers):
    """``softmax(z / T)``."""

    def __init__(self, formula: Scaled, k: int) -> None:
        super().__init__(temperature=formula.temperature)
        self.many = k > FEW_CLASSES

    def forward(self, z: Tensor) -> Tensor:
        """Probabilities ``(n, k)``."""
        d = less_largest(fine_enough(z, self.temperature, self.many))
        return keep_top(torch.softmax(d / self.temperature.to(d.dtype), 1), d, z)

    def logits(self, z: Tensor) -> Tensor:
        """``z / T``."""
        fine = precise(z)
        return fine / self.temperature.to(fine.dtype)


class MixedRows(Numbers):
    """``w1 softmax(z / T) + w2 softmax(z) + w3 / k``."""

    def __init__(self, formula: Mixed, k: int) -> None:
        weights = [formula.cooled, formula.own, formula.uniform]
        super().__init__(temperature=formula.temperature, weights=weights)
        self.many = k > FEW_CLASSES

    def forward(self, z: Tensor) -> Tensor:
        """Probabilities ``(n, k)``."""
        d = less_largest(fine_enough(z, self.temperature, self.many))
        w = self.weights.to(d.dtype)
        cooled = torch.softmax(d / self.temperature.to(d.dtype), 1)
        return keep_top(w[0] * cooled + w[1] * torch.softmax(d, 1) + w[2] / d.shape[1], d, z)

    def logits(self, z: Tensor) -> Tensor:
        """``log p``."""
        return log_of(self.forward(z))


class EntropyRows(Numbers):
    """``softmax(z / T)``, T by the entropy of the row."""

    def __init__(self, formula: ByEntropy, k: int) -> None:
        super().__init__(
            curve=[formula.log_scale, formula.power], ends=[formula.log_low, formula.log_high]
        )
        self.least = formula.least
        self.largest_entropy = math.log(k)

    def scaled(self, z: Tensor) -> Tensor:
        """``(z - max z) / T``."""
        d = less_largest(z.to(self.curve.dtype))
        e = torch.where(first_largest(d), torch.zeros_like(d), torch.exp(d))
        rest = e.sum(1, keepdim=True)
        entropy = torch.log1p(rest) - (e * d).sum(1, keepdim=True) / (1.0 + rest)
        h = torch.clamp(entropy / self.largest_entropy, self.least, 1.0)
        log_t = self.curve[0] + self.curve[1] * torch.log(h)
        return d / torch.exp(torch.minimum(torch.maximum(log_t, self.ends[0]), self.ends[1]))

    def forward(self, z: Tensor) -> Tensor:
        """Probabilities ``(n, k)``."""
        d = self.scaled(z)
        return keep_top(torch.softmax(d, 1), d, z)

    def logits(self, z: Tensor) -> Tensor:
        """``(z - max z) / T``, in the precision of the logits."""
        return self.scaled(z).to(precise(z).dtype)


class LinearRows(Numbers):
    """``softmax(W x + b)``."""

    def __init__(self, formula: Linear, k: int) -> None:
        del k
        super().__init__(weight=formula.weight, intercept=formula.intercept)
        self.centred = formula.centred
        self.diagonal = formula.weight.ndim == 1

    def scores(self, z: Tensor) -> Tensor:
        """``W x + b``."""
        d = less_largest(z.to(self.weight.dtype))
        x = d - d.mean(1, keepdim=True) if self.centred else torch.log_softmax(d, 1)
        scaled = x * self.weight if self.diagonal else x @ self.weight.t()
        return scaled + self.intercept

    def forward(self, z: Tensor) -> Tensor:
        """Probabilities ``(n, k)``."""
        d = less_largest(self.scores(z))
        return keep_top(torch.softmax(d, 1), d, z)

    def logits(self, z: Tensor) -> Tensor:
        """``W x + b``, in the precision of the logits."""
        return self.scores(z).to(precise(z).dtype)


class CalibratedModule(nn.Module):
    """A network that returns calibrated probabilities ``(n, k)``.

    Everything learnt is a buffer below ``calibration``. It goes through ``torch.export``,
    ``torch.jit.script`` and ``torch.jit.trace`` if the network does. Probabilities are float32, or
    float64 for a network in float64; the calibration keeps its digits when the module is made half,
    bfloat16 or float.

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
        rows = {
            Scaled: ScaledRows,
            Mixed: MixedRows,
            ByEntropy: EntropyRows,
            Linear: LinearRows,
            Top1: Top1Rows,
        }
        formula: Formula = formula_of(applied)
        self.calibration = rows[type(formula)](formula, applied.n_classes_)
        self.n_classes = applied.n_classes_
        self.takes_probabilities = kind == "probabilities"
        self.gives_logits = check_flag(logits, name="logits")
        by = fitted.name if isinstance(fitted, Map) else f"{fitted.name} ({applied.name})"
        temperature = temperature_of(applied)
        self._shown = f"calibrated by {by}"
        if temperature is not None:
            self._shown += f", T = {temperature:.4g}"

    def forward(self, x: Tensor) -> Tensor:
        """Calibrated probabilities, or logits, of what the network returns for ``x``."""
        z = self.module(x)
        if not torch.jit.is_scripting() and not torch.jit.is_tracing():
            _check(z, self.n_classes)
        if self.takes_probabilities:
            if z.dtype != torch.float64:
                z = z.to(torch.float32)  # halves have no number as small
            z = log_of(z)
        if self.gives_logits:
            return self.calibration.logits(z)
        return self.calibration(z)

    def extra_repr(self) -> str:
        """What it is calibrated by."""
        return self._shown


def _check(z: Any, k: int) -> None:
    if not isinstance(z, torch.Tensor):
        raise InputError(
            f"the network must return one tensor (n, {k}); it returned {type(z).__name__}. Wrap it "
            "in a module that returns the logits alone."
        )
    if z.dim() != 2 or z.shape[1] != k:
        raise InputError(
            f"the network must return a tensor (n, {k}), a column for each class of the "
            f"calibration; it returned shape {tuple(z.shape)}. Both must be of one model."
        )

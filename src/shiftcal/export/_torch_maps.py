"""Formulas of maps as PyTorch modules: logits in, probabilities or calibrated logits out."""

from __future__ import annotations

import math

from shiftcal.export._formula import FEW_CLASSES, ByEntropy, Formula, Linear, Mixed, Scaled
from shiftcal.export._torch_base import (
    Numbers,
    Tensor,
    fine_enough,
    keep_top,
    less_largest,
    log_of,
    precise,
    torch,
)
from shiftcal.export._torch_top1 import Top1Rows, first_largest


def module_of(formula: Formula, k: int) -> Numbers:
    """The module that computes a formula for ``k`` classes."""
    if isinstance(formula, Scaled):
        return ScaledRows(formula, k)
    if isinstance(formula, Mixed):
        return MixedRows(formula, k)
    if isinstance(formula, ByEntropy):
        return EntropyRows(formula, k)
    if isinstance(formula, Linear):
        return LinearRows(formula)
    return Top1Rows(formula, k)


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

    def __init__(self, formula: Linear) -> None:
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

"""Maps on the confidence of the predicted class as PyTorch modules."""

from __future__ import annotations

import math

from shiftcal.export._formula import BetaCurve, Table, Top1
from shiftcal.export._torch_base import Numbers, Tensor, less_largest, log_of, precise, torch
from shiftcal.numerics.top1.rows import LEAST_SHARE, MARGIN, lowest_top1


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

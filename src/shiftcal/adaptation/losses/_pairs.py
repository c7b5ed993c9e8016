"""Which pairs of rows a discrepancy compares, and how much each of them counts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.errors import InputError


def check_batches(source: Any, target: Any) -> None:
    """Refuse batches that cannot be compared.

    Raises:
        InputError: If their shapes differ, or they have one row.
    """
    if source.shape != target.shape:
        raise InputError(
            "source and target batches must have the same shape to be compared; got "
            f"{tuple(source.shape)} and {tuple(target.shape)}. Drop the rows left over."
        )
    _check_rows(len(source))


def check_halves(*layers: Any) -> None:
    """Refuse layers of a batch whose halves, source and target, cannot be compared.

    Raises:
        InputError: If they differ in their number of rows, or it is odd, or 2.
    """
    rows = [layer.shape[0] for layer in layers]
    if rows[0] % 2 or any(n != rows[0] for n in rows):
        raise InputError(
            "every layer must have the rows of the source and then as many of the target; got "
            f"{' and '.join(map(str, rows))} rows. Drop the rows left over."
        )
    _check_rows(rows[0] // 2)


def _check_rows(b: int) -> None:
    if b < 2:
        raise InputError(
            "a discrepancy compares rows of one domain with one another, so a batch must have at "
            f"least 2; got {b}. Use a larger batch_size."
        )


def offset(b: int) -> float:
    """``2 / (b - 1)``, which the reference adds so that the quadratic estimate is above 0."""
    return 2 / (b - 1)


@lru_cache(maxsize=16)
def pair_weights(b: int, *, linear: bool, peak: float, dtype: Any, device: Any) -> Any:
    """Weights of a kernel matrix of ``b`` source and ``b`` target rows, ``(2b, 2b)``, symmetric.

    The sum of kernel times weight is the discrepancy and its :func:`offset`: kernels are ``peak``
    on the diagonal whatever the features are, so weights there add a constant.

    Args:
        b: Rows of each domain.
        linear: Compare every row with the next ones only, as :func:`next_rows` does.
        peak: The kernel of a row with itself.
        dtype: Of the weights.
        device: Of the weights.
    """
    with torch.inference_mode(False):
        if linear:
            weights = torch.zeros(2 * b, 2 * b, dtype=torch.float64)
            rows = torch.arange(2 * b).repeat(2)
            weights.index_put_((rows, _next(b)), _signs(b), accumulate=True)
            weights = (weights + weights.t()) / 2
        else:
            domain = torch.arange(2 * b) >= b
            same = domain.unsqueeze(1) == domain
            weights = same.double().mul_(1 / (b * (b - 1)) + 1 / b**2).sub_(1 / b**2)
        weights.fill_diagonal_(offset(b) / (2 * b * peak))
        return weights.to(dtype=dtype, device=device)


@lru_cache(maxsize=16)
def next_rows(b: int, dtype: Any, device: Any) -> tuple[Any, Any]:
    """The pairs of the linear-time estimate.

    Returns:
        For the rows of a joint batch, twice: the number of the next row of the same domain, and
        of the next row of the other, cyclically, ``(4b,)``; and what the kernel of each pair
        counts, ``1/b`` or ``-1/b``.
    """
    with torch.inference_mode(False):
        return _next(b).to(device), _signs(b).to(dtype=dtype, device=device)


def _next(b: int) -> Any:
    after = (torch.arange(b) + 1) % b
    return torch.cat((after, after + b, after + b, after))


def _signs(b: int) -> Any:
    return torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat_interleave(b) / b

"""DAN, JAN, SAFN, MCC and source only: which parts of a batch the transfer loss is made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shiftcal.adaptation.passes import Pass
from shiftcal.adaptation.trainers.dan import DAN
from shiftcal.adaptation.trainers.jan import JAN
from shiftcal.adaptation.trainers.mcc import MCC
from shiftcal.adaptation.trainers.safn import SAFN
from shiftcal.adaptation.trainers.source_only import SourceOnly
from shiftcal.errors import InputError

N, D, K = 6, 5, 3


def passes(seed=0, shift=0.0):
    rng = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(N, width, generator=rng, dtype=torch.float64) for width in (D, K, D, K)]
    drawn[2] += shift
    for each in drawn:
        each.requires_grad_()
    return Pass(*drawn[:2]), Pass(*drawn[2:])


def kernels(x):
    """The sum of five Gaussian kernels of all pairs, by numpy."""
    distances = ((x[:, None] - x[None]) ** 2).sum(-1)
    return sum(np.exp(-distances / (2 * 2.0**k * distances.mean())) for k in range(-3, 2))


def quadratic(kernel):
    """The discrepancy of the first half from the second, of all pairs but equal ones."""
    n = len(kernel) // 2
    total = 0.0
    for i in range(2 * n):
        for j in range(2 * n):
            if (i < n) != (j < n):
                total -= kernel[i, j] / n**2
            elif i != j:
                total += kernel[i, j] / (n * (n - 1))
    return total + 2 / (n - 1)


def joined(source, target):
    f = torch.cat([source.features, target.features]).detach().numpy()
    p = torch.cat([source.logits, target.logits]).detach().softmax(1).numpy()
    return f, p


def test_dan_compares_features_and_not_predictions():
    source, target = passes(shift=1.0)
    f, _ = joined(source, target)
    loss = DAN(linear=False).transfer(source, target, None, 0)
    assert loss.item() == pytest.approx(quadratic(kernels(f)), rel=1e-10)
    loss.backward()
    assert source.logits.grad is None
    assert source.features.grad.any()


def test_dan_compares_neighbouring_pairs_unless_told_otherwise():
    source, target = passes(shift=1.0)
    f, _ = joined(source, target)
    k = kernels(f)
    total = 2 / (N - 1)
    for i in range(N):
        j = (i + 1) % N
        total += (k[i, j] + k[N + i, N + j] - k[i, N + j] - k[j, N + i]) / N
    assert DAN().transfer(source, target, None, 0).item() == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("sigma", [0.92, 0.5])
def test_jan_multiplies_the_kernels_of_features_and_probabilities(sigma):
    source, target = passes(shift=1.0)
    f, p = joined(source, target)
    of_p = np.exp(-((p[:, None] - p[None]) ** 2).sum(-1) / (2 * sigma**2))
    loss = JAN(sigma=sigma).transfer(source, target, None, 0)
    assert loss.item() == pytest.approx(quadratic(kernels(f) * of_p), rel=1e-10)
    loss.backward()
    assert source.logits.grad.any()
    assert source.features.grad.any()
    assert JAN(linear=True, sigma=sigma).transfer(source, target, None, 0) != loss


@pytest.mark.parametrize("trainer", [DAN(linear=False), JAN()], ids=["dan", "jan"])
def test_descent_brings_shifted_domains_together(trainer):
    source, target = passes(shift=2.0)
    before = (source.features.mean(0) - target.features.mean(0)).norm()
    trainer.transfer(source, target, None, 0).backward()
    moved = [each.features - each.features.grad for each in (source, target)]
    assert (moved[0].mean(0) - moved[1].mean(0)).norm() < before


@pytest.mark.parametrize("delta", [1.0, 0.3])
def test_safn_wants_every_feature_vector_longer_in_both_domains(delta):
    source, target = passes()
    loss = SAFN(delta=delta).transfer(source, target, None, 0)
    assert loss.item() == pytest.approx(2 * delta**2, rel=1e-12)
    loss.backward()
    for each in (source, target):
        f = each.features.detach()
        expected = -2 * delta * f / f.norm(dim=1, keepdim=True) / N
        torch.testing.assert_close(each.features.grad, expected)
        assert each.logits.grad is None


def test_mcc_looks_at_the_targets_predictions_only():
    source, target = passes()
    trainer = MCC(temperature=1.7)
    loss = trainer.transfer(source, target, None, 0)
    loss.backward()
    assert target.logits.grad.any()
    assert all(each.grad is None for each in (*source, target.features))

    p = (target.logits.detach() / 1.7).softmax(1).numpy()
    weights = 1 + np.exp((p * np.log(p)).sum(1))
    weights *= N / weights.sum()
    confusion = p.T @ np.diag(weights) @ p
    confusion /= confusion.sum(1, keepdims=True)
    off = (confusion.sum() - np.trace(confusion)) / K
    assert loss.item() == pytest.approx(off, rel=1e-10)


def test_source_only_adds_nothing():
    source, target = passes()
    assert SourceOnly().transfer(source, target, None, 0).item() == 0
    assert SourceOnly().extra(D, K) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DAN(linear="no"), "linear must be true or false; got 'no'"),
        (lambda: JAN(linear=0), "linear must be true or false; got 0"),
        (lambda: JAN(sigma=0), "sigma must be a number above 0; got 0"),
        (lambda: SAFN(delta=-1.0), "delta must be a number of at least 0"),
        (lambda: MCC(temperature=0.0), "temperature must be a number above 0"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()

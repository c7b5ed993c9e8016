"""The torchmetrics metric: the numbers of ScoreStatistics, in any batches and processes."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torchmetrics
from map_data import draw_logits

import shiftcal as sc
from shiftcal.errors import InputError
from shiftcal.integrations import CalibrationMetrics

PROCESS = Path(__file__).parents[1] / "support" / "metric_process.py"
LOGITS, LABELS = (torch.from_numpy(x) for x in draw_logits(200, 5, temperature=2.0, seed=7))


def counted(metric, logits=LOGITS, labels=LABELS, size=64):
    for z, y in zip(logits.split(size), labels.split(size), strict=True):
        metric.update(z, y)
    return metric


def test_it_gives_what_the_functions_give():
    found = {name: float(x) for name, x in counted(CalibrationMetrics(5)).compute().items()}
    probs = LOGITS.softmax(1).numpy()
    correct = probs.argmax(axis=1) == LABELS.numpy()
    wanted = {
        "accuracy": correct.mean(),
        "mean_confidence": probs.max(axis=1).mean(),
        "ece": sc.ece(probs.max(axis=1), correct),
        "nll": sc.nll(probs, LABELS.numpy()),
        "brier": sc.brier(probs, LABELS.numpy()),
    }
    assert found == pytest.approx(wanted, abs=1e-5)


def test_batches_forward_reset_and_merging_leave_no_trace():
    whole = sc.ScoreStatistics.of_rows(LOGITS.numpy(), LABELS.numpy())
    metric = counted(CalibrationMetrics(5), size=7)
    assert metric.statistics() == whole
    metric.reset()
    for z, y in zip(LOGITS.split(50), LABELS.split(50), strict=True):
        assert float(metric(z, y)["accuracy"]) == pytest.approx(
            float((z.argmax(1) == y).float().mean())
        )
    assert metric.statistics() == whole
    one, other = (CalibrationMetrics(5) for _ in range(2))
    counted(one, LOGITS[:90], LABELS[:90])
    counted(other, LOGITS[90:], LABELS[90:])
    other.merge_state(one)
    assert other.statistics() == whole
    again = CalibrationMetrics(5)
    metric.persistent(True)
    again.load_state_dict(copy.deepcopy(metric.state_dict()))
    assert again.statistics() == whole


def test_extreme_logits_of_either_sign_keep_every_bit():
    logits = torch.tensor([[-9e29, 9e29], [9e29, -9e29], [1e-45, 0.0], [0.0, 3.0]]).double()
    labels = torch.tensor([0, 0, 1, 1])
    metric = counted(CalibrationMetrics(2), logits, labels, size=1)
    assert metric.statistics() == sc.ScoreStatistics.of_rows(logits.numpy(), labels.numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_float_and_probabilities_are_counted(dtype):
    z = LOGITS.to(dtype)
    found = counted(CalibrationMetrics(5), z).compute()
    probs = counted(CalibrationMetrics(5, input="probabilities"), z.double().softmax(1)).compute()
    assert float(found["nll"]) == pytest.approx(float(probs["nll"]), abs=1e-5)


def test_it_goes_into_a_collection_and_has_no_number_without_rows():
    metrics = torchmetrics.MetricCollection([CalibrationMetrics(5)])
    metrics.update(LOGITS, LABELS)
    assert set(metrics.compute()) == {"accuracy", "mean_confidence", "ece", "nll", "brier"}
    with pytest.warns(UserWarning, match="before the ``update``"):
        assert all(x.isnan() for x in CalibrationMetrics(5).compute().values())


def test_two_processes_count_together(tmp_path):
    np.savez(tmp_path / "rows.npz", logits=LOGITS.numpy(), labels=LABELS.numpy())
    started = [
        subprocess.Popen([sys.executable, PROCESS, str(rank), tmp_path], stderr=subprocess.PIPE)
        for rank in (0, 1)
    ]
    errors = [process.communicate(timeout=300)[1].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0], errors
    whole = sc.ScoreStatistics.of_rows(LOGITS.numpy(), LABELS.numpy())
    alone = {name: float(x) for name, x in counted(CalibrationMetrics(5)).compute().items()}
    for rank in (0, 1):
        assert sc.ScoreStatistics.read(tmp_path / f"statistics-{rank}.json") == whole
        assert torch.load(tmp_path / f"values-{rank}.pt") == alone


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CalibrationMetrics(1), "num_classes must"),
        (lambda: CalibrationMetrics(5, input="scores"), "input must be"),
        (lambda: counted(CalibrationMetrics(4)), "preds must have 4 columns; got 5"),
        (lambda: counted(CalibrationMetrics(5), LOGITS.softmax(1)), "probabilities"),
    ],
)
def test_bad_input_raises(make, message):
    with pytest.raises(InputError, match=message):
        make()

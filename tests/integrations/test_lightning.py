"""The Lightning callback: numbers and a figure of every validation, in a real trainer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import shiftcal as sc
from shiftcal.errors import InputError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    lightning = pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.loggers import TensorBoardLogger

    from shiftcal.integrations import CalibrationCallback

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice
RNG = np.random.default_rng(0)
Y = torch.from_numpy(RNG.integers(0, 3, 240))
X = torch.from_numpy(RNG.standard_normal((240, 4)).astype(np.float32)) + Y[:, None]


class Net(lightning.LightningModule):
    def __init__(self, returned=("logits", "labels")):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.returned = returned

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def validation_step(self, batch, index, dataloader_idx=0):
        return dict(zip(self.returned, (self.layer(batch[0]), batch[1]), strict=True))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader(rows=slice(None)):
    return torch.utils.data.DataLoader(list(zip(X[rows], Y[rows], strict=True)), batch_size=50)


def trainer_of(folder, **options):
    options = {"logger": False, "max_epochs": 2, **options}
    return lightning.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def test_every_validation_is_logged_with_a_figure(tmp_path):
    net, logger = Net(), TensorBoardLogger(tmp_path)
    trainer = trainer_of(tmp_path, callbacks=[CalibrationCallback()], logger=logger)
    trainer.fit(net, loader(), loader(slice(0, 130)))
    z, y = net.layer(X[:130]).detach().numpy(), Y[:130].numpy()
    whole = sc.ScoreStatistics.of_rows(z, y)
    wanted = {
        "val_accuracy": whole.accuracy(),
        "val_mean_confidence": whole.mean_confidence,
        "val_ece": whole.ece(),
        "val_nll": whole.nll(),
        "val_brier": whole.brier(),
    }
    found = {name: float(x) for name, x in trainer.callback_metrics.items()}
    assert found == pytest.approx(wanted, abs=1e-6)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(logger.log_dir).Reload()
    assert [event.step for event in events.Images("val_reliability")] == [5, 10]
    assert events.Images("val_reliability")[-1].width > 300
    assert len(events.Scalars("val_ece")) == 2


def test_several_validation_sets_have_their_own_numbers(tmp_path):
    callback = CalibrationCallback(prefix="shift/", figure=False)
    trainer = trainer_of(tmp_path, callbacks=[callback])
    trainer.validate(Net(), [loader(), loader(slice(0, 60))], verbose=False)
    assert {"shift/ece_0", "shift/ece_1"} <= trainer.callback_metrics.keys()
    assert [callback.metrics[i].statistics().n for i in (0, 1)] == [240, 60]


def test_two_processes_log_the_numbers_of_all_rows(tmp_path):
    trainer = trainer_of(
        tmp_path,
        callbacks=[CalibrationCallback(figure=False)],
        devices=2,
        strategy="ddp_fork",
    )
    torch.manual_seed(0)
    net = Net()
    (together,) = trainer.validate(net, loader(), verbose=False)
    alone = trainer_of(tmp_path, callbacks=[CalibrationCallback(figure=False)])
    (one,) = alone.validate(net, loader(), verbose=False)
    assert together == pytest.approx(one, abs=1e-6)


def test_what_validation_returns_must_have_logits_and_labels(tmp_path):
    trainer = trainer_of(tmp_path, callbacks=[CalibrationCallback(logits="scores")])
    with pytest.raises(InputError, match=r"must return a dict with 'scores' and 'labels'; got"):
        trainer.validate(Net(), loader(), verbose=False)
    keys = CalibrationCallback(logits="scores", labels="truth", figure=False)
    trainer_of(tmp_path, callbacks=[keys]).validate(
        Net(("scores", "truth")), loader(), verbose=False
    )

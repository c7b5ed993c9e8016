"""A callback watches a validation."""

import importlib

import numpy as np

from shiftcal.integrations import CalibrationCallback

pl, torch = (importlib.import_module(name) for name in ("lightning.pytorch", "torch"))


class Net(pl.LightningModule):
    """Logits are the rows themselves."""

    def validation_step(self, batch, index):
        """What the callback counts."""
        return {"logits": batch[0], "labels": batch[1]}


rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 60)
logits = torch.from_numpy(rng.standard_normal((60, 3)) + np.eye(3)[labels])
data = torch.utils.data.TensorDataset(logits, torch.from_numpy(labels))
trainer = pl.Trainer(accelerator="cpu", logger=False, callbacks=[CalibrationCallback()])
(found,) = trainer.validate(Net(), torch.utils.data.DataLoader(data, batch_size=20))
assert 0 < found["val_ece"] < 1

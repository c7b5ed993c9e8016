"""Files of weights: every nest they come in, and none that could run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hostile_files import Trap, trap
from safetensors.torch import save_file
from torch import nn

from shiftcal.errors import FileError
from shiftcal.models import load_weights
from shiftcal.models.pytorch import read_weights


def network(seed=0, width=3):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))


@pytest.mark.parametrize(
    "nest",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state},
        lambda state: {"net": state, "acc": 91.7},
        lambda state: {"model": {"state_dict": state}},
        lambda state: {f"module.{name}": value for name, value in state.items()},
        lambda state: {"net": {f"module.{name}": value for name, value in state.items()}},
    ],
)
def test_weights_are_found_wherever_training_scripts_put_them(tmp_path, nest):
    one, other = network(0), network(1)
    torch.save(nest(one.state_dict()), tmp_path / "a.pth")
    assert load_weights(other, tmp_path / "a.pth", what="a net") is other
    for name, value in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)


def test_safetensors_are_read(tmp_path):
    one = network(0)
    save_file(one.state_dict(), tmp_path / "a.safetensors")
    other = load_weights(network(1), str(tmp_path / "a.safetensors"), what="a net")
    np.testing.assert_array_equal(other[0].weight.detach(), one[0].weight.detach())


def test_nothing_in_a_file_of_weights_runs(tmp_path):
    mark = tmp_path / "mark"
    files = [tmp_path / name for name in ("bare.pt", "saved.pth", "named.safetensors")]
    files[0].write_bytes(trap(mark))
    torch.save({"state_dict": {"0.weight": Trap(mark)}}, files[1])
    files[2].write_bytes(trap(mark))
    for file in files:
        with pytest.raises(FileError, match=rf"{file.name} (could not be read|is not a safetens)"):
            read_weights(file)
    assert not mark.exists()
    torch.load(files[1], weights_only=False)
    assert mark.exists()  # the trap works where something does unpickle it


def test_what_holds_no_names_is_refused(tmp_path):
    torch.save(torch.zeros(3), tmp_path / "tensor.pth")
    with pytest.raises(FileError, match="must hold named weights; got Tensor"):
        read_weights(tmp_path / "tensor.pth")
    torch.save({"net": [torch.zeros(3)]}, tmp_path / "list.pth")
    with pytest.raises(FileError, match="does not hold the weights of a net"):
        load_weights(network(), tmp_path / "list.pth", what="a net")
    with pytest.raises(FileError, match=r"none.pth must be a file of weights; there is no file"):
        read_weights(tmp_path / "none.pth")
    (tmp_path / "empty.pth").write_bytes(b"")
    with pytest.raises(FileError, match=r"empty.pth must be a file of weights; it is empty"):
        read_weights(tmp_path / "empty.pth")

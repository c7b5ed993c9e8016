"""Files of torch.export: what they give."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hostile_files import rewritten
from torch import nn

from shiftcal.errors import FileError, InputError
from shiftcal.models import ExportedModel, as_model

IMAGES = np.random.default_rng(5).integers(0, 256, (7, 16, 16, 3), np.uint8)
GRAPH = "models/model.json"


class Net(nn.Module):
    """Parameters, buffers, a buffer that is not saved, a constant, and a shape in arithmetic."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 4, 4, 4), nn.BatchNorm2d(4), nn.Linear(16, 5)
        self.register_buffer("scale", torch.full((1,), 2.0), persistent=False)
        self.shift = torch.ones(5)

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.conv(x)), approximate="tanh")
        return self.last(x.reshape(x.shape[0], 4, 16).mean(1)) * self.scale + self.shift


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    net = Net().eval()
    example = (torch.zeros(3, 3, 16, 16),)
    open_batch = {0: torch.export.Dim("n", min=1, max=1024)}
    torch.export.save(
        torch.export.export(net, example, dynamic_shapes=(open_batch,)), folder / "open.pt2"
    )
    torch.export.save(torch.export.export(net, example), folder / "fixed.pt2")
    with torch.no_grad():
        wanted = net(torch.from_numpy(IMAGES).permute(0, 3, 1, 2) / 255).numpy()
    return folder, wanted


@pytest.mark.parametrize("name", ["open.pt2", "fixed.pt2"])
@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_logits_are_those_of_the_module_with_an_open_or_a_fixed_batch(files, name, batch_size):
    folder, wanted = files
    model = as_model(folder / name, batch_size=batch_size)
    assert isinstance(model, ExportedModel)
    np.testing.assert_allclose(model.logits(IMAGES), wanted, atol=1e-5)  # other orders of summing


def test_a_model_goes_through_pickle_and_its_fingerprint_is_that_of_the_content(files, tmp_path):
    folder, _ = files
    model = as_model(f"export:{folder / 'open.pt2'}?batch_size=4")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.logits(IMAGES), model.logits(IMAGES))
    copy = tmp_path / "copy.pt2"
    copy.write_bytes((folder / "open.pt2").read_bytes())
    assert again.fingerprint == model.fingerprint == as_model(copy).fingerprint
    changed = rewritten(
        folder / "open.pt2", tmp_path / "changed.pt2", {"data/weights/weight_1": bytes(16)}
    )
    assert as_model(changed).fingerprint != model.fingerprint
    assert model.engine.startswith("torch 2")


def test_a_network_must_take_one_batch_of_images_and_return_logits(tmp_path):
    torch.export.save(
        torch.export.export(nn.Linear(4, 2).eval(), (torch.zeros(2, 4),)), tmp_path / "rows.pt2"
    )
    with pytest.raises(InputError, match=r"one input, a batch of images; got shapes \(2, 4\)"):
        as_model(tmp_path / "rows.pt2")

    class Pair(nn.Module):
        def forward(self, x):
            return x.mean((2, 3)), x

    torch.export.save(
        torch.export.export(Pair(), (torch.zeros(2, 3, 8, 8),)), tmp_path / "pair.pt2"
    )
    with pytest.raises(InputError, match=r"must return a tensor of logits.*got tuple"):
        as_model(tmp_path / "pair.pt2", batch_size=2).logits(np.zeros((2, 8, 8, 3), np.uint8))


@pytest.mark.parametrize("name", ["1", "maps"])
@pytest.mark.parametrize("fixed", [True, False])
def test_features_are_a_place_in_the_tuple_or_a_key_of_the_dict(tmp_path, name, fixed):
    class Both(nn.Module):
        def forward(self, x):
            logits, maps = x.mean((2, 3)), x * 2
            return (logits, maps) if name == "1" else {"logits": logits, "maps": maps}

    shapes = None if fixed else ({0: torch.export.Dim("n", min=1, max=1024)},)
    program = torch.export.export(Both(), (torch.zeros(3, 3, 16, 16),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "both.pt2")
    model = as_model(f"export:{tmp_path / 'both.pt2'}?features_from={name}&batch_size=4")
    made = model.outputs(IMAGES)
    wanted = IMAGES.mean(axis=(1, 2)) / 255
    np.testing.assert_allclose(made.logits, wanted, rtol=1e-5)
    np.testing.assert_allclose(made.features, 2 * wanted, rtol=1e-5)  # maps: their mean
    other = ExportedModel(tmp_path / "both.pt2", features_from="5", batch_size=4)
    assert other.fingerprint != model.fingerprint
    with pytest.raises(InputError, match=r"a second output of the network; got '5'"):
        other.outputs(IMAGES)


def test_files_of_another_kind_are_a_clear_error(files, tmp_path):
    cut, text, empty = tmp_path / "cut.pt2", tmp_path / "text.pt2", tmp_path / "empty.pt2"
    cut.write_bytes((files[0] / "open.pt2").read_bytes()[:5000])
    text.write_text("hello")
    empty.touch()
    odd = rewritten(files[0] / "open.pt2", tmp_path / "odd.pt2", {GRAPH: b"[]"})
    for file in (cut, text, odd):
        with pytest.raises(FileError, match=rf"{file.name} could not be loaded by torch.export"):
            as_model(file)
    with pytest.raises(FileError, match=r"empty.pt2 must be a file of torch.export; it is empty"):
        as_model(empty)
    with pytest.raises(FileError, match=r"none.pt2 must be a file of torch.export; there is no"):
        as_model(tmp_path / "none.pt2")

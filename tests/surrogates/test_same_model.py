"""The model of a bank, found again for new images."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from exact_model import exact, labelled, logits_of
from hostile_files import trap
from onnx_resnet import mean_colour_onnx

from shiftcal import SurrogateBank
from shiftcal.errors import FileError, InputError
from shiftcal.models import Preprocessing, as_model
from shiftcal.surrogates.build import model_of_bank

IMAGES, LABELS = labelled(12, seed=10, size=(16, 16))


@pytest.fixture
def bank(tmp_path):
    model = exact(preprocessing=Preprocessing(crop=12), batch_size=5)
    SurrogateBank.synthesize(model, IMAGES, LABELS, severities=1, out=tmp_path / "bank")
    return tmp_path / "bank"


def test_the_same_model_gets_the_preprocessing_and_batch_size_of_the_bank(bank):
    given = exact()
    found = model_of_bank(bank, given)
    assert (found.preprocessing.crop, found.batch_size) == (12, 5)
    assert (given.preprocessing.crop, given.batch_size) == (None, 8)
    np.testing.assert_array_equal(found.logits(IMAGES), logits_of(IMAGES[:, 2:14, 2:14]))


def test_another_model_is_refused(bank):
    with pytest.raises(InputError, match=r"made with another model .*or leave the bank out"):
        model_of_bank(bank, exact(key="exact-v2"))
    with pytest.raises(InputError, match="made with another model"):
        model_of_bank(bank, exact(key=None))


def test_a_model_without_a_name_must_be_given(bank):
    with pytest.raises(InputError, match=r"does not say how its model is made.*again: --model"):
        model_of_bank(bank)


def test_a_model_that_was_named_is_made_again(tmp_path):
    (tmp_path / "model.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    model = as_model(f"{tmp_path / 'model.onnx'}?std=0.5,0.5,0.5")
    SurrogateBank.synthesize(model, IMAGES, LABELS % 3, severities=1, out=tmp_path / "bank")
    found = model_of_bank(tmp_path / "bank")
    assert found.preprocessing.std == (0.5, 0.5, 0.5)
    np.testing.assert_array_equal(found.logits(IMAGES), model.logits(IMAGES))
    (tmp_path / "model.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    with pytest.raises(InputError, match="another model"):
        model_of_bank(tmp_path / "bank")


def test_a_model_named_from_the_current_folder_is_found_from_another(tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    SurrogateBank.synthesize("model.onnx", IMAGES, LABELS % 3, severities=1, out="bank")
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = model_of_bank(tmp_path / "bank")
    assert found.spec == f"onnx:{tmp_path / 'model.onnx'}"
    assert found.logits(IMAGES).shape == (12, 3)


@pytest.mark.parametrize("model", [None, [], "text", {}, {"preprocessing": {"no": 1}}])
def test_a_damaged_origin_is_a_clear_error(bank, model):
    document = json.loads((bank / "bank.json").read_text())
    document.pop("checksum")
    document["origin"]["model"] = model
    (bank / "bank.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="does not say which model"):
        model_of_bank(bank, exact())


def with_spec(bank, spec):
    """The bank, which says that this is its model."""
    document = json.loads((bank / "bank.json").read_text())
    document.pop("checksum")
    document["origin"]["model"]["spec"] = spec
    (bank / "bank.json").write_text(json.dumps(document))
    return bank


@pytest.mark.parametrize(
    "spec",
    [
        "torch:subprocess:getoutput?cmd=touch%20mark",
        "python:subprocess:getoutput?key=a",
        "sklearn:x.skops?trusted=os.system",
        "torchscript:net.pt",
        "net.pt",
        "onnx:net.pt",  # there is a file of this name, and its ending says TorchScript
        "export:net.pt2",
        "hf:somebody/net",
        "timm:resnet50",
        "torchvision:resnet50",
        "onnx://host/share/net.onnx",
        "onnx:\\\\host\\share\\net.onnx",
        "cifar-resnet:20?weights=//host/share/net.pth",
    ],
)
def test_a_bank_cannot_make_us_run_code_or_contact_a_host(bank, tmp_path, spec, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("net.pt", "onnx:net.pt", "net.pt2"):
        (tmp_path / name).write_bytes(trap(tmp_path / "mark"))
    before = set(sys.modules)
    with pytest.raises(InputError, match=r"may run code or contact a host.*yourself: --model '"):
        model_of_bank(with_spec(bank, spec))
    assert not (tmp_path / "mark").exists()
    hubs = {"timm", "transformers", "torchvision", "huggingface_hub"}
    assert not (set(sys.modules) - before) & hubs


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("onnx:/proc/kmsg", "must be an ONNX file; it is empty"),
        ("cifar-resnet:20?weights=/proc/kmsg", "must be a file of weights; it is empty"),
        ("sklearn:/proc/kmsg", "must be a .skops file; it is empty"),
    ],
)
@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="there is no /proc/kmsg")
def test_a_bank_cannot_make_us_wait_for_a_device(bank, spec, words):
    with pytest.raises(FileError, match=words):
        model_of_bank(with_spec(bank, spec))


def test_weights_of_a_known_architecture_are_data(tmp_path):
    import torch

    from shiftcal.models import cifar_resnet

    torch.save(cifar_resnet(20).state_dict(), tmp_path / "net.pth")
    images = np.zeros((12, 32, 32, 3), np.uint8)
    model = as_model(f"cifar-resnet:20?weights={tmp_path / 'net.pth'}")
    SurrogateBank.synthesize(model, images, LABELS % 3, severities=1, out=tmp_path / "bank")
    assert model_of_bank(tmp_path / "bank").fingerprint == model.fingerprint

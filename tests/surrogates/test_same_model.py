"""The model of a bank, found again for new images."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exact_model import exact, labelled, logits_of
from onnx_resnet import mean_colour_onnx

from shiftcal import SurrogateBank
from shiftcal.errors import FileError, InputError
from shiftcal.models import Preprocessing, as_model
from shiftcal.surrogates.same_model import model_of_bank

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


def test_another_batch_size_can_be_said(bank):
    assert model_of_bank(bank, exact(), 3).batch_size == 3


def test_another_model_is_refused(bank):
    with pytest.raises(InputError, match=r"made with another model .*or leave the bank out"):
        model_of_bank(bank, exact(key="exact-v2"))
    with pytest.raises(InputError, match="made with another model"):
        model_of_bank(bank, exact(key=None))


def test_a_model_without_a_name_must_be_given(bank):
    with pytest.raises(InputError, match=r"has no name\. Name it: --model"):
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


def test_a_bank_of_arrays_does_not_say_which_model(tmp_path):
    SurrogateBank.from_arrays([logits_of(IMAGES)], LABELS).save(tmp_path / "bank")
    with pytest.raises(FileError, match="does not say which model it was made with"):
        model_of_bank(tmp_path / "bank", exact())


@pytest.mark.parametrize("model", [None, [], "text", {}, {"preprocessing": {"no": 1}}])
def test_a_damaged_origin_is_a_clear_error(bank, model):
    document = json.loads((bank / "bank.json").read_text())
    document["origin"]["model"] = model
    (bank / "bank.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="does not say which model"):
        model_of_bank(bank, exact())


def test_no_bank_is_a_clear_error(tmp_path):
    with pytest.raises(FileError, match="is not a bank folder"):
        model_of_bank(tmp_path / "nowhere", exact())


@pytest.mark.parametrize(
    "spec",
    [
        "torch:subprocess:getoutput?cmd=touch%20{mark}",
        "sklearn:x.skops?trusted=os.system",
        "python:subprocess:getoutput?key=a",
    ],
)
def test_a_bank_cannot_make_us_run_code(bank, tmp_path, spec):
    mark = tmp_path / "mark"
    document = json.loads((bank / "bank.json").read_text())
    document["origin"]["model"]["spec"] = spec.format(mark=mark)
    (bank / "bank.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"would run code.*name the model yourself: --model"):
        model_of_bank(bank)
    assert not mark.exists()

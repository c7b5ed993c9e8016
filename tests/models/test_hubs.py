"""Networks of timm, torchvision and Hugging Face."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hostile_files import Trap, trap
from standin_hubs import Interpolation, sized, standin_timm, standin_torchvision, tiny

from shiftcal.errors import FileError, InputError
from shiftcal.models import Preprocessing, as_model
from shiftcal.models.networks import (
    huggingface_preprocessing,
    timm_preprocessing,
    torchvision_preprocessing,
)

SETTINGS = {
    "input_size": (3, 32, 32),
    "interpolation": "bicubic",
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "crop_pct": 0.95,
    "crop_mode": "center",
}
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), np.uint8)


def install(monkeypatch, modules):
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def published():
    return sized(tiny(seed=5), 32).eval()


def test_the_network_comes_with_its_weights_and_its_preprocessing(monkeypatch, published):
    modules = standin_timm(SETTINGS, published)
    install(monkeypatch, modules)
    model = as_model("timm:resnet50.a1_in1k?batch_size=2")
    assert modules["timm"].calls == [("resnet50.a1_in1k", True)]
    assert model.preprocessing == Preprocessing(
        resize=33, crop=32, interpolation="bicubic", mean=SETTINGS["mean"], std=SETTINGS["std"]
    )
    wanted = as_model(published, preprocessing=model.preprocessing, batch_size=2).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    assert not model.module.training


def test_weights_of_a_file_are_used_instead_and_nothing_is_fetched(
    monkeypatch, published, tmp_path
):
    modules = standin_timm(SETTINGS)
    install(monkeypatch, modules)
    torch.save(published.state_dict(), tmp_path / "w.pth")
    model = as_model(f"timm:resnet50?weights={tmp_path}/w.pth&crop=none&resize=32x32")
    assert modules["timm"].calls == [("resnet50", False)]
    wanted = as_model(published, preprocessing=model.preprocessing).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    mark = tmp_path / "mark"
    (tmp_path / "bad.pth").write_bytes(trap(mark))
    with pytest.raises(FileError, match="tensors and nothing else"):
        as_model(f"timm:resnet50?weights={tmp_path}/bad.pth")
    assert not mark.exists()


def test_the_real_package_gives_the_same_through_its_own_transforms(tmp_path):
    timm = pytest.importorskip("timm", exc_type=ImportError)
    from PIL import Image

    torch.manual_seed(0)
    network = timm.create_model("resnet18", pretrained=False).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    settings = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**settings, is_training=False)
    with torch.no_grad():
        wanted = network(torch.stack([transform(Image.fromarray(image)) for image in IMAGES]))
    model = as_model(f"timm:resnet18?weights={tmp_path}/w.pth&batch_size=5")
    np.testing.assert_allclose(model.logits(IMAGES), wanted.numpy(), atol=1e-4)


PRESET = {
    "resize_size": [36],
    "crop_size": [32],
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "interpolation": Interpolation.BILINEAR,
    "antialias": True,
}


@pytest.fixture
def models(monkeypatch, published):
    modules = standin_torchvision(PRESET, published)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["torchvision.models"]


@pytest.mark.parametrize("query", ["", "&weights=IMAGENET1K_V1"])
def test_the_network_comes_with_weights_preprocessing_and_classes(models, published, query):
    model = as_model(f"torchvision:resnet50?batch_size=2{query}")
    assert models.calls == [{"progress": False, "check_hash": True, "weights_only": True}]
    assert model.preprocessing == Preprocessing(
        resize=36, crop=32, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
    )
    assert model.classes == ("cat", "dog", "eel", "fox")
    wanted = as_model(published, preprocessing=model.preprocessing, batch_size=2).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    assert not model.module.training
    with pytest.raises(FileError, match="there is no file of that name"):
        as_model("torchvision:resnet50?weights=IMAGENET1K_V9")


VIT = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": 32, "width": 32},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
CROPPED = {
    "image_processor_type": "BitImageProcessor",
    "size": {"shortest_edge": 36},
    "do_center_crop": True,
    "crop_size": {"height": 32, "width": 32},
    "resample": 3,
    "do_convert_rgb": True,
}
CONVNEXT = {
    "image_processor_type": "ConvNextImageProcessor",
    "size": {"shortest_edge": 224},
    "crop_pct": 0.875,
    "resample": 3,
}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, {"resize": (32, 32), "mean": (0.5,) * 3, "std": (0.5,) * 3}),
        (CROPPED, {"resize": 36, "crop": 32, "interpolation": "bicubic"}),
        (CONVNEXT, {"resize": 256, "crop": 224, "interpolation": "bicubic"}),
        (CONVNEXT | {"size": {"shortest_edge": 384}}, {"resize": (384, 384), "crop": None}),
        (CONVNEXT | {"do_resize": False}, {"resize": None, "crop": None}),
        ({"do_normalize": False}, {"mean": (0.0,) * 3, "std": (1.0,) * 3}),
        ({"image_processor_type": "ViTImageProcessorFast"}, {"resize": (32, 32)}),
    ],
)
def test_settings_are_told_in_our_words(change, wanted):
    made = huggingface_preprocessing(VIT | change, name="hf:x")
    for name, value in wanted.items():
        assert getattr(made, name) == value, name


@pytest.mark.parametrize("change", [{"rescale_factor": 1 / 127.5}, {"do_rescale": False}])
def test_other_scales_of_pixels_give_the_same_numbers(change):
    settings = VIT | change | {"do_resize": False}
    factor = 1.0 if change == {"do_rescale": False} else change["rescale_factor"]
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)
    made = huggingface_preprocessing(settings, name="hf:x").apply(images).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(made, (images * factor - 0.5) / 0.5, rtol=1e-5, atol=1e-5)


def of_timm(change):
    timm_preprocessing(SETTINGS | change, name="a model")


def of_torchvision(change):
    torchvision_preprocessing(SimpleNamespace(**PRESET | change), name="a model")


def of_hugging_face(change):
    huggingface_preprocessing(VIT | change, name="a model")


@pytest.mark.parametrize(
    ("read", "change", "words"),
    [
        (of_timm, {"crop_mode": "border"}, "a model has crop_mode = 'border'.*cannot be expressed"),
        (of_timm, {"input_size": (1, 32, 32)}, r"input_size = \(1, 32, 32\)"),
        (of_timm, {"interpolation": "random"}, "interpolation = 'random'"),
        (of_torchvision, {"crop_size": [32, 48]}, r"crop_size = \[32, 48\]"),
        (of_torchvision, {"interpolation": Interpolation.NEAREST}, "interpolation = 'nearest'"),
        (of_hugging_face, {"image_processor_type": "LevitImageProcessor"}, "_type = 'Levit"),
        (of_hugging_face, {"do_flip_channel_order": True}, "do_flip_channel_order = True"),
        (of_hugging_face, {"do_pad": True}, "do_pad = True"),
        (of_hugging_face, {"resample": 1}, "interpolation = 'resample 1'"),
        (of_hugging_face, {"size": {"longest_edge": 3}}, "size = {'longest_edge': 3}"),
        (
            of_hugging_face,
            {"do_center_crop": True, "crop_size": {"height": 3, "width": 4}},
            "crop_size = {'height'",
        ),
        (of_hugging_face, CONVNEXT | {"size": {"height": 3, "width": 3}}, "size = {'height': 3"),
    ],
)
def test_preprocessing_that_cannot_be_expressed_is_rejected(read, change, words):
    with pytest.raises(InputError, match=words):
        read(change)


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def saved(transformers, folder, kind, processor, **options):
    torch.manual_seed(0)
    labels = {
        "id2label": {0: "cat", 1: "dog", 2: "eel"},
        "label2id": {"cat": 0, "dog": 1, "eel": 2},
    }
    if kind == "resnet":
        config = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", **labels
        )
        network = transformers.ResNetForImageClassification(config)
    else:
        config = transformers.ViTConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=32,
            patch_size=8,
            **labels,
        )
        network = transformers.ViTForImageClassification(config)
    network.eval().save_pretrained(folder, **options)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return network


# 36 to 32 and 45 to 32: an even and an odd number of pixels are cut away.
@pytest.mark.parametrize("shape", [(40, 50), (64, 33)])
@pytest.mark.parametrize(
    ("kind", "processor"),
    [
        ("vit", VIT),
        ("vit", VIT | CROPPED),
        ("resnet", VIT | CONVNEXT | {"size": {"shortest_edge": 32}}),
    ],
)
def test_logits_are_those_through_its_own_image_processor(
    transformers, tmp_path, kind, processor, shape
):
    from PIL import Image

    network = saved(transformers, tmp_path, kind, processor)
    own = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    images = np.random.default_rng(1).integers(0, 256, (3, *shape, 3), np.uint8)
    given = own([Image.fromarray(image) for image in images], return_tensors="pt")
    with torch.no_grad():
        wanted = network(**given).logits.numpy()
    model = as_model(f"hf:{tmp_path}?batch_size=3")
    assert model.classes == ("cat", "dog", "eel")
    ours = model.logits(images)
    if np.abs(ours - wanted).max() > 1e-5:
        # Their centre may be a pixel beside ours, and then in one direction only.
        cut = np.array(model.preprocessing.framing._size(*shape)) - 32
        assert (cut % 2).any()
        inputs = model.preprocessing.apply(images)
        theirs = given["pixel_values"].numpy()
        axis = 2 if shape[0] > shape[1] else 3
        moved = [np.moveaxis(x, axis, 0) for x in (inputs, theirs)]
        np.testing.assert_allclose(moved[0][:-1], moved[1][1:], atol=1e-5)


def test_a_bin_file_is_read_and_nothing_in_it_runs(transformers, tmp_path):
    network = saved(transformers, tmp_path, "vit", VIT)
    (tmp_path / "model.safetensors").unlink()
    torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
    images = np.random.default_rng(1).integers(0, 256, (3, 32, 32, 3), np.uint8)
    plain = Preprocessing(mean=(0.5,) * 3, std=(0.5,) * 3)
    wanted = as_model(network, preprocessing=plain, batch_size=3).logits(images)
    np.testing.assert_allclose(as_model(f"hf:{tmp_path}").logits(images), wanted, atol=1e-6)
    mark = tmp_path / "mark"
    torch.save({"classifier.weight": Trap(mark)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(FileError, match="could not be loaded"):
        as_model(f"hf:{tmp_path}")
    assert not mark.exists()


def test_code_that_comes_with_a_model_is_not_run(transformers, tmp_path):
    saved(transformers, tmp_path, "vit", VIT)
    mark = tmp_path / "mark"
    (tmp_path / "mine.py").write_text(f"open({str(mark)!r}, 'w')\n")
    config = json.loads((tmp_path / "config.json").read_text())
    config["model_type"] = "mine"
    config["auto_map"] = {
        "AutoConfig": "mine.Config",
        "AutoModelForImageClassification": "mine.Model",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(FileError, match="could not be loaded"):
        as_model(f"hf:{tmp_path}")
    assert not mark.exists()


def test_weights_that_are_missing_are_not_made_up(transformers, tmp_path):
    from safetensors.torch import load_file, save_file

    saved(transformers, tmp_path, "vit", VIT)
    state = load_file(tmp_path / "model.safetensors")
    del state["classifier.weight"]
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FileError, match=r"no weights for 1 parts, such as classifier.weight"):
        as_model(f"hf:{tmp_path}")

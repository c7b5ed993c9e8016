"""What cannot be a model, and outputs that cannot be logits: an error that says why."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shiftcal.errors import FileError, InputError
from shiftcal.models import as_model, load_weights, parse_spec

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 16, 12, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (lambda x: np.zeros(len(x)), r"images 0 to 9 must be numbers of shape \(10, columns\)"),
        (lambda x: np.zeros((len(x) - 1, 3)), r"got shape \(9, 3\)"),
        (lambda x: np.zeros((len(x), 1)), "a column per class"),
        (lambda x: np.zeros((len(x), 4)), "a column per class, 3; got"),
        (lambda x: np.full((len(x), 3), "a"), "must be numbers|numeric"),
        (lambda x: (np.zeros((len(x), 3)),) * 3, "a tuple of 3"),
        (lambda x: (np.zeros((len(x), 3)), np.zeros((2, 3))), r"features .* \(10, columns\)"),
        (lambda x: (np.zeros((len(x), 3)), np.zeros((len(x), 0))), "features"),
        (lambda x: np.full((len(x), 3), np.nan), "image 0. Check the weights"),
        (lambda x: x / "a", "the model failed on images 0 to 9"),
    ],
)
def test_an_output_that_cannot_be_logits(output, words):
    model = as_model(output, batch_size=10, classes=["a", "b", "c"])
    with pytest.raises(InputError, match=words):
        model.logits(IMAGES)


def test_what_changes_between_batches_is_noticed():
    widths = iter([3, 4])
    with pytest.raises(InputError, match=r"images 10 to 19 .* a column per class, 3"):
        as_model(lambda x: np.zeros((len(x), next(widths))), batch_size=10).logits(IMAGES)
    pairs = iter([(np.zeros((10, 3)), np.zeros((10, 2))), np.zeros((10, 3))])
    with pytest.raises(InputError, match=r"features .* same columns .* \[0, 2\]"):
        as_model(lambda _: next(pairs), batch_size=10).outputs(IMAGES)
    finite = np.where(np.arange(20) == 13, np.inf, 0)[:, None] * np.ones(3)
    parts = iter([finite[:10], finite[10:]])
    with pytest.raises(InputError, match=r"images 10 to 19 .*that of image 13"):
        as_model(lambda _: next(parts), batch_size=10).logits(IMAGES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "kind:what"),
        ("resnet50", "Did you mean timm:resnet50 or torchvision:resnet50"),
        ("model.h5", "file ending in .onnx"),
        ("model.pkl", "A pickle is never loaded"),
        ("model.pt", "factory.weights=FILE"),
        ("onxx:model.onnx", "no kind of model is called 'onxx'. Did you mean 'onnx'"),
        ("timm:", "must name something after the colon"),
        ("timm:a?weights", "name=value"),
        ("timm:a?crop=1&crop=2", "each once"),
    ],
)
def test_texts_that_name_no_model(text, words):
    with pytest.raises(InputError, match=words):
        parse_spec(text)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("resize=a", "resize must be a whole number"),
        ("resize=8xa", "resize must be numbers"),
        ("mean=a", "mean must be numbers"),
        ("thread=1", "Did you mean 'threads'"),
        ("threads=no", "threads must be a whole number"),
        ("batch_size=-1", "batch_size must be a whole number"),
        ("device=mars", "device 'mars' cannot be used"),
    ],
)
def test_options_that_cannot_be(option, words):
    with pytest.raises(InputError, match=words):
        as_model(f"cifar-resnet:20?{option}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torch:math", "must be followed by package.module:name"),
        ("torch:nowhere:net", "torch:nowhere:net cannot be imported"),
        ("torch:math:nothing", "cannot be imported"),
        ("torch:math:sqrt", r"called with \(\) raised TypeError"),
        ("torch:builtins:dict", "must return a torch.nn.Module; got dict"),
        ("python:math:pi", "a model must be a function"),
        ("python:builtins:len?raw=maybe", "raw must be true or false"),
    ],
)
def test_names_of_python_objects_that_are_no_models(text, words):
    with pytest.raises(InputError, match=words):
        as_model(text)


def test_weights_of_another_network(tmp_path):
    torch.save(torch.nn.Linear(3, 2).state_dict(), tmp_path / "state.pt")
    with pytest.raises(FileError, match=r"weights of a small net: .*weight"):
        load_weights(torch.nn.Linear(4, 2), tmp_path / "state.pt", what="a small net")

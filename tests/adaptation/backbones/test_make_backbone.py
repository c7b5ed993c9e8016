"""Backbones of modules and of the texts of models."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from shiftcal.adaptation.backbones import Backbone, make_backbone
from shiftcal.errors import InputError, UnknownName
from shiftcal.models import Preprocessing, TorchModel, as_model

SMALL = Preprocessing(resize=(20, 20))
IMAGES = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 3, 20, 20)).astype(np.float32))


class Net(nn.Module):
    """A classifier of four classes with a layer of maps, one of vectors, and a head."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.maps = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6))
        self.act = nn.ReLU(inplace=True)
        self.vectors = nn.Linear(6, 5)
        self.head = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(5, 4))

    def forward(self, x):
        return self.head(self.vectors(self.act(self.maps(x)).mean(dim=(2, 3))))


def classifier():
    """What a text names: ``torch:test_make_backbone:classifier``."""
    return Net()


ONE = Net()


@pytest.fixture
def here(monkeypatch, request):
    monkeypatch.syspath_prepend(request.path.parent)
    return "torch:test_make_backbone:classifier?resize=20x20"


def close(made, wanted):
    np.testing.assert_allclose(made.detach(), wanted.detach(), atol=1e-6)


def test_a_module_gives_its_output_as_features_and_is_copied():
    net = Net()
    backbone = make_backbone(net, preprocessing=SMALL)
    assert isinstance(backbone, Backbone)
    assert (backbone.n_features, backbone.side, backbone.spec) == (4, 20, None)
    net.eval()
    backbone.module.eval()
    close(backbone.module(IMAGES), net(IMAGES))
    before = [parameter.clone() for parameter in net.parameters()]
    with torch.no_grad():
        for parameter in backbone.module.parameters():
            parameter.add_(1)
    assert all(map(torch.equal, before, net.parameters()))


def test_maps_of_a_module_are_averaged_over_positions():
    net = Net().maps
    backbone = make_backbone(net, preprocessing=SMALL)
    assert backbone.n_features == 6
    close(backbone.module.eval()(IMAGES), net.eval()(IMAGES).mean(dim=(2, 3)))


def test_a_trial_changes_neither_mode_nor_statistics():
    net = Net().train()
    backbone = make_backbone(net, preprocessing=SMALL)
    for module in (net, backbone.module):
        assert all(part.training for part in module.modules())
        norm = next(part for part in module.modules() if isinstance(part, nn.BatchNorm2d))
        assert norm.num_batches_tracked == 0
        assert not norm.running_mean.any()


def test_a_module_that_says_nothing_is_evaluated_as_the_reference_library_does():
    given = make_backbone(Net()).preprocessing
    assert given == Preprocessing(
        resize=(256, 256),
        crop=224,
        interpolation="bicubic",
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
    )
    net = Net()
    net.preprocessing = SMALL
    assert make_backbone(net).preprocessing == SMALL
    other = Preprocessing(resize=(24, 24))
    assert make_backbone(net, preprocessing=other).preprocessing == other


def test_a_text_gives_what_goes_into_the_last_linear_layer(here):
    backbone = make_backbone(here)
    assert (backbone.n_features, backbone.side) == (5, 20)
    assert backbone.spec == as_model(here).spec
    assert not any(p.shape == (4, 5) for p in backbone.module.parameters())
    net = Net().eval()
    wanted = net.vectors(net.act(net.maps(IMAGES)).mean(dim=(2, 3))).relu()
    close(backbone.module.eval()(IMAGES), wanted)
    assert make_backbone(as_model(here)).n_features == 5


def test_a_named_layer_is_listened_to_and_gradients_flow_through_it(here):
    backbone = make_backbone(f"{here}&features_from=maps")
    assert backbone.n_features == 6
    net = Net()
    wanted = net.maps(IMAGES).mean(dim=(2, 3))
    made = backbone.module(IMAGES)
    # Not after the ReLU behind it, which writes into what it is given.
    close(made, wanted)
    assert made.min() < 0
    wanted.square().sum().backward()
    made.square().sum().backward()
    ours = dict(backbone.module.network.named_parameters())
    for name, parameter in net.maps.named_parameters():
        close(ours[f"maps.{name}"].grad, parameter.grad)


def test_vectors_of_a_layer_are_not_those_that_the_next_one_has_written_into(here):
    backbone = make_backbone(f"{here}&features_from=vectors")
    net = Net()
    close(backbone.module(IMAGES), net.vectors(net.act(net.maps(IMAGES)).mean(dim=(2, 3))))


def test_parameters_behind_the_layer_are_not_trained(here):
    module = make_backbone(f"{here}&features_from=maps").module
    trained = {name for name, p in module.network.named_parameters() if p.requires_grad}
    assert trained == {"maps.0.weight", "maps.0.bias", "maps.1.weight", "maps.1.bias"}
    assert len(list(module.parameters())) == 8


def test_nothing_is_left_on_the_network_after_a_pass(here):
    module = make_backbone(f"{here}&features_from=maps").module
    module(IMAGES)
    assert not module.network.maps._forward_hooks
    assert TorchModel(module).fingerprint == TorchModel(module).fingerprint is not None


def test_what_a_text_names_in_a_module_of_the_users_is_not_changed(here):
    backbone = make_backbone("python:test_make_backbone:ONE", preprocessing=SMALL)
    assert backbone.n_features == 5
    assert isinstance(ONE.head[2], nn.Linear)


def test_images_of_any_size_are_tried_where_none_is_said():
    backbone = make_backbone("cifar-resnet:20")
    assert (backbone.n_features, backbone.side) == (64, None)
    large = nn.Sequential(nn.Conv2d(3, 2, 60, stride=40), nn.Flatten())
    assert make_backbone(large, preprocessing=Preprocessing()).n_features == 2 * 5 * 5


def test_a_grey_network_is_tried_with_grey_images():
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU())
    grey = Preprocessing(resize=(20, 20), channels=1)
    assert make_backbone(net, preprocessing=grey).n_features == 3


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return SimpleNamespace(logits=self.net(x))


def test_a_network_that_gives_its_logits_in_an_object_loses_its_head_too():
    backbone = make_backbone(TorchModel(Wrapped(), preprocessing=SMALL))
    assert backbone.n_features == 5
    assert backbone.module(IMAGES).shape == (3, 5)


class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.twice = nn.Conv2d(3, 3, 1, bias=False)
        self.last = nn.Linear(3, 2)
        self.never = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.twice(self.twice(x)).mean(dim=(2, 3)))


def test_a_layer_that_runs_twice_gives_its_last_output_as_when_it_is_scored():
    net = Repeated()
    model = as_model(net, features_from="twice", preprocessing=SMALL)
    pixels = np.random.default_rng(1).integers(0, 256, (3, 20, 20, 3), np.uint8)
    backbone = make_backbone(model)
    made = backbone.module(torch.from_numpy(SMALL.apply(pixels)))
    np.testing.assert_allclose(made.detach(), model.outputs(pixels).features, atol=1e-6)


def test_a_layer_that_does_not_run_is_told():
    model = TorchModel(Repeated(), features_from="never", preprocessing=SMALL)
    with pytest.raises(InputError, match="must name a layer that runs; 'never' did not"):
        make_backbone(model)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Flatten(0), r"features must be a tensor of shape \(n, d\).*gives shape \(1200,\)"),
        (nn.LSTM(20, 3), r"failed on an image of 20 x 20 pixels: "),
        (nn.Linear(7, 3), r"failed on an image of 20 x 20 pixels: RuntimeError.*Say the size"),
    ],
)
def test_a_module_that_gives_no_features_is_refused(module, words):
    with pytest.raises(InputError, match=words):
        make_backbone(module, preprocessing=SMALL)


def test_a_classifier_without_a_last_linear_layer_must_say_its_features():
    net = nn.Sequential(nn.Conv2d(3, 4, 20), nn.Flatten())
    model = TorchModel(net, preprocessing=SMALL)
    with pytest.raises(InputError, match=r"must end in a linear layer.*features_from=LAYER"):
        make_backbone(model)


def test_a_model_without_gradients_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"PyTorch module.*got CallableModel.*frozen=True.*--froz"):
        make_backbone(lambda images: images.mean(axis=(2, 3)))


def test_other_kinds_of_numbers_are_refused(here):
    with pytest.raises(InputError, match="float32 with channels first; got float16 in layout nchw"):
        make_backbone(f"{here}&dtype=float16")
    with pytest.raises(InputError, match="got float32 in layout nhwc"):
        make_backbone(Net(), preprocessing=Preprocessing(resize=(20, 20), layout="nhwc"))


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(UnknownName, match=r"no backbone is called 'resnet5'\. Did you mean"):
        make_backbone("resnet5")
    with pytest.raises(UnknownName, match="such as timm:resnet50 or torch:package"):
        make_backbone("vgg")
    with pytest.raises(UnknownName, match="no kind of model is called 'tmm'"):
        make_backbone("tmm:resnet50")

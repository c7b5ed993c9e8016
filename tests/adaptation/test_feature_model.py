"""Frozen backbones: whatever gives features, as one kind of model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from one_layer import one_layer
from two_domains import colour_features, colour_model, drawn

from shiftcal.adaptation.feature_model import FeatureModel, as_feature_model
from shiftcal.models import TorchModel, as_model

IMAGES = drawn(5, size=20)[0]


def features_of(module):
    """Features of the images, layer by layer."""
    x = torch.from_numpy(module.preprocessing.apply(IMAGES))
    with torch.inference_mode():
        return module.eval().layers(x).mean(dim=(2, 3)).numpy()


def test_a_model_that_gives_features_is_one():
    model = as_feature_model(colour_model())
    made = model.outputs(IMAGES)
    np.testing.assert_array_equal(made.features, colour_features(IMAGES)[1])
    assert made.logits.shape == (5, 2)
    assert as_feature_model(model) is model


def test_a_module_gives_what_it_returns_averaged_over_positions():
    made = as_feature_model(one_layer()).outputs(IMAGES)
    np.testing.assert_allclose(made.features, features_of(one_layer()), rtol=1e-5, atol=1e-6)


def test_a_classifier_is_taken_without_its_last_layer_or_up_to_one_that_is_named():
    body = one_layer()
    whole = torch.nn.Sequential(
        body, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)
    )
    whole.preprocessing = body.preprocessing
    for model in (TorchModel(whole), TorchModel(whole, features_from="0")):
        made = as_feature_model(model).outputs(IMAGES)
        np.testing.assert_allclose(made.features, features_of(one_layer()), rtol=1e-5, atol=1e-6)


def test_options_and_identity_are_those_of_the_model():
    inner = colour_model(batch_size=3)
    model = FeatureModel(inner)
    assert (model.batch_size, model.engine) == (3, inner.engine)
    assert model.preprocessing == inner.preprocessing
    assert model.fingerprint not in (None, inner.fingerprint)
    assert model.fingerprint != FeatureModel(colour_model(key="v2")).fingerprint
    assert FeatureModel(as_model(colour_features, raw=True)).fingerprint is None
    assert as_feature_model(one_layer()).fingerprint == as_feature_model(one_layer()).fingerprint
    assert as_feature_model(one_layer()).fingerprint != as_feature_model(one_layer(4)).fingerprint


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_passed_on(threads):
    model = as_feature_model(one_layer())
    model.use_threads(threads)
    assert model.model.threads == threads

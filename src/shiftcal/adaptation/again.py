"""The network of a finished run, made again from its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.backbones.make import NAMES, make_backbone
from shiftcal.adaptation.feature_model import as_feature_model
from shiftcal.adaptation.headed_model import HeadedModel
from shiftcal.adaptation.network import Classifier
from shiftcal.adaptation.weights import FILE
from shiftcal.errors import InputError
from shiftcal.models import Model, Preprocessing, TorchModel, load_weights
from shiftcal.models.spec import parse_spec

if TYPE_CHECKING:
    from shiftcal.adaptation.adapted import Adapted

# The layer whose outputs are the features of an adapted network.
FEATURES = "bottleneck"


def classifier_again(adapted: Adapted, given: object) -> Classifier:
    """See :meth:`Adapted.classifier`."""
    made = new_classifier(adapted, given)
    load_weights(made, adapted.folder / FILE, what=f"the network of {adapted.folder}")
    return made.eval()


def new_classifier(adapted: Adapted, given: object) -> Classifier:
    """A network with its layers; the weights are still to be filled in."""
    document = adapted.document
    told = document["backbone"]
    with torch.random.fork_rng(devices=[]):  # the weights that are drawn are replaced
        module = None
        if not document["frozen"]:
            preprocessing = Preprocessing.from_dict(told["preprocessing"])
            wanted = _backbone(adapted, given)
            module = make_backbone(wanted, pretrained=False, preprocessing=preprocessing).module
        return Classifier(
            module,
            told["n_features"],
            document["n_classes"],
            trainer=adapted.trainer,
            width=adapted.settings.bottleneck,
        )


def model_again(adapted: Adapted, given: object) -> Model:
    """See :meth:`Adapted.model`."""
    document = adapted.document
    classes, told = document["classes"], document["backbone"]
    if not document["frozen"]:
        preprocessing = Preprocessing.from_dict(told["preprocessing"])
        return adapted_model(classifier_again(adapted, given), preprocessing, classes)
    backbone = as_feature_model(_backbone(adapted, given))
    if backbone.fingerprint != told["fingerprint"]:
        raise InputError(
            f"{adapted.folder} was made with another backbone (fingerprint "
            f"{told['fingerprint'][:12]}...; this one has {str(backbone.fingerprint)[:12]}...). "
            "Pass the same: adapted.model(backbone)."
        )
    return HeadedModel(backbone, classifier_again(adapted, None), classes=classes)


def adapted_model(classifier: Classifier, preprocessing: Preprocessing, classes: Any) -> TorchModel:
    """A whole network as a model that gives bottleneck features too."""
    return TorchModel(
        classifier, features_from=FEATURES, preprocessing=preprocessing, classes=classes
    )


def _backbone(adapted: Adapted, given: object) -> object:
    """What was given, or the text of it, unless making that would run code that the text names."""
    if given is not None:
        return given
    spec = adapted.document["backbone"]["spec"]
    if spec is None:
        raise InputError(
            f"{adapted.folder} does not say how its backbone is made, since it was given as an "
            "object. Pass the same: adapted.model(backbone)."
        )
    if spec not in NAMES:
        found = parse_spec(spec)
        if found.kind in ("torch", "python") or "trusted" in found.options:
            raise InputError(
                f"{adapted.folder} was made with the backbone {spec!r}, and making it would run "
                f"code. If you know that code, name it yourself: adapted.model({spec!r})."
            )
    return spec

"""From what a caller gives to inputs that can be trained on."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal.adaptation.backbones.make import make_backbone
from shiftcal.adaptation.feature_model import as_feature_model
from shiftcal.adaptation.frozen import Frozen
from shiftcal.adaptation.frozen_inputs import FeaturesFolder, given_features
from shiftcal.adaptation.inputs import Inputs, Wanted
from shiftcal.adaptation.network_mode import NetworkMode
from shiftcal.errors import InputError

# Below the folder of a run: the features, where nobody says where.
FEATURES = "features"
_NEEDED = (
    "backbone must say what gives the features: a name such as 'resnet50', the text of a model or "
    "a torch module; got nothing."
)


def network_inputs(wanted: Wanted, backbone: object, transform: str) -> Inputs:
    """A whole network; what its weights begin with may be drawn from torch's generator.

    Args:
        wanted: What it is for.
        backbone: What is trained.
        transform: What is done to training images.
    """
    if backbone is None:
        raise InputError(_NEEDED)
    return Inputs.made(NetworkMode.of(wanted, make_backbone(backbone), transform))


def frozen_inputs(
    wanted: Wanted,
    backbone: object,
    features: str | os.PathLike[str] | tuple[Frozen, Frozen] | None,
    run: Path,
) -> Inputs:
    """Heads on features, which are made if they are not there.

    Args:
        wanted: What they are for.
        backbone: What gives the features; not looked at if there are features.
        features: Those of source and target; or a folder for them, shared by all runs that need
            them; ``None`` is in the folder of the run.
        run: That folder.
    """
    if isinstance(features, tuple):
        return given_features(wanted, *features)
    if backbone is None:
        raise InputError(_NEEDED)
    folder = run / FEATURES if features is None else Path(features)
    made = FeaturesFolder(wanted, as_feature_model(backbone), folder, shared=features is not None)
    return Inputs(made.identity, made.mode)


def check_features(
    features: str | os.PathLike[str] | tuple[Frozen, Frozen] | None, run: Path, *, frozen: bool
) -> None:
    """Refuse a folder of features that nothing would be put into, or that spoils the run.

    Args:
        features: What is given.
        run: Folder of the run.
        frozen: Whether the backbone is.

    Raises:
        InputError: If the backbone is not frozen, or the one is in the other.
    """
    if features is None or isinstance(features, tuple):
        return
    if not frozen:
        raise InputError("features are those of a frozen backbone: say frozen=True, or leave out.")
    place, ours = Path(features).resolve(), run.resolve()
    own = ours / FEATURES
    if ours in (place, *place.parents) and own not in (place, *place.parents):
        raise InputError(
            f"features must have a folder outside of that of the run, {run}, which holds nothing "
            f"else; got {features}. Leave it out to have them in {run / FEATURES}."
        )

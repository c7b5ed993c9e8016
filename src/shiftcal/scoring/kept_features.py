"""Which sets keep the features that a model gives beside its logits."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from shiftcal._checks import check_choice
from shiftcal.models import Model
from shiftcal.scoring.shard import Condition

Features: TypeAlias = Literal["clean", "all", "none"]

# Options of models by which they are asked for features.
_ASKED_BY = ("features_from", "return_features")


def check_which(features: object) -> Features:
    """Which sets keep features: ``"clean"``, ``"all"`` or ``"none"``."""
    found: Features = check_choice(features, get_args(Features), name="features")
    return found


def keeps_features(features: Features, condition: Condition) -> bool:
    """Whether the set of a condition keeps them."""
    return features == "all" or (features == "clean" and condition.corruption is None)


def may_give_features(model: Model) -> bool:
    """Whether a model gives features, as far as that is known before it has run.

    Of a function nothing is known: it may.
    """
    chosen = model._choices()
    said = [chosen[name] for name in _ASKED_BY if name in chosen]
    return not said or any(said)

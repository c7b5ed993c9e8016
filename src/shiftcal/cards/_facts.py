"""What is known of model, calibration samples, sets, method and target, read off the objects."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from shiftcal._estimator import Estimator
from shiftcal._persistence.coding import encode
from shiftcal._types import Labels
from shiftcal.cards._digests import scores_digest
from shiftcal.cards.parts import Applied, BankSet, Calibration, Model, Target
from shiftcal.errors import FitWarning
from shiftcal.maps.temperature import Temperature
from shiftcal.methods import Method
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores
from shiftcal.scores._origin import model_digest
from shiftcal.surrogates import SurrogateBank, SurrogateSet

# What decides numbers; a package that is not installed decided none.
_PACKAGES = ("shiftcal", "numpy", "scipy", "scikit-learn", "numba")


def model_of(bank: SurrogateBank) -> Model:
    """The model, from the bank's origin; an origin made by hand may say anything, or nothing."""
    told = _mapping(bank.origin, "model")
    preprocessing = told.get("preprocessing")
    return Model(
        n_classes=bank.n_classes,
        classes=bank.classes,
        input=bank.input,
        digest=model_digest(bank.origin),
        spec=_text(told, "spec"),
        fingerprint=_text(told, "fingerprint"),
        preprocessing=_plain(preprocessing) if isinstance(preprocessing, Mapping) else None,
    )


def calibration_of(bank: SurrogateBank, *, digest: str) -> Calibration:
    """The calibration samples.

    Args:
        bank: The bank.
        digest: Of its clean set.
    """
    images = _mapping(bank.origin, "images")
    return Calibration(
        n=len(bank.clean),
        label_counts=_counts(bank.clean.labels, bank.n_classes),
        digest=digest,
        same_rows=has_same_rows(bank),
        images=_text(images, "name"),
        images_digest=_text(images, "digest"),
    )


def has_same_rows(bank: SurrogateBank) -> bool:
    """Whether all sets have the labels of the clean one, in its order."""
    labels = bank.clean.labels
    return all(np.array_equal(s.labels, labels) for s in bank)


def sets_of(bank: SurrogateBank) -> tuple[BankSet, ...]:
    """Every set of the bank."""
    return tuple(map(_bank_set, bank))


def _bank_set(surrogate: SurrogateSet) -> BankSet:
    summary = surrogate.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the card says which did not converge
        fitted = Temperature().fit(surrogate.logits, surrogate.labels)
    return BankSet(
        name=summary.name,
        corruption=summary.corruption,
        severity=summary.severity,
        n=summary.n,
        accuracy=summary.accuracy,
        mean_confidence=summary.mean_confidence,
        temperature=float(fitted.temperature_),
        converged=fitted.status_.converged,
        digest=scores_digest(surrogate.logits, surrogate.labels),
    )


def target_of(scores: Scores, *, model: str | None) -> Target:
    """The target.

    Args:
        scores: Checked.
        model: Digest of the model that gave them, if known.
    """
    logits, labels = scores.logits(), scores.labels
    return Target(
        n=scores.n,
        digest=scores_digest(logits, labels),
        mean_confidence=float(p_max(logits).mean()),
        label_counts=None if labels is None else _counts(labels, scores.k),
        source=scores.source,
        model=model,
    )


def applied(method: Method, *, fitted: str) -> Applied:
    """The method; ``fitted`` as in :class:`Applied`."""
    return Applied(method.name(), method.summary(), settings_of(method), fitted)


def settings_of(method: Method) -> dict[str, Any]:
    """Every setting as JSON can hold it; those of a map within after ``map.``."""
    shown: dict[str, Any] = {}
    for name, value in method.get_params(deep=True).items():
        inner = value.name() if isinstance(value, Estimator) else value
        shown[name.replace("__", ".")] = _plain(encode(inner, {}))
    return dict(sorted(shown.items()))


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _counts(labels: Labels, k: int) -> tuple[int, ...]:
    return tuple(int(count) for count in np.bincount(labels, minlength=k))


def _mapping(origin: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    found = None if origin is None else origin.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(told: Mapping[str, Any], key: str) -> str | None:
    found = told.get(key)
    return found if isinstance(found, str) else None


def _plain(value: Any) -> Any:
    """As it would come back from JSON; what JSON cannot hold, as text."""
    return json.loads(json.dumps(value, default=str))

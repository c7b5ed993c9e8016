"""Class priors that QuaPy's quantifiers estimate, for comparison; run by a python that has QuaPy.

    python -m venv quapy
    quapy/bin/pip install "quapy==0.2.3"
    quapy/bin/python benchmarks/accuracy/quantifiers.py reference.npz target.npz ...

The reference has ``logits`` and ``labels``, a target ``logits``, all divided by the temperature of
the reference. For every target a line of JSON comes out: the class priors of EMQ (Saerens et al.,
2002), KDEy (its maximum-likelihood form) and ACC, with QuaPy's defaults, and the version.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any, Self

import numpy as np
import quapy
from quapy.method.aggregative import ACC, EMQ, KDEyML
from sklearn.base import BaseEstimator


class Given(BaseEstimator):
    """A classifier whose inputs are its outputs."""

    def __init__(self, k: int = 2) -> None:
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, x: Any, y: Any) -> Self:
        """Nothing is left to learn."""
        return self

    def predict_proba(self, x: Any) -> Any:
        """The inputs."""
        return x

    def predict(self, x: Any) -> Any:
        """The class of the largest input."""
        return x.argmax(axis=1)


def probabilities(file: str) -> Any:
    """Softmax of the logits in a file."""
    with np.load(file) as arrays:
        z = arrays["logits"].astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def main() -> None:
    """Print the priors for the files that are named."""
    warnings.simplefilter("ignore")
    reference, *targets = sys.argv[1:]
    known = probabilities(reference)
    with np.load(reference) as arrays:
        labels = arrays["labels"]
    quantifiers = {}
    for cls in (EMQ, KDEyML, ACC):
        one = cls(Given(known.shape[1]), fit_classifier=False, val_split=None)
        one.fit(known, labels)
        quantifiers[cls.__name__] = one
    for target in targets:
        unknown = probabilities(target)
        found: dict[str, Any] = {n: list(q.predict(unknown)) for n, q in quantifiers.items()}
        print(json.dumps({**found, "quapy": quapy.__version__}), flush=True)


if __name__ == "__main__":
    main()

"""What NannyML's CBPE estimates, for comparison; run by a python that has NannyML.

    python -m venv cbpe
    cbpe/bin/pip install "nannyml==0.13.1" "pandas<3" statsmodels
    cbpe/bin/python benchmarks/accuracy/cbpe.py reference.npz target.npz ...

The reference has ``logits`` and ``labels``, a target ``logits``; more that is in the files is not
looked at. For every target a line of JSON comes out: ``accuracy``, ``f1`` (macro), ``roc_auc`` and
``average_precision``, ``low`` and ``high`` of each (three sampling errors on either side, as
NannyML gives them), ``seconds`` and the version. NannyML 0.13.1 imports statsmodels, which it does
not ask for. CBPE calibrates the probabilities of every class on the reference by isotonic
regression, where that helps, and averages them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("NML_DISABLE_USAGE_LOGGING", "1")

import nannyml
import numpy as np
import pandas as pd


def frame_of(logits: np.ndarray[Any, Any]) -> pd.DataFrame:
    """Probabilities and predictions, a row each."""
    z = logits.astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    columns = {f"p{k}": p[:, k] for k in range(p.shape[1])}
    return pd.DataFrame({**columns, "predicted": z.argmax(axis=1)})


METRICS = ("accuracy", "f1", "roc_auc", "average_precision")


def fitted(reference: Path) -> nannyml.CBPE:
    """CBPE that knows a file with ``logits`` ``(n, k)`` and ``labels`` ``(n,)``."""
    with np.load(reference) as file:
        known = frame_of(file["logits"]).assign(label=file["labels"])
        k = file["logits"].shape[1]
    binary = k == 2
    cbpe = nannyml.CBPE(
        y_pred="predicted",
        y_true="label",
        y_pred_proba="p1" if binary else {c: f"p{c}" for c in range(k)},
        problem_type=f"classification_{'binary' if binary else 'multiclass'}",
        metrics=list(METRICS),
        chunk_number=1,
    )
    return cbpe.fit(known)


def estimate(cbpe: nannyml.CBPE, target: Path) -> dict[str, Any]:
    """What CBPE says of a file with ``logits`` ``(m, k)``, all of it one chunk."""
    with np.load(target) as file:
        unknown = frame_of(file["logits"])
    started = time.perf_counter()
    frame = cbpe.estimate(unknown).filter(period="analysis").to_df()
    found: dict[str, Any] = {"low": {}, "high": {}}
    for name in METRICS:
        row = frame[name].iloc[0]
        found[name] = float(row["value"])
        found["low"][name] = float(row["lower_confidence_boundary"])
        found["high"][name] = float(row["upper_confidence_boundary"])
    seconds = round(time.perf_counter() - started, 3)
    return {**found, "n": len(unknown), "seconds": seconds, "nannyml": nannyml.__version__}


def main() -> None:
    """Print the estimates for the files that are named."""
    parser = argparse.ArgumentParser(description="CBPE's estimates, a line of JSON per target.")
    parser.add_argument("reference", type=Path, help="logits and labels, .npz")
    parser.add_argument("targets", type=Path, nargs="+", help="logits, .npz")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # one chunk is few, and meant
    cbpe = fitted(given.reference)
    for target in given.targets:
        print(json.dumps(estimate(cbpe, target)), flush=True)


if __name__ == "__main__":
    main()

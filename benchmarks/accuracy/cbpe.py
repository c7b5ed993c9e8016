"""The accuracy that NannyML's CBPE estimates, for comparison; run by a python that has NannyML.

    python -m venv cbpe
    cbpe/bin/pip install "nannyml==0.13.1" "pandas<3" statsmodels
    cbpe/bin/python benchmarks/accuracy/cbpe.py reference.npz target.npz

The reference has ``logits`` and ``labels``, the target ``logits``; more that is in the files is not
looked at. One line of JSON comes out: ``accuracy``, ``low`` and ``high`` (three sampling errors on
either side, as NannyML gives them), ``n_reference``, ``n_target``, ``seconds`` and the version.
NannyML 0.13.1 imports statsmodels, which it does not ask for. CBPE calibrates the probabilities of
every class on the reference by isotonic regression, where that helps, and averages them.
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


def estimate(reference: Path, target: Path) -> dict[str, Any]:
    """What CBPE says of a target, all of it one chunk.

    Args:
        reference: A file with ``logits`` ``(n, k)`` and ``labels`` ``(n,)``.
        target: A file with ``logits`` ``(m, k)``.
    """
    with np.load(reference) as file:
        known = frame_of(file["logits"]).assign(label=file["labels"])
        k = file["logits"].shape[1]
    with np.load(target) as file:
        unknown = frame_of(file["logits"])
    started = time.perf_counter()
    cbpe = nannyml.CBPE(
        y_pred="predicted",
        y_true="label",
        y_pred_proba={c: f"p{c}" for c in range(k)},
        problem_type="classification_multiclass",
        metrics=["accuracy"],
        chunk_number=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one chunk is few, and meant
        found = cbpe.fit(known).estimate(unknown)
    row = found.filter(period="analysis").to_df()["accuracy"].iloc[0]
    return {
        "accuracy": float(row["value"]),
        "low": float(row["lower_confidence_boundary"]),
        "high": float(row["upper_confidence_boundary"]),
        "n_reference": len(known),
        "n_target": len(unknown),
        "seconds": round(time.perf_counter() - started, 3),
        "nannyml": nannyml.__version__,
    }


def main() -> None:
    """Print the estimate for the two files that are named."""
    parser = argparse.ArgumentParser(description="CBPE's accuracy estimate as a line of JSON.")
    parser.add_argument("reference", type=Path, help="logits and labels, .npz")
    parser.add_argument("target", type=Path, help="logits, .npz")
    given = parser.parse_args()
    print(json.dumps(estimate(given.reference, given.target)))


if __name__ == "__main__":
    main()

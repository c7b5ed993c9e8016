"""A method becomes a model of MLflow's and is loaded again."""

import importlib
import os
from pathlib import Path

import numpy as np

import shiftcal as sc
from shiftcal.integrations.mlflow import log_model

rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 300)
logits = 5 * (rng.standard_normal((300, 3)) + np.eye(3)[labels])
method = sc.TS().fit(logits, labels)
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["MLFLOW_TRACKING_URI"] = Path("store").absolute().as_uri()
made = log_model(method)
found = importlib.import_module("mlflow.pyfunc").load_model(made.model_uri).predict(logits)
np.testing.assert_array_equal(found, method.predict_proba(logits))

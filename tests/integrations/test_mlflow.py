"""MLflow with a file store: reports, metrics and models, loaded again as anybody would."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ladder_data import STEPS, draw, make_bank
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shiftcal as sc
from shiftcal.errors import InputError, NotFittedError
from shiftcal.export import CalibratedClassifier
from shiftcal.integrations.mlflow import log_model, log_report
from shiftcal.report.facts import Judging, make_facts

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: make integrations")
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's advice
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python" / "integrations.md"
BANK = make_bank(400)
TARGET, TRUTH = draw(300, STEPS[2], seed=9)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    with mlflow.start_run() as active:
        yield active.info.run_id
    assert not list(tmp_path.rglob("*.pkl"))


def test_a_report_is_logged_with_its_numbers(run):
    facts = make_facts(BANK, sc.Scores(TARGET, labels=TRUTH), judging=Judging(n_resamples=0))
    log_report(facts, step=3)
    stored = mlflow.get_run(run)
    assert stored.data.metrics["shiftcal_accuracy"] == facts.target.accuracy.value
    assert stored.data.metrics["shiftcal_rehearsal_ece"] == facts.of("rehearsal").ece.value
    assert stored.data.metrics["shiftcal_estimated_accuracy"] == facts.estimate.value
    assert stored.data.tags["shiftcal_verdict"] == facts.verdict.headline
    page = mlflow.artifacts.load_text(f"runs:/{run}/shiftcal/report.html")
    assert "</html>" in page
    document = mlflow.artifacts.load_dict(f"runs:/{run}/shiftcal/report.json")
    assert document == json.loads(json.dumps(facts.to_dict()))
    log_report(make_facts(BANK, TARGET, judging=Judging(n_resamples=0)), folder="unlabelled")


def test_a_method_is_a_model_of_logits(run):
    sac = sc.SAC().fit(BANK)
    sac.adapt(TARGET)
    made = log_model(sac, "calibration")
    loaded = mlflow.pyfunc.load_model(made.model_uri)
    wanted = sac.predict_proba(TARGET)
    np.testing.assert_array_equal(loaded.predict(TARGET), wanted)
    np.testing.assert_array_equal(loaded.predict(pd.DataFrame(TARGET)), wanted)


def rows_of(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame({"age": 40 + 10 * y + rng.normal(0, 8, n), "dose": rng.normal(size=n)})
    return frame, np.array(["healthy", "ill"])[y]


def test_a_calibrated_classifier_is_a_model_of_rows_that_another_process_loads(run, tmp_path):
    frame, y = rows_of(400, seed=0)
    inner = make_pipeline(StandardScaler(), LogisticRegression(C=100))
    made = CalibratedClassifier(
        inner, "sac", corruption="noise", scores="decision_function", adapt_to="batch"
    ).fit(frame, y)
    uri = log_model(made, registered_model_name="triage").model_uri
    new, _ = rows_of(150, seed=1)
    wanted = made.predict_proba(new)
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(uri).predict(new), wanted)
    new.to_csv(tmp_path / "new.csv", index=False)
    code = (
        "import mlflow, numpy as np, pandas as pd\n"
        f"mlflow.set_tracking_uri({mlflow.get_tracking_uri()!r})\n"
        "model = mlflow.pyfunc.load_model('models:/triage/1')\n"
        "np.save('probs.npy', model.predict(pd.read_csv('new.csv')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "probs.npy"), wanted, rtol=1e-12)


def test_the_example_of_the_docs_runs(run):
    section = PAGE.read_text("utf-8").partition("\n## MLflow\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```\{?\.?py[^\n]*\n(.*?)```", section, re.DOTALL)
    assert blocks
    mlflow.end_run()  # the example starts its own
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {"__name__": "__docs__"})


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LogisticRegression(), InputError, "must be a CalibratedClassifier.*got LogisticReg"),
        (CalibratedClassifier(LogisticRegression()), NotFittedError, "call fit"),
        (sc.SAC(), NotFittedError, "call fit"),
    ],
)
def test_what_cannot_be_a_model_raises(run, model, error, message):
    with pytest.raises(error, match=message):
        log_model(model)

"""No public call looks through the same array twice to see whether it can be used."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from ladder_data import STEPS, draw

import shiftcal as sc
from shiftcal import checks, estimates, methods, metrics
from shiftcal.cli.main import run
from shiftcal.numerics.softmax import softmax

NAMES = ("logits", "probs", "features", "labels", "weights", "confidence", "correct", "row_groups")
PASSES = {getattr(checks, f"check_{name}").__code__: name for name in NAMES}
SETS = [draw(400, STEPS[2 * j], seed=j) for j in range(3)]
Z, Y = draw(500, STEPS[4], seed=5)
P, GROUPS = softmax(Z), np.arange(500) % 3
CLEAN, TARGET, TRAIN = (np.random.default_rng(n).normal(size=(n, 4)) for n in (400, 500, 300))
BANK = sc.SurrogateBank.from_arrays(*zip(*SETS, strict=True), features=CLEAN)


def passes(call):
    """Fails if a call looks through an array twice; logits and their softmax are one array."""
    seen = Counter()

    def note(frame, event, _):
        name = PASSES.get(frame.f_code)
        given = frame.f_locals[frame.f_code.co_varnames[0]] if event == "call" and name else None
        if given is None or isinstance(given, checks.RowGroups):
            return
        x = np.asarray(given)
        if name in ("logits", "probs"):
            name, x = "scores", np.round(softmax(x) if name == "logits" else x, 3).astype("f4")
        seen[name, x.shape, x.tobytes()] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert seen
    assert max(seen.values()) == 1, [(*key[:2], n) for key, n in seen.items() if n > 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", methods.names())
def test_methods(name):
    method, mixed = methods.get(name)(), sc.Scores(0.9 * Z[:300], labels=Y[:300])
    for values, kind in ((Z, "logits"), (P, "probabilities")):
        scores = sc.Scores(values, kind, Y, TARGET)
        passes(lambda scores=scores: method.fit(scores, source_features=TRAIN))
        method.fit(BANK, source_features=TRAIN)
        passes(lambda: method.adapt(Z, TARGET, mixed=mixed))
        scores = sc.Scores(values, kind)
        passes(lambda scores=scores: method.predict_proba(scores))
    passes(lambda: method.confidence(Z))
    if method.uses_target and not method.uses_mixed:
        grouped = sc.GroupedCalibration(method)
        passes(lambda: grouped.adapt(Z, GROUPS, TARGET))
        passes(lambda: grouped.predict_proba(Z, GROUPS))


@pytest.mark.filterwarnings("ignore")
def test_other_calls():
    monitor = sc.Monitor()
    passes(lambda: monitor.fit(Z, Y))
    passes(lambda: monitor.feed(Z))
    passes(lambda: sc.SurrogateBank.from_arrays([z for z, _ in SETS], SETS[0][1], features=CLEAN))
    passes(lambda: sc.SurrogateBank.from_arrays([P], Y, input="probabilities"))
    for name in estimates.names():
        passes(lambda name=name: estimates.get(name)().fit(Z, Y))
        passes(lambda name=name: estimates.get(name)().fit(BANK).estimate(Z))
    for name in metrics.names():
        passes(lambda name=name: metrics.bootstrap(metrics.get(name), P, Y, n_resamples=10))


def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BANK.save("bank")
    np.savez("target.npz", logits=Z, labels=Y, features=TARGET)
    np.savez("probs.npz", probabilities=P)
    np.savez("train.npz", features=TRAIN)
    np.save("labels.npy", Y)
    np.save("groups.npy", GROUPS)
    for line in (
        "fit --method cpcs --bank bank --source-train train.npz -o cpcs.json",
        "apply cpcs.json target.npz --groups groups.npy -o out.npz",
        "evaluate target.npz --metric all --table --resamples 10",
        "evaluate probs.npz --labels labels.npy --resamples 10",
        "compare bank target.npz --source-train train.npz --resamples 10",
        "compare bank probs.npz --labels labels.npy --resamples 10",
        "estimate bank probs.npz",
        "report bank target.npz --source-train train.npz --resamples 40 -o report.html",
        "report bank probs.npz -o report.json",
    ):
        passes(lambda line=line: run(line.split()))

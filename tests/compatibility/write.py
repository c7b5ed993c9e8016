"""Write one file of every format, with what it gives: ``python tests/compatibility/write.py``.

Into the folder of this version's first two numbers. Files of released versions are never written
again; those of a version that is not released yet are, when a format changes.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

import shiftcal as sc
from shiftcal.cli.monitor import Progress, StateFile

HERE = Path(__file__).parent
RNG = np.random.default_rng(0)
K = 3
LABELS = RNG.integers(0, K, 80)
NOISE = RNG.standard_normal((80, K))
# Numbers of few digits, so that the files are small and rows are the same on every machine.
CLEAN, HARDER, HARDEST = (
    np.round(3 * (NOISE + signal * np.eye(K)[LABELS]), 2) for signal in (2.5, 1.5, 0.7)
)
FEATURES = np.round(RNG.standard_normal((80, 2)) + LABELS[:, None], 2)
TARGET, TARGET_FEATURES = np.round(HARDER[::-1] * 0.9, 2)[:60], FEATURES[:60] + 0.5
GROUPS = ["north", "south"] * 30


def bank():
    """Two kinds of corruption, with features of the clean set."""
    clean = sc.SurrogateSet(CLEAN, LABELS, "clean", None, 0, FEATURES)
    sets = [
        sc.SurrogateSet(z, LABELS, f"{name}, severity {severity}", name, severity)
        for name, factor in (("fading", 1.0), ("noise", 0.8))
        for severity, z in ((1, factor * HARDER), (2, factor * HARDEST))
    ]
    return sc.SurrogateBank([clean, *sets], classes=("cat", "dog", "fox"))


def methods():
    """Every method, adapted to the target where it adapts."""
    for name in sc.methods.names():
        method = sc.methods.get(name)()
        method.fit(bank(), source_features=FEATURES if method.uses_features else None)
        mixed = sc.Scores(TARGET[:40], labels=np.arange(40) % K) if method.uses_mixed else None
        method.adapt(TARGET, TARGET_FEATURES if method.uses_features else None, mixed=mixed)
        yield name, method
    yield "sac-of-samples", sc.SAC(distance="ks", map="vector").fit(bank())


def given_by(saved):
    """What a saved object gives: probabilities of the target, or an estimate."""
    if isinstance(saved, sc.Monitor):
        saved.load_state_dict(json.loads((FOLDER / "monitor-state.json").read_text("utf-8")))
        return saved.feed(TARGET).confidence
    if isinstance(saved, sc.GroupedCalibration):
        return saved.predict_proba(TARGET, GROUPS)
    if hasattr(saved, "estimate"):
        found = saved.estimate(TARGET)
        return np.array([found.value, found.low, found.high])
    if getattr(saved, "uses_target", False) and saved.selection_ is None:
        saved.adapt(TARGET)
    return saved.predict_proba(TARGET)


def write_state(monitor, file):
    """The state file of ``shiftcal monitor`` after rows that wait for their labels."""
    monitor.feed(CLEAN, ids=[f"row-{i}" for i in range(len(CLEAN))])
    file.unlink(missing_ok=True)
    state = StateFile(file)
    state.write(monitor, Progress(items=1))
    state.close()


def numbers_of(statistics):
    """What a file of statistics tells."""
    values = [statistics.n, statistics.accuracy(), statistics.ece(), statistics.nll()]
    return np.array([*values, statistics.temperature, *statistics.ece_range()])


def version():
    """``0.1`` of ``0.1.0.dev0``."""
    return ".".join(sc.__version__.split(".")[:2])


FOLDER = HERE / version()


def main():
    """Write the folder of this version."""
    FOLDER.mkdir(exist_ok=True)
    for name, method in methods():
        method.save(FOLDER / f"method-{name}.json")
    for name in sc.maps.names():
        sc.maps.get(name)().fit(HARDER, LABELS).save(FOLDER / f"map-{name}.json")
    for name in sc.estimates.names():
        sc.estimates.get(name)().fit(bank()).save(FOLDER / f"estimator-{name}.json")
    grouped = sc.GroupedCalibration(sc.SAC().fit(bank()))
    grouped.adapt(TARGET, GROUPS)
    grouped.save(FOLDER / "grouped.json")
    window = sc.monitoring.Sliding(rows=40, blocks=2)
    monitor = sc.Monitor("sac", estimator="surrogate-curve", window=window).fit(bank())
    monitor.save(FOLDER / "monitor.json")
    monitor.feed(CLEAN)
    (FOLDER / "monitor-state.json").write_text(json.dumps(monitor.state_dict()), "utf-8")
    write_state(sc.load(FOLDER / "monitor.json"), FOLDER / "monitor.state")
    sc.ScoreStatistics.of_rows(HARDER, LABELS).write(FOLDER / "statistics.json")
    if not (FOLDER / "bank").exists():
        bank().save(FOLDER / "bank")
    ids = [f"image-{i}" for i in range(60)]
    scores = sc.Scores(TARGET, "logits", LABELS[:60], TARGET_FEATURES, ids, ("cat", "dog", "fox"))
    for suffix in (".npz", ".csv", ".parquet"):
        sc.write_scores(FOLDER / f"scores{suffix}", scores)
    saved = [file for file in sorted(FOLDER.glob("*.json")) if is_estimator(file)]
    found = {file.stem: given_by(sc.load(file)) for file in saved}
    found["statistics"] = numbers_of(sc.ScoreStatistics.read(FOLDER / "statistics.json"))
    np.savez_compressed(FOLDER / "expected.npz", **found)


def is_estimator(file):
    """Whether ``shiftcal.load`` reads it."""
    return json.loads(file.read_text("utf-8")).get("format") == "shiftcal-estimator"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows
        main()

"""Every method on rows and texts, with targets whose corruption is never in the bank.

Run it from anywhere; it writes ``results/other_inputs.json`` beside itself and renews the tables of
the docs. Models and data are scikit-learn's, the texts those of ``small_corpus.py``. Numbers are
fractions. Takes about three minutes on one processor.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import platform
import runpy
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are small; threads only cost time

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import shiftcal as sc
from shiftcal.corruptions import corrupt_inputs, tabular, text

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from small_corpus import corpus  # noqa: E402

ROOT = HERE.parents[1]
RESULTS = HERE / "results" / "other_inputs.json"
# Splits 0 to 4 were looked at when the ladders got their defaults; these were not.
SEEDS = (10, 11, 12, 13, 14)
SEVERITIES = (1, 3, 5)
# Draws behind the ECE that a perfectly calibrated model would have on as many rows.
FLOOR_DRAWS = 50
METHODS = [name for name in sc.methods.names() if not sc.methods.get(name).uses_mixed]


@dataclass
class Parts:
    """Inputs and labels of one split: to train, to calibrate, and new; other targets by name."""

    train: tuple[Any, Any]
    calibration: tuple[Any, Any]
    new: tuple[Any, Any]
    others: dict[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass
class Task:
    """A model, its data, and what can happen to them."""

    parts: Callable[[int], Parts]
    model: Callable[[], Any]
    ladders: Callable[[], list[Any]]
    features: Callable[[], Any]


def split(inputs: Any, labels: Any, seed: int, sizes: tuple[int, int]) -> Parts:
    """So many rows to train and to calibrate, the classes as in the whole; the rest is new."""
    train, rest, train_labels, rest_labels = train_test_split(
        inputs, labels, train_size=sizes[0], stratify=labels, random_state=seed
    )
    cal, new, cal_labels, new_labels = train_test_split(
        rest, rest_labels, train_size=sizes[1], stratify=rest_labels, random_state=seed
    )
    return Parts((train, train_labels), (cal, cal_labels), (new, new_labels))


def digits(seed: int) -> Parts:
    return split(*load_digits(return_X_y=True), seed, (600, 598))


def cancer(seed: int) -> Parts:
    return split(*load_breast_cancer(return_X_y=True), seed, (190, 190))


def blocks(seed: int) -> Parts:
    """Digits as categories: of 16 blocks of four pixels whether they are none, light, grey, dark.

    The borders are quartiles of all blocks of the training rows.
    """
    found = digits(seed)

    def sums(rows: np.ndarray) -> np.ndarray:
        return rows.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(len(rows), 16)

    borders = np.quantile(sums(found.train[0]), [0.25, 0.5, 0.75])
    words = np.array(["none", "light", "grey", "dark"])

    def frame(part: tuple[Any, Any]) -> tuple[Any, Any]:
        values = words[np.searchsorted(borders, sums(part[0]), side="left")]
        return pd.DataFrame(values, columns=[f"block {i}" for i in range(16)]), part[1]

    return Parts(frame(found.train), frame(found.calibration), frame(found.new))


def messages(seed: int) -> Parts:
    """Letters to train, to calibrate and new; messages of a chat as another target."""
    return Parts(
        corpus(600, seed=100 * seed),
        corpus(600, seed=100 * seed + 1),
        corpus(600, seed=100 * seed + 2),
        {"other wording": corpus(600, seed=100 * seed + 3, way="chat")},
    )


def of_numbers(columns: int, *, clip: bool = True) -> list[Any]:
    return [
        tabular.Noise(clip=clip),
        tabular.MissingValues(fill="median"),
        tabular.CategorySwaps(columns=list(range(columns))),
        tabular.Drift(clip=clip),
    ]


def of_categories() -> list[Any]:
    return [tabular.MissingValues(fill="median"), tabular.CategorySwaps()]


def of_texts() -> list[Any]:
    return [text.Typos(), text.DroppedWords()]


def logistic() -> Any:
    return LogisticRegression(max_iter=1000)


def one_hot() -> Any:
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False)


class SmoothForest(RandomForestClassifier):
    """A forest that never says 0 or 1: one more vote for every class (Laplace)."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Votes, smoothed."""
        votes = self.n_estimators * super().predict_proba(X)
        return (votes + 1) / (self.n_estimators + self.n_classes_)


def scaled_logistic() -> Any:
    return make_pipeline(StandardScaler(), logistic())


TASKS = {
    "digits, boosted trees": Task(
        digits,
        lambda: HistGradientBoostingClassifier(max_iter=40, random_state=0),
        lambda: of_numbers(64),
        StandardScaler,
    ),
    "digits, logistic regression": Task(
        digits, scaled_logistic, lambda: of_numbers(64), StandardScaler
    ),
    "digits, logistic regression, beyond the range": Task(
        digits, scaled_logistic, lambda: of_numbers(64, clip=False), StandardScaler
    ),
    "digits, naive Bayes": Task(
        digits, lambda: GaussianNB(var_smoothing=1e-3), lambda: of_numbers(64), StandardScaler
    ),
    "cancer, random forest": Task(
        cancer,
        lambda: RandomForestClassifier(100, random_state=0),
        lambda: of_numbers(30),
        StandardScaler,
    ),
    "cancer, random forest, smoothed": Task(
        cancer, lambda: SmoothForest(100, random_state=0), lambda: of_numbers(30), StandardScaler
    ),
    "cancer, naive Bayes": Task(cancer, GaussianNB, lambda: of_numbers(30), StandardScaler),
    "blocks, logistic regression": Task(
        blocks, lambda: make_pipeline(one_hot(), logistic()), of_categories, one_hot
    ),
    "texts, logistic regression": Task(
        messages, lambda: make_pipeline(TfidfVectorizer(), logistic()), of_texts, TfidfVectorizer
    ),
    "texts, naive Bayes": Task(
        messages,
        lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
        of_texts,
        TfidfVectorizer,
    ),
}


def dense(made: Any) -> np.ndarray:
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)


def judge(probs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    return {
        "ece": sc.ece(confidence, correct),
        "nll": sc.nll(probs, labels),
        "mean_confidence": float(confidence.mean()),
        "accuracy": float(correct.mean()),
    }


def oracle(logits: np.ndarray, labels: np.ndarray) -> tuple[dict[str, float], float]:
    """Temperature fitted on the target's own labels, and the ECE a perfect model would show."""
    fitted = sc.maps.get("temperature")().fit(logits, labels)
    probs = fitted.predict_proba(logits)
    confidence = probs.max(axis=1)
    rng = np.random.default_rng(0)
    draws = [sc.ece(confidence, rng.random(len(labels)) < confidence) for _ in range(FLOOR_DRAWS)]
    return {"temperature": fitted.temperature_, **judge(probs, labels)}, float(np.mean(draws))


class Run:
    """One split of one task: a trained model and the scores of every set."""

    def __init__(self, task: Task, seed: int) -> None:
        self.parts, self.seed = task.parts(seed), seed
        self.model = task.model().fit(*self.parts.train)
        self.features = task.features().fit(self.parts.train[0])
        rows = self.parts.calibration[0]
        self.ladders = [each.fitted_to(rows) for each in task.ladders()]
        self.bank = sc.SurrogateBank.from_inputs(
            self.model,
            *self.parts.calibration,
            corruption=self.ladders,
            features=dense(self.features.transform(rows)),
        )

    def methods_without(self, corruption: str | None) -> dict[str, Any]:
        """Every method fitted on the bank without the sets of one corruption."""
        sets = [s for s in self.bank if s.corruption is None or s.corruption != corruption]
        kept = sc.SurrogateBank(sets, classes=self.bank.classes, input=self.bank.input)
        source = dense(self.features.transform(self.parts.train[0]))
        return {
            name: sc.methods.get(name)(input=self.bank.input).fit(kept, source_features=source)
            for name in METHODS
        }

    def ladder(self) -> dict[str, Any]:
        """The sets of the bank in numbers, and on how many rows the model rules the truth out."""
        clean = self.bank.clean
        truth = np.exp(clean.logits[np.arange(len(clean)), clean.labels])
        return {
            "split": self.seed,
            "n": len(clean),
            "ruled_out": int((truth < 1e-30).sum()),
            "sets": [[s.name, s.mean_confidence, s.accuracy] for s in self.bank.summaries()],
        }

    def records(self) -> list[dict[str, Any]]:
        """Every method on every target."""
        inputs, labels = self.parts.new
        fitted = self.methods_without(None)
        found = [self.record(fitted, "none", 0, (inputs, labels))]
        found += [self.record(fitted, name, 0, part) for name, part in self.parts.others.items()]
        for ladder in self.ladders:
            fitted = self.methods_without(ladder.name)
            for severity in SEVERITIES:
                # Another seed than that of the bank, as nobody knows that of the world.
                made = corrupt_inputs(inputs, ladder, severity=severity, seed=1000 + self.seed)
                found.append(self.record(fitted, ladder.name, severity, (made, labels)))
        return found

    def record(
        self, methods: dict[str, Any], shift: str, severity: int, part: tuple[Any, Any]
    ) -> dict[str, Any]:
        """Every method on one target."""
        inputs, given = part
        scores = sc.scoring.score_inputs(self.model, inputs)
        labels = np.searchsorted(self.model.classes_, given)
        features = dense(self.features.transform(inputs))
        best, floor = oracle(scores.logits(), labels)
        outcomes = {}
        for name, method in methods.items():
            selection = method.adapt(scores, features)
            outcomes[name] = {
                "temperature": selection.temperature,
                "flags": [flag.code for flag in selection.flags],
                **judge(method.predict_proba(scores), labels),
            }
        return {
            "split": self.seed,
            "shift": shift,
            "severity": severity,
            "n": len(labels),
            "methods": outcomes,
            "oracle": best,
            "floor": floor,
            "ruled_out": int(
                (np.exp(scores.logits())[np.arange(len(labels)), labels] < 1e-30).sum()
            ),
        }


def rounded(value: Any) -> Any:
    """The same with six significant digits, which is more than the sample supports."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def fingerprint() -> str:
    """Digest of the code of this script and the corpus, whatever its layout and comments."""
    files = (Path(__file__).resolve(), HERE / "small_corpus.py")
    code = "".join(ast.dump(ast.parse(file.read_text("utf-8"))) for file in files)
    return hashlib.sha256(code.encode()).hexdigest()


def as_text(document: dict[str, Any]) -> str:
    """JSON with a line for every record, so that a difference can be read."""
    lines = []
    for key, value in document.items():
        if key in ("ladders", "records"):
            inner = ",\n ".join(
                f"{json.dumps(task)}: [\n  " + ",\n  ".join(map(json.dumps, found)) + "\n ]"
                for task, found in value.items()
            )
            lines.append(f"{json.dumps(key)}: {{\n {inner}\n }}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("-o", "--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", sc.errors.FitWarning)  # what is not perfect is in the flags
    records: dict[str, Any] = {}
    ladders: dict[str, Any] = {}
    for name in given.tasks:
        started = time.perf_counter()
        runs = [Run(TASKS[name], seed) for seed in given.seeds]
        ladders[name] = [run.ladder() for run in runs]
        records[name] = [each for run in runs for each in run.records()]
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    packages = ("shiftcal", "numpy", "scipy", "scikit-learn", "pandas")
    document = {
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "script_sha256": fingerprint(),
        "seeds": list(given.seeds),
        "severities": list(SEVERITIES),
        "ladders": ladders,
        "records": records,
    }
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(as_text(rounded(document)), "utf-8")
    if given.out == RESULTS:
        runpy.run_path(str(ROOT / "docs" / "figures" / "benchmarks.py"), run_name="__main__")


if __name__ == "__main__":
    main()

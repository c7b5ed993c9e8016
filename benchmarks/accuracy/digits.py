"""Every method and every map on the experiment of examples/digits.py: five splits, eleven targets.

Run it from anywhere; it writes ``results/digits.json`` beside itself, redraws the figure of the
docs and renews their tables. Numbers are fractions. Takes about half a minute.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import platform
import runpy
import warnings
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the network is small; threads only cost time

import numpy as np
from scipy.ndimage import rotate, shift
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import shiftcal as sc

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "digits.py"
SENTINELS = Path(__file__).resolve().with_name("sentinels.py")
RESULTS = Path(__file__).resolve().parent / "results" / "digits.json"
SEEDS = (0, 1, 2, 3, 4)
FIGURE = "dead-pixels-15"  # the target of the overview figure, on the split that fares middling
# Draws behind the ECE that a perfectly calibrated model would have on as many rows.
FLOOR_DRAWS = 200
# Other settings of the regression behind the weights: the published one often stops early.
WEIGHTINGS = {"max_iter": {"max_iter": 10_000}, "standardize": {"standardize": True}}


def load(path):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fingerprint():
    """Digest of what the numbers depend on in the example: network, corruptions, ladder."""
    text = EXAMPLE.read_text("utf-8")
    parts = {
        getattr(node, "name", None) or ast.unparse(node.targets[0]): node
        for node in ast.parse(text).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.Assign))
    }
    used = ("Network", "add_noise", "kill_pixels", "blur", "NOISE_LADDER")
    source = "\n".join(ast.get_source_segment(text, parts[name]) for name in used)
    return hashlib.sha256(source.encode()).hexdigest()


def square(images):
    return images.reshape(-1, 8, 8)


def column_black(images):
    damaged = square(images).copy()
    damaged[:, :, 3] = 0.0
    return damaged.reshape(len(images), -1)


def moved(images):
    return shift(square(images), (0, 0, 1), order=1).reshape(len(images), -1)


def turned(images):
    rotated = rotate(square(images), 15, axes=(1, 2), reshape=False, order=1)
    return np.clip(rotated, 0.0, 1.0).reshape(len(images), -1)


def targets(example):
    """Name -> (what is done to the images, the classes that occur or ``None`` for all)."""
    return {
        "none": (lambda x: x, None),
        "dead-pixels-05": (lambda x: example.kill_pixels(x, 0.05), None),
        "dead-pixels-15": (lambda x: example.kill_pixels(x, 0.15), None),
        "dead-pixels-30": (lambda x: example.kill_pixels(x, 0.30), None),
        "brighter": (lambda x: np.clip(x + 0.2, 0.0, 1.0), None),
        "column-black": (column_black, None),
        "moved": (moved, None),
        "turned": (turned, None),
        "classes-389": (lambda x: x, (3, 8, 9)),
        "blur": (lambda x: example.blur(x, 0.8), None),
        "faded": (lambda x: 0.5 * x, None),
    }


def quietly(call, *args, **options):
    """The result of ``call``; that a fit is not perfect is recorded, not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.errors.FitWarning)
        return call(*args, **options)


def judge(probs, labels):
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    return {
        "ece": sc.ece(confidence, correct),
        "nll": sc.nll(probs, labels),
        "mean_confidence": float(confidence.mean()),
        "accuracy": float(correct.mean()),
    }


def oracle(logits, labels):
    """Temperature fitted on the target's own labels, and the ECE a perfect model would show."""
    fitted = quietly(sc.maps.get("temperature")().fit, logits, labels)
    probs = fitted.predict_proba(logits)
    confidence = probs.max(axis=1)
    rng = np.random.default_rng(0)
    floor = [sc.ece(confidence, rng.random(len(labels)) < confidence) for _ in range(FLOOR_DRAWS)]
    found = {"temperature": fitted.temperature_, **judge(probs, labels)}
    return found, float(np.mean(floor))


def outcomes(methods, logits, features, labels):
    """Each of the methods on one target: what it chose and how well it did."""
    found = {}
    for name, method in methods.items():
        selection = method.adapt(logits, features)
        found[name] = {
            "temperature": selection.temperature,
            "set": None if selection.index is None else selection.index + 1,
            "flags": [flag.code for flag in selection.flags],
            **judge(method.predict_proba(logits), labels),
        }
    return found


class Split:
    """One division of the digits: a trained network, its bank, every method fitted."""

    def __init__(self, example, seed):
        images, labels = load_digits(return_X_y=True)
        train, rest, train_labels, rest_labels = train_test_split(
            images / 16.0, labels, train_size=600, stratify=labels, random_state=seed
        )
        cal, self.new, cal_labels, self.new_labels = train_test_split(
            rest, rest_labels, train_size=598, stratify=rest_labels, random_state=seed
        )
        self.seed = seed
        self.network = example.Network(train, train_labels)
        ladder = [cal, *(example.add_noise(cal, level) for level in example.NOISE_LADDER)]
        self.bank = sc.SurrogateBank.from_arrays(
            [self.network.logits(step) for step in ladder],
            cal_labels,
            corruption="noise",
            features=self.network.features(cal),
        )
        source = self.network.features(train)
        self.methods = {
            name: quietly(sc.methods.get(name)().fit, self.bank, source_features=source)
            for name in sc.methods.names()
            if not sc.methods.get(name).uses_mixed
        }
        self.with_maps = {
            (method.name, name): quietly(method(map=name).fit, self.bank)
            for method in (sc.STS, sc.SAC)
            for name in sc.maps.names()
        }
        self.weightings = {
            how: {
                method.name: method(**setting).fit(self.bank, source_features=source)
                for method in (sc.CPCS, sc.TransCal)
            }
            for how, setting in WEIGHTINGS.items()
        }

    def ladder(self):
        """Every surrogate set in numbers."""
        maps = self.methods["sac"].maps_
        return [
            {
                "name": s.name,
                "mean_confidence": s.mean_confidence,
                "accuracy": s.accuracy,
                "temperature": fitted.temperature_,
            }
            for s, fitted in zip(self.bank.summaries(), maps, strict=True)
        ]

    def target(self, name, damage, classes):
        """Every method on one target."""
        keep = np.isin(self.new_labels, classes or range(10))
        images, labels = damage(self.new)[keep], self.new_labels[keep]
        logits, features = self.network.logits(images), self.network.features(images)
        found, floor = oracle(logits, labels)
        return {
            "split": self.seed,
            "shift": name,
            "n": len(labels),
            "methods": outcomes(self.methods, logits, features, labels),
            "oracle": found,
            "floor": floor,
            "weightings": {
                how: outcomes(methods, logits, features, labels)
                for how, methods in self.weightings.items()
            },
            "maps": self.outcomes_of_maps(logits, labels),
        }

    def outcomes_of_maps(self, logits, labels):
        """STS and SAC with every map inside on one target."""
        found = {"sts": {}, "sac": {}}
        for (name, map_name), method in self.with_maps.items():
            method.adapt(logits)
            found[name][map_name] = judge(method.predict_proba(logits), labels)
        return found

    def reliability(self, damage):
        """What the overview figure shows: the ladder, the choice, two bin tables."""
        logits = self.network.logits(damage(self.new))
        correct = logits.argmax(axis=1) == self.new_labels
        tables = {}
        for name in ("vanilla", "sac"):
            self.methods[name].adapt(logits)
            confidence = self.methods[name].confidence(logits)
            tables[name] = {
                **sc.bin_table(confidence, correct).to_dict(),
                "ece": sc.ece(confidence, correct),
            }
        selection = self.methods["sac"].selection_
        return {
            "split": self.seed,
            "shift": FIGURE,
            "ladder": self.ladder(),
            "target_mean_confidence": selection.mean_confidence,
            "target_accuracy": float(correct.mean()),
            "chosen": selection.index,
            "tables": tables,
        }


def rounded(value):
    """The same with six significant digits, which is more than the sample supports."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def as_text(document):
    """JSON with a line for every item of a list, so that a difference can be read."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            items = ",\n  ".join(map(json.dumps, value))
            lines.append(f"{json.dumps(key)}: [\n  {items}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def main():
    example = load(EXAMPLE)
    shifts = targets(example)
    results, ladders, figures = [], [], []
    for seed in SEEDS:
        print(f"split {seed}: training and fitting ...", flush=True)
        split = Split(example, seed)
        ladders.append(split.ladder())
        results += [split.target(name, *how) for name, how in shifts.items()]
        figures.append(split.reliability(shifts[FIGURE][0]))
    figures.sort(key=lambda shown: shown["tables"]["sac"]["ece"])
    packages = ("shiftcal", "numpy", "scipy", "scikit-learn")
    document = {
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "example_sha256": fingerprint(),
        "sentinels": load(SENTINELS).measure(example),
        "seeds": list(SEEDS),
        "ladders": ladders,
        "results": results,
        "figure": figures[len(figures) // 2],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(as_text(rounded(document)), "utf-8")
    for script in ("overview.py", "benchmarks.py"):
        runpy.run_path(str(ROOT / "docs" / "figures" / script), run_name="__main__")


if __name__ == "__main__":
    main()

"""Realign against Rehearsal and the oracle temperature, on real networks under real shifts.

``python benchmarks/accuracy/realign.py [PART ...]`` runs the parts named, or all of them, and keeps
means and every target in ``results/realign-PART.json``:

- ``resnet20``: 12 corruptions x 5 severities of CIFAR-10, surrogates never of the target's family;
  2,500 calibration and 2,500 test images of the first 5,120. Splits 0 and 1 are those the method
  was developed on; 2 to 4 were not looked at, nor were JPEG, motion blur and snow (``unseen``).
- ``unlike``: for development, shifts unlike the bank: views of the test images (turned, cropped,
  shrunk, flipped, inverted, cut, two corruptions at once) and mixtures of views.
- ``ablation``: every part of the recipe left out in turn, on splits of development.
- ``resnet32``: another network, which nothing was chosen by.
- ``natural``: Tiny-ImageNet images of CIFAR-10's classes, ResNet-20, bank of all corruptions.
- ``natural16``: edges and silhouettes of 16 groups of classes (run ``studies.py`` first).
- ``digits``, ``other-inputs``: small networks and models, tables and texts.
- ``efficientnet-lite0``: ImageNet, a thousand classes.

Kinds of targets: ``full`` (all test rows), ``clean``, ``unseen``; ``-alpha-A``: 2,000 rows drawn
with a class mix of Dirichlet(A); ``-100``: adapted to 100 of the rows, judged on all;
``-missing``: three classes absent.

What was tried, on splits 0 and 1 of ResNet-20 (120 shifted targets; gain in points, ECE of kept
predictions relative to Rehearsal's):

- Level halfway to Rehearsal without recalibrated slope: ECE 0.97. With slope and shift linear in
  the mean: 0.92. More statistics in that regression: 0.95 to 1.05; quadratic ones: 1.02.
- Regret of the gate none, exp(4 x), exp(16 x): gain 7.3, 7.1, 7.0; at Dirichlet 0.3 the worst
  target loses 7.9, 5.4, 3.9 points. Labelled rows of a draw 100 or 400: with 400 the regret does
  what it is for (from 100 rows, 8 % of the targets lose over 2 points, then 4 %).
- Ridge of the gate 3e-4 to 1e-2: gain 7.0, 7.1, 6.7, 6.5. Ridge of the experts 3e-4 to 3e-3 from
  100 rows: no difference.
- Corruptions left out by order, by name, by family, at random: ECE 0.98 to 1.0, gain 7.1 to 7.4.
- A thousand classes with one calibration image each: +6 points, which is no gain to claim. Every
  class then has one row in each half, and the experts learn just that. So there is a least number
  of calibration rows per class, below which the result is Rehearsal's.

Tails, with four draws a set at Dirichlet 0.3 (split 0 noise, blur, weather, split 1 noise; 300
targets): gain, share that loses over 2 points, worst; all rows | 100 rows.

- Regret exp(16 x), 0.95 and 0.75 of the biases used: 6.9, 1.7 %, -4.8 | 4.6, 3.0 %, -13.3.
- exp(16 x), all of the biases: 7.1, 2.0 %, -4.7 | 5.3, 5.7 %, -15.3.
- exp(32 x), 0.95 and 0.75: 6.7, 1.3 %, -3.8 | 4.2, 3.0 %, -12.8; all: 6.9, 1.3 %, -4.1 | 4.9,
  4.7 %, -14.8.
- exp(64 x), all of the biases (kept: one number less): 6.7, 1.0 %, -3.8 | 4.4, 3.3 %, -14.4.
- No regret: 7.2, 2.7 %, -6.4 | 5.1, 4.0 %, -8.1.
- Statistics of the gate clipped at 2.5 or 2 standard deviations: 3.0 % and 3.3 %, worst -12 and
  -14: worse. Ridge of the gate 1e-2: 6.3, 1.7 %, -5.6.
- One expert alone: same prior -22 points; moved prior 8.8, 5.0 %, -14.9 | 6.3, 9.3 %, -18.6.

Level, split 0: share of Rehearsal's level 0, 0.25, 0.5, 1. Corruptions: ECE 0.92, 0.93, 0.95, 1.0;
from 100 rows 1.14, 1.09, 1.06, 1.06; Dirichlet 0.3: 0.87, 0.87, 0.90. Views: 0.78, 0.80, 0.85,
0.99. Where Rehearsal flags ``outside-bank``: 0.49 and 0.82 with share 0, 1.0 with share 1, so that
flag decides nothing here. Mixtures of views (easy and hard rows in one target): 1.13, 1.08, 1.04,
1.00. A mixture is what a natural shift looks like. What tells it apart:

- The spread (standard deviation of the log-odds of p_max) given the mean p_max: 2.0 to 4.1 standard
  deviations from the rehearsed targets in 90 % of the mixtures, below 1.8 in 95 % of corruptions
  and views, whatever the class prior. With the level of Rehearsal there, mixtures have 1.00. Left
  out: it never fires on Tiny-ImageNet (0.6 to 0.8), so it earned its place on made-up data alone.
- Variance of p_max or of the corrected confidence, share of rows below 0.5 or above 0.95, given the
  mean: they overlap.
- Scale times Rehearsal's temperature given the mean ("less sure than these biases explain"): finds
  flipped and transposed images (-2 to -3.6), not mixtures, and strong label shift raises the alarm
  as well. Mean and spread of Rehearsal's confidences there: flips 1.07 to 0.99, but Dirichlet 0.3
  0.87 to 0.94. Dropped. With the plain expert's scale for Rehearsal's temperature it goes off on
  all noise.
- Mean and second moment of Rehearsal's confidences everywhere (noise): 3.0. Halfway: 1.9.

Clean, splits 0 and 1: whole correction as soon as the target is not like the clean set, from 100
rows ECE 1.26 of Rehearsal's, Dirichlet 10 1.31. Ramp over distances from the clean set 1 to 2:
1.05, 1.22; 1 to 3: 1.01, 1.15 (kept); 2 to 3: 0.97, 1.16. Corruptions do not notice.

Intervals at level 0.95, split 0, all rows | 100 rows at Dirichlet 0.3 and on views: quantiles of
all errors 81 % | 86 %, 92 % | 92 %; errors over a size that is log-linear in the gate's statistics:
88 % | 92 %, 88 % | 96 %, and narrower elsewhere; those at level 0.98 (1.25 times as wide, kept):
93 % | 97 %, 100 % | 96 %.

With all of that, reported once: Tiny-ImageNet 2.03 (before: 2.24). The level stays too high there.

Tails again, with eight panels. Splits 0 and 1 of the first 5,120 images, 120 shifted sets: gain on
the sets; at Dirichlet 0.3 (four draws a set, 480 targets) gain, share that loses over 2 points and
the three worst; the same from 100 rows. ``b`` is the mean of the biases over panels, ``v`` their
variance.

- b: 7.2; 7.5, 3.1 %, -24.9 -13.8 -9.5; 5.4, 5.4 %, -11.9 -10.2 -8.2.
- b / (1 + (v / |b|²)²), as before: 7.0; 7.2, 2.3 %, -24.3 -9.7 -6.9; 5.1, 4.4 %, -11.9 -10.2 -7.8.
- b / (1 + v / |b|²), kept: 6.7; 6.9, 1.9 %, -21.3 -8.2 -5.6; 4.8, 3.1 %, -11.4 -9.7 -7.2.
- b / (1 + 2 v / |b|²): 6.3; 6.4, 1.7 %, -18.7 -5.8 -4.3; 4.3, 2.5 %, -10.2 -8.7 -6.8. With the
  square and 4: 6.7; 6.7, 1.7 %, -21.8 -5.2 -4.2; 4.6, 3.1 %, but the AURC at 0.3 is 0.828.
- Each class by its own v: 7.0; 7.1, 2.1 %, -24.7 -15.1 -8.3; 5.1, 5.4 %. What three of four panels
  agree on, class by class: 6.3; 6.4, 1.5 %, -20.1 -6.6 -3.8; 4.4, 3.1 %. For negative biases only,
  nine of ten: 5.6; 6.2, 1.0 %, -16.8 -11.6 -3.6; 4.2, 3.1 %.
- Gates averaged as logarithms, less 0, 1 and 2 standard deviations over panels for both experts
  with biases: 7.2, 6.5, 5.6; 7.6, 7.2, 6.4, 2.1, 1.7, 1.0 %, worst -25.5, -23.0, -19.6; from 100
  rows 5.3, 4.7, 3.9, 6.2, 4.2, 3.1 %.
- The expert for the same prior has the weight of the lower quartile of the panels: 5.9; 7.2, 1.7 %,
  -20.7 -6.4 -6.2; 5.1, 4.2 %; of the least one: 4.5; 7.0, 1.2 %, -11.5 -5.8 -5.6; 5.0, 3.3 %. Its
  weight times 0 below 0.3 and 1 above 0.7: 5.6; 7.2, 1.5 %, -19.3 -5.6; 5.1, 3.1 %.
- Seven statistics of the class with the largest mean probability for the gate (tried on the example
  that comes with shiftcal, 210 targets at Dirichlet 0.3, where the method loses 6.7 %, worst -29):
  10.6 %, -20.5; with its sharpness after matching 8.3 %, -17.7. The former with draws at Dirichlet
  0.1: 16 %.
- The accuracy gain that an expert expects of the correction under its own answer tells losses apart
  only for the same prior (AUC 0.88: the more it promises), for the moved prior (0.51) and the least
  favourable panel (0.24, of 0) it does not.

What loses is one thing: a class that is really frequent (60 to 90 % of the rows), which looks as if
the network had collapsed onto it. The worst target has 90 % of its rows in one class, 37 % of the
mean probability there and 49 % correct; every rule that spares it costs what corrects noise.

To look at next: in the ablation (noise of split 0 alone, 20 targets of each kind) the extra cost of
regret no longer helps, and from 100 rows it costs (gain 7.4 with it, 9.5 without; at Dirichlet 0.3
6.2 and 8.0, worst -8.4 and -7.4). Mixed draws, the EM prior and the partial correction close to the
clean set make no difference there. Twenty targets are too few to remove any of them.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shiftcal as sc
from shiftcal.methods import class_bias, realign

sys.path.insert(0, str(Path(__file__).parent))
from beyond import halves, subset
from beyond_banks import FAMILIES, FAMILY, TWELVE, UNSEEN, banks, natural, unlike

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results"
# Of the first network splits 0 and 1 are those of development.
SPLITS = {
    "resnet20": range(5),
    "unlike": range(2),
    "ablation": range(1),
    "resnet32": range(3),
    "natural": range(3),
    "natural16": range(3),
    "digits": range(5),
    "other-inputs": range(10, 12),
    "efficientnet-lite0": range(1),
}
ON_RESNET20 = ("resnet20", "unlike", "ablation", "natural")
ALPHAS = (10.0, 3.0, 1.0, 0.3)
ROWS, SHIFTED, FEW, CLEAN_DRAWS = 2500, 2000, 100, 10


class Target(NamedTuple):
    """What is adapted to, and what it is judged on."""

    kind: str
    name: str
    seen: np.ndarray
    logits: np.ndarray
    labels: np.ndarray


def targets_of(s: Any, rows: np.ndarray, rng: np.random.Generator) -> Iterator[Target]:
    """All targets made of the test rows of one set."""
    z, y = s.logits[rows], s.labels[rows]
    kind = "clean" if s.corruption is None else "unseen" if s.corruption in UNSEEN else "full"
    yield Target(kind, s.name, z, z, y)
    for _ in range(CLEAN_DRAWS if kind == "clean" else 1):
        some = rng.choice(len(z), FEW, replace=False)
        yield Target(f"{kind}-100", s.name, z[some], z, y)
        for alpha in ALPHAS:
            weights = rng.dirichlet(np.full(z.shape[1], alpha))[y]
            drawn = rng.choice(len(z), SHIFTED, p=weights / weights.sum())
            zs, ys = z[drawn], y[drawn]
            yield Target(f"{kind}-alpha-{alpha:g}", s.name, zs, zs, ys)
            yield Target(f"{kind}-alpha-{alpha:g}-100", s.name, zs[:FEW], zs, ys)


def scored(probs: np.ndarray, confidence: np.ndarray, t: Target) -> dict[str, float]:
    """Of the predictions of ``probs``, and (``kept``) of the confidence in the model's own."""
    rows = np.arange(len(t.labels))
    correct, own = probs.argmax(axis=1) == t.labels, t.logits.argmax(axis=1) == t.labels
    return {
        "accuracy": float(correct.mean()),
        "nll": float(-np.log(np.maximum(probs[rows, t.labels], 1e-12)).mean()),
        "ece": sc.ece(probs.max(axis=1), correct, n_bins=15),
        "aurc": aurc(probs.max(axis=1), correct),
        "kept ece": sc.ece(confidence, own, n_bins=15),
        "kept brier": float(((confidence - own) ** 2).mean()),
        "kept aurc": aurc(confidence, own),
    }


def aurc(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Area under the risk-coverage curve."""
    order = np.argsort(-confidence, kind="stable")
    return float((np.cumsum(~correct[order]) / np.arange(1, len(order) + 1)).mean())


def judged(methods: dict[str, Any], targets: Iterator[Target]) -> list[dict[str, Any]]:
    """Every method on every target, and the oracle temperature."""
    found = []
    for t in targets:
        record: dict[str, Any] = {"kind": t.kind, "target": t.name}
        for name, method in methods.items():
            if name == "true prior":
                counts = np.bincount(t.labels, minlength=t.logits.shape[1])
                method.prior_ = np.maximum(counts / counts.sum(), 1e-4)
            chosen = method.adapt(t.seen)
            record[name] = scored(method.predict_proba(t.logits), method.confidence(t.logits), t)
            if name == "realign":
                record["details"], record["flags"] = chosen.details, [f.code for f in chosen.flags]
        oracle = sc.TS().fit(t.logits, t.labels)
        record["oracle"] = scored(oracle.predict_proba(t.logits), oracle.confidence(t.logits), t)
        found.append(record)
    return found


def fitted(bank: sc.SurrogateBank) -> dict[str, Any]:
    unknown = sc.Realign().fit(bank)
    return {
        "ts": sc.TS().fit(bank),
        "rehearsal": unknown.rehearsal_,
        "realign": unknown,
        "same prior": sc.Realign(prior="calibration").fit(bank),
        "true prior": sc.Realign(prior="calibration").fit(bank),
    }


def bank_of(part: str) -> str:
    return "resnet20-half" if part in ON_RESNET20 else part


def one_split(part: str, seed: int) -> list[dict[str, Any]]:
    """All targets of a part with one split into calibration and test images."""
    warnings.simplefilter("ignore")
    if part in OTHER_DATA:
        return OTHER_DATA[part](seed)
    bank = sc.SurrogateBank.load(RUNS / "beyond" / bank_of(part))
    rows, test = halves(bank.clean.labels, seed)
    rng = np.random.default_rng((seed, 2))
    rows, test = (np.sort(rng.choice(r, min(ROWS, len(r)), replace=False)) for r in (rows, test))
    if part == "ablation":
        return ablation(bank, rows, test, rng)
    if part == "natural":
        methods = fitted(subset(bank, rows, FAMILY.get))
        extra = natural(data_folder(), RUNS)
        return judged(methods, (Target("natural", n, z, z, y) for n, (z, y) in extra.items()))
    if part == "unlike":
        methods = fitted(subset(bank, rows, FAMILY.get))
        made = unlike_targets(bank.clean.labels, test, rng)
        return judged(methods, made)
    records = []
    for family in (*FAMILIES, None):
        methods = fitted(subset(bank, rows, lambda c, f=family: FAMILY[c] != f))
        made = (t for s in sets_of(bank, family) for t in targets_of(s, test, rng))
        if bank.n_classes > 100:
            made = (t for t in made if "alpha" not in t.kind)
        records += judged(methods, made)
    return records


def sets_of(bank: sc.SurrogateBank, family: str | None) -> list[Any]:
    """The sets of a family, or the clean one."""
    return [
        s
        for s in bank
        if (s.corruption is None and family is None)
        or (s.corruption in (*TWELVE, *UNSEEN) and FAMILY[s.corruption] == family)
    ]


def unlike_targets(
    labels: np.ndarray, test: np.ndarray, rng: np.random.Generator
) -> Iterator[Target]:
    """Views and mixtures of views, with all classes, three missing, and a moved prior."""
    test = test[test < 5000]
    labels = labels[test]
    for kind, name, logits in unlike(data_folder(), RUNS):
        z = logits[test]
        yield Target(kind, name, z, z, labels)
        few = rng.choice(len(z), FEW, replace=False)
        yield Target(f"{kind}-100", name, z[few], z, labels)
        for _ in range(3):
            kept = ~np.isin(labels, rng.choice(10, 3, replace=False))
            yield Target(f"{kind}-missing", name, z[kept], z[kept], labels[kept])
        for alpha in (1.0, 0.3):
            weights = rng.dirichlet(np.full(10, alpha))[labels]
            drawn = rng.choice(len(z), SHIFTED, p=weights / weights.sum())
            yield Target(f"{kind}-alpha-{alpha:g}", name, z[drawn], z[drawn], labels[drawn])


# --------------------------------------------------------------------------------------
# Other data: digits, tables, texts, and ImageNet's classes in 16 groups.
# --------------------------------------------------------------------------------------


def on_digits(seed: int) -> list[dict[str, Any]]:
    """A small network, a bank of noise, and shifts of other kinds (``digits.py``)."""
    import digits as data

    example = data.load(data.EXAMPLE)
    parts = other_inputs().digits(seed)
    (train, train_labels), (cal, cal_labels) = parts.train, parts.calibration
    new, labels = parts.new
    network = example.Network(train / 16, train_labels)
    ladder = [cal / 16, *(example.add_noise(cal / 16, level) for level in example.NOISE_LADDER)]
    bank = sc.SurrogateBank.from_arrays(
        [network.logits(step) for step in ladder], cal_labels, corruption="noise"
    )

    def made() -> Iterator[Target]:
        for name, (corrupt, classes) in data.targets(example).items():
            kept = np.isin(labels, classes or range(10))
            z = network.logits(corrupt(new / 16)[kept])
            yield Target("clean" if name == "none" else "shifted", name, z, z, labels[kept])

    return judged(fitted(bank), made())


def on_other_inputs(seed: int) -> list[dict[str, Any]]:
    """Rows and texts (``other_inputs.py``), targets whose corruption is not in the bank."""
    data, records = other_inputs(), []
    for name, task in data.TASKS.items():
        run = data.Run(task, seed)
        inputs, given = run.parts.new
        for left_out in (None, *(ladder.name for ladder in run.ladders)):
            sets = [s for s in run.bank if s.corruption is None or s.corruption != left_out]
            methods = fitted(sc.SurrogateBank(sets, classes=run.bank.classes))
            targets = {"none": run.parts.new} | run.parts.others if left_out is None else {}
            for ladder in run.ladders:
                for severity in data.SEVERITIES if ladder.name == left_out else ():
                    shifted = data.corrupt_inputs(
                        inputs, ladder, severity=severity, seed=1000 + seed
                    )
                    targets[f"{left_out} {severity}"] = (shifted, given)
            kind = "text" if name.startswith("texts") else "tabular"
            made = []
            for shift, (x, y) in targets.items():
                z = sc.scoring.score_inputs(run.model, x).logits()
                labels = np.searchsorted(run.model.classes_, y)
                own = f"{kind} clean" if shift == "none" else kind
                made.append(Target(own, f"{name}, {shift}", z, z, labels))
            records += judged(methods, iter(made))
    return records


def other_inputs() -> Any:
    import other_inputs

    return other_inputs


def on_natural16(seed: int) -> list[dict[str, Any]]:
    """Edges and silhouettes of 16 groups of ImageNet's classes (``studies.py``)."""
    run = RUNS / "natural-imagenet16"
    index = json.loads((run / "scores" / "index.json").read_text("utf-8"))
    sets = {}
    for name, about in index["sets"].items():
        with np.load(run / about["file"], allow_pickle=False) as file:
            sets[name] = (file["logits"], file["labels"])
    rows, test = halves(sets["clean"][1], seed)
    steps = [sets[n] for n in ("clean", *(f"pixelate-{s}" for s in range(1, 6)))]
    bank = sc.SurrogateBank.from_arrays(
        [z[rows] for z, _ in steps], steps[0][1][rows], corruption="pixelate"
    )
    made = [Target("natural", n, sets[n][0], *sets[n]) for n in ("edges", "silhouettes")]
    z, y = (part[test] for part in sets["clean"])
    return judged(fitted(bank), iter([*made, Target("clean", "clean", z, z, y)]))


OTHER_DATA = {"digits": on_digits, "other-inputs": on_other_inputs, "natural16": on_natural16}


# --------------------------------------------------------------------------------------
# Every part of the recipe left out in turn.
# --------------------------------------------------------------------------------------


def ablations() -> dict[str, dict[tuple[Any, str], Any]]:
    """What is replaced in the code for each row of the table."""
    ask, describe = class_bias._ask, class_bias.describe

    def as_plain(expert: int) -> Any:
        def answers(*given: Any) -> Any:
            found = ask(*given)
            scales, biases = found.scales.copy(), found.biases.copy()
            scales[expert], biases[expert] = scales[2], biases[2]
            return class_bias.Answers(scales, biases)

        return answers

    def blind(*columns: int) -> Any:
        def outputs(*given: Any) -> Any:
            found = describe(*given)
            classes = found.classes.copy()
            classes[:, list(columns)] = 0
            return found._replace(classes=classes)

        return outputs

    def linear(self: Any, classes: Any, _: Any) -> Any:
        f = (classes - self.class_centre) / self.class_scale
        return f - f.mean(axis=0)

    level = class_bias._fit_level

    def as_it_is(*given: Any) -> Any:
        return class_bias.Level(level(*given).centre, 1.0, np.zeros(4))

    return {
        "all": {},
        "no expert for the same prior": {(class_bias, "_ask"): as_plain(0)},
        "no expert for a moved prior": {(class_bias, "_ask"): as_plain(1)},
        "constant weights instead of the gate": {
            (class_bias, "_gate_statistics"): lambda *_: np.zeros(1)
        },
        "no extra cost of regret": {(class_bias, "_REGRET"): 1e-6},
        "no EM prior": {(class_bias, "describe"): blind(4, 6)},
        "no classes it is confused with": {(class_bias, "describe"): blind(5, 6)},
        "no mixed draws": {(class_bias, "_MIXED"): 0.0},
        "two panels": {(class_bias, "PANELS"): 2},
        "no products of statistics": {(class_bias.Expert, "_terms"): linear},
        "no recalibrated level": {(class_bias, "_fit_level"): as_it_is},
        "biases not shrunk where panels disagree": {
            (class_bias, "_agreed"): lambda biases: biases.mean(axis=0)
        },
        "level not towards Rehearsal": {(realign, "_REHEARSED"): 0.0},
        "level halfway to Rehearsal": {(realign, "_REHEARSED"): 0.5},
        "whole correction next to clean": {(realign, "_FAR"): 1 + 1e-9},
    }


def ablation(
    bank: sc.SurrogateBank, rows: np.ndarray, test: np.ndarray, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Realign with each part left out, on noise; what only adapts on the clean set as well."""
    records = []
    for family in ("noise", None):
        own = subset(bank, rows, lambda c, f=family: FAMILY[c] != f)
        sets = [s for s in sets_of(bank, family) if s.corruption not in UNSEEN]
        made = [t for s in sets for t in targets_of(s, test, rng)]
        kept = [t for t in made if t.kind in KEPT]
        whole = fitted(own)
        for name, changes in ablations().items():
            adapts_only = all(at is realign or key == "_agreed" for at, key in changes)
            if family is None and not adapts_only:
                continue
            before = {place: getattr(*place) for place in changes}
            try:
                for place, value in changes.items():
                    setattr(*place, value)
                methods = whole if adapts_only else fitted(own)
                for record in judged(methods, iter(kept)):
                    records.append({**record, "kind": f"{name}: {record['kind']}"})
            finally:
                for place, value in before.items():
                    setattr(*place, value)
    return records


KEPT = (
    "full", "full-100", "full-alpha-0.3", "full-alpha-0.3-100", "clean-100", "clean-alpha-10",
)  # fmt: skip


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Means by kind of target, as ratios where the goals are ratios, and the tails."""
    by_kind = defaultdict(list)
    for record in records:
        by_kind[record["kind"]].append(record)
    found = {}
    for kind, own in by_kind.items():
        methods = [name for name in own[0] if isinstance(own[0][name], dict) and name != "details"]
        means = {
            m: {key: float(np.mean([r[m][key] for r in own])) for key in own[0][m]} for m in methods
        }
        gain = np.array([r["realign"]["accuracy"] - r["oracle"]["accuracy"] for r in own])
        new, old, best = means["realign"], means["rehearsal"], means["oracle"]
        held = [
            d["estimated_accuracy_low"] <= r["oracle"]["accuracy"] <= d["estimated_accuracy_high"]
            for r in own
            if "estimated_accuracy_low" in (d := r["details"])
        ]
        corrected_held = [
            d["corrected_accuracy_low"] <= r["realign"]["accuracy"] <= d["corrected_accuracy_high"]
            for r in own
            if "corrected_accuracy_low" in (d := r["details"])
        ]
        found[kind] = {
            "targets": len(own),
            "accuracy gained": float(gain.mean()),
            "share that loses 2 points": float((gain < -0.02).mean()),
            "worst": float(gain.min()),
            "ECE / Rehearsal's": new["kept ece"] / old["kept ece"],
            "ECE / TS's": new["kept ece"] / means["ts"]["kept ece"],
            "Brier / oracle's": new["kept brier"] / best["kept brier"],
            "AURC / oracle's": new["kept aurc"] / best["kept aurc"],
            "corrected NLL / Rehearsal's": new["nll"] / old["nll"],
            "corrected AURC / Rehearsal's": new["aurc"] / old["aurc"],
            "same prior claimed, gained": means["same prior"]["accuracy"] - best["accuracy"],
            "true prior given, gained": means["true prior"]["accuracy"] - best["accuracy"],
            "interval of the accuracy holds": float(np.mean(held)) if held else None,
            "interval of the corrected accuracy holds": (
                float(np.mean(corrected_held)) if held else None
            ),
            "means": means,
        }
    return found


def main(parts: list[str]) -> None:
    RUNS.mkdir(exist_ok=True)
    for part in parts or SPLITS:
        if part not in OTHER_DATA:
            banks((bank_of(part),), data_folder(), RUNS)
        seeds = SPLITS[part]
        with ProcessPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
            tasks = [pool.submit(one_split, part, seed) for seed in seeds]
            splits = {seed: task.result() for seed, task in zip(seeds, tasks, strict=True)}
        every = [record for records in splits.values() for record in records]
        found = {**commit_of(ROOT), "splits": {s: summary(r) for s, r in splits.items()}}
        found["all"] = summary(every)
        (RESULTS / f"realign-{part}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        for kind, row in found["all"].items():
            numbers = {k: v for k, v in row.items() if k != "means" and v is not None}
            print(part, kind, " ".join(f"{k}={v:.3f}" for k, v in numbers.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

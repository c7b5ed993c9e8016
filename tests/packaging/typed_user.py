"""A user's program: strict type checkers find nothing in it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import shiftcal as sc
from shiftcal import corruptions, estimates, maps, methods, models
from shiftcal.errors import FitWarning, InputError
from shiftcal.methods import Method, Selection


def calibrated(
    bank: sc.SurrogateBank, target: sc.Scores, name: str = "rehearsal"
) -> tuple[NDArray[np.float64], Selection]:
    """Confidences of a target, and what was chosen for it."""
    method: Method = methods.get(name)()
    selection = method.fit(bank).adapt(target)
    if selection.temperature is not None and selection.has("outside-range"):
        print(f"T = {selection.temperature:.2f}", [flag.message for flag in selection.flags])
    return method.confidence(target), selection


def brightness(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """A model: how red, green and blue an image is."""
    return np.asarray(images.mean(axis=(1, 2)), np.float32)


def main(folder: Path) -> float:
    """Everything that a first week with shiftcal touches."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    logits = 3 * rng.standard_normal((300, 3))
    bank = sc.SurrogateBank.from_arrays([logits, logits / 2], labels, corruption="fading")
    bank.save(folder / "bank")
    bank = sc.SurrogateBank.load(folder / "bank")
    print([(one.name, one.severity, one.summary().accuracy) for one in bank], bank.classes)
    target = sc.Scores(logits / 1.5, "logits", labels=labels)
    sc.write_scores(folder / "target.npz", target)
    confidence, selection = calibrated(bank, sc.read_scores(folder / "target.npz"))
    sac = sc.SAC(distance="ks", map=maps.Temperature(t_range=(0.1, 10.0))).fit(bank)
    sac.adapt(target)
    sac.save(folder / "sac.json")
    probs: NDArray[np.float64] = sac.predict_proba(logits)
    correct = probs.argmax(axis=1) == labels
    kept = sc.selective(np.concatenate([p.max(axis=1) for _, p in sac.in_blocks(logits)]), 0.5)
    interval = sc.bootstrap(sc.ece, confidence, correct, n_resamples=200)
    table = sc.bin_table(confidence, correct, n_bins=10)
    print(kept.threshold, interval.value, interval.low, table.accuracy, selection.to_dict())
    realign = sc.Realign(seed=1).fit(bank)
    grouped = sc.GroupedCalibration(sc.Rehearsal(input="logits"))
    accuracy = estimates.Rehearsed().fit(bank).estimate(target, level=0.9)
    monitor = sc.Monitor("sac", window=sc.monitoring.Sliding(rows=500)).fit(bank)
    update = monitor.feed(logits)
    statistics = sum(
        (sc.ScoreStatistics.of_rows(logits[i::2], labels[i::2]) for i in range(2)),
        start=sc.ScoreStatistics.of_rows(logits[:1], labels[:1]),
    )
    images = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    harder = sc.corrupt(images, "fog", severity=3, seed=1)
    rows = corruptions.corrupt_inputs(logits, corruptions.tabular.Noise().fit(logits), severity=1)
    classifier = sc.CalibratedClassifier(None, "ts", corruption=["noise"], adapt_to="batch")
    model = models.as_model(brightness)
    scores = sc.score(model, images, progress=False)
    try:
        sc.TS().fit(logits, labels[:5])
    except InputError as error:
        print(error, FitWarning, realign.corrects, grouped.name, harder.shape, rows, classifier)
    print(update.state, [event.kind for event in update.events], scores.k, scores.classes)
    return accuracy.value + statistics.ece(binning="width") + sc.nll(probs, labels)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        print(main(Path(made)))

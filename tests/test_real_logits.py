"""Real networks' outputs give the figures measured on them with other tools."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal import maps
from shiftcal.metrics import ece
from shiftcal.numerics.softmax import softmax

# Accuracy, equal-width ECE and ECE at T in percent, and T of least NLL, fitted and scored on the
# same 10,000 rows: the table beside the data, to its last digit.
TABLE = {
    "jcpeterson_densenet_BC_100_12_cifar10test": ("95.62", "2.54", "1.936", "0.78"),
    "jcpeterson_resnet_basic_110_cifar10test": ("94.06", "4.13", "2.568", "0.66"),
    "jcpeterson_vgg_15_BN_64_cifar10test": ("93.18", "4.65", "2.225", "0.70"),
    "jcpeterson_wrn_28_10_cifar10test": ("96.24", "2.14", "1.382", "0.83"),
    "netcal_densenet-bc-100-cifar-100": ("75.41", "14.22", "2.117", "1.23"),
}


def read(folder, name):
    with np.load(folder / "logits" / f"{name}.npz") as file:
        if "predictions" in file:
            # The table was made with probabilities below 1e-12 raised to that.
            return np.log(np.maximum(file["predictions"], 1e-12)), file["ground_truth"]
        return file["logits"], file["labels"]


def percent_ece(probs, labels):
    return 100 * ece(probs.max(axis=1), probs.argmax(axis=1) == labels, binning="width")


@pytest.mark.parametrize("name", TABLE)
def test_the_table_is_reproduced_to_the_printed_digit(shared_data, name):
    logits, labels = read(shared_data, name)
    fitted = maps.get("temperature")().fit(logits, labels)
    before, after = softmax(logits), fitted.predict_proba(logits)
    found = (
        f"{100 * (before.argmax(axis=1) == labels).mean():.2f}",
        f"{percent_ece(before, labels):.2f}",
        f"{fitted.temperature_:.3f}",
        f"{percent_ece(after, labels):.2f}",
    )
    assert found == TABLE[name]
    assert fitted.status_.converged


def test_small_probabilities_are_not_raised_by_us(shared_data):
    # Without the table's floor of 1e-12, scipy's bounded search gives T = 2.11761 on these rows,
    # and the ECE at it is 1.204 %: the floor was worth a unit in the last printed digit.
    with np.load(shared_data / "logits" / "netcal_densenet-bc-100-cifar-100.npz") as file:
        probs, labels = file["predictions"], file["ground_truth"]
    fitted = maps.get("temperature")(input="probabilities").fit(probs, labels)
    assert fitted.temperature_ == pytest.approx(2.1176095, rel=1e-6)
    assert f"{percent_ece(fitted.predict_proba(probs), labels):.2f}" == "1.20"


def test_a_network_of_a_thousand_classes_in_half_precision(shared_data):
    logits, labels = read(shared_data, "efficientnet_lite0_ilsvrc2012val5000")
    half, single, double = (
        maps.get("temperature")().fit(logits.astype(dtype), labels).temperature_
        for dtype in ("f2", "f4", "f8")
    )
    assert half == single  # halves are widened, exactly
    assert half == pytest.approx(double, rel=1e-6)
    # Measured before the logits were rounded to half precision: top-1 75.18, ECE 7.46. The
    # rounding made ties in nine rows.
    probs = softmax(logits)
    assert 100 * (probs.argmax(axis=1) == labels).mean() == pytest.approx(75.18, abs=0.03)
    assert percent_ece(probs, labels) == pytest.approx(7.46, abs=0.03)

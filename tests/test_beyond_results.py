"""What is claimed of Rehearsal holds in the committed results."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from statistics import fmean

import pytest

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "accuracy" / "results"
NETWORKS = ("resnet20", "resnet32", "efficientnet-lite0")
ALPHAS = ("10", "3", "1", "0.3")


def found(part):
    return json.loads((RESULTS / f"beyond-{part}.json").read_text("utf-8"))


def every_target(part):
    return json.loads(gzip.decompress((RESULTS / f"beyond-{part}.json.gz").read_bytes()))


def ratio(ece, kind, *, over="sac", of="rehearsal"):
    return fmean(ece[kind][of].values()) / fmean(ece[kind][over].values())


@pytest.mark.parametrize("network", NETWORKS)
def test_the_means_are_those_of_the_targets(network):
    ece = found(network)["ece"]
    for split in every_target(network):
        for kind, methods in ece.items():
            records = [r["ece"] for r in split["records"] if r["kind"] == kind]
            for name, by_seed in methods.items():
                mean = fmean(record[name] for record in records)
                assert by_seed[str(split["seed"])] == pytest.approx(mean, rel=1e-9)


def test_rehearsal_has_at_most_0_65_of_the_error_of_sac_on_cifar10():
    ece = found("resnet20")["ece"]
    assert ratio(ece, "full") <= 0.65
    assert ratio(ece, "full", over="oracle") <= 1.25
    assert ratio(ece, "unseen") <= 0.65


def test_on_a_network_that_nothing_was_chosen_by_it_is_still_better_than_sac():
    ece = found("resnet32")["ece"]
    assert ratio(ece, "full") <= 0.85
    assert ratio(ece, "full", over="oracle") <= 1.25
    assert ratio(ece, "unseen") <= 0.85


@pytest.mark.parametrize("network", ["resnet20", "resnet32"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_rehearsal_is_no_worse_than_sac_under_label_shift(network, alpha):
    assert ratio(found(network)["ece"], f"full-alpha-{alpha}") <= 1.05


def test_rehearsal_is_no_worse_than_sac_elsewhere():
    assert ratio(found("resnet20")["ece"], "clean") <= 1.05
    for network in ("resnet32", "efficientnet-lite0"):  # three targets, and two
        assert ratio(found(network)["ece"], "clean") <= 1.1
    assert ratio(found("efficientnet-lite0")["ece"], "full") <= 1.05
    assert ratio(found("resnet20")["ece"], "natural") <= 1.05
    for part in ("natural", "clean"):
        assert ratio(found("natural16")["ece"], part) <= 1.05
    for name in ("pacs", "office-caltech"):
        assert ratio(found("adapted")[name]["ece"], name) <= 1.05
        assert found("adapted")[name]["networks"] == 420


@pytest.mark.parametrize("network", NETWORKS)
def test_a_hundred_rows_are_nearly_enough(network):
    ece = found(network)["ece"]
    few, all_rows = (fmean(ece[kind]["rehearsal"].values()) for kind in ("full-100", "full"))
    assert few <= 1.15 * all_rows
    assert few < fmean(ece["full"]["sac"].values())


@pytest.mark.parametrize("network", ["resnet20", "resnet32"])
def test_the_best_estimate_of_accuracy_has_at_most_half_the_error_of_doc_and_atc(network):
    errors = {name: e["error"] for name, e in found(network)["accuracy"]["full"].items()}
    best = min(errors["rehearsed"], errors["mean-confidence rehearsal"])
    assert best <= 0.5 * min(errors["doc"], errors["atc"], errors["atc-entropy"])

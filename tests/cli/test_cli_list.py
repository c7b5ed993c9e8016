"""``shiftcal list``."""

from __future__ import annotations

import pytest

from shiftcal import corruptions, maps, methods, metrics


def test_everything_there_is_has_its_line(shiftcal):
    done = shiftcal("list")
    assert (done.status, done.err) == (0, "")
    first_words = [line.split(" ")[0] for line in done.out.splitlines()]
    registries = (methods, maps, metrics, corruptions)
    for name in (name for registry in registries for name in registry.names()):
        assert name in first_words
    assert "``" not in done.out


def test_the_json_document(shiftcal_json):
    document = shiftcal_json("list")
    kinds = {"methods", "maps", "metrics", "corruptions"}
    assert set(document) == {"shiftcal", "command", "warnings", *kinds}
    assert {m["name"] for m in document["methods"]} == set(methods.names())
    assert [m["name"] for m in document["maps"]] == maps.names()
    assert [m["name"] for m in document["metrics"]] == metrics.names()
    assert [c["name"] for c in document["corruptions"]] == corruptions.names()
    sac = next(m for m in document["methods"] if m["name"] == "sac")
    assert sac["uses_target"] is True
    assert sac["uses_features"] is False
    assert sac["uses_mixed"] is False
    assert sac["settings"] == {"map": "temperature", "distance": "mean", "peek": None, "seed": 0}
    temperature = next(m for m in document["maps"] if m["name"] == "temperature")
    assert temperature["preserves_accuracy"] is True
    histogram = next(m for m in document["maps"] if m["name"] == "histogram")
    assert histogram["settings"] == {"n_bins": 15}
    accuracy = next(m for m in document["metrics"] if m["name"] == "accuracy")
    assert accuracy["better"] == "higher"
    contrast = next(c for c in document["corruptions"] if c["name"] == "contrast")
    assert contrast["summary"].startswith("Every channel drawn towards its mean")
    assert (contrast["group"], contrast["random"]) == ("digital", False)
    assert contrast["severities"] == 5
    for entry in (entry for kind in kinds for entry in document[kind]):
        assert entry["summary"], entry["name"]


@pytest.mark.parametrize("kind", ["methods", "maps", "metrics", "corruptions", "estimators"])
def test_one_kind_is_listed_alone(shiftcal, shiftcal_json, kind):
    document = shiftcal_json(f"list {kind}")
    assert set(document) == {"shiftcal", "command", "warnings", kind}
    names = [entry["name"] for entry in document[kind]]
    assert [line.split(" ")[0] for line in shiftcal(f"list {kind}").out.splitlines()[1:]] == names
    assert shiftcal("list nothing").status == 2

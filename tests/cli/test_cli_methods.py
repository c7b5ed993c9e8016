"""``shiftcal methods``."""

from __future__ import annotations

from shiftcal import maps, methods, metrics


def test_everything_there_is_has_its_line(shiftcal):
    done = shiftcal("methods")
    assert (done.status, done.err) == (0, "")
    first_words = [line.split(" ")[0] for line in done.out.splitlines()]
    for name in (*methods.names(), *maps.names(), *metrics.names()):
        assert name in first_words
    assert "``" not in done.out


def test_the_json_document(shiftcal_json):
    document = shiftcal_json("methods")
    assert set(document) == {"shiftcal", "command", "methods", "maps", "metrics", "warnings"}
    assert {m["name"] for m in document["methods"]} == set(methods.names())
    assert [m["name"] for m in document["maps"]] == maps.names()
    assert [m["name"] for m in document["metrics"]] == metrics.names()
    sac = next(m for m in document["methods"] if m["name"] == "sac")
    assert sac["uses_target"] is True
    assert sac["uses_features"] is False
    assert sac["settings"] == {"map": "temperature", "distance": "mean", "peek": None, "seed": 0}
    temperature = next(m for m in document["maps"] if m["name"] == "temperature")
    assert temperature["preserves_accuracy"] is True
    histogram = next(m for m in document["maps"] if m["name"] == "histogram")
    assert histogram["settings"] == {"n_bins": 15}
    accuracy = next(m for m in document["metrics"] if m["name"] == "accuracy")
    assert accuracy["better"] == "higher"
    for entry in (*document["methods"], *document["maps"], *document["metrics"]):
        assert entry["summary"], entry["name"]


def test_methods_that_need_features_say_so(shiftcal):
    lines = shiftcal("methods").out.splitlines()
    cpcs = next(line for line in lines if line.startswith("cpcs"))
    assert "features of training, clean set and target" in cpcs

"""Which map a method applies, and methods that cannot be exported."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from map_data import quiet_fit
from shifted_data import bank_of, draw_domain
from small_networks import network, run, saved

from shiftcal import Scores, SurrogateBank, maps, methods
from shiftcal.errors import InputError, NotFittedError
from shiftcal.export import to_onnx
from shiftcal.export.formulas import applied_map, digest_of
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.persistence import load

K = 4  # of draw_domain


@pytest.fixture(scope="module")
def domains():
    return {
        name: draw_domain(400, shift, seed=seed)
        for name, shift, seed in (("train", 0.0, 1), ("clean", 0.0, 2), ("target", 0.7, 3))
    }


def adapted(name, domains, **settings):
    """A method fitted and adapted, whatever it needs."""
    method = methods.get(name)(**settings)
    clean, target = domains["clean"], domains["target"]
    if method.uses_features:
        quiet_fit(method, bank_of(clean), source_features=domains["train"].features)
    else:
        sets = [clean.logits, clean.logits / 1.5, clean.logits / 2]
        quiet_fit(method, SurrogateBank.from_arrays(sets, clean.labels))
    mixed = Scores(target.logits, labels=target.labels) if method.uses_mixed else None
    method.adapt(target.logits, target.features, mixed=mixed)
    return method


CASES = [(name, {}) for name in methods.names()]
CASES += [(name, {"map": "isotonic"}) for name in ("sac", "sts")] + [("sac", {"map": "dirichlet"})]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_every_method_is_exported_as_it_predicts(name, settings, domains, tmp_path):
    method = adapted(name, domains, **settings)
    path = saved(tmp_path / "net.onnx", network(k=K))
    made = to_onnx(method, path, tmp_path / "out.onnx")
    found = run(made.path)
    wanted = method.predict_proba(found["logits"])
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-6)
    assert made.method == name
    assert made.map == settings.get("map", "temperature")
    assert made.temperature == (None if settings else pytest.approx(method.selection_.temperature))


def test_a_saved_method_is_exported_with_its_choice(domains, tmp_path):
    method = adapted("sac", domains)
    method.save(tmp_path / "sac.json")
    path = saved(tmp_path / "net.onnx", network(k=K))
    made = to_onnx(load(tmp_path / "sac.json"), path, tmp_path / "out.onnx")
    assert made.temperature == method.selection_.temperature


def test_what_is_not_fitted_is_refused(tmp_path):
    for fresh in (methods.get("sac")(), maps.get("beta")()):
        with pytest.raises(NotFittedError, match="is not fitted yet; call fit before it is exp"):
            to_onnx(fresh, tmp_path / "net.onnx", tmp_path / "out.onnx")


def test_a_method_that_has_seen_no_target_is_refused(ladder, tmp_path):
    method = quiet_fit(methods.get("sac")(), ladder[0])
    with pytest.raises(NotFittedError, match=r"sac has not seen a target yet.*call adapt"):
        to_onnx(method, tmp_path / "net.onnx", tmp_path / "out.onnx")


class Blurred(Method):
    """Says one temperature and applies another to every other row."""

    def __init__(self, *, input="logits"):
        self.input = input

    def _fit(self, bank, source_features):
        pass

    def _adapt(self, logits, features):
        return Selection("blurred", temperature=2.0)

    def _apply(self, logits):
        return maps.Temperature().fit(logits, logits.argmax(axis=1)).predict_proba(logits)


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_a_method_that_applies_no_map_of_its_own_is_refused(ladder):
    method = Blurred().fit(ladder[0])
    with pytest.raises(InputError, match="must apply one map to every row"):
        applied_map(method)
    method.adapt(ladder[1])
    with pytest.raises(InputError, match="must apply one map to every row"):
        applied_map(method)


def test_the_file_says_what_it_is_calibrated_by(sac, tmp_path):
    model = network()
    model.metadata_props.add(key="author", value="somebody")
    path = saved(tmp_path / "net.onnx", model)
    made = to_onnx(sac, path, tmp_path / "out.onnx")
    told = {entry.key: entry.value for entry in onnx.load(made.path).metadata_props}
    assert told["author"] == "somebody"
    assert told["shiftcal.method"] == "sac"
    assert told["shiftcal.map"] == "temperature"
    assert float(told["shiftcal.temperature"]) == sac.selection_.temperature
    assert told["shiftcal.source"] == "logits"
    assert told["shiftcal.input"] == "logits"
    assert told["shiftcal.digest"] == made.digest == digest_of(applied_map(sac))
    assert told["shiftcal.version"]


@pytest.mark.parametrize("name", maps.names())
def test_the_digest_is_of_what_was_learnt(name, fit_map):
    fitted = fit_map(name)
    other = fit_map(name, 3)
    assert digest_of(fitted) == digest_of(fitted)
    assert digest_of(fitted) != digest_of(other)

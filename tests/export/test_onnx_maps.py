"""Maps and methods as ONNX nodes, run by onnxruntime and by ONNX's own reference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from gaussian_world import bank_of, draw_domain
from map_data import difficult, next_to_many, quiet_fit
from map_data import draw_logits as draw
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_networks import NEWEST, network, run, saved

from shiftcal import Scores, SurrogateBank, maps, methods
from shiftcal.errors import InputError, NotFittedError
from shiftcal.export import to_onnx
from shiftcal.export.formulas import applied_map
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.persistence import load

# float32 of a probability near one, twice rounded, and a softmax of as many digits
CLOSE = 1e-6
MAPS = ("temperature", "brier-temperature", "ensemble-temperature", "vector", "matrix", "dirichlet")
EVERY = pytest.mark.parametrize("name", MAPS)


def scores_network(k, opset=17, dtype=np.float32):
    """A network whose logits are its inputs."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["logits"])],
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", k])],
        [helper.make_tensor_value_info("logits", kind, ["n", k])],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def exported(fitted, folder, **options):
    path = saved(folder / "net.onnx", scores_network(fitted.n_classes_, **options))
    return to_onnx(fitted, path, folder / "out.onnx", check=False).path


@pytest.mark.parametrize(("opset", "k"), [(13, 5), (17, 2), (18, 3), (NEWEST, 30)])
@EVERY
def test_every_map_gives_its_probabilities(name, opset, k, fit_map, tmp_path):
    fitted, z = fit_map(name, k), difficult(k)
    found = run(exported(fitted, tmp_path, opset=opset), inputs=z)
    wanted = fitted.predict_proba(z)
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(found["confidence"], wanted.max(axis=1), rtol=0, atol=CLOSE)
    assert found["confidence"].shape == (len(z),)
    np.testing.assert_array_equal(found["logits"], z)


@pytest.mark.parametrize("k", [100, 101, 1000])
@pytest.mark.parametrize("name", ["temperature", "ensemble-temperature"])
def test_sums_over_many_classes_are_good_to_the_last_digit_asked_for(name, k, fit_map, tmp_path):
    fitted = fit_map(name, k)
    z = next_to_many(k, fitted.temperature_)
    found = run(exported(fitted, tmp_path), inputs=z)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=5e-7)


@EVERY
def test_the_reference_of_onnx_agrees(name, fit_map, tmp_path):
    fitted, z = fit_map(name), difficult(5)
    model = onnx.load(exported(fitted, tmp_path))
    with np.errstate(all="ignore"):  # its exp of minus infinity warns
        found = ReferenceEvaluator(model).run(["probabilities"], {"x": z})[0]
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("dtype", "out", "atol"), [(np.float64, np.float64, 1e-11), (np.float16, np.float32, CLOSE)]
)
@EVERY
def test_double_precision_is_kept_and_half_is_calibrated_in_a_better_one(
    name, dtype, out, atol, fit_map, tmp_path
):
    fitted, z = fit_map(name), difficult(5, dtype)
    found = run(exported(fitted, tmp_path, dtype=dtype), inputs=z, dtype=dtype)["probabilities"]
    assert found.dtype == out
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=atol)


@pytest.mark.parametrize("name", [n for n in MAPS if maps.get(n).preserves_accuracy])
def test_the_predicted_class_is_the_networks_where_two_differ_in_the_last_digit(name, tmp_path):
    fitted = quiet_fit(maps.get(name)(), *draw(1500, 4, temperature=8.0, seed=1))
    z = np.random.default_rng(0).standard_normal((2000, 4)).astype(np.float32) / 100
    top = z.max(axis=1)
    z[:, 3] = np.nextafter(top, np.float32(1))  # one step above all others, the last in the row
    found = run(exported(fitted, tmp_path), inputs=z)["probabilities"]
    np.testing.assert_array_equal(found.argmax(axis=1), 3)
    assert found.max() <= 1


@EVERY
def test_probabilities_are_calibrated_as_their_logarithms(name, tmp_path):
    z, y = draw(1500, 5, temperature=1.8, seed=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    fitted = quiet_fit(maps.get(name)(input="probabilities"), p, y)
    p = p.astype(np.float32)
    p[0], p[1] = [1, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0]
    found = run(exported(fitted, tmp_path), inputs=p)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(p), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", sorted({*maps.names()} - {*MAPS}))
def test_other_maps_raise_with_those_that_can(name, fit_map, tmp_path):
    with pytest.raises(InputError, match=rf"the map '{name}' cannot be exported; these can:.*vec"):
        exported(fit_map(name), tmp_path)


@EVERY
@pytest.mark.parametrize("ending", [(), ("Softmax",), ("LogSoftmax",)], ids=str)
def test_half_precision_is_calibrated_as_the_network_gives_it(name, ending, fit_map, tmp_path):
    nodes = [helper.make_node(kind, ["logits"], ["p"]) for kind in ending]
    model = network(nodes, ["p"] if nodes else ["logits"], dtype=np.float16)
    path = saved(tmp_path / "net.onnx", model)
    made = to_onnx(fit_map(name), path, tmp_path / "out.onnx")
    assert made.checked == "network"
    assert made.difference <= 1e-6


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
CASES += [("sts", {"map": "vector"}), ("sac", {"map": "dirichlet"})]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_every_method_is_exported_as_it_predicts(name, settings, domains, tmp_path):
    method = adapted(name, domains, **settings)
    path = saved(tmp_path / "net.onnx", network(k=K))
    method.save(tmp_path / "method.json")
    made = to_onnx(load(tmp_path / "method.json"), path, tmp_path / "out.onnx")
    found = run(made.path)
    wanted = method.predict_proba(found["logits"])
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-6)
    assert made.method == name
    kind = "vector" if name == "realign" else settings.get("map", "temperature")
    assert made.map == kind
    chosen = pytest.approx(method.selection_.temperature) if kind == "temperature" else None
    assert made.temperature == chosen


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


def test_what_is_not_fitted_or_adapted_raises(ladder, tmp_path):
    for fresh in (
        methods.get("sac")(),
        maps.get("beta")(),
        quiet_fit(methods.get("sac")(), ladder[0]),
    ):
        with pytest.raises(NotFittedError, match=r"is not fitted yet|has not seen a target yet"):
            to_onnx(fresh, tmp_path / "net.onnx", tmp_path / "out.onnx")


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_a_method_that_applies_no_map_of_its_own_raises(ladder):
    method = Blurred().fit(ladder[0])
    method.adapt(ladder[1])
    with pytest.raises(InputError, match="must apply one map to every row"):
        applied_map(method)


def test_the_file_says_what_it_is_calibrated_by(sac, tmp_path):
    model = network()
    model.metadata_props.add(key="author", value="somebody")
    path = saved(tmp_path / "net.onnx", model)
    made = to_onnx(sac, path, tmp_path / "out.onnx")
    notes = {entry.key: entry.value for entry in onnx.load(made.path).metadata_props}
    assert notes["author"] == "somebody"
    assert notes["shiftcal.method"] == "sac"
    assert notes["shiftcal.map"] == "temperature"
    assert float(notes["shiftcal.temperature"]) == sac.selection_.temperature
    assert notes["shiftcal.source"] == notes["shiftcal.input"] == "logits"
    assert notes["shiftcal.version"]

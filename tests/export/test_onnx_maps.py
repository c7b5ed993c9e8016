"""Every map and method as ONNX nodes, run by onnxruntime and by ONNX's own reference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from gaussian_world import bank_of, draw_domain
from map_data import at_an_edge, difficult, next_to_many, quiet_fit
from map_data import draw_logits as draw
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from small_networks import NEWEST, network, run, saved, tensor

from shiftcal import Scores, SurrogateBank, maps, methods
from shiftcal.errors import InputError, NotFittedError
from shiftcal.export import to_onnx
from shiftcal.export.formulas import applied_map, digest_of
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.persistence import load

# float32 of a probability near one, twice rounded, and a softmax of as many digits
CLOSE = 1e-6


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
@pytest.mark.parametrize("name", maps.names())
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


@pytest.mark.parametrize("name", maps.names())
def test_the_reference_of_onnx_agrees(name, fit_map, tmp_path):
    fitted, z = fit_map(name), difficult(5)
    model = onnx.load(exported(fitted, tmp_path))
    with np.errstate(all="ignore"):  # its exp of minus infinity warns
        found = ReferenceEvaluator(model).run(["probabilities"], {"x": z})[0]
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("dtype", "out", "atol"), [(np.float64, np.float64, 1e-11), (np.float16, np.float32, CLOSE)]
)
@pytest.mark.parametrize("name", maps.names())
def test_double_precision_is_kept_and_half_is_calibrated_in_a_better_one(
    name, dtype, out, atol, fit_map, tmp_path
):
    fitted, z = fit_map(name), difficult(5, dtype)
    found = run(exported(fitted, tmp_path, dtype=dtype), inputs=z, dtype=dtype)["probabilities"]
    assert found.dtype == out
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=atol)


@pytest.mark.parametrize(
    "name", [name for name in maps.names() if maps.get(name).preserves_accuracy]
)
def test_the_predicted_class_is_the_networks_where_two_differ_in_the_last_digit(name, tmp_path):
    fitted = quiet_fit(maps.get(name)(), *draw(1500, 4, temperature=8.0, seed=1))
    z = np.random.default_rng(0).standard_normal((2000, 4)).astype(np.float32) / 100
    top = z.max(axis=1)
    z[:, 3] = np.nextafter(top, np.float32(1))  # one step above all others, the last in the row
    found = run(exported(fitted, tmp_path), inputs=z)["probabilities"]
    np.testing.assert_array_equal(found.argmax(axis=1), 3)
    assert found.max() <= 1


@pytest.mark.parametrize("name", maps.names())
def test_probabilities_are_calibrated_as_their_logarithms(name, tmp_path):
    z, y = draw(1500, 5, temperature=1.8, seed=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    fitted = quiet_fit(maps.get(name)(input="probabilities"), p, y)
    p = p.astype(np.float32)
    p[0], p[1] = [1, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0]
    found = run(exported(fitted, tmp_path), inputs=p)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(p), rtol=0, atol=CLOSE)


def test_a_histogram_of_one_bin_has_no_edges(tmp_path):
    fitted = quiet_fit(maps.get("histogram")(n_bins=1), *draw(300, 5, temperature=1.8, seed=1))
    found = run(exported(fitted, tmp_path), inputs=difficult(5))["confidence"]
    np.testing.assert_allclose(found, fitted.accuracy_[0], atol=CLOSE)


def test_a_map_without_a_form_raises(fit_map, tmp_path):
    fitted = fit_map("vector")

    class Odd(type(fitted)):
        name = "odd"

    odd = Odd()
    odd.__dict__.update(vars(fitted))
    with pytest.raises(InputError, match=r"the map 'odd' cannot be exported; these can:.*vector"):
        exported(odd, tmp_path)


def test_confidences_are_rounded_before_they_meet_an_edge(fit_map, tmp_path):
    fitted, z = at_an_edge(fit_map("histogram"))
    assert fitted.predict_proba(z).max() == pytest.approx(0.4)
    path = exported(fitted, tmp_path, dtype=np.float64)
    found = run(path, inputs=z, dtype=np.float64)["confidence"]
    np.testing.assert_allclose(found, 0.4)


IN_HALF = {"dtype": np.float16}


def node(kind, given, made, **settings):
    return helper.make_node(kind, [given], [made], **settings)


def cast_network():
    """A softmax in half precision whose output is float32, as converters that keep types write."""
    nodes = [
        node("Softmax", "logits", "halves"),
        node("Cast", "halves", "p", to=TensorProto.FLOAT),
    ]
    return network(nodes, ["p"], shapes={"p": tensor("p", ["n", 5])}, **IN_HALF)


@pytest.mark.parametrize(
    "model",
    [
        network(**IN_HALF),
        network([node("Softmax", "logits", "p")], ["p"], **IN_HALF),
        network([node("LogSoftmax", "logits", "p")], ["p"], **IN_HALF),
        cast_network(),
    ],
    ids=["logits", "softmax", "log-softmax", "softmax and cast"],
)
@pytest.mark.parametrize("name", maps.names())
def test_what_is_calibrated_is_what_the_network_gives(name, model, fit_map, tmp_path):
    path = saved(tmp_path / "net.onnx", model)
    made = to_onnx(fit_map(name), path, tmp_path / "out.onnx")
    assert made.checked == "network"
    assert made.difference <= 1e-6


def test_probabilities_in_half_precision_are_calibrated(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(5), 500)
    labels = np.array([rng.choice(5, p=row) for row in probs])
    fitted = maps.Temperature(input="probabilities").fit(probs, labels)
    model = network([node("Softmax", "logits", "p")], ["p"], **IN_HALF)
    made = to_onnx(fitted, saved(tmp_path / "net.onnx", model), tmp_path / "out.onnx")
    assert (made.source, made.checked) == ("p", "network")


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
    method.save(tmp_path / "method.json")
    made = to_onnx(load(tmp_path / "method.json"), path, tmp_path / "out.onnx")
    found = run(made.path)
    wanted = method.predict_proba(found["logits"])
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-6)
    assert made.method == name
    assert made.map == settings.get("map", "temperature")
    assert made.temperature == (None if settings else pytest.approx(method.selection_.temperature))


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
    notes = {entry.key: entry.value for entry in onnx.load(made.path).metadata_props}
    assert notes["author"] == "somebody"
    assert notes["shiftcal.method"] == "sac"
    assert notes["shiftcal.map"] == "temperature"
    assert float(notes["shiftcal.temperature"]) == sac.selection_.temperature
    assert notes["shiftcal.source"] == "logits"
    assert notes["shiftcal.input"] == "logits"
    assert notes["shiftcal.digest"] == made.digest == digest_of(applied_map(sac))
    assert notes["shiftcal.version"]

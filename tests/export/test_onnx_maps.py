"""Every map as ONNX nodes, run by onnxruntime and by ONNX's own reference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hard_logits import at_an_edge, beside_many, difficult
from map_data import draw, quiet_fit
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_networks import OPSETS, network, run, saved

from shiftcal import maps
from shiftcal.errors import InputError
from shiftcal.export import to_onnx

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
    return helper.make_model(graph, opset_imports=opsets, ir_version=4 if opset < 13 else 8)


def exported(fitted, folder, **options):
    path = saved(folder / "net.onnx", scores_network(fitted.n_classes_, **options))
    return to_onnx(fitted, path, folder / "out.onnx", check=False).path


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", maps.names())
def test_every_map_in_every_opset_gives_its_probabilities(name, opset, fit_map, tmp_path):
    fitted, z = fit_map(name), difficult(5)
    found = run(exported(fitted, tmp_path, opset=opset), inputs=z)
    wanted = fitted.predict_proba(z)
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(found["confidence"], wanted.max(axis=1), rtol=0, atol=CLOSE)
    assert found["confidence"].shape == (len(z),)
    np.testing.assert_array_equal(found["logits"], z)


@pytest.mark.parametrize("k", [2, 3, 30])
@pytest.mark.parametrize("name", maps.names())
def test_every_map_with_other_numbers_of_classes(name, k, fit_map, tmp_path):
    fitted, z = fit_map(name, k), difficult(k)
    found = run(exported(fitted, tmp_path), inputs=z)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("k", [100, 101, 1000])
@pytest.mark.parametrize("name", ["temperature", "ensemble-temperature"])
def test_sums_over_many_classes_are_good_to_the_last_digit_asked_for(name, k, fit_map, tmp_path):
    fitted = fit_map(name, k)
    z = beside_many(k, fitted.temperature_)
    found = run(exported(fitted, tmp_path), inputs=z)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=5e-7)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("name", maps.names())
def test_the_reference_of_onnx_agrees(name, opset, fit_map, tmp_path):
    fitted, z = fit_map(name), difficult(5)
    model = onnx.load(exported(fitted, tmp_path, opset=opset))
    with np.errstate(all="ignore"):  # its exp of minus infinity warns
        found = ReferenceEvaluator(model).run(["probabilities"], {"x": z})[0]
    np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", maps.names())
def test_a_network_in_double_precision_keeps_it(name, fit_map, tmp_path):
    fitted, z = fit_map(name), difficult(5, np.float64)
    found = run(exported(fitted, tmp_path, dtype=np.float64), inputs=z, dtype=np.float64)
    assert found["probabilities"].dtype == np.float64
    np.testing.assert_allclose(found["probabilities"], fitted.predict_proba(z), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", maps.names())
def test_a_network_in_half_precision_is_calibrated_in_a_better_one(name, fit_map, tmp_path):
    fitted, z = fit_map(name), difficult(5, np.float16)
    found = run(exported(fitted, tmp_path, dtype=np.float16), inputs=z, dtype=np.float16)
    assert found["probabilities"].dtype == np.float32
    np.testing.assert_allclose(found["probabilities"], fitted.predict_proba(z), rtol=0, atol=CLOSE)


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


def test_a_map_without_a_form_is_refused(fit_map, tmp_path):
    fitted = fit_map("vector")

    class Odd(type(fitted)):
        name = "odd"

    odd = Odd()
    odd.__dict__.update(vars(fitted))
    with pytest.raises(InputError, match=r"the map 'odd' cannot be exported; these can:.*vector"):
        exported(odd, tmp_path)


def test_a_graph_has_no_initializer_more_so_that_old_files_stay_valid(fit_map, tmp_path):
    path = saved(tmp_path / "net.onnx", network(opset=9))
    made = onnx.load(to_onnx(fit_map("matrix"), path, tmp_path / "out.onnx").path)
    assert [one.name for one in made.graph.initializer] == ["w"]


@pytest.mark.parametrize("opset", [10, 17])
def test_confidences_are_rounded_before_they_meet_an_edge(opset, fit_map, tmp_path):
    fitted, z = at_an_edge(fit_map("histogram"))
    assert fitted.predict_proba(z).max() == pytest.approx(0.4)
    path = exported(fitted, tmp_path, opset=opset, dtype=np.float64)
    found = run(path, inputs=z, dtype=np.float64)["confidence"]
    np.testing.assert_allclose(found, 0.4)

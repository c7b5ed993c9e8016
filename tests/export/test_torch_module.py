"""The PyTorch module, eager, traced and exported, against shiftcal."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from map_data import difficult, next_to_many, quiet_fit
from map_data import draw_logits as draw
from torch import nn

from shiftcal import maps, methods
from shiftcal.errors import InputError, NotFittedError
from shiftcal.export import CalibratedModule

FORMS = ("temperature", "ensemble-temperature", "vector", "matrix", "dirichlet")
EVERY = pytest.mark.parametrize("name", FORMS)
CLOSE = 1e-6  # float32 of a probability near one, and a softmax of as many digits


class Net(nn.Module):
    def __init__(self, k=5):
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, k))

    def forward(self, x):
        return 8 * self.layers(x)


@pytest.fixture(scope="module")
def net():
    return Net().eval().requires_grad_(False)


X = torch.from_numpy(np.random.default_rng(2).standard_normal((60, 6)).astype(np.float32))


def assert_calibrated(fitted, found, logits, atol=CLOSE):
    wanted = fitted.predict_proba(logits)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("k", [2, 5, 30])
@EVERY
def test_every_map_gives_its_probabilities(name, k, fit_map):
    fitted, z = fit_map(name, k), difficult(k)
    found = CalibratedModule(nn.Identity(), fitted)(torch.from_numpy(z))
    assert found.dtype == torch.float32
    assert_calibrated(fitted, found, z)


@pytest.mark.parametrize("k", [100, 101, 1000])
@pytest.mark.parametrize("name", ["temperature", "ensemble-temperature"])
def test_sums_over_many_classes_are_good_to_the_last_digit_asked_for(name, k, fit_map):
    fitted = fit_map(name, k)
    z = next_to_many(k, fitted.temperature_)
    found = CalibratedModule(nn.Identity(), fitted)(torch.from_numpy(z))
    assert_calibrated(fitted, found, z, atol=5e-7)


@EVERY
def test_in_double_precision_all_digits_are_kept(name, fit_map):
    fitted, z = fit_map(name), difficult(5, np.float64)
    found = CalibratedModule(nn.Identity(), fitted).double()(torch.from_numpy(z))
    assert found.dtype == torch.float64
    assert_calibrated(fitted, found, z, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@EVERY
def test_in_half_precision_the_calibration_keeps_its_digits(name, dtype, fit_map, net):
    fitted = fit_map(name)
    module = CalibratedModule(copy.deepcopy(net), fitted).to(dtype)
    assert {one.dtype for one in module.calibration.buffers()} == {torch.float64}
    assert {one.dtype for one in module.module.parameters()} == {dtype}
    found = module(X.to(dtype))
    assert found.dtype == torch.float32
    assert_calibrated(fitted, found, module.module(X.to(dtype)).float().numpy())


@EVERY
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_every_form_can_be_traced(name, fit_map, net):
    module = CalibratedModule(net, fit_map(name)).eval()
    traced = torch.jit.trace(module, X[:3], check_trace=False)
    torch.testing.assert_close(traced(X), module(X), rtol=0, atol=CLOSE)


@EVERY
def test_every_form_survives_torch_export_with_any_number_of_rows(name, fit_map, net):
    module = CalibratedModule(net, fit_map(name)).eval()
    rows = torch.export.Dim("rows", min=1, max=4096)
    program = torch.export.export(module, (X[:7],), dynamic_shapes=({0: rows},))
    assert set(program.state_dict) >= {
        f"calibration.{n}" for n, _ in module.calibration.named_buffers()
    }
    for part in (X, X[:2]):
        torch.testing.assert_close(program.module()(part), module(part), rtol=0, atol=CLOSE)


@EVERY
def test_a_state_dict_holds_tensors_and_fills_a_fresh_module(name, fit_map, net, tmp_path):
    module = CalibratedModule(net, fit_map(name))
    torch.save(module.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    blank = copy.deepcopy(module)
    for buffer in blank.calibration.buffers():
        buffer.fill_(0.5)
    blank.load_state_dict(state)
    torch.testing.assert_close(blank(X), module(X), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["temperature", "dirichlet"])
def test_networks_that_give_probabilities(name, net):
    z, y = draw(1500, 5, temperature=1.8, seed=1)
    p = torch.softmax(torch.from_numpy(z), 1).numpy()
    fitted = quiet_fit(maps.get(name)(input="probabilities"), p, y)
    with_softmax = nn.Sequential(net, nn.Softmax(1))
    module = CalibratedModule(with_softmax, fitted)
    assert_calibrated(fitted, module(X), with_softmax(X).numpy())
    sure = torch.tensor([[1.0, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0]])
    assert_calibrated(fitted, CalibratedModule(nn.Identity(), fitted)(sure), sure.numpy())
    half = CalibratedModule(nn.Identity(), fitted)(sure.half())
    assert_calibrated(fitted, half, sure.numpy())
    logits = CalibratedModule(net, fitted, input="logits")
    torch.testing.assert_close(logits(X), module(X), rtol=0, atol=CLOSE)


def test_an_adapted_method_is_copied(sac, net, ladder):
    module = CalibratedModule(net, sac)
    before, temperature = module(X), sac.selection_.temperature
    assert module.calibration.temperature.item() == temperature
    sac.adapt(ladder[0][0].logits)
    assert sac.selection_.temperature != temperature
    assert torch.equal(module(X), before)
    assert "calibrated by sac (temperature)" in repr(module)


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Linear(6, 7), r"must return one tensor \(n, 5\).*it returned \(60, 7\)"),
        (Pair(), r"must return one tensor \(n, 5\).*it returned tuple"),
    ],
)
def test_networks_that_give_something_else_raise(network, message, fit_map):
    module = CalibratedModule(network, fit_map("temperature"))
    with pytest.raises(InputError, match=message):
        module(X)


@pytest.mark.parametrize(
    ("module", "fitted", "message"),
    [
        ("net.onnx", maps.Temperature(), r"module must be a torch.nn.Module; got str"),
        (nn.Identity(), nn.Identity(), "must be a fitted method or map; got Identity"),
        (nn.Identity(), methods.get("ts")(), "not fitted yet"),
    ],
)
def test_bad_input_raises(module, fitted, message):
    with pytest.raises((InputError, NotFittedError), match=message):
        CalibratedModule(module, fitted)

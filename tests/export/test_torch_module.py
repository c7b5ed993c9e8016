"""The PyTorch module, eager, traced and exported, against shiftcal."""

from __future__ import annotations

import copy
import io
import warnings

import numpy as np
import pytest
import torch
from map_data import difficult, next_to_many, quiet_fit
from map_data import draw_logits as draw
from torch import nn

from shiftcal import maps, methods
from shiftcal.errors import InputError, NotFittedError
from shiftcal.export import CalibratedModule

# A map for every module there is; others differ in their numbers.
FORMS = (
    "temperature",
    "ensemble-temperature",
    "entropy-temperature",
    "vector",
    "matrix",
    "beta",
    "isotonic",
)
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
@pytest.mark.parametrize("name", maps.names())
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


@pytest.mark.parametrize("name", maps.names())
def test_in_double_precision_all_digits_are_kept(name, fit_map):
    fitted, z = fit_map(name), difficult(5, np.float64)
    found = CalibratedModule(nn.Identity(), fitted).double()(torch.from_numpy(z))
    assert found.dtype == torch.float64
    assert_calibrated(fitted, found, z, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", maps.names())
def test_in_half_precision_the_calibration_keeps_its_digits(name, dtype, fit_map, net):
    fitted = fit_map(name)
    module = CalibratedModule(copy.deepcopy(net), fitted).to(dtype)
    assert {one.dtype for one in module.calibration.buffers()} == {torch.float64}
    assert {one.dtype for one in module.module.parameters()} == {dtype}
    found = module(X.to(dtype))
    assert found.dtype == torch.float32
    assert_calibrated(fitted, found, module.module(X.to(dtype)).float().numpy())


@pytest.mark.parametrize("name", maps.names())
def test_the_softmax_of_its_logits_are_its_probabilities(name, fit_map):
    fitted, z = fit_map(name), difficult(5)
    module = CalibratedModule(nn.Identity(), fitted, logits=True)
    found = module(torch.from_numpy(z))
    assert torch.isfinite(found).all()
    wide = z.astype(np.float64)
    rows = np.abs(wide).max(axis=1) < 500  # z / T of a thousand has but four digits behind the dot
    softmaxed = torch.softmax(found.double(), 1)[rows]
    np.testing.assert_allclose(softmaxed, fitted.predict_proba(z)[rows], rtol=0, atol=2e-6)


@pytest.fixture
def jit():
    """TorchScript, whose functions say that there are newer ones."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*torch\.jit", DeprecationWarning)
        yield torch.jit


def reread(jit, scripted):
    buffer = io.BytesIO()
    jit.save(scripted, buffer)
    buffer.seek(0)
    return jit.load(buffer)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_can_be_traced(name, fit_map, net, jit):
    for logits in (False, True):
        module = CalibratedModule(net, fit_map(name), logits=logits).eval()
        wanted = module(X)
        traced = jit.trace(module, X[:3], check_trace=False)
        torch.testing.assert_close(reread(jit, traced)(X), wanted, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_survives_torch_export_with_any_number_of_rows(name, fit_map, net):
    module = CalibratedModule(net, fit_map(name)).eval()
    rows = torch.export.Dim("rows", min=1, max=4096)
    program = torch.export.export(module, (X[:7],), dynamic_shapes=({0: rows},))
    assert set(program.state_dict) >= {
        f"calibration.{n}" for n, _ in module.calibration.named_buffers()
    }
    for part in (X, X[:2]):
        torch.testing.assert_close(program.module()(part), module(part), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", maps.names())
def test_a_state_dict_holds_tensors_and_fills_a_fresh_module(name, fit_map, net, tmp_path):
    module = CalibratedModule(net, fit_map(name))
    torch.save(module.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    blank = copy.deepcopy(module)
    for buffer in blank.calibration.buffers():
        buffer.fill_(0.5)
    fresh = CalibratedModule(Net(), fit_map(name))
    for target in (blank, fresh):
        target.load_state_dict(state)
        torch.testing.assert_close(target(X), module(X), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["temperature", "isotonic"])
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
    assert f"calibrated by sac (temperature), T = {temperature:.4g}" in repr(module)


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Linear(6, 7), r"must return one tensor \(n, 5\).*it returned \(60, 7\)"),
        (nn.Unflatten(1, (2, 3)), r"must return one tensor \(n, 5\).*it returned \(60, 2, 3\)"),
        (Pair(), r"must return one tensor \(n, 5\).*it returned tuple.*logits alone"),
    ],
)
def test_networks_that_give_something_else_raise(network, message, fit_map):
    module = CalibratedModule(network, fit_map("temperature"))
    with pytest.raises(InputError, match=message):
        module(X)


def test_settings_that_mean_nothing_raise(fit_map, net):
    fitted = fit_map("temperature")
    with pytest.raises(InputError, match=r"module must be a torch.nn.Module; got str"):
        CalibratedModule("net.onnx", fitted)
    with pytest.raises(InputError, match="input must be"):
        CalibratedModule(net, fitted, input="scores")
    with pytest.raises(InputError, match="logits must be true or false"):
        CalibratedModule(net, fitted, logits="yes")
    with pytest.raises(InputError, match="must be a fitted method or map; got Net"):
        CalibratedModule(net, net)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        CalibratedModule(net, methods.get("ts")())

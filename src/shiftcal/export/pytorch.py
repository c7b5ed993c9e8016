"""A PyTorch module with its calibration behind it."""

from __future__ import annotations

from typing import Any

from shiftcal._checks import check_choice, check_flag
from shiftcal.errors import InputError
from shiftcal.export._applied import applied_map
from shiftcal.export._formula import formula_of
from shiftcal.export._torch_base import Tensor, log_of, nn, torch
from shiftcal.export._torch_maps import module_of
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.base import temperature_of


class CalibratedModule(nn.Module):
    """A network that gives calibrated probabilities ``(n, k)``.

    Everything learnt is a buffer below ``calibration``, so that ``state_dict`` is one of tensors.
    It goes through ``torch.export``, ``torch.jit.script`` and ``torch.jit.trace`` if the network
    does. Probabilities are float32, of a network in float64 float64; the calibration keeps its
    digits when the module is made half, bfloat16 or float.

    Args:
        module: The network: one input, ``(n, k)`` out. ``torch.nn.Identity()`` makes a module of
            the calibration alone, for networks that take more.
        fitted: A fitted map, or a fitted method; one that looks at a target must have seen it.
            What is learnt is copied: adapting the method later changes nothing here.
        input: What the network gives, ``"logits"`` or ``"probabilities"``; by default what
            ``fitted`` was fitted on.
        logits: Give numbers whose softmax are the calibrated probabilities: ``z / T`` for a
            temperature.

    Raises:
        InputError: If ``module`` is no module, or ``fitted`` nothing that can be exported.
    """

    def __init__(
        self,
        module: Any,
        fitted: Method | Map,
        *,
        input: str | None = None,
        logits: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise InputError(
                f"module must be a torch.nn.Module; got {type(module).__name__}. An ONNX file is "
                "calibrated by export.to_onnx, a scikit-learn classifier by "
                "export.CalibratedClassifier."
            )
        applied = applied_map(fitted)
        kind = fitted.input if input is None else input
        check_choice(kind, ("logits", "probabilities"), name="input")
        self.module = module
        self.calibration = module_of(formula_of(applied), applied.n_classes_)
        self.n_classes = applied.n_classes_
        self.takes_probabilities = kind == "probabilities"
        self.gives_logits = check_flag(logits, name="logits")
        self._told = _told(fitted, applied)

    def forward(self, x: Tensor) -> Tensor:
        """Calibrated probabilities, or logits, of what the network gives for ``x``."""
        z = self.module(x)
        if not torch.jit.is_scripting() and not torch.jit.is_tracing():
            _check(z, self.n_classes)
        if self.takes_probabilities:
            if z.dtype != torch.float64:
                z = z.to(torch.float32)  # halves have no number as small
            z = log_of(z)
        if self.gives_logits:
            return self.calibration.logits(z)
        return self.calibration(z)

    def extra_repr(self) -> str:
        """What it is calibrated by."""
        return self._told


def _told(fitted: Method | Map, applied: Map) -> str:
    temperature = temperature_of(applied)
    by = fitted.name() if isinstance(fitted, Map) else f"{fitted.name()} ({applied.name()})"
    return f"calibrated by {by}" + ("" if temperature is None else f", T = {temperature:.4g}")


def _check(z: Any, k: int) -> None:
    if not isinstance(z, torch.Tensor):
        raise InputError(
            f"the network must give one tensor (n, {k}); it gave {type(z).__name__}. Wrap it in a "
            "module that returns the logits alone."
        )
    if z.dim() != 2 or z.shape[1] != k:
        raise InputError(
            f"the network must give a tensor (n, {k}), a column for each class of the "
            f"calibration; it gave shape {tuple(z.shape)}. Both must be of one model."
        )

"""ONNX files, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import FileError, InputError
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing

_DTYPES: dict[str, Literal["float32", "float16", "uint8"]] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(uint8)": "uint8",
}


class OnnxModel(Model):
    """A network in an ONNX file.

    Name, dtype and layout of the input are read from the file and override those of the
    preprocessing. A batch size fixed in the file is kept: images go in so many at a time.

    Args:
        file: Path of the file, or its bytes.
        output_name: Which output holds the logits; the first by default.
        providers: Execution providers of onnxruntime, best first.
        threads: Threads an operator may use; 0 leaves that to onnxruntime.
        preprocessing: As for every model.
        **options: ``classes``, ``output`` and ``batch_size``, as for every model.
    """

    def __init__(
        self,
        file: str | Path | bytes,
        *,
        output_name: str | None = None,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        threads: int = 0,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        super().__init__(preprocessing=preprocessing, **options)
        self.session = _session(file, providers=providers, threads=threads)
        self.input_name, self.shape, dtype = _only_input(self.session)
        self.preprocessing = replace(
            self.preprocessing, dtype=dtype, layout=_layout(self.shape, self.preprocessing.layout)
        )
        outputs = [output.name for output in self.session.get_outputs()]
        self.output_name = outputs[0] if output_name is None else output_name
        if self.output_name not in outputs:
            raise InputError(
                f"output_name must be one of the file's outputs, {', '.join(outputs)}; got "
                f"{output_name!r}."
            )

    def _forward(self, batch: NDArray[Any]) -> Any:
        for wanted, came in zip(self.shape[1:], batch.shape[1:], strict=True):
            if isinstance(wanted, int) and wanted != came:
                raise InputError(
                    f"the network takes inputs of shape {tuple(self.shape[1:])}; these images "
                    f"give {batch.shape[1:]}. Say resize and crop in the preprocessing."
                )
        fixed = self.shape[0]
        if not isinstance(fixed, int) or fixed == len(batch):
            return self._session_run(batch)
        parts = []
        for start in range(0, len(batch), fixed):
            piece = batch[start : start + fixed]
            missing = fixed - len(piece)
            filled = np.concatenate([piece, np.repeat(piece[-1:], missing, axis=0)])
            parts.append(self._session_run(filled)[: len(piece)])
        return np.concatenate(parts)

    def _session_run(self, batch: NDArray[Any]) -> Any:
        return self.session.run([self.output_name], {self.input_name: batch})[0]


def _session(file: str | Path | bytes, *, providers: Sequence[str], threads: int) -> Any:
    runtime = require("onnxruntime", extra="onnx", needed_by="an ONNX model")
    given = file if isinstance(file, bytes) else str(file)
    name = "the ONNX model" if isinstance(file, bytes) else given
    if not isinstance(file, bytes) and not Path(file).is_file():
        raise FileError(f"{name!s} must be an ONNX file; there is no file of that name.")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3  # errors are raised; the rest is not for users
    try:
        return runtime.InferenceSession(given, sess_options=settings, providers=list(providers))
    except Exception as error:  # onnxruntime's own classes, one for every code
        first = str(error).strip().partition("\n")[0]
        raise FileError(f"{name!s} could not be loaded as ONNX: {first}") from error


def _only_input(session: Any) -> tuple[str, list[Any], Literal["float32", "float16", "uint8"]]:
    inputs = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        came = ", ".join(f"{given.name} {given.shape}" for given in inputs) or "none"
        raise InputError(f"an ONNX model must have one input, a batch of images; got {came}.")
    (given,) = inputs
    if given.type not in _DTYPES:
        raise InputError(
            f"the input of an ONNX model must be {', '.join(_DTYPES)}; got {given.type}."
        )
    return given.name, given.shape, _DTYPES[given.type]


def _layout(shape: list[Any], default: Literal["nchw", "nhwc"]) -> Literal["nchw", "nhwc"]:
    first, last = shape[1], shape[3]
    open_first, open_last = not isinstance(first, int), not isinstance(last, int)
    could_be = {"nchw": first == 3 or open_first, "nhwc": last == 3 or open_last}
    if not any(could_be.values()):
        raise InputError(
            f"an ONNX model must take images of three channels; its input has shape {shape}."
        )
    # A dimension that says three is the channels, whatever an open one could be.
    if first == 3 and last != 3:
        return "nchw"
    if last == 3 and first != 3:
        return "nhwc"
    return default if could_be[default] else ("nhwc" if default == "nchw" else "nchw")

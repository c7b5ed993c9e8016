"""ONNX files, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._optional import require
from shiftcal.errors import InputError
from shiftcal.models._features import as_features
from shiftcal.models._model_file import ModelFile
from shiftcal.models._onnx_file import external_files, open_session, with_output
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing

_DTYPES: dict[str, Literal["float32", "float16", "uint8"]] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(uint8)": "uint8",
}

# What is made anew from the file.
_REOPENED = ("session", "_source")


class OnnxModel(Model):
    """A network in an ONNX file.

    Name, dtype and layout of the input are read from the file and override those of the
    preprocessing; its precision is the file's. A batch size fixed in the file is kept: images go in
    so many at a time.

    Args:
        file: Path of the file, or its bytes.
        output_name: Which output holds the logits; the first by default.
        features_from: Which output holds features, or which tensor inside the network, by name:
            ``(n, d)`` as it is, ``(n, c, h, w)`` as its mean over positions.
        providers: Execution providers of onnxruntime, best first.
        threads: Threads an operator may use; 0 leaves that to onnxruntime.
        preprocessing: As for every model.
        **options: ``classes``, ``output``, ``batch_size``, ``memory_budget`` and ``key``, as for
            every model; the batch size is found by default.
    """

    def __init__(
        self,
        file: str | Path | bytes,
        *,
        output_name: str | None = None,
        features_from: str | None = None,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        threads: int = 0,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        super().__init__(preprocessing=preprocessing, **{"batch_size": None, **options})
        self.file = file if isinstance(file, bytes) else Path(file)
        self.features_from = features_from
        self.providers = list(providers)
        self.threads = check_count(threads, name="threads", least=0)
        self._open()
        self.input_name, self.shape, dtype = _only_input(self.session)
        self.preprocessing = replace(
            self.preprocessing, dtype=dtype, layout=_layout(self.shape, self.preprocessing.layout)
        )
        if self.batch_size is None and isinstance(self.shape[0], int):
            self.batch_size = self.shape[0]
        outputs = [output.name for output in self.session.get_outputs()]
        self.output_name = outputs[0] if output_name is None else output_name
        if self.output_name not in outputs:
            raise InputError(
                f"output_name must be one of the file's outputs, {', '.join(outputs)}; got "
                f"{output_name!r}."
            )

    def _open(self) -> None:
        if isinstance(self.file, Path):
            self._source: ModelFile | bytes = ModelFile(self.file, "an ONNX file")
            self.file = self._source.path
        else:
            self._source = self.file
        session = open_session(self.file, providers=self.providers, threads=self.threads)
        wanted = self.features_from
        if wanted is not None and wanted not in [one.name for one in session.get_outputs()]:
            session = open_session(
                with_output(self.file, wanted),
                providers=self.providers,
                threads=self.threads,
                folder=self.file.parent if isinstance(self.file, Path) else None,
            )
        self.session = session

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the session, which is opened again from the file or its bytes."""
        return {name: value for name, value in vars(self).items() if name not in _REOPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def engine(self) -> str:
        """``onnxruntime``, its version and the execution provider that comes first."""
        runtime = require("onnxruntime", extra="onnx", needed_by="an ONNX model")
        return f"onnxruntime {runtime.__version__} {self.session.get_providers()[0]}"

    @property
    def measured_memory(self) -> str | None:
        """The process's, if everything runs on the processor."""
        return "process" if self.session.get_providers() == ["CPUExecutionProvider"] else None

    def use_threads(self, threads: int) -> None:
        """Open the file again with so many threads."""
        self.threads = check_count(threads, name="threads", least=0)
        self._open()

    def _identity(self) -> Iterable[str | bytes] | None:
        if isinstance(self._source, bytes):
            own: str | bytes = self._source
        else:
            folder = self._source.path.parent
            own = self._source.digest(lambda data: external_files(data, folder))
        return ("onnx", own, self.output_name, str(self.features_from))

    def _forward(self, batch: NDArray[Any]) -> Any:
        for wanted, came in zip(self.shape[1:], batch.shape[1:], strict=True):
            if isinstance(wanted, int) and wanted != came:
                raise InputError(
                    f"the network takes inputs of shape {tuple(self.shape[1:])}; these images "
                    f"give {batch.shape[1:]}. Say resize and crop in the preprocessing."
                )
        parts = [self._session_run(batch[start:stop]) for start, stop in self._pieces(len(batch))]
        outputs = tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        return outputs if self.features_from is not None else outputs[0]

    def _pieces(self, n: int) -> list[tuple[int, int]]:
        fixed = self.shape[0]
        size = fixed if isinstance(fixed, int) else n
        return [(start, min(start + size, n)) for start in range(0, n, size)]

    def _session_run(self, piece: NDArray[Any]) -> list[NDArray[Any]]:
        n, fixed = len(piece), self.shape[0]
        if isinstance(fixed, int) and fixed != n:
            piece = np.concatenate([piece, np.repeat(piece[-1:], fixed - n, axis=0)])
        names = [self.output_name]
        if self.features_from is not None:
            names.append(self.features_from)
        logits, *features = self.session.run(names, {self.input_name: piece})
        made = [as_features(one, name=str(self.features_from)) for one in features]
        return [output[:n] for output in (logits, *made)]


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

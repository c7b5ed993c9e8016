"""ONNX files, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._optional import require
from shiftcal.errors import InputError, MissingExtra
from shiftcal.models._features import as_features
from shiftcal.models._model_file import ModelFile, check_same
from shiftcal.models._onnx_file import external_files, open_session, with_output
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing

_DTYPES: dict[str, Literal["float32", "float16", "uint8"]] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(uint8)": "uint8",
}

# What is made anew from the file.
_REOPENED = ("session",)


class OnnxModel(Model):
    """A network in an ONNX file.

    Name, dtype, layout and channels of the input are read from the file and override those of the
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
        self._digest: str | None = None
        self._open()
        self.input_name, self.shape, dtype = _only_input(self.session)
        layout, channels = _layout(self.shape, self.preprocessing)
        self.preprocessing = replace(
            self.preprocessing, dtype=dtype, layout=layout, channels=channels
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
        file = None if isinstance(self.file, bytes) else _read(self.file)
        if file is not None:
            self.file = file.path
            check_same(file.path, file.digest, self._digest)
        session = open_session(self.file, providers=self.providers, threads=self.threads)
        wanted = self.features_from
        if wanted is not None and wanted not in [one.name for one in session.get_outputs()]:
            session = open_session(
                with_output(self.file, wanted),
                providers=self.providers,
                threads=self.threads,
                folder=self.file.parent if isinstance(self.file, Path) else None,
            )
        if file is not None:
            file.loaded()
            self._digest = file.digest
        self.session = session

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the session, which is opened again from the file or its bytes."""
        return {name: value for name, value in vars(self).items() if name not in _REOPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def engine(self) -> str:
        """``onnxruntime``, its version and the execution providers in their order."""
        runtime = require("onnxruntime", extra="onnx", needed_by="an ONNX model")
        return f"onnxruntime {runtime.__version__} {', '.join(self.session.get_providers())}"

    @property
    def measured_memory(self) -> str | None:
        """The process's, if everything runs on the processor."""
        return "process" if self.session.get_providers() == ["CPUExecutionProvider"] else None

    def use_threads(self, threads: int) -> None:
        """Open the file again with so many threads."""
        self.threads = check_count(threads, name="threads", least=0)
        self._open()

    def _identity(self) -> Iterable[str | bytes] | None:
        if isinstance(self.file, bytes):
            return ("onnx", self.file)
        # Without a digest this says what is needed for one.
        return ("onnx", str(self._digest or _read(self.file, must=True).digest))

    def _choices(self) -> Mapping[str, str | None]:
        return {"output_name": self.output_name, "features_from": self.features_from}

    def _forward(self, batch: NDArray[Any]) -> Any:
        for wanted, came in zip(self.shape[1:], batch.shape[1:], strict=True):
            if isinstance(wanted, int) and wanted != came:
                raise InputError(
                    f"the network takes inputs of shape {tuple(self.shape[1:])}; these images "
                    f"give {batch.shape[1:]}. Say resize and crop, or channels, in the "
                    "preprocessing, on the command line ?resize=256&crop=224 or ?channels=1."
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


def _layout(
    shape: list[Any], default: Preprocessing
) -> tuple[Literal["nchw", "nhwc"], Literal[1, 3]]:
    """Where the channels are and how many; what the shape leaves open is as in the default."""
    sides: dict[Literal["nchw", "nhwc"], Any] = {"nchw": shape[1], "nhwc": shape[3]}
    other: Literal["nchw", "nhwc"] = "nhwc" if default.layout == "nchw" else "nchw"
    order: tuple[Literal["nchw", "nhwc"], ...] = (default.layout, other)
    counts: tuple[Literal[1, 3], ...] = (3, 1)
    # A dimension that says three is the channels, whatever an open one could be; so is one that
    # says one, unless another says three.
    for channels in counts:
        for layout in order:
            if sides[layout] == channels:
                return layout, channels
    for layout in order:
        if not isinstance(sides[layout], int):
            return layout, default.channels
    raise InputError(
        f"an ONNX model must take images of three channels, or of one; its input has shape {shape}."
    )


def _read(path: Path, *, must: bool = False) -> ModelFile:
    """The file and the digest of all it refers to, which is empty if that cannot be known."""
    folder = path.absolute().parent
    try:
        return ModelFile(path, "an ONNX file", lambda data: external_files(data, folder))
    except MissingExtra:
        if must:
            raise
    file = ModelFile(path, "an ONNX file")
    file.digest = None
    return file

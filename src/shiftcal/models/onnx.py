"""ONNX files: opened by onnxruntime, extended by an output, and the files they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from numpy.typing import NDArray

from shiftcal.checks import check_count
from shiftcal.errors import FileError, InputError, UnknownName, require, suggest
from shiftcal.files import parsing
from shiftcal.models.model import (
    Model,
    ModelFile,
    as_features,
    in_fixed_batches,
    regular_file,
)
from shiftcal.models.preprocessing import Preprocessing

_KIND = "an ONNX model"
_DTYPES: dict[str, Literal["float32", "float16", "uint8"]] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(uint8)": "uint8",
}


def open_session(
    file: Path | bytes, *, providers: Sequence[str], threads: int, folder: Path | None = None
) -> Any:
    """A session of onnxruntime.

    Args:
        file: Path of the file, or its bytes.
        providers: Execution providers, best first.
        threads: Threads per operator; 0 leaves that to onnxruntime.
        folder: Where the weights are that the bytes refer to.
    """
    runtime = require("onnxruntime", extra="onnx", needed_by="an ONNX model")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3  # errors are raised; the rest is not for users
    if folder is not None:
        key = "session.model_external_initializers_file_folder_path"
        settings.add_session_config_entry(key, str(folder))
    source = file if isinstance(file, bytes) else str(file)
    with parsing(_called(file), _KIND):
        session = runtime.InferenceSession(source, sess_options=settings, providers=list(providers))
    if not session.get_outputs():
        raise FileError(f"{_called(file)} must have an output, the logits; it has none.")
    return session


def _with_output(file: Path | bytes, name: str) -> bytes:
    """The network with a tensor inside it as one more output."""
    onnx = require("onnx", extra="onnx", needed_by=f"features_from={name!r}, inside the network,")
    data = file if isinstance(file, bytes) else file.read_bytes()
    with parsing(_called(file), _KIND):
        network = onnx.load_model_from_string(data)
    known = [output for node in network.graph.node for output in node.output if output]
    if name not in known:
        raise UnknownName(
            f"features_from must be the name of an output or of a tensor inside the network; got "
            f"{name!r}. {suggest(name, known)}"
        )
    network.graph.output.append(onnx.ValueInfoProto(name=name))  # onnxruntime infers its type
    return bytes(network.SerializeToString())


def external_files(data: bytes, model: Path) -> list[Path]:
    """The files next to a network that hold its weights, each once, sorted; none is opened.

    Args:
        data: Contents of the network's file.
        model: That file.

    Raises:
        FileError: If one is outside the network's folder, or is no regular file.
        MissingExtra: If there may be some and ``onnx``, which reads that, is not installed.
    """
    return [_inside(place, model) for place in _external_places(data, model)]


def _external_places(data: bytes, model: Path | None = None) -> list[str]:
    """Where a network says that its weights are, anywhere in it."""
    if b"location" not in data:  # the word that every reference holds
        return []
    onnx = require("onnx", extra="onnx", needed_by="a network that may have weights in other files")
    with parsing(model or _called(data), _KIND):
        network = onnx.load_model_from_string(data)
    return sorted(
        {
            entry.value
            for tensor in _messages(network, onnx.TensorProto)
            if tensor.data_location == onnx.TensorProto.EXTERNAL
            for entry in tensor.external_data
            if entry.key == "location"
        }
    )


def _messages(message: Any, kind: type) -> Iterator[Any]:
    """All parts of a protobuf message of a kind, also in subgraphs and functions."""
    if isinstance(message, kind):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(part, kind)


def _inside(place: str, model: Path) -> Path:
    # Windows' rules know both slashes, drives and hosts; a host must not even be looked up.
    named, file = PureWindowsPath(place), model.absolute().parent / place
    inside = not (named.drive or named.root or ".." in named.parts)
    # If the network is a link, its weights may be links to files next to the linked network.
    with suppress(OSError, ValueError, RuntimeError):
        homes = (model.absolute().parent.resolve(), model.resolve().parent)
        if inside and any(file.resolve().is_relative_to(home) for home in homes):
            return regular_file(file, f"a file with weights of {model}")
    raise FileError(
        f"{model} must have its weights in files in its own folder; it names {place!r}, which was "
        "not opened. Save it again, with the weights in the same folder."
    )


def _called(file: Path | bytes) -> Path:
    return Path("the ONNX model") if isinstance(file, bytes) else file


class OnnxModel(Model):
    """A network in an ONNX file.

    Name, dtype, layout and channels of the input are read from the file and override those of the
    preprocessing. A batch size fixed in the file is kept.

    The file is read as data: nothing in it runs as Python. Weights in other files must be in its
    folder.

    Args:
        file: Path of the file, or its bytes, which must then hold all weights.
        output_name: Which output holds the logits; the first by default.
        features_from: Which output, or tensor inside the network, holds features: ``(n, d)`` as it
            is, ``(n, c, h, w)`` as its mean over positions.
        providers: Execution providers of onnxruntime, best first.
        threads: Threads per operator; 0 leaves that to onnxruntime.
        preprocessing: As for every model.
        **options: ``classes``, ``output``, ``batch_size`` and ``key``, as for every model; the
            default batch size depends on the size of the images.
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
        with parsing(_called(self.file), _KIND):
            self._read_input()
        outputs = [output.name for output in self.session.get_outputs()]
        self.output_name = outputs[0] if output_name is None else output_name
        if self.output_name not in outputs:
            raise InputError(
                f"output_name must be one of the file's outputs, {', '.join(outputs)}; got "
                f"{output_name!r}."
            )

    def _open(self) -> None:
        folder = None
        if isinstance(self.file, bytes):
            if places := _external_places(self.file):
                raise InputError(
                    "an ONNX model given as bytes must hold all its weights; it refers to the file "
                    f"{places[0]!r}. Give the path of the model instead."
                )
        else:
            file = ModelFile(self.file, "an ONNX file", external_files, self._digest)
            self.file, self._digest, folder = file.path, file.digest, file.path.parent
        how: dict[str, Any] = {"providers": self.providers, "threads": self.threads}
        self.session = open_session(self.file, **how)
        layer = self.features_from
        if layer is not None and layer not in [one.name for one in self.session.get_outputs()]:
            self.session = open_session(_with_output(self.file, layer), **how, folder=folder)

    def _read_input(self) -> None:
        """Take name, shape, dtype, layout and channels of the input from the file."""
        inputs = self.session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 4:
            found = ", ".join(f"{one.name} {one.shape}" for one in inputs) or "none"
            raise InputError(f"an ONNX model must have one input, a batch of images; got {found}.")
        self.input_name, self.shape, dtype = inputs[0].name, inputs[0].shape, inputs[0].type
        default = self.preprocessing
        sides = {"nchw": self.shape[1], "nhwc": self.shape[3]}
        order: list[Any] = sorted(sides, key=lambda layout: layout != default.layout)
        # A dimension of three is the channels, whatever an open one may be; then one of one.
        candidates: list[tuple[Any, Any]]
        candidates = [(layout, c) for c in (3, 1) for layout in order if sides[layout] == c]
        open_ends = [layout for layout in order if not isinstance(sides[layout], int)]
        candidates += [(layout, default.channels) for layout in open_ends]
        if dtype not in _DTYPES or not candidates:
            raise InputError(
                f"an ONNX model must take images of three channels, or of one, as "
                f"{', '.join(_DTYPES)}; its input has shape {self.shape} and is {dtype}."
            )
        layout, channels = candidates[0]
        self.preprocessing = replace(
            default, dtype=_DTYPES[dtype], layout=layout, channels=channels
        )
        if self.batch_size is None and isinstance(self.shape[0], int):
            self.batch_size = self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the session, which is opened again from the file or its bytes."""
        return {name: value for name, value in vars(self).items() if name != "session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def engine(self) -> str:
        """``onnxruntime``, its version and the execution providers in their order."""
        runtime = require("onnxruntime", extra="onnx", needed_by="an ONNX model")
        return f"onnxruntime {runtime.__version__} {', '.join(self.session.get_providers())}"

    def use_threads(self, threads: int) -> None:
        """Open the file again with this number of threads."""
        self.threads = check_count(threads, name="threads", least=0)
        self._open()

    def _identity(self) -> Iterable[str | bytes]:
        return ("onnx", self.file if isinstance(self.file, bytes) else str(self._digest))

    def _choices(self) -> Mapping[str, str | None]:
        return {"output_name": self.output_name, "features_from": self.features_from}

    def _forward(self, batch: NDArray[Any]) -> Any:
        layer = self.features_from
        names = [self.output_name] if layer is None else [self.output_name, layer]

        def run(piece: NDArray[Any]) -> list[NDArray[Any]]:
            logits, *features = self.session.run(names, {self.input_name: piece})
            return [logits, *(as_features(one, name=str(layer)) for one in features)]

        outputs = in_fixed_batches(run, batch, self.shape)
        return outputs[0] if layer is None else outputs

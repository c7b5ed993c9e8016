"""ONNX files: opened by onnxruntime, given another output, and what else they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import FileError
from shiftcal.models._features import unknown_layer


def open_session(
    file: Path | bytes, *, providers: Sequence[str], threads: int, folder: Path | None = None
) -> Any:
    """A session of onnxruntime.

    Args:
        file: Path of the file, or its bytes.
        providers: Execution providers, best first.
        threads: Threads an operator may use; 0 leaves that to onnxruntime.
        folder: Where weights lie that the bytes refer to.
    """
    runtime = require("onnxruntime", extra="onnx", needed_by="an ONNX model")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3  # errors are raised; the rest is not for users
    if folder is not None:
        key = "session.model_external_initializers_file_folder_path"
        settings.add_session_config_entry(key, str(folder))
    given = file if isinstance(file, bytes) else str(file)
    try:
        return runtime.InferenceSession(given, sess_options=settings, providers=list(providers))
    except Exception as error:  # onnxruntime's own classes, one for every code
        raise _unreadable(file, error) from error


def with_output(file: Path | bytes, name: str) -> bytes:
    """The network with a tensor inside it as one more output.

    Raises:
        UnknownName: If nothing in it is called that, with the nearest names there are.
        MissingExtra: If the package ``onnx``, which can change networks, is not installed.
    """
    onnx = require("onnx", extra="onnx", needed_by=f"features_from={name!r}, inside the network,")
    data = file if isinstance(file, bytes) else file.read_bytes()
    network = onnx.load_model_from_string(data)
    known = [output for node in network.graph.node for output in node.output if output]
    if name not in known:
        raise unknown_layer(name, known, what="an output, or of a tensor inside the network")
    network.graph.output.append(onnx.ValueInfoProto(name=name))  # onnxruntime finds its type
    return bytes(network.SerializeToString())


def external_files(data: bytes, folder: Path) -> list[Path]:
    """The files that hold weights of a network beside its own, each once, sorted.

    Raises:
        MissingExtra: If there may be some and ``onnx``, which can read that, is not installed.
    """
    if b"location" not in data:  # the word that every reference holds
        return []
    onnx = require("onnx", extra="onnx", needed_by="the fingerprint of a network in several files")
    places = set()
    for tensor in _tensors(onnx.load_model_from_string(data).graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            places |= {entry.value for entry in tensor.external_data if entry.key == "location"}
    return [folder / place for place in sorted(places)]


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _unreadable(file: Path | bytes, error: Exception) -> FileError:
    name = "the ONNX model" if isinstance(file, bytes) else str(file)
    first = str(error).strip().partition("\n")[0]
    return FileError(f"{name} could not be loaded as ONNX: {first}")

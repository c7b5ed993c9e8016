"""The code in a TorchScript file: nothing in it may be more than computing with tensors."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shiftcal.errors import FileError

# Libraries of operators that compute; the one for profiling measures time.
_COMPUTE = {
    "aten", "prim", "quantized", "sparse", "mkl", "mkldnn", "mkldnn_prepacked", "onednn",
    "prepacked", "torchvision", "profiler",
}  # fmt: skip
# Those of them that write and map files, run Python, or call other machines.
_REFUSED = r"save|from_file|\w*PythonOp\w*|rpc_(?:sync|async|remote)|debug_only\w*"
_WORDS = re.compile(rf"(?<![A-Za-z0-9_])(?:{_REFUSED})(?![A-Za-z0-9_])")
_LIBRARY = re.compile(r"(?<![A-Za-z0-9_])ops\s*\.\s*(\w+)\s*\.\s*(\w+)")
# Classes of C++: packed weights only.
_CLASSES = re.compile(r"torch\s*\.\s*classes\s*\.\s*(\w+)")
_PACKED = {"quantized", "sparse", "rnn", "xnnpack", "mkldnn"}
_OCTAL, _JOINT = re.compile(r"\\([0-7]{1,3})"), re.compile(r"""["']\s*["']""")


def check_archive(data: bytes, path: Path) -> None:
    """Refuse what is no TorchScript, and code that does more than compute, by its text.

    torch runs some functions of a file while it loads it, so that this must come before. Names are
    looked for wherever they stand, also in text, of which a name can be made.

    Raises:
        FileError: Naming what was found.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            inside = {name.partition("/")[2] for name in names}
            _check_kind(inside, path)
            twice = [name for name, times in Counter(names).items() if times > 1]
            if twice:
                raise _refused(path, f"{twice[0]!r} twice")
            for name in names:
                _check_record(name.partition("/")[2], archive.read(name), path)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError):
        _check_kind(set(), path)


def check_graphs(module: Any, path: Path) -> None:
    """Refuse operators that do more than compute, in whatever a loaded module can run.

    Raises:
        FileError: Naming the operator.
    """
    for part in module.modules():
        for name in part._c._method_names():
            method = part._c._get_method(name)
            for kind in _operators(method.inlined_graph):
                library, _, operator = kind.partition("::")
                if library not in _COMPUTE or re.fullmatch(_REFUSED, operator):
                    raise _refused(path, f"the operator {kind}")


def _operators(graph: Any) -> Iterator[str]:
    for node in graph.nodes():
        yield node.kind()
        for block in node.blocks():
            yield from _operators(block)
        for name in node.attributeNames():  # what is begun on its own, by fork, is a graph inside
            if node.kindOf(name) == "g":
                yield from _operators(node.g(name))


def _check_record(name: str, content: bytes, path: Path) -> None:
    code = name.startswith("code/") and name.endswith(".py")
    if not code and not name.endswith(".pkl"):
        return
    text = content.decode("utf-8", "replace")
    found = next((one for one in _CLASSES.findall(text) if one not in _PACKED), None)
    if found is not None:
        raise _refused(path, f"a class of torch.classes.{found}")
    if not code:
        return
    plain = _JOINT.sub("", _OCTAL.sub(lambda one: chr(int(one[1], 8)), text))
    for version in (text, plain):
        word = _WORDS.search(version)
        if word is not None:
            raise _refused(path, f"the operator {word[0]}")
        for library, operator in _LIBRARY.findall(version):
            if library not in _COMPUTE:
                raise _refused(path, f"the operator {library}::{operator}")


def _check_kind(inside: set[str], path: Path) -> None:
    if "constants.pkl" not in inside or not any(name.startswith("code/") for name in inside):
        kind = "weights without code (torch.save)" if "data.pkl" in inside else "something else"
        raise FileError(
            f"{path} must be a TorchScript file, from torch.jit.save; it holds {kind} and was not "
            "opened further. Weights go into an architecture: cifar_resnet(20, weights=...)."
        )


def _refused(path: Path, what: str) -> FileError:
    return FileError(
        f"{path} holds {what}, which is not among what a network of tensors needs, and was not "
        "run. Pass the module itself if you trust it."
    )

"""Models as text: ``kind:what?option=value&option=value``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote

from shiftcal._registry import suggest
from shiftcal.errors import InputError, UnknownName

# Kind -> what stands behind the colon.
KINDS = {
    "onnx": "model.onnx",
    "torch": "package.module:factory",
    "python": "package.module:function",
    "torchscript": "file.pt",
    "export": "file.pt2",
    "sklearn": "file.skops",
    "timm": "resnet50",
    "hf": "microsoft/resnet-50",
    "torchvision": "resnet50",
    "pytorchcv": "resnet20_cifar10",
    "cifar-resnet": "20",
    "efficientnet-lite": "0",
}
# Ending of a plain path -> its kind.
ENDINGS = {
    ".onnx": "onnx",
    ".pt": "torchscript",
    ".pth": "torchscript",
    ".ts": "torchscript",
    ".torchscript": "torchscript",
    ".pt2": "export",
    ".skops": "sklearn",
}
# Endings of what joblib.dump and pickle.dump write.
_PICKLES = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True)
class Spec:
    """A model as text, taken apart.

    Attributes:
        kind: What it is made by, one of the kinds above.
        target: A file, a name, or ``package.module:factory`` (``function`` for ``python``).
        options: Name -> text of its value, in the order given.
    """

    kind: str
    target: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        target = quote(self.target, safe="/:.,+\\ ~@=&")
        pairs = "&".join(
            f"{name}={quote(value, safe='/:.,+ ~@')}" for name, value in self.options.items()
        )
        return f"{self.kind}:{target}" + (f"?{pairs}" if pairs else "")


def parse_spec(text: str) -> Spec:
    """Take the text of a model apart.

    ``onnx:model.onnx?batch_size=64``, or a plain path whose ending says the kind. Characters that
    mean something here (``?``, ``&``, ``%``) are written as in addresses on the web: ``%3F``.

    Raises:
        UnknownName: If there is no such kind.
        InputError: If the text cannot be taken apart.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f"a model must be said as kind:what, such as onnx:model.onnx; got {text!r}."
        )
    body, mark, query = text.strip().partition("?")
    kind, colon, target = body.partition(":")
    if not colon or kind not in KINDS:
        kind, target = _of_path(body, kind if colon else ""), body
    if not target.strip():
        raise InputError(f"{text!r} must say what after the colon: {kind}:{KINDS[kind]}.")
    return Spec(kind, unquote(target), MappingProxyType(_pairs(query, text) if mark else {}))


def _of_path(path: str, prefix: str) -> str:
    known = ", ".join(f"{kind}:{what}" for kind, what in KINDS.items())
    # One letter before a colon is a drive of Windows.
    if len(prefix) > 1 and re.fullmatch(r"[\w-]+", prefix):
        raise UnknownName(
            f"no kind of model is called {prefix!r}. {suggest(prefix.lower(), list(KINDS))}"
        )
    ending = Path(path).suffix.lower()
    if ending in _PICKLES:
        raise InputError(
            f"{path} is a pickle, which is never loaded because it can run code. Save the "
            "classifier with skops.io.dump and name sklearn:file.skops, or name an object of a "
            "module of yours that loads it: python:package.module:model."
        )
    if re.fullmatch(r"[\w-]+", path):
        raise InputError(
            f"{path!r} must say where the model is from: did you mean timm:{path} or "
            f"torchvision:{path}? Models: {known}."
        )
    if ending not in ENDINGS:
        raise InputError(
            "the file of a model must end in .onnx, .pt (TorchScript), .pt2 (torch.export) or "
            f".skops (scikit-learn); got {path}. Weights alone go into an architecture first. "
            f"Other models: {known}."
        )
    return ENDINGS[ending]


def _pairs(query: str, text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        name = unquote(name).strip()
        if not equals or not name.isidentifier():
            raise InputError(
                f"options must be name=value with & between them; got {part!r} in {text!r}."
            )
        if name in pairs:
            raise InputError(f"each option must be said once; got {name} twice in {text!r}.")
        pairs[name] = unquote(value)
    return pairs

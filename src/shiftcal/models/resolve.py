"""From an object, a file or a text to a model."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from shiftcal.errors import InputError, ShiftcalError, UnknownName, require, suggest
from shiftcal.models.model import CallableModel, Model, first_line
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.registry import current_folder, imported, plain_value, split_spec, told

# Kind -> an example of what follows the colon.
KINDS = {
    "onnx": "model.onnx",
    "torch": "package.module:factory",
    "python": "package.module:function",
    "export": "file.pt2",
    "sklearn": "file.skops",
    "timm": "resnet50",
    "hf": "microsoft/resnet-50",
    "torchvision": "resnet50",
    "cifar-resnet": "20",
    "efficientnet-lite": "0",
}
# Suffix of a plain path -> its kind.
_SUFFIXES = {".onnx": "onnx", ".pt2": "export", ".skops": "sklearn"}
# Kinds that are read as data: loading one runs no code of theirs and contacts no host.
_DATA = ("onnx", "sklearn", "cifar-resnet", "efficientnet-lite")


@dataclass(frozen=True)
class Spec:
    """A model as text, parsed.

    Attributes:
        kind: What makes it, one of the kinds above.
        target: A file, a name, or ``package.module:factory`` (``function`` for ``python``).
        options: Name -> text of its value, in order.
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
    """Parse the text of a model.

    ``onnx:model.onnx?batch_size=64``, or a plain path whose suffix gives the kind. The characters
    ``?``, ``&`` and ``%`` are written as in URLs: ``%3F``.

    Raises:
        UnknownName: If there is no such kind.
        InputError: If the text cannot be parsed.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"a model must be written as kind:what, such as timm:a; got {text!r}.")
    kind, target, options = split_spec(text.strip())
    if kind not in KINDS:
        if kind:
            raise UnknownName(f"no kind of model is called {kind!r}. {suggest(kind, list(KINDS))}")
        suffix = Path(target).suffix.lower()
        if suffix not in _SUFFIXES:
            hint = f"Did you mean timm:{target} or torchvision:{target}? " * ("." not in target)
            raise InputError(
                "a model must be a file ending in .onnx, .pt2 (torch.export) or .skops "
                f"(scikit-learn), or kind:what; got {target!r}. {hint}Weights need the function "
                f"that makes the network: torch:package.module:factory?weights=FILE. A pickle is "
                f"never loaded. Kinds: {', '.join(f'{x}:{what}' for x, what in KINDS.items())}."
            )
        kind = _SUFFIXES[suffix]
    if not target.strip():
        raise InputError(f"{text!r} must name something after the colon: {kind}:{KINDS[kind]}.")
    return Spec(kind, unquote(target), MappingProxyType(options))


_SETTINGS = tuple(one.name for one in fields(Preprocessing))
# Options whose value stays the text it is.
_TEXTS = {
    *("key", "output", "output_name", "features_from", "device", "scores"),
    *("weights", "revision", "trusted"),
}
_COMMON = ("batch_size", "key", "output")
_TORCH = (*_COMMON, "device", "threads")
_MODULE = (*_TORCH, "features_from")
# Kind -> options of its adapter, and those of the network itself; default: a module's.
_TAKEN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "onnx": ((*_COMMON, "output_name", "features_from", "threads"), ()),
    "python": ((*_COMMON, "raw"), ()),
    "export": (_TORCH, ()),
    "sklearn": (("batch_size", "key", "scores"), ("trusted",)),
    "hf": (_MODULE, ("revision",)),
}


def _read_options(spec: Spec) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Options of the adapter, of the preprocessing, and of the network itself."""
    adapter, own = _TAKEN.get(spec.kind, (_MODULE, ("weights",)))
    read: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = ({}, {}, {})
    for name, text in spec.options.items():
        known = (adapter, _SETTINGS, (*own, name) if spec.kind == "torch" else own)
        group = next((i for i, names in enumerate(known) if name in names), None)
        if group is None:
            raise InputError(
                f"a model of kind {spec.kind} has no option {name!r}. "
                f"{suggest(name, [*own, *adapter, *_SETTINGS])}"
            )
        read[group][name] = text if name in _TEXTS else _value(name, text)
    return read


def _value(name: str, text: str) -> Any:
    try:
        if name in ("mean", "std"):
            return tuple(float(number) for number in text.split(","))
        if name == "resize" and "x" in text:
            return tuple(int(side) for side in text.split("x"))
    except ValueError:
        raise InputError(
            f"{name} must be numbers, as in mean=0.5,0.5,0.5 or resize=224x320; got {text!r}."
        ) from None
    return plain_value(text)


def as_model(thing: Any, **options: Any) -> Model:
    """A model from a file, an object or a text.

    A model is a program. ``torch.export`` files, ``torch:``, ``python:`` and skops
    files with ``trusted`` types run code with your rights, and names of hubs are downloaded: use
    only what you trust. A text that comes from a file goes through :func:`stored_spec` first.

    Args:
        thing: A :class:`Model`, which is returned; a PyTorch module; a fitted scikit-learn
            classifier; the path of an ``.onnx``, ``.pt2`` (``torch.export``) or ``.skops`` file;
            the bytes of an ONNX file; the text of a model, such as ``"timm:resnet50"`` (see
            :func:`parse_spec`), or a :class:`Spec`; or a function from images to logits.
        **options: Those of the adapter, and ``preprocessing``, ``classes``, ``output`` and
            ``batch_size``.

    Returns:
        The model. Its ``spec`` is the text that makes it again, from any folder, if it was made
        from a text or path without options.

    Raises:
        InputError: If it is none of these.
    """
    if isinstance(thing, str | Path | Spec):
        spec = thing if isinstance(thing, Spec) else _as_spec(thing)
        model = _from_spec(spec, options)
        model.spec = None if options else str(_with_absolute_paths(spec))
        return model
    if isinstance(thing, bytes):
        from shiftcal.models.onnx import OnnxModel

        return OnnxModel(thing, **options)
    return _from_object(thing, options)


def _from_object(thing: Any, options: dict[str, Any]) -> Model:
    if isinstance(thing, Model):
        if options:
            raise InputError(f"a Model has its options already; got {', '.join(options)} too.")
        return thing
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    if torch is not None and isinstance(thing, torch.nn.Module):
        from shiftcal.models.pytorch import TorchModel

        return TorchModel(thing, **options)
    if hasattr(thing, "predict") and hasattr(thing, "fit"):
        from shiftcal.models.sklearn import SklearnModel

        return SklearnModel(thing, **options)
    if callable(thing):
        return CallableModel(thing, **options)
    raise InputError(
        "a model must be a function, a PyTorch module, a fitted scikit-learn classifier, the path "
        "of an ONNX, torch.export or .skops file, or a text such as timm:resnet50; "
        f"got {type(thing).__name__}."
    )


def _from_spec(spec: Spec, options: Mapping[str, Any]) -> Model:
    adapter, settings, own = _read_options(spec)
    twice = sorted(set(adapter) & set(options))
    if settings and options.get("preprocessing") is not None:
        twice.append("preprocessing")
    if twice:
        raise InputError(
            f"each option must be set once; got {', '.join(twice)} in {spec} and as an argument."
        )
    merged = {**options, **adapter}

    def prepare(default: Preprocessing) -> None:
        """Put the default with the settings of the text into the options."""
        if merged.get("preprocessing") is None:
            channels = settings.get("channels", default.channels)
            for name in {"mean", "std"} & settings.keys():
                if len(settings[name]) == 1:  # one number for all channels
                    settings[name] *= channels
            merged["preprocessing"] = replace(default, **settings)

    if spec.kind == "onnx":
        from shiftcal.models.onnx import OnnxModel

        prepare(Preprocessing())
        return OnnxModel(spec.target, **merged)
    if spec.kind == "sklearn":
        from shiftcal.models.sklearn import SklearnModel, read_skops

        prepare(Preprocessing(layout="nhwc"))
        trusted = [name for name in own.get("trusted", "").split(",") if name]
        estimator, file_digest = read_skops(spec.target, trusted=trusted)
        classifier = SklearnModel(estimator, **merged)
        classifier._file_digest = file_digest
        return classifier
    if spec.kind == "python":
        thing = _imported("python:", spec.target)
        if settings:
            layout: Any = "nhwc" if hasattr(thing, "predict") else "nchw"
            prepare(_carried(thing) or Preprocessing(layout=layout))
        model = _from_object(thing, merged)
        # The user's own object must not get the text as its spec.
        return copy.copy(model) if model is thing else model

    from shiftcal.models.pytorch import ExportedModel, TorchModel

    threads = merged.pop("threads", None)
    if spec.kind == "export":
        prepare(Preprocessing())
        model = ExportedModel(spec.target, **merged)
    else:
        module, preprocessing, classes = _network(spec, own)
        prepare(preprocessing)
        if classes is not None:
            merged.setdefault("classes", list(classes))
        device = merged.pop("device", None)
        try:
            module = module if device is None else module.to(device)
        except (RuntimeError, AssertionError) as error:  # the second without CUDA
            raise InputError(f"device {device!r} cannot be used: {first_line(error)}") from error
        model = TorchModel(module, **merged)
    if threads is not None:
        model.use_threads(threads)
    return model


def _network(spec: Spec, own: Mapping[str, Any]) -> tuple[Any, Preprocessing, Any]:
    """The module of a text, its preprocessing, and its classes if they are known."""
    if spec.kind == "torch":
        module = _made_by_factory(spec.target, own)
        return module, _carried(module) or Preprocessing(), None
    from shiftcal.models.networks import MAKERS

    network = MAKERS[spec.kind](spec.target, **own)
    return network.module.eval(), network.preprocessing, network.classes


def _carried(thing: Any) -> Preprocessing | None:
    carried = getattr(thing, "preprocessing", None)
    return carried if isinstance(carried, Preprocessing) else None


def _made_by_factory(name: str, options: Mapping[str, Any]) -> Any:
    """What ``package.module:factory`` returns, filled with ``weights`` if there are any."""
    nn = require("torch.nn", extra="torch", needed_by=f"torch:{name}")
    from shiftcal.models.pytorch import load_weights

    arguments = {key: value for key, value in options.items() if key != "weights"}
    with current_folder():  # the factory may import too
        factory = _imported("torch:", name)
        try:
            network = factory(**arguments)
        except ShiftcalError:
            raise
        except Exception as error:
            passed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
            raise InputError(
                f"torch:{name} called with ({passed}) raised {told(error)}."
            ) from error
    if not isinstance(network, nn.Module):
        raise InputError(
            f"torch:{name} must return a torch.nn.Module; got {type(network).__name__}."
        )
    if "weights" in options:
        load_weights(network, options["weights"], what=f"the network of {name}")
    return network


def _imported(prefix: str, name: str) -> Any:
    if not all(name.partition(":")):
        raise InputError(f"{prefix} must be followed by package.module:name; got {name!r}.")
    return imported(name, prefix=prefix)


def _as_spec(thing: str | Path) -> Spec:
    """A path means the file of exactly that name; so does a text, if there is such a file."""
    path = Path(thing)
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is not None and (isinstance(thing, Path) or path.is_file()):
        return Spec(kind, str(thing))
    return parse_spec(str(thing))


def _with_absolute_paths(spec: Spec) -> Spec:
    target, options = spec.target, dict(spec.options)
    if spec.kind in set(_SUFFIXES.values()) or (spec.kind == "hf" and Path(target).is_dir()):
        target = str(Path(target).absolute())
    # Weights of torchvision need not be a file.
    if Path(options.get("weights", "")).is_file():
        options["weights"] = str(Path(options["weights"]).absolute())
    return Spec(spec.kind, target, options)


def stored_spec(text: object, *, where: object, name_it: str) -> Spec:
    """The text of a model that a file holds, if the file may decide what is loaded.

    A bank, a plan or the folder of a run may come from anybody. What it names is loaded if that is
    data: ONNX, skops without further trusted types, weights of a known architecture. Whatever runs
    code or contacts a host is loaded only if the user names it.

    Args:
        text: From the file.
        where: The file or folder, for messages.
        name_it: How the user names the model, such as ``"--model {}"``.

    Returns:
        For :func:`as_model`, to which the text could mean another model by then.

    Raises:
        InputError: If the user must name it.
    """
    if not isinstance(text, str):
        raise InputError(
            f"{where} does not say how its model is made, since it was an object in memory. Pass "
            f"it again: {name_it.format('MODEL')}."
        )
    spec = _as_spec(text)
    paths = (spec.target, spec.options.get("weights", ""))
    remote = any(path.startswith(("//", "\\\\")) for path in paths)  # a share, on Windows
    if spec.kind not in _DATA or "trusted" in spec.options or remote:
        raise must_be_named(text, where=where, name_it=name_it)
    return spec


def must_be_named(text: str, *, where: object, name_it: str) -> InputError:
    """The error for a model of a file that only the user may name."""
    return InputError(
        f"{where} names the model {text!r}, and loading it may run code or contact a host. If you "
        f"trust that model, name it yourself: {name_it.format(repr(text))}."
    )

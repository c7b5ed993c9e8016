"""From the text of a model to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from shiftcal.errors import InputError
from shiftcal.models._spec_options import Options, plain_value, read_options
from shiftcal.models.base import Model
from shiftcal.models.hub.found import Found
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.spec import Spec


def model_from_spec(spec: Spec, options: Mapping[str, Any]) -> Model:
    """The model of a text.

    Args:
        spec: The text, taken apart.
        options: Further options of the adapter, none of which the text says as well.

    Raises:
        InputError: If an option is said twice or is unknown, or the network cannot be made.
    """
    said = read_options(spec)
    twice = sorted(set(said.adapter) & set(options))
    if said.preprocessing and options.get("preprocessing") is not None:
        twice.append("preprocessing")
    if twice:
        raise InputError(
            f"each option must be said once; got {', '.join(twice)} in {spec} and beside it."
        )
    if spec.kind in _MADE_BY:
        return _MADE_BY[spec.kind](spec, said, dict(options))
    return _of_module(spec, said, dict(options))


def _onnx(spec: Spec, said: Options, options: dict[str, Any]) -> Model:
    from shiftcal.models.onnx import OnnxModel

    _set_preprocessing(options, Preprocessing(), said)
    return OnnxModel(spec.target, **options, **said.adapter)


def _torchscript(spec: Spec, said: Options, options: dict[str, Any]) -> Model:
    from shiftcal.models.torchscript import TorchScriptModel

    _set_preprocessing(options, Preprocessing(), said)
    threads = said.adapter.pop("threads", None)
    return _threaded(TorchScriptModel(spec.target, **options, **said.adapter), threads)


def _export(spec: Spec, said: Options, options: dict[str, Any]) -> Model:
    from shiftcal.models.exported import ExportedModel

    _set_preprocessing(options, Preprocessing(), said)
    threads = said.adapter.pop("threads", None)
    return _threaded(ExportedModel(spec.target, **options, **said.adapter), threads)


def _sklearn(spec: Spec, said: Options, options: dict[str, Any]) -> Model:
    from shiftcal.models.sklearn import SklearnModel
    from shiftcal.models.skops_file import read_skops

    trusted = [name for name in said.own.get("trusted", "").split(",") if name]
    _set_preprocessing(options, Preprocessing(layout="nhwc"), said)
    return SklearnModel(read_skops(spec.target, trusted=trusted), **options, **said.adapter)


def _python(spec: Spec, said: Options, options: dict[str, Any]) -> Model:
    from shiftcal.models._named_object import brought, model_of_named, named_object

    thing = named_object(spec.target)
    if said.preprocessing:
        _set_preprocessing(options, brought(thing), said)
    return model_of_named(spec.target, thing, {**options, **said.adapter})


_MADE_BY: dict[str, Callable[[Spec, Options, dict[str, Any]], Model]] = {
    "onnx": _onnx,
    "torchscript": _torchscript,
    "export": _export,
    "sklearn": _sklearn,
    "python": _python,
}


def _of_module(spec: Spec, said: Options, options: dict[str, Any]) -> Model:
    from shiftcal.models.pytorch import TorchModel

    found = _found(spec, said.own)
    carried = getattr(found.module, "preprocessing", None)
    base = found.preprocessing or (carried if isinstance(carried, Preprocessing) else None)
    if base is None and spec.kind == "pytorchcv":
        _check_said(spec, said, options)
    _set_preprocessing(options, base or Preprocessing(), said)
    if found.classes is not None:
        options.setdefault("classes", list(found.classes))
    threads, device = (said.adapter.pop(name, None) for name in ("threads", "device"))
    module = found.module if device is None else _moved(found.module, device)
    return _threaded(TorchModel(module, **options, **said.adapter), threads)


def _check_said(spec: Spec, said: Options, options: dict[str, Any]) -> None:
    if options.get("preprocessing") is None and not {"mean", "std"} <= set(said.preprocessing):
        raise InputError(
            f"the preprocessing of {spec} is not known; say at least mean and std, such as "
            f"{spec.kind}:{spec.target}?resize=256&crop=224&mean=0.485,0.456,0.406&std=..."
        )


def _found(spec: Spec, own: dict[str, Any]) -> Found:
    if spec.kind == "torch":
        from shiftcal.models._factory import made_by_factory

        return Found(made_by_factory(spec.target, own))
    if spec.kind in ("cifar-resnet", "efficientnet-lite"):
        return Found(_architecture(spec)(plain_value(spec.target), **own))
    return _hub(spec.kind)(spec.target, **own)


def _architecture(spec: Spec) -> Callable[..., Any]:
    if spec.kind == "cifar-resnet":
        from shiftcal.models.architectures.cifar_resnet import cifar_resnet

        return cifar_resnet
    from shiftcal.models.architectures.efficientnet_lite import efficientnet_lite

    return efficientnet_lite


def _hub(kind: str) -> Callable[..., Found]:
    if kind == "timm":
        from shiftcal.models.hub.timm import timm_model

        return timm_model
    if kind == "torchvision":
        from shiftcal.models.hub.torchvision import torchvision_model

        return torchvision_model
    if kind == "pytorchcv":
        from shiftcal.models.hub.pytorchcv import pytorchcv_model

        return pytorchcv_model
    from shiftcal.models.hub.huggingface import huggingface_model

    return huggingface_model


def _set_preprocessing(options: dict[str, Any], base: Preprocessing, said: Options) -> None:
    if options.get("preprocessing") is None:
        settings = dict(said.preprocessing)
        channels = settings.get("channels", base.channels)
        for name in ("mean", "std"):
            if len(settings.get(name, ())) == 1:  # one number for all channels
                settings[name] = settings[name] * (3 if channels == 3 else 1)
        options["preprocessing"] = replace(base, **settings)


def _moved(module: Any, device: str) -> Any:
    try:
        return module.to(device)
    except (RuntimeError, AssertionError) as error:  # the second from a torch without CUDA
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"device must be one that torch has here; got {device!r}: {first}"
        ) from error


def _threaded(model: Model, threads: int | None) -> Model:
    if threads:
        model.use_threads(threads)
    return model

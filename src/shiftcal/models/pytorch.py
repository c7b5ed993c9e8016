"""PyTorch modules, torch.export files, weights."""

from __future__ import annotations

import io
import itertools
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
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
from shiftcal.numerics.blocks import thread_count

# Packages, besides torch, whose classes are identified by name and version.
_LIBRARIES = ("torchvision", "timm", "transformers", "efficientnet_lite_pytorch")
_STANDARD = sys.stdlib_module_names - {"__main__"}
# Where training scripts put the weights inside what they save.
_NESTS = ("state_dict", "model", "net")


def _torch() -> Any:
    return require("torch", extra="torch", needed_by="a PyTorch model")


def _first_tensor(module: Any) -> Any:
    """The first parameter or buffer, whose device and precision are the module's, or ``None``."""
    return next(itertools.chain(module.parameters(), module.buffers()), None)


def _to_numpy(output: Any) -> NDArray[Any]:
    """A tensor, or the ``logits`` of an object, as float32, or as float64 if it is that."""
    torch = _torch()
    if not isinstance(output, torch.Tensor):
        output = output.get("logits") if isinstance(output, dict) else output
        output = getattr(output, "logits", output)
    if not isinstance(output, torch.Tensor):
        raise InputError(
            "the module must return a tensor of logits, or an object with the attribute or key "
            f"logits; got {type(output).__name__}. Wrap it in a module that picks them out."
        )
    wide = torch.float64 if output.dtype == torch.float64 else torch.float32
    return np.asarray(output.to("cpu", wide).numpy())


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Set the number of torch's threads, of the whole process, meanwhile; ``None`` leaves it."""
    torch = _torch()
    before = torch.get_num_threads()
    if threads in (None, before):  # setting it also changes how MKL takes its threads
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _default_threads() -> int:
    """All threads of torch but one, with four processors or more.

    Its threads spin while they wait: next to a thread that prepares images, as many as there are
    processors take longer than one fewer.
    """
    processors = thread_count()
    most = processors - 1 if processors >= 4 else processors
    return max(1, min(int(_torch().get_num_threads()), most))


class TorchNetwork(Model):
    """A network that torch runs, on the device of its parameters.

    Attributes:
        module: The network.
        threads: How many threads torch may use; default: one fewer than there are processors, if
            these are four or more.
    """

    module: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"batch_size": None, **options})
        self.threads: int | None = None

    @property
    def engine(self) -> str:
        """``torch``, its version, and the device if it is not the processor."""
        first = _first_tensor(self.module)
        name = f"torch {_torch().__version__.partition('+')[0]}"
        return (
            name if first is None or first.device.type == "cpu" else f"{name} {first.device.type}"
        )

    def use_threads(self, threads: int) -> None:
        """Let torch use this many threads while the network runs."""
        self.threads = check_count(threads, name="threads")

    def _run(self, batch: NDArray[Any]) -> Any:
        """What the module returns in evaluation mode, without gradients; its modes are kept."""
        torch = _torch()
        first, tensor = _first_tensor(self.module), torch.from_numpy(batch)
        if first is not None:
            tensor = tensor.to(first.device)
            if tensor.is_floating_point() and first.is_floating_point():
                tensor = tensor.to(first.dtype)
        training = [part for part in self.module.modules() if part.training]
        if training:
            self.module.eval()
        try:
            with torch_threads(self.threads or _default_threads()), torch.inference_mode():
                return self.module(tensor)
        finally:
            for part in training:
                part.training = True


class TorchModel(TorchNetwork):
    """An ``nn.Module`` that takes a batch of images and returns logits.

    It runs in evaluation mode and without gradients, on the device and in the precision of its
    parameters, and is left in the mode it was in. :meth:`use_threads` sets the number of threads
    while the module runs.

    The fingerprint is made of the weights, the settings of the layers and the source of your own
    classes, but not of functions they call elsewhere: set ``key`` and change it with them. A module
    with hooks has one only with ``key``.

    Args:
        module: The network.
        features_from: Name of a layer, as in ``module.named_modules()``, whose output is returned
            as features: ``(n, d)`` as it is, ``(n, c, h, w)`` as its mean over positions; the last
            output, if the layer runs more than once.
        preprocessing: As for every model; default: ``module.preprocessing``, if it has one.
        **options: ``classes``, ``output``, ``batch_size`` and ``key``, as for every model; the
            default batch size depends on the size of the images.
    """

    def __init__(
        self,
        module: Any,
        *,
        features_from: str | None = None,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        nn = require("torch.nn", extra="torch", needed_by="a PyTorch model")
        if not isinstance(module, nn.Module):
            raise InputError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
        carried = getattr(module, "preprocessing", None)
        if preprocessing is None and isinstance(carried, Preprocessing):
            preprocessing = carried
        super().__init__(preprocessing=preprocessing, **options)
        known = [path for path, _ in module.named_modules() if path]
        if features_from is not None and features_from not in known:
            raise UnknownName(
                f"features_from must be the name of a layer of the module; got {features_from!r}. "
                f"{suggest(features_from, known)}"
            )
        self.module = module
        self.features_from = features_from

    def _identity(self) -> Iterable[str | memoryview] | None:
        return _module_identity(self.module)

    def _choices(self) -> Mapping[str, str | None]:
        return {"features_from": self.features_from}

    def _forward(self, batch: NDArray[Any]) -> Any:
        layer = self.features_from
        if layer is None:
            return _to_numpy(self._run(batch))
        features: list[NDArray[Any]] = []

        def listen(_module: Any, _inputs: Any, output: Any) -> None:
            # A copy at once: the next layer may write into its input.
            features[:] = [as_features(_to_numpy(output), name=layer).copy()]

        handle = self.module.get_submodule(layer).register_forward_hook(listen)
        try:
            logits = _to_numpy(self._run(batch))
        finally:
            handle.remove()
        if not features:
            raise InputError(f"features_from must name a layer that runs; {layer!r} did not.")
        return logits, features[0]


def _module_identity(module: Any) -> list[str | memoryview] | None:
    """What decides the outputs of a module: classes and settings of its layers, and its tensors.

    ``None`` if it has hooks, or classes that are not of a known library: two versions of such a
    class cannot be told apart.
    """
    torch = _torch()
    module = getattr(module, "_orig_mod", module)  # of torch.compile, which computes the same
    parts: list[str | memoryview] = ["torch"]
    code: set[Any] = set()
    for path, part in module.named_modules():
        if part._forward_hooks or part._forward_pre_hooks:
            return None
        parts += [path, str(getattr(part, "code", ""))]  # of a traced graph
        code.update(type(part).__mro__[:-1])
        for name, value in sorted(vars(part).items()):
            if callable(value) and hasattr(value, "__qualname__"):
                parts.append(f"{name} {value.__qualname__}")
                code.add(getattr(value, "__func__", value))
            elif not name.startswith("_") and isinstance(value, int | float | str | tuple | list):
                parts += [f"{name} {value!r}"] * (name != "training")
    for name in sorted(f"{one.__module__}.{one.__qualname__}" for one in code):
        package = name.partition(".")[0]
        if package not in ("torch", "shiftcal", *_LIBRARIES) and package not in _STANDARD:
            return None
        parts.append(f"{name} {version(package)}" if package in _LIBRARIES else name)
    for path, tensor in itertools.chain(module.named_parameters(), module.named_buffers()):
        parts.append(f"{path} {tensor.dtype} {tuple(tensor.shape)}")
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        parts.append(memoryview(flat.view(torch.uint8).numpy()))
    return parts


def load_weights(network: Any, path: str | Path, *, what: str) -> Any:
    """Fill a network with the weights of a file, every one of them and no others.

    Args:
        network: The module, which is changed and returned.
        path: ``.safetensors``, or a file of ``torch.save``.
        what: What the network is, for messages, such as ``"a CIFAR ResNet-20"``.

    Raises:
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    try:
        network.load_state_dict(read_weights(path))
    except (RuntimeError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise FileError(f"{path} does not hold the weights of {what}: {reason}") from error
    return network


def read_weights(path: str | Path) -> dict[str, Any]:
    """Named tensors of a file.

    They may be under ``state_dict``, ``model`` or ``net``, and their names may begin with
    ``module.``. Of a file of ``torch.save`` only tensors and plain containers are read
    (``weights_only=True``).

    Raises:
        FileError: If the file is missing or damaged, or holds anything else.
    """
    path = regular_file(path, "a file of weights")
    fix = "Save net.state_dict() alone, best as .safetensors."
    with parsing(path, "weights, tensors and nothing else", fix=fix), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on files that are rejected right after
        if path.suffix == ".safetensors":
            reader = require("safetensors.torch", extra="torch", needed_by="a .safetensors file")
            state = reader.load_file(path)
        else:
            state = _torch().load(path, map_location="cpu", weights_only=True)
    while isinstance(state, dict):
        nest = next((name for name in _NESTS if isinstance(state.get(name), dict)), None)
        if nest is None:
            return {str(name).removeprefix("module."): value for name, value in state.items()}
        state = state[nest]
    raise FileError(f"{path} must hold named weights; got {type(state).__name__}.")


class ExportedModel(TorchNetwork):
    """A network saved with ``torch.export.save`` as ``.pt2``, a graph of operators and tensors.

    The file is a program: torch unpickles and evaluates parts of it with your rights. Load only
    files that you trust. No bank, plan or other saved file makes shiftcal load one. A batch size
    fixed in the file is kept. In another process the file is read again.

    Args:
        path: The file.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``.
        **options: ``preprocessing``, ``classes``, ``output``, ``batch_size`` and ``key``, as for
            every model; the default batch size depends on the size of the images.
    """

    def __init__(self, path: str | Path, *, device: str = "cpu", **options: Any) -> None:
        super().__init__(**options)
        self.path = Path(path)
        self.device = device
        self._digest: str | None = None
        self._open()

    def _open(self) -> None:
        export = require("torch.export", extra="torch", needed_by="a torch.export model")
        file = ModelFile(self.path, "a file of torch.export", expected=self._digest)
        self.path, self._digest = file.path, file.digest
        with parsing(self.path, "a file of torch.export"):
            # The bytes that the digest is of, and not the file, which may have changed since.
            program = export.load(io.BytesIO(file.data))
            if self.device != "cpu":
                passes = require("torch.export.passes", extra="torch", needed_by="a device")
                program = passes.move_to_device_pass(program, self.device)
            names = program.graph_signature.user_inputs
            inputs = [node.meta["val"] for node in program.graph.nodes if node.name in names]
            if len(inputs) != 1 or inputs[0].ndim != 4:
                shapes = ", ".join(str(tuple(one.shape)) for one in inputs) or "none"
                raise FileError(
                    f"{self.path} must have one input, a batch of images; got shapes {shapes}."
                )
            self._shape = [side if isinstance(side, int) else None for side in inputs[0].shape]
            self.module = program.module()
        for part in self.module.modules():
            part.training = False  # its eval() raises

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the network, which is read from the file again."""
        return {name: value for name, value in vars(self).items() if name != "module"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def _identity(self) -> Iterable[str]:
        return ("torch.export", str(self._digest))

    def _forward(self, batch: NDArray[Any]) -> Any:
        return in_fixed_batches(lambda x: [_to_numpy(self._run(x))], batch, self._shape)[0]

"""A batch through a PyTorch module, which is left as it was."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import InputError
from shiftcal.models._features import as_features, unknown_layer


def forward(
    module: Any,
    batch: NDArray[Any],
    *,
    channels_last: bool,
    precision: str | None = None,
    features_from: str | None = None,
) -> Any:
    """Logits ``(n, k)`` in evaluation mode and without gradients, on the module's own device.

    Afterwards every part of the module is in the mode, training or not, it was in before.

    Args:
        module: The network.
        batch: What it takes.
        channels_last: Whether to store the batch with its channels last.
        precision: ``"float16"`` or ``"bfloat16"`` for the operations that can be done in it.
        features_from: A layer, whose output is wanted too: the pair is returned then.
    """
    with _listening(module, features_from) as heard:
        output = run(module, batch, channels_last=channels_last, precision=precision)
    logits = to_numpy(getattr(output, "logits", output))
    if features_from is None:
        return logits
    if not heard:
        raise InputError(
            f"features_from must name a layer that runs; {features_from!r} did not. The layers "
            "inside a TorchScript module cannot be listened to: let it return features as well, "
            "and load it from its file."
        )
    return logits, heard[0]


def run(
    module: Any, batch: NDArray[Any], *, channels_last: bool, precision: str | None = None
) -> Any:
    """What the module returns for a batch; see :func:`forward`."""
    torch = require("torch", extra="torch", needed_by="a PyTorch model")
    first = first_tensor(module)
    tensor = torch.from_numpy(batch)
    if first is not None:
        tensor = tensor.to(first.device)
        if tensor.is_floating_point() and first.is_floating_point():
            tensor = tensor.to(first.dtype)
    if channels_last:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    modes = [(part, part.training) for part in module.modules()]
    cast: Any = nullcontext()
    if precision in ("float16", "bfloat16"):
        cast = torch.autocast(tensor.device.type, getattr(torch, precision))
    try:
        module.eval()
        with torch.inference_mode(), cast:
            return module(tensor)
    finally:
        for part, mode in modes:
            part.training = mode


def first_tensor(module: Any) -> Any:
    """The first parameter or buffer, whose device and precision are the module's, or ``None``."""
    return next(itertools.chain(module.parameters(), module.buffers()), None)


def check_layer(module: Any, name: str) -> None:
    """Refuse the name of a layer that the module has not."""
    known = [path for path, _ in module.named_modules() if path]
    if name not in known:
        raise unknown_layer(str(name), known, what="a layer of the module")


def to_numpy(output: Any) -> NDArray[Any]:
    """A tensor as an array of float32, or of float64 if it is that."""
    torch = require("torch", extra="torch", needed_by="a PyTorch model")
    if not isinstance(output, torch.Tensor):
        raise InputError(
            "the module must return a tensor of logits, or an object with the attribute logits, "
            f"and a layer a tensor of features; got {type(output).__name__}. Wrap it in a module "
            "that picks them out."
        )
    wide = output.dtype == torch.float64
    return output.to("cpu", torch.float64 if wide else torch.float32).numpy()


@contextmanager
def _listening(module: Any, layer: str | None) -> Iterator[list[NDArray[Any]]]:
    """Collect the last that a layer gives. Nothing is left on the module afterwards."""
    heard: list[NDArray[Any]] = []
    if layer is None:
        yield heard
        return

    def listen(_module: Any, _inputs: Any, output: Any) -> None:
        # A copy at once: the next layer may write into what it is given.
        heard[:] = [as_features(to_numpy(output), name=layer).copy()]

    handle = module.get_submodule(layer).register_forward_hook(listen)
    try:
        yield heard
    finally:
        handle.remove()


def memory_of(module: Any) -> str | None:
    """Whose memory a batch takes: the process's, a GPU's by its name, or that is not known."""
    first = first_tensor(module)
    kind = "cpu" if first is None else first.device.type
    return {"cpu": "process", "cuda": str(first.device) if first is not None else None}.get(kind)


def torch_engine(device: str, *, channels_last: bool = False) -> str:
    """``torch``, its version without the build, and what else decides the last digits.

    Args:
        device: Where the model runs; its kind is told unless it is a processor.
        channels_last: Whether batches are stored so, for which torch has other kernels.
    """
    torch = require("torch", extra="torch", needed_by="a PyTorch model")
    kind = device.partition(":")[0]
    told = [f"torch {torch.__version__.partition('+')[0]}"]
    told += [kind] * (kind != "cpu") + ["channels_last"] * channels_last
    return " ".join(told)


def device_of(module: Any) -> str:
    """Where a module runs, as torch names it."""
    first = first_tensor(module)
    return "cpu" if first is None else str(first.device)


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Let torch use so many threads meanwhile; ``None`` leaves that as it is.

    The number is the whole process's, and is set back afterwards.
    """
    torch = require("torch", extra="torch", needed_by="a PyTorch model")
    before = torch.get_num_threads()
    if threads is None or threads == before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Processors from which on one is left to the threads that prepare images.
_ROOM = 4


@contextmanager
def leaving_room(model: Any, processors: int, *, device: str) -> Iterator[None]:
    """Let torch use all processors but one meanwhile, unless the model was told a number.

    Threads of torch spin while they wait for one another: beside a thread that works, as many as
    there are processors take longer than one fewer. Of two or three processors all are used, since
    one is too much to leave idle for most of the time.

    Args:
        model: Its ``threads`` is set, and set back.
        processors: How many there are for all.
        device: Where it runs; on another than the processor nothing is changed.
    """
    torch = require("torch", extra="torch", needed_by="a PyTorch model")
    before = model.threads
    if before is None and device == "cpu":
        most = processors - 1 if processors >= _ROOM else processors
        model.threads = max(1, min(torch.get_num_threads(), most))
    try:
        yield
    finally:
        model.threads = before

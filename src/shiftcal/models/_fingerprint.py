"""Digests of whatever decides what a model gives."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

# Where an object lies in memory, in the text that describes it: another in every process.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (bool, int, float, str, type(None))
# The mode is set for every run; the other is where Hugging Face found the weights.
_NOT_SETTINGS = ("training", "name_or_path")


def digest(parts: Iterable[str | bytes | memoryview]) -> str:
    """SHA-256 of the parts, each with its length before it, so that none runs into the next."""
    made = hashlib.sha256()
    for part in parts:
        data = memoryview(part.encode() if isinstance(part, str) else part)
        made.update(data.nbytes.to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


def of_function(function: Callable[..., Any]) -> str | None:
    """Name and source of a function that a module holds; ``None`` for any other.

    A lambda or a function made inside another may depend on anything around it.
    """
    name = getattr(function, "__qualname__", "<")
    if "<" in name or not inspect.isfunction(function):
        return None
    source = source_of(function)
    return None if source is None else f"{function.__module__}.{name}\n{source}"


def source_of(function: Callable[..., Any]) -> str | None:
    """The source of a function, or ``None`` where there is none to read."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return None


def of_module(module: Any) -> Iterator[str | memoryview]:
    """The parts of a PyTorch module's digest: what it is, its code, its settings, its weights."""
    yield _name(type(module))
    yield _ADDRESS.sub("", repr(module))
    yield from sorted({_code(kind) for part in module.modules() for kind in type(part).__mro__})
    for path, part in module.named_modules():
        settings = {name: value for name, value in vars(part).items() if _is_setting(name, value)}
        yield f"{path}: {sorted(settings.items())}"
    # Buffers that are not saved decide as much as those that are.
    for name, value in sorted({**dict(module.named_buffers()), **module.state_dict()}.items()):
        yield from _of_weight(name, value)


@lru_cache(maxsize=512)
def _code(kind: type) -> str:
    """Name of a class, and the source of its functions unless it is torch's or Python's."""
    if kind.__module__.partition(".")[0] in ("torch", "builtins"):
        return _name(kind)
    functions = [value for value in vars(kind).values() if inspect.isfunction(value)]
    return "\n".join([_name(kind), *sorted(str(source_of(function)) for function in functions)])


def _of_weight(name: str, value: Any) -> Iterator[str | memoryview]:
    if not hasattr(value, "detach"):  # what a module adds to its state by get_extra_state
        yield f"{name}: {_ADDRESS.sub('', repr(value))}"
        return
    import torch

    yield f"{name}: {value.dtype} {tuple(value.shape)}"
    flat = value.detach().cpu().contiguous().reshape(-1)
    yield memoryview(flat.view(torch.uint8).numpy())


def _is_setting(name: str, value: object) -> bool:
    if name.startswith("_") or name in _NOT_SETTINGS:
        return False
    if isinstance(value, tuple | list):
        return all(isinstance(item, _PLAIN) for item in value)
    return isinstance(value, _PLAIN)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"

"""The digest of a Python object: its class and code, and all that it holds, to any depth."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shiftcal.models._code_text import bytecode_of, is_own, name_of, named_in, source_of
from shiftcal.models.preprocessing import Preprocessing

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range)
# Where Hugging Face found the weights.
_NO_SETTINGS = frozenset({"name_or_path", "_name_or_path", "_commit_hash"})
# What torch's modules keep about themselves that decides no output, or says again what the
# parameters and the code of the module say.
_NO_PARTS = _NO_SETTINGS | frozenset({
    "training", "_non_persistent_buffers_set", "_is_full_backward_hook", "_backward_hooks",
    "_backward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_compiled_call_impl",
    "_flat_weights", "_flat_weight_refs", "_graph", "_tracer_cls", "_tracer_extras",
    "_lineno_map", "_prologue_start", "_wrapped_call", "_is_hf_initialized",
})  # fmt: skip
# Entries of a class that decide nothing, or differ between processes.
_NO_MEMBERS = frozenset({
    "__module__", "__qualname__", "__dict__", "__weakref__", "__doc__", "__annotations__",
    "__annotate__", "__annotations_cache__", "__annotate_func__", "__abstractmethods__",
    "_abc_impl", "__firstlineno__", "__static_attributes__", "__parameters__", "__orig_bases__",
    "__match_args__",
})  # fmt: skip


class Unknown(Exception):
    """Something whose digest cannot be known, such as an open file."""


class ValueDigest:
    """Digests objects, each once.

    Plain values, arrays and tensors count by what they hold, containers by their items, modules of
    torch and other objects by their class and attributes, functions by source, defaults, closure
    and the globals they name. Classes and functions of installed packages count by name and
    version. Where an object comes in again inside itself, its depth stands for it.
    """

    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, str]] = {}  # with the object, whose id is else given away
        self._open: list[int] = []

    def of(self, value: Any) -> str:
        """The digest of a value.

        Raises:
            Unknown: If there is something in it whose content cannot be read.
        """
        if type(value) in _ATOMS:
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._open:
            return f"inside {self._open.index(id(value))}"
        self._open.append(id(value))
        made = hashlib.sha256()
        try:
            for part in self._parts(value):
                data = memoryview(part.encode() if isinstance(part, str) else part)
                made.update(data.nbytes.to_bytes(8, "little"))
                made.update(data)
        except RecursionError as error:
            raise Unknown("too deep") from error
        finally:
            self._open.pop()
        self._done[id(value)] = (value, made.hexdigest())
        return made.hexdigest()

    def _parts(self, value: Any) -> Iterator[str | memoryview]:
        for kind, parts in self._KINDS:
            if isinstance(value, kind):
                yield from parts(self, value)
                return
        if hasattr(value, "named_modules") and hasattr(value, "state_dict"):
            yield from self._of_module(value)
        elif hasattr(value, "detach") and hasattr(value, "untyped_storage"):
            yield from _of_tensor(value)
        else:
            yield from self._of_state(value)

    def _of_items(self, items: Any) -> Iterator[str]:
        yield self.of(type(items))
        yield from map(self.of, items)
        yield from self._of_attributes(getattr(items, "__dict__", {}))

    def _of_set(self, items: Any) -> Iterator[str]:
        yield self.of(type(items))
        yield from sorted(map(self.of, items))

    def _of_dict(self, items: Any) -> Iterator[str]:
        yield self.of(type(items))
        for key, item in items.items():
            yield self.of(key)
            yield self.of(item)
        yield from self._of_attributes(getattr(items, "__dict__", {}))

    def _of_attributes(
        self, attributes: Any, without: frozenset[str] = _NO_SETTINGS
    ) -> Iterator[str]:
        for name in sorted(set(attributes) - without, key=str):
            yield str(name)
            yield self.of(attributes[name])

    def _of_array(self, array: Any) -> Iterator[str | memoryview]:
        yield f"array {array.dtype.descr if array.dtype.names else array.dtype.str} {array.shape}"
        if array.dtype.hasobject:
            yield self.of(array.tolist())
        else:
            flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            yield memoryview(flat)

    def _of_module(self, module: Any) -> Iterator[str]:
        yield self.of(type(module))
        own = dict(vars(module))
        if "_orig_mod" in own.get("_modules", {}):  # of torch.compile, which computes the same
            yield self.of(module._orig_mod)
            return
        for kind in ("_forward_pre_hooks", "_forward_hooks"):
            hooks = own.pop(kind, {})
            flags = [own.pop(f"{kind}{end}", {}) for end in ("_with_kwargs", "_always_called")]
            for key, hook in hooks.items():  # keys count hooks of the whole process
                yield f"{kind} {[bool(flag.get(key)) for flag in flags]}"
                yield self.of(hook)
        if isinstance(own.get("preprocessing"), Preprocessing):  # told beside the fingerprint
            del own["preprocessing"]
        yield from self._of_attributes(own, _NO_PARTS)

    def _of_state(self, value: Any) -> Iterator[str]:
        """What pickle would keep of an object: how it is made, and its state."""
        try:
            made = value.__reduce_ex__(4)
        except Exception as error:  # objects raise what they like
            if type(value).__module__ == "torch" and type(value).__name__ == "layout":
                yield repr(value)
                return
            raise Unknown(type(value).__name__) from error
        if isinstance(made, str):
            yield f"global {getattr(value, '__module__', '')}.{made}"
            return
        yield self.of(type(value))
        maker, given, state, items, pairs = (*made, None, None, None)[:5]
        yield from (self.of(maker), self.of(given))
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                yield from self._of_attributes(part)
            else:
                yield self.of(part)
        yield self.of(None if items is None else list(items))
        yield self.of(None if pairs is None else dict(pairs))

    def _of_method(self, method: types.MethodType) -> Iterator[str]:
        yield self.of(method.__func__)
        yield self.of(method.__self__)

    def _of_builtin(self, function: Any) -> Iterator[str]:
        yield name_of(function)
        holder = function.__self__
        if holder is not None and not isinstance(holder, types.ModuleType | type):
            yield self.of(holder)

    def _of_function(self, function: types.FunctionType) -> Iterator[str | memoryview]:
        yield name_of(function)
        if not is_own(function.__globals__.get("__name__")):
            # Made in a library by another function, it depends on what that was given.
            yield from self._of_cells(function)
            yield from self._of_attributes(vars(function) if is_own(function.__module__) else {})
            return
        source = source_of(function.__code__)
        # The text of a lambda is its whole line.
        alone = source is not None and function.__name__ != "<lambda>"
        yield source if alone and source else bytecode_of(function.__code__)
        yield from (self.of(function.__defaults__), self.of(function.__kwdefaults__))
        yield from self._of_cells(function)
        yield from self._of_attributes(vars(function))
        yield from self._of_globals(function)

    def _of_cells(self, function: types.FunctionType) -> Iterator[str]:
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                content = None
            yield f"{name} {self.of(content)}"

    def _of_globals(self, function: types.FunctionType) -> Iterator[str]:
        names = named_in(function.__code__)
        for name in names:
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            yield f"{name} {self.of(value)}"
            if isinstance(value, types.ModuleType) and is_own(value.__name__):
                # Which of the names are asked of it is not known: all it has are taken.
                for inner in names:
                    if inner in vars(value):
                        yield f"{name}.{inner} {self.of(vars(value)[inner])}"

    def _of_class(self, kind: type) -> Iterator[str]:
        yield name_of(kind)
        if not is_own(kind.__module__):
            return
        yield from (self.of(base) for base in kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            if name not in _NO_MEMBERS and not isinstance(member, types.MemberDescriptorType):
                yield f"{name} {self.of(_unwrapped(member))}"

    _KINDS: tuple[tuple[Any, Callable[[ValueDigest, Any], Iterator[str | memoryview]]], ...] = (
        (type, _of_class),
        (types.ModuleType, lambda _, module: iter([name_of(module)])),
        (types.FunctionType, _of_function),
        (types.BuiltinFunctionType, _of_builtin),
        (types.MethodType, _of_method),
        (functools._lru_cache_wrapper, lambda self, one: iter([self.of(one.__wrapped__)])),
        (functools.cached_property, lambda self, one: iter([self.of(one.func)])),
        (tuple | list, _of_items),
        (set | frozenset, _of_set),
        (dict | types.MappingProxyType, _of_dict),
        (np.ndarray, _of_array),
        (property, lambda self, one: self._of_items([one.fget, one.fset, one.fdel])),
        (types.CodeType, lambda _, code: iter([bytecode_of(code)])),
    )


def _unwrapped(member: Any) -> Any:
    return member.__func__ if isinstance(member, staticmethod | classmethod) else member


def _of_tensor(tensor: Any) -> Iterator[str | memoryview]:
    import torch

    try:
        yield f"tensor {tensor.dtype} {tuple(tensor.shape)}"
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        yield memoryview(flat.view(torch.uint8).numpy())
    except (RuntimeError, TypeError, ValueError) as error:  # without numbers, or of odd kinds
        raise Unknown("a tensor that cannot be read") from error

"""The compiled module; `_native/kernels.h` says how its functions are declared."""

from collections.abc import Callable

simd: str

def __getattr__(name: str) -> Callable[..., None]: ...

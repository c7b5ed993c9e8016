"""Compiling functions that only other compiled functions call."""

from __future__ import annotations

import functools

from numba import njit

# Leaving out what Python would need to call them takes a quarter off the time to compile.
inner = functools.partial(njit, no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = inner(forceinline=True)

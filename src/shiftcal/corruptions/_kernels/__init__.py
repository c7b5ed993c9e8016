"""Compiled loops of the corruptions. Their files import numba, so they are imported in functions.

No kernel lets the compiler reorder arithmetic (no ``fastmath``) and none asks the mathematical
library in its loop: what it computes is the same on every machine, bit for bit.
"""

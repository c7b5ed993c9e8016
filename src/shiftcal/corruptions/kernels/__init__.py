"""Compiled loops of the corruptions. Files that end in ``_kernels`` import numba."""

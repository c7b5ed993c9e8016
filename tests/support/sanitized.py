"""Runs tests with a compiled module from a given file; ``make sanitize`` calls it.

python sanitized.py build/sanitize/_kernels.abi3.so tests/numerics ...
"""

from __future__ import annotations

import importlib.util
import sys

import pytest

spec = importlib.util.spec_from_file_location("shiftcal._kernels", sys.argv[1])
module = importlib.util.module_from_spec(spec)
try:
    spec.loader.exec_module(module)
except ImportError:  # this processor has fewer instructions than SHIFTCAL_SIMD asks for
    sys.exit()
sys.modules["shiftcal._kernels"] = module
import shiftcal  # noqa: E402

shiftcal._kernels = module
sys.exit(
    pytest.main(["-n0", "-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", *sys.argv[2:]])
)

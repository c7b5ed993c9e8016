"""The same pixels on other processors: kernels compiled for narrower instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from corrupted import LARGE, corrupted, digest, golden_images

from shiftcal import _kernels, corruptions

CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from test_other_processors import digests
print(*digests(), sep="\\n")
"""


def digests():
    """One for every corruption at two severities."""
    cases = [(n, t, s) for n in corruptions.names() for t, s in (("imagenet", 3), ("cifar", 5))]
    return [digest(corrupted(golden_images(*LARGE), n, s, t, seed=2)) for n, t, s in cases]


@pytest.mark.parametrize("simd", ["baseline", "avx2"])
def test_processors_with_narrower_instructions_make_the_same_pixels(simd):
    if simd == "avx2" and _kernels.simd == "baseline":
        pytest.skip("this processor has no AVX2")
    here = Path(__file__).parent
    path = os.pathsep.join([str(here.parent / "support"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(here)],
        env={**os.environ, "SHIFTCAL_SIMD": simd, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == digests()

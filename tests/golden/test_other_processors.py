"""The same pixels on another processor: kernels compiled for the plainest one of its kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from corrupted import LARGE, corrupted, digest, golden_images

from shiftcal import corruptions

CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from corrupted import corrupted
from corrupted import LARGE, digest, golden_images
from shiftcal import corruptions
for name in corruptions.names():
    print(name, digest(corrupted(golden_images(*LARGE), name, 3, "imagenet", seed=2)))
    print(name, digest(corrupted(golden_images(*LARGE), name, 5, "cifar", seed=2)))
"""


@pytest.mark.slow
def test_a_processor_without_wide_instructions_makes_the_same_pixels(tmp_path):
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    support = str(Path(__file__).parents[1] / "support")
    done = subprocess.run(
        [sys.executable, "-c", CODE, support],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = []
    for name in corruptions.names():
        for severity, table in ((3, "imagenet"), (5, "cifar")):
            made = corrupted(golden_images(*LARGE), name, severity, table, seed=2)
            expected.append(f"{name} {digest(made)}")
    assert done.stdout.split("\n")[:-1] == expected

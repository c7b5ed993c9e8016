"""What scoring takes of memory for every image beside the set of images itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import many_images
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell what was taken"
)


def taken(n, folder):
    folder.mkdir()
    command = [sys.executable, many_images.__file__, str(n), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    before, most = map(int, done.stdout.split())
    return most - before


@pytest.mark.slow
def test_an_image_takes_few_bytes_however_long_its_name_is(tmp_path):
    few, many = taken(100_000, tmp_path / "few"), taken(300_000, tmp_path / "many")
    # Its name alone is 43 characters, 172 bytes of an array.
    assert (many - few) / 200_000 < 60
    with np.load(tmp_path / "many" / "many.npz") as archive:
        assert archive["ids"][299_999] == "fog/5/n00000999/ILSVRC2012_val_00299999.JPEG"
        np.testing.assert_array_equal(archive["labels"], np.arange(300_000) % 3)
        np.testing.assert_array_equal(archive["logits"][:, 0], np.arange(300_000) % 251)

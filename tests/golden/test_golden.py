"""The pixels of today are the pixels of the day the golden arrays were written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from corrupted import LARGE, SMALL, TABLES, corrupted, digest, golden_images

from shiftcal import corruptions

FOLDER = Path(__file__).parent / "v1"
DIGESTS = json.loads((FOLDER / "manifest.json").read_text())


@pytest.fixture(scope="module")
def arrays():
    with np.load(FOLDER / "corruptions.npz", allow_pickle=False) as members:
        return dict(members)


def test_every_case_is_there():
    wanted = {f"{n}/{t}/{s}" for n in corruptions.names() for t in TABLES for s in range(1, 6)}
    assert set(DIGESTS) == wanted


def test_the_manifest_describes_the_arrays(arrays):
    for case, array in arrays.items():
        assert digest(array) == DIGESTS[case][0]


@pytest.mark.parametrize("name", corruptions.names())
def test_the_pixels_have_not_changed(arrays, name):
    for table in TABLES:
        for severity in range(1, 6):
            case = f"{name}/{table}/{severity}"
            small = corrupted(golden_images(*SMALL), name, severity, table, seed=1)
            if case in arrays:
                assert np.array_equal(small, arrays[case]), case
            large = corrupted(golden_images(*LARGE), name, severity, table, seed=2)
            assert [digest(small), digest(large)] == DIGESTS[case], case

"""Freeze what the corruptions make: ``make golden``, and only when a change of pixels is meant.

Small outputs are kept as arrays, so that a difference can be looked at; larger ones as digests.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

from corrupted import (  # noqa: E402
    LARGE,
    SMALL,
    TABLES,
    corrupted,
    digest,
    golden_images,
)

from shiftcal import corruptions  # noqa: E402


def main() -> None:
    arrays, digests = {}, {}
    for name in corruptions.names():
        for table in TABLES:
            for severity in range(1, 6):
                case = f"{name}/{table}/{severity}"
                small = corrupted(golden_images(*SMALL), name, severity, table, seed=1)
                large = corrupted(golden_images(*LARGE), name, severity, table, seed=2)
                digests[case] = [digest(small), digest(large)]
                if severity in (1, 3, 5):
                    arrays[case] = small
    folder = HERE / "v1"
    np.savez_compressed(folder / "corruptions.npz", **arrays)
    (folder / "manifest.json").write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What the corruptions do to a real network, beside what the original generator's did.

ResNet-20 on the first 1,000 test images of CIFAR-10, all corruptions, severities 1 to 5, three
draws of those that are random. The reference was measured with the original generator on the same
images, one draw. Reads the images and the network from $SHIFTCAL_DATA or ../shared/data.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import shiftcal as sc

ROOT = Path(__file__).resolve().parents[2]
for folder in ("support", "corruptions"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

from cifar_net import cifar_images, resnet20  # noqa: E402
from test_effect import REFERENCE  # noqa: E402

DRAWS = 3


def main() -> None:
    data = Path(os.environ.get("SHIFTCAL_DATA") or ROOT.parent / "shared" / "data")
    if not data.is_dir():
        raise SystemExit("real data not found: set SHIFTCAL_DATA to its folder")
    images, labels = cifar_images(data, 1000)
    predict = resnet20(data)

    def accuracies(corruption, severity, draws):
        return [
            float(
                (
                    predict(sc.corrupt(images, corruption, severity=severity, seed=seed)) == labels
                ).mean()
            )
            for seed in range(draws)
        ]

    results = {}
    for name in sc.corruptions.names():
        corruption = sc.corruptions.as_corruption(name)
        draws = DRAWS if corruption.random else 1
        results[corruption.description] = [
            accuracies(corruption, severity, draws) for severity in range(1, 6)
        ]
        print(
            name, [round(100 * np.mean(a), 1) for a in results[corruption.description]], flush=True
        )
    photos = sc.corruptions.get("frost")(photos=data / "frost-textures")
    results[photos.description] = [accuracies(photos, severity, DRAWS) for severity in range(1, 6)]
    document = {
        "shiftcal": version("shiftcal"),
        "numpy": version("numpy"),
        "torch": version("torch"),
        "images": "CIFAR-10 test, the first 1,000",
        "network": "ResNet-20, 91.73 % on all 10,000",
        "draws": DRAWS,
        "clean": float((predict(images) == labels).mean()),
        "reference": REFERENCE,
        "accuracy": results,
    }
    file = Path(__file__).parent / "results" / "corruptions.json"
    file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

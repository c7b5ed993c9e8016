"""The whole synthetic study on CIFAR-10, from images to figures, beside the network's own time.

ResNet-20 in onnxruntime. The network alone on batches that are ready is timed before the study and
after it, some seconds each, and the rate of both together counts. The study is the command
``shiftcal reproduce`` in a process of its own, with nothing stored before: the plan ``synthetic``
with all sixteen corruptions of the paper, so that it scores more than 800,000 images. Reads images
and the network from $SHIFTCAL_DATA or ../shared/data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "accuracy"))

from timing import run  # noqa: E402

from studies import data_folder, resnet20  # noqa: E402

SECONDS = 30  # for the network alone, each time
BATCH = 256


def forward_rate(spec: str) -> float:
    """Images a second of the network alone, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "forward", spec], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def forward(spec: str) -> None:
    import numpy as np

    from shiftcal import models

    model = models.as_model(spec)
    images = np.random.default_rng(0).integers(0, 256, (4 * BATCH, 32, 32, 3)).astype(np.uint8)
    batches = [
        model.preprocessing.apply(images[i : i + BATCH]) for i in range(0, len(images), BATCH)
    ]
    for batch in batches:
        model._forward(batch)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        for batch in batches:
            model._forward(batch)
            done += len(batch)
    print(done / (time.perf_counter() - began))


def edited() -> str:
    """The plan with all sixteen corruptions."""
    from shiftcal import studies

    text, _ = studies.plan_text("synthetic")
    first, rest = text.split("corruptions = [", 1)
    added = 'corruptions = [\n  "brightness", "contrast", "saturate",'
    assert "[shifts]" in first
    return first + added + rest


def measured() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        return measured_in(Path(folder))


def measured_in(folder: Path) -> dict[str, object]:
    data = data_folder()
    spec = resnet20(data, folder).spec
    plan = folder / "plan.toml"
    plan.write_text(edited(), "utf-8")
    before = forward_rate(spec)
    began = time.perf_counter()
    command = ["reproduce", str(plan), "--data", str(data), "--model", spec]
    subprocess.run(
        [sys.executable, "-m", "shiftcal", *command, "-o", str(folder / "run")],
        check=True,
        env={key: value for key, value in os.environ.items() if key != "SHIFTCAL_CACHE"},
    )
    seconds = time.perf_counter() - began
    after = forward_rate(spec)
    told = json.loads((folder / "run" / "run.json").read_text("utf-8"))
    return {
        "images": told["scored"],
        "evaluations": told["evaluated"],
        "forward_rate_before": before,
        "forward_rate_after": after,
        "forward_seconds": told["scored"] / (2 / (1 / before + 1 / after)),
        "study_seconds": seconds,
        "stages": told["seconds"],
    }


def page(found: dict) -> str:
    facts = found["study"]
    forward_seconds, seconds = facts["forward_seconds"], facts["study_seconds"]
    rows = [f"| {stage} | {took:.0f} |" for stage, took in facts["stages"].items()]
    lines = [
        "# A whole study\n",
        f"The synthetic study on CIFAR-10 with ResNet-20 in onnxruntime, sixteen corruptions, five "
        f"splits, eight methods: {facts['images']:,} images, {facts['evaluations']:,} evaluations, "
        "from images to figures.\n",
        "| stage | seconds |",
        "|---|--:|",
        *rows,
        f"| the whole command | {seconds:.0f} |",
        f"| the network alone, all images | {forward_seconds:.0f} |",
        "",
        f"- The whole takes **{seconds / forward_seconds:.2f}x** the network's own time; without "
        f"three minutes for everything that is not scoring, "
        f"**{(seconds - 180) / forward_seconds:.2f}x**.",
        f"- The network alone: {facts['forward_rate_before']:,.0f} images a second before, "
        f"{facts['forward_rate_after']:,.0f} after.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["forward"]:
        forward(sys.argv[2])
    else:
        run("study", {"study": measured}, page)

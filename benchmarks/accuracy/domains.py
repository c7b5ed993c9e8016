"""The studies of domain adaptation on the real data that is here, to committed results.

``python benchmarks/accuracy/domains.py [NAME ...]`` runs the plans of these names, or all of them,
in ``runs/`` below the current folder, and keeps of each what ``studies.py`` keeps, in
``results/studies/NAME``. EfficientNet-Lite0 gives the frozen features in
onnxruntime; the plans that come with shiftcal name the same weights for torch. Digits are trained
end to end, which takes about a minute each on two cores: three seeds and a third of MNIST, where
the plan has five and all of it. Reads images from $SHIFTCAL_DATA or ../shared/data.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from shiftcal import studies
from shiftcal.progress import Reporting

sys.path.insert(0, str(Path(__file__).parent))
from studies import ROOT, RUNS, Network, commit_of, data_folder, keep, lite0

FROZEN = ("pacs", "office-caltech")
TRAINED = ("digits",)
SEEDS, MNIST = (0, 1, 2), 20_000
SQUASHED = "resize=224x224&interpolation=bicubic"


def frozen_lite0(folder: Path) -> Network:
    """EfficientNet-Lite0 whose pooled features are an output, for images brought to 224 x 224."""
    import onnx

    network = lite0(folder)
    graph = onnx.load(network.file).graph
    pooled = next(node for node in graph.node if node.op_type == "GlobalAveragePool").output[0]
    kept = [word for word in network.options.split("&") if word.split("=")[0] in ("mean", "std")]
    options = "&".join([SQUASHED, *kept, f"features_from={pooled}", "batch_size=64"])
    return replace(network, options=options)


def plan_of(name: str, data: Path, network: Network | None) -> studies.AdaptationPlan:
    text, where = studies.plan_text(name)
    plan = studies.read_plan(text, data=data, where=where)
    if network is None:
        few = [replace(d, limit=MNIST) if d.name == "mnist" else d for d in plan.domains]
        return replace(plan, seeds=SEEDS, domains=tuple(few))
    return replace(plan, network=replace(plan.network, backbone=(network.spec,)))


def run(name: str, data: Path, network: Network | None) -> studies.Done:
    def say(text: object) -> None:
        print(f"{time.strftime('%X')} {name}: {text}", flush=True)

    return studies.reproduce(
        plan_of(name, data, network),
        RUNS / name,
        means=studies.Means(reporting=Reporting(line=say)),
        workers=os.cpu_count() or 1,
    )


def main(names: list[str]) -> None:
    data = data_folder()
    RUNS.mkdir(exist_ok=True)
    for name in names or [*FROZEN, *TRAINED]:
        network = frozen_lite0(RUNS) if name in FROZEN else None
        origin = {**commit_of(ROOT), **({} if network is None else network.origin())}
        done = run(name, data, network)
        keep(name, data, origin)
        print(name, json.dumps(done.seconds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

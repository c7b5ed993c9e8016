"""Tables of the page on research, and of that on accuracy, from the committed results."""

import csv
import gzip
import json
import statistics
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy" / "results"
LABELS = {
    "vanilla": "Vanilla",
    "ts": "TS",
    "ace": "ACE",
    "sts": "STS",
    "sts-entropy": "STS, entropy temperature",
    "sts-ensemble": "STS, ensemble temperature",
    "sac": "SAC",
    "sac-atc": "SAC by ATC",
    "sac-all": "SAC, all other corruptions",
    "rehearsal-pixelate": "**Rehearsal**, pixelate alone",
    "rehearsal": "**Rehearsal**, all other corruptions",
    "oracle": "Oracle",
}
NETWORKS = {
    "resnet20": "CIFAR-10, ResNet-20",
    "resnet32": "CIFAR-10, ResNet-32",
    "efficientnet-lite0": "ImageNet, EfficientNet-Lite0",
}
KINDS = {
    "full": "12 corruptions",
    "full-100": "from 100 rows",
    "full-alpha-10": "α = 10",
    "full-alpha-3": "α = 3",
    "full-alpha-1": "α = 1",
    "full-alpha-0.3": "α = 0.3",
    "clean": "clean",
    "clean-100": "clean, from 100 rows",
    "clean-alpha-10": "clean, α = 10",
    "clean-alpha-3": "clean, α = 3",
    "clean-alpha-1": "clean, α = 1",
    "clean-alpha-0.3": "clean, α = 0.3",
    "natural": "natural",
    "unseen": "3 more",
}
TRIED = ("full", "full-100", "alpha-10", "alpha-3", "alpha-1", "alpha-0.3")


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def markdown(head, rows):
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def mean(by_seed):
    return 100 * statistics.fmean(by_seed.values())


# Splits and seeds that choices were made by.
EVERY = ("0", "1", "2", "3", "4")
LOOKED_AT = {
    "resnet20": ("0", "1"),
    "efficientnet-lite0": EVERY,
    "adapted": ("0",),
    "natural16": EVERY,
}
FEW_KINDS = [kind for kind in KINDS if not kind.startswith("clean-")]


def errors(network):
    """Mean ECE in percent, of every method and kind of target."""
    found = load(f"beyond-{network}")["ece"]
    kinds = [kind for kind in FEW_KINDS if kind in found]
    rows = [
        [label, *(f"{mean(found[kind][name]):.2f}" for kind in kinds)]
        for name, label in LABELS.items()
    ]
    return markdown([NETWORKS[network], *(KINDS[kind] for kind in kinds)], rows)


def ratios():
    """Rehearsal's mean ECE over SAC's and the oracle's, also where nothing was chosen by it."""
    rows = []
    for network, label in NETWORKS.items():
        found = load(f"beyond-{network}")
        seen = LOOKED_AT.get(network, ())
        for kind, name in KINDS.items():
            if kind in found["ece"]:
                looked_at = {"unseen": (), "natural": EVERY}.get(kind, seen)
                rows.append([f"{label}: {name}", *against(found, kind, looked_at)])
    for name, part in load("beyond-adapted").items():
        if isinstance(part, dict):
            label = {"pacs": "PACS", "office-caltech": "Office-Caltech10"}[name]
            count = part["networks"]
            rows.append([f"{label}: {count} networks", *against(part, name, LOOKED_AT["adapted"])])
    found = load("beyond-natural16")
    for kind, label in (("natural", "edges and silhouettes"), ("clean", "clean")):
        cells = against(found, kind, LOOKED_AT["natural16"])
        rows.append([f"16 groups of ImageNet: {label}", *cells])
    head = ["targets", "SAC (%)", "Rehearsal (%)", "oracle (%)", "x SAC", "x oracle"]
    return markdown([*head, "x SAC, not chosen by", "interval holds T"], rows)


def against(found, kind, looked_at):
    ece = found["ece"][kind]
    ours, sac, oracle = (mean(ece[which]) for which in ("rehearsal", "sac", "oracle"))
    new = {
        which: {seed: value for seed, value in ece[which].items() if seed not in looked_at}
        for which in ("rehearsal", "sac")
    }
    fresh = f"{mean(new['rehearsal']) / mean(new['sac']):.2f}" if new["sac"] else ""
    covered = found["covered"].get(kind)
    return [
        *(f"{value:.2f}" for value in (sac, ours, oracle, ours / sac, ours / oracle)),
        fresh,
        "" if covered is None else f"{100 * covered:.0f} %",
    ]


def tried():
    """Mean ECE in percent of everything that was tried, lowest under no label shift first."""
    found = load("tried")["ece"]
    rows = [
        [name, *(f"{100 * kinds[kind]:.2f}" for kind in TRIED)]
        for name, kinds in sorted(found.items(), key=lambda item: item[1]["full"])
    ]
    return markdown(["", *(KINDS.get(k) or KINDS[f"full-{k}"] for k in TRIED)], rows)


def with_images():
    """Mean ECE in percent of the methods that need the model itself, beside others."""
    found = load("beyond-images")["ece"]
    kinds = list(next(iter(found.values())))
    rows = [[f"`{n}`", *(f"{100 * e[kind]:.2f}" for kind in kinds)] for n, e in found.items()]
    return markdown(
        ["1,000 test images", *("clean" if k.endswith("0") else k for k in kinds)], rows
    )


def accuracy_estimates():
    """Mean absolute error in points, on whole targets, and how often intervals hold the truth."""
    head, columns = ["estimator"], []
    for network in ("resnet20", "resnet32"):
        found = load(f"beyond-{network}")["accuracy"]
        columns += [(found["full"], "error"), (found["full"], "covered")]
        columns += [(found["full-alpha-0.3"], "error"), (found["clean"], "error")]
        label = NETWORKS[network].partition(", ")[2]
        head += [f"{label}, 12 corruptions", "interval holds", "α = 0.3", "clean"]
    names = sorted(columns[0][0], key=lambda name: columns[0][0][name]["error"])
    rows = [[f"`{name}`", *(_cell(found, name, what) for found, what in columns)] for name in names]
    return markdown(head, rows)


def accuracy_of_methods():
    """Mean absolute difference of confidence and accuracy, in points, in the synthetic study."""
    with gzip.open(RESULTS / "studies" / "synthetic" / "records.csv.gz", "rt") as file:
        records = list(csv.DictReader(file))
    severities = ["0", "1", "2", "3", "4", "5"]

    def off(label, severity):
        return 100 * statistics.fmean(
            abs(float(r["confidence"]) - float(r["accuracy"]))
            for r in records
            if r["label"] == label and r["severity"] in severity
        )

    labels = list(dict.fromkeys(r["label"] for r in records))
    rows = [
        [label, f"{off(label, severities[1:]):.2f}", *(f"{off(label, s):.2f}" for s in severities)]
        for label in sorted(labels, key=lambda label: off(label, severities[1:]))
    ]
    head = ["mean confidence of", "12 corruptions", "clean", *(f"severity {s}" for s in "12345")]
    return markdown(head, rows)


def _cell(found, name, what):
    if what not in found.get(name, {}):
        return ""
    value = 100 * found[name][what]
    return f"{value:.0f} %" if what == "covered" else f"{value:.2f}"


TABLES = {
    "beyond-ratios": ratios,
    **{f"beyond-{name}": (lambda name=name: errors(name)) for name in NETWORKS},
    "beyond-images": with_images,
    "beyond-tried": tried,
    "accuracy-estimates": accuracy_estimates,
    "accuracy-of-methods": accuracy_of_methods,
}

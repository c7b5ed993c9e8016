"""Write docs/data/*.csv, the charts of the docs and the results in README.md and docs/index.md.

All of it comes from benchmarks/accuracy/results. The other tables of the docs are excerpts of the
CSV files. Run it after a benchmark was run again.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
RESULTS = HERE.parents[1] / "benchmarks" / "accuracy" / "results"
NETWORKS = {
    "resnet20": "CIFAR-10, ResNet-20",
    "resnet32": "CIFAR-10, ResNet-32",
    "efficientnet-lite0": "ImageNet, EfficientNet-Lite0",
    "natural16": "ImageNet in 16 groups, EfficientNet-Lite0",
}
ADAPTED = {"pacs": "PACS, adapted", "office-caltech": "Office-Caltech10, adapted"}
TARGETS = {"full": "12 corruptions", "unseen": "3 other corruptions", "natural": "natural"}
STUDIES = {
    "synthetic": ["full", "mean-ece"],
    "synthetic-imagenet": ["mean-ece"],
    "natural-cifar10": ["natural"],
    "natural-imagenet16": ["natural"],
    "corruption-choice": ["choices"],
    "corruption-choice-imagenet": ["choices"],
    "distances": ["mean-ece"],
    "distances-imagenet": ["mean-ece"],
    "peek": ["peek-size"],
    "peek-imagenet": ["peek-size"],
    "why-it-works-imagenet": ["claim"],
    "ablation": ["calibration-images"],
    "pacs": ["accuracy", "ece-by-trainer"],
    "office-caltech": ["ece-by-trainer"],
    "digits": ["ece-by-trainer"],
}
# Okabe and Ito's colours; black and grey are replaced by the ink of the theme.
COLOURS = {
    "vanilla": ("raw softmax", "#D55E00"),
    "ts": ("TS", "#E69F00"),
    "sts": ("STS", "#CC79A7"),
    "sac": ("SAC", "#56B4E9"),
    "rehearsal": ("Rehearsal", "#0072B2"),
    "oracle": ("oracle temperature", "#888888"),
}
# The methods of the first chart and table: name, and colours on light and on dark.
HEADLINE = {
    "vanilla": ("raw softmax", "#D55E00", "#F28E4C"),
    "ts": ("temperature scaling", "#D55E00", "#F28E4C"),
    "sts": ("STS", "#0072B2", "#56B4E9"),
    "sac": ("SAC", "#0072B2", "#56B4E9"),
    "rehearsal": ("Rehearsal", "#0072B2", "#56B4E9"),
    "realign": ("Realign", "#00875A", "#3CC28E"),
    "oracle": ("oracle, with labels", "#6b6b6b", "#a8a8a8"),
}
SHOWN_ON = {"README.md": "docs/figures", "docs/index.md": "figures"}
_SHOWN = re.compile(r"(<!-- results: [^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)
THEMES = {"light": "#333333", "dark": "#c8cbd0"}


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def records(name):
    with gzip.open(RESULTS / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def percent(value):
    return "" if value is None else round(100 * value, 3)


def targets(kind):
    """What a kind of target is called: ``full-alpha-10`` has a Dirichlet class prior of α = 10."""
    name, _, rest = kind.partition("-")
    if name not in ("full", "clean", "unseen") or not rest:
        return TARGETS.get(kind, kind)
    few = "from 100 rows" if rest.endswith("100") else ""
    shifted = rest.removesuffix("100").removesuffix("-").replace("alpha-", "Dirichlet ")
    return ", ".join(filter(None, (TARGETS.get(name, name), shifted, few)))


def write(name, head, rows):
    with (DATA / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def method_rows():
    """Mean ECE over the splits, of every network, kind of target and method."""
    parts = {label: load(f"beyond-{name}") for name, label in NETWORKS.items()}
    parts |= {label: load("beyond-adapted")[name] for name, label in ADAPTED.items()}
    for label, part in parts.items():
        for kind, errors in part["ece"].items():
            for method, by_split in errors.items():
                covered = part["covered"].get(kind) if method == "rehearsal" else None
                error = percent(fmean(by_split.values()))
                yield [label, targets(kind), method, error, percent(covered)]


def accuracy_rows():
    for network in ("resnet20", "resnet32"):
        for kind, found in load(f"beyond-{network}")["accuracy"].items():
            for name, row in found.items():
                errors = [percent(row["error"]), percent(row.get("covered"))]
                yield [NETWORKS[network], targets(kind), name, *errors]


def severity_means():
    """Mean ECE of ResNet-20 by method and severity; 0 is the clean test set."""
    found = defaultdict(list)
    for split in records("beyond-resnet20"):
        for record in split["records"]:
            if record["kind"] in ("full", "clean"):
                severity = 0 if record["kind"] == "clean" else int(record["target"][-1])
                for method, error in record["ece"].items():
                    found[method, severity].append(error)
    return {key: 100 * fmean(errors) for key, errors in found.items()}


def digits_rows():
    by_shift = defaultdict(list)
    for row in load("digits")["results"]:
        by_shift[row["shift"]].append(row)
    for shift, rows in by_shift.items():
        accuracy = fmean(row["oracle"]["accuracy"] for row in rows)
        floor = fmean(row["floor"] for row in rows)
        for method in (*rows[0]["methods"], "oracle"):
            errors = [(r["oracle"] if method == "oracle" else r["methods"][method]) for r in rows]
            error = fmean(e["ece"] for e in errors)
            yield [shift, percent(accuracy), method, percent(error), percent(floor)]


def table_rows():
    """ECE of models of rows and texts by shift, with its standard error over the splits."""
    for task, found in load("other_inputs")["records"].items():
        grouped = defaultdict(lambda: defaultdict(list))
        for record in found:
            for method in (*record["methods"], "oracle"):
                part = record["oracle"] if method == "oracle" else record["methods"][method]
                grouped[record["shift"], method][record["split"]].append(part["ece"])
        for (shift, method), splits in grouped.items():
            means = [fmean(errors) for errors in splits.values()]
            spread = stdev(means) / len(means) ** 0.5
            yield [task, shift, method, percent(fmean(means)), percent(spread)]


def group_rows():
    for method, kinds in load("groups")["ece"].items():
        for kind, sizes in kinds.items():
            for size, measured in sizes.items():
                for what, errors in measured.items():
                    for choice, error in errors.items():
                        yield [method, kind, size, what, choice, percent(error)]


def monitor_rows():
    for name, stream in load("monitor")["streams"].items():
        for whose in ("monitor", "ks"):
            delay, back = stream[whose], stream["back" if whose == "monitor" else "ks_back"]
            seen = percent(delay["seen"])
            medians = [delay["median"], delay["p90"], seen, back["median"]]
            yield [name, percent(stream["accuracy"]), whose, *medians]


def realign_rows(parts):
    """How Realign does by part and kind of target; ratios are of means."""
    for part in parts:
        found = load(f"realign-{part}")
        kinds = found["splits"]["0"] if part == "ablation" else found["all"]
        for kind, row in kinds.items():
            what, _, left = kind.rpartition(": ")
            name = {"all": "nothing left out"}.get(what, what) or part
            gains = (row["accuracy gained"], row["share that loses 2 points"], row["worst"])
            ratios = ("ECE / Rehearsal's", "ECE / TS's", "Brier / oracle's", "AURC / oracle's")
            yield [name, targets(left), *map(percent, gains), *(round(row[r], 3) for r in ratios)]


def write_data():
    DATA.mkdir(exist_ok=True)
    head = ["targets", "accuracy gained (points)", "lose over 2 points (%)", "worst (points)"]
    head += ["ECE / Rehearsal's", "ECE / TS's", "Brier / oracle's", "AURC / oracle's"]
    parts = ("resnet20", "resnet32", "natural", "digits", "other-inputs")
    write("realign", ["data", *head], realign_rows(parts))
    write("realign-ablation", ["left out", *head], realign_rows(["ablation"]))
    head = ["network", "targets", "method", "ECE (%)", "interval contains oracle T (%)"]
    write("methods", head, method_rows())
    head = ["network", "targets", "estimator", "mean error (points)", "interval holds (%)"]
    write("accuracy-estimates", head, accuracy_rows())
    means = sorted(severity_means().items(), key=lambda item: item[0])
    write("severities", ["method", "severity", "ECE (%)"], ([*k, round(v, 3)] for k, v in means))
    head = ["shift", "accuracy (%)", "method", "ECE (%)", "ECE of a calibrated model (%)"]
    write("digits", head, digits_rows())
    write("tables-and-text", ["task", "shift", "method", "ECE (%)", "±"], table_rows())
    head = ["method", "groups", "rows per group", "ECE of", "calibration", "ECE (%)"]
    write("groups", head, group_rows())
    head = ["stream", "accuracy (%)", "detector", "median rows until detected", "90 % within"]
    write("monitoring", [*head, "detected (%)", "median rows until return"], monitor_rows())
    tried = load("tried")["ece"]
    rows = ([name, *map(percent, kinds.values())] for name, kinds in tried.items())
    write("variants-tried", ["variant", *next(iter(tried.values()))], rows)
    rows = load("controls")["summary"].items()
    keys = ("full", "control", "control_over_source_only", "loss_adds")
    controls = ([name, *(percent(row.get(key)) for key in keys)] for name, row in rows)
    write("adaptation-controls", ["trainer", *keys], controls)
    for study, tables in STUDIES.items():
        for table in tables:
            source = RESULTS / "studies" / study / "tables" / f"{table}.csv"
            shutil.copy(source, DATA / f"study-{study}-{table}.csv")


def draw_severities(axes):
    means = severity_means()
    for method, (label, colour) in COLOURS.items():
        y = [means[method, severity] for severity in range(6)]
        dashed = "--" if method == "oracle" else "-"
        axes.plot(range(6), y, dashed, color=colour, marker="o", ms=4, label=label)
    axes.set(xlabel="severity of the corruption (0: clean)", ylabel="mean ECE (%)", ylim=(0, None))
    axes.legend(frameon=False, ncols=2)


def draw_settings(axes):
    """One group of bars for each kind of data."""
    found = {(r[0], r[1], r[2]): r[3] for r in method_rows()}
    settings = [
        ("CIFAR-10, ResNet-20", "CIFAR-10, ResNet-20", "12 corruptions"),
        ("CIFAR-10, ResNet-32", "CIFAR-10, ResNet-32", "12 corruptions"),
        ("Tiny-ImageNet, ResNet-20", "CIFAR-10, ResNet-20", "natural"),
        ("ImageNet, Lite0", "ImageNet, EfficientNet-Lite0", "12 corruptions"),
        ("edges, silhouettes, Lite0", "ImageNet in 16 groups, EfficientNet-Lite0", "natural"),
        ("PACS, adapted", "PACS, adapted", "pacs"),
        ("Office-Caltech10, adapted", "Office-Caltech10, adapted", "office-caltech"),
    ]
    height = 1 / (len(COLOURS) + 1.5)
    for i, (method, (label, colour)) in enumerate(COLOURS.items()):
        widths = [found[network, targets, method] for _, network, targets in settings]
        places = [y + (i - len(COLOURS) / 2 + 0.5) * height for y in range(len(settings))]
        axes.barh(places, widths, height, color=colour, label=label)
    axes.set_yticks(range(len(settings)), [name for name, _, _ in settings])
    axes.set(xlabel="mean ECE (%)")
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower right")


def draw_estimates(axes):
    """Error of the estimated accuracy on corrupted CIFAR-10."""
    shown = {
        "rehearsed": "rehearsed",
        "surrogate-curve": "surrogate-curve",
        "mean-confidence sac": "mean-confidence:sac",
        "atc": "atc",
        "doc": "doc",
        "nannyml cbpe": "NannyML CBPE",
        "mean-confidence vanilla": "mean raw confidence",
    }
    rows = [r for r in accuracy_rows() if r[1] == "12 corruptions" and r[2] in shown]
    places = {name: -i for i, name in enumerate(shown)}
    for network, colour, offset in (("ResNet-20", "#0072B2", 0.2), ("ResNet-32", "#56B4E9", -0.2)):
        own = [r for r in rows if r[0].endswith(network)]
        y = [places[r[2]] + offset for r in own]
        axes.barh(y, [r[3] for r in own], 0.38, color=colour, label=network)
    axes.set_yticks(list(places.values()), shown.values())
    axes.set(xlabel="mean error of the estimated accuracy (points)")
    axes.legend(frameon=False, loc="upper right")


def headline():
    """Means of every method over the splits: numbers, and the risks at rising coverage."""
    splits = list(load("headline")["splits"].values())
    return {
        name: {
            key: [fmean(row) for row in zip(*(split[name][key] for split in splits), strict=True)]
            if key == "risk"
            else fmean(split[name][key] for split in splits)
            for key in of_one
        }
        for name, of_one in splits[0].items()
    }


def draw_results(axes):
    """Mean ECE of every method."""
    dark = mpl.rcParams["text.color"] == THEMES["dark"]
    means = [100 * headline()[name]["ece"] for name in HEADLINE]
    bars = axes.barh(range(len(means)), means, 0.7, color=[c[1 + dark] for c in HEADLINE.values()])
    axes.bar_label(bars, [f"{mean:.1f}" for mean in means], padding=3)
    axes.set_yticks(range(len(means)), [label for label, _, _ in HEADLINE.values()])
    axes.set(xlabel="calibration error (mean ECE, %)", xlim=(0, 1.12 * max(means)))
    axes.tick_params(left=False)
    axes.invert_yaxis()


def draw_risk(axes):
    """Risk-coverage curves of the model and of Realign; where they end, accuracy is recovered."""
    dark, means = mpl.rcParams["text.color"] == THEMES["dark"], headline()
    shown = {"vanilla": "raw softmax", "rehearsal": "Rehearsal", "realign": "Realign"}
    for name, label in shown.items():
        risks = [100 * risk for risk in means[name]["risk"]]
        coverages = [100 * (i + 1) / len(risks) for i in range(len(risks))]
        style = "--" if name == "rehearsal" else "-"
        colour = HEADLINE[name][1 + dark]
        axes.plot(coverages, risks, style, color=colour, lw=1.8, label=label, clip_on=False)
        if name != "rehearsal":
            axes.annotate(f" {risks[-1]:.1f}", (100, risks[-1]), va="center", annotation_clip=False)
    axes.set(xlabel="most confident rows kept (%)", ylabel="wrong predictions (%)")
    axes.set(xlim=(0, 100), ylim=(0, None))
    axes.legend(frameon=False, loc="upper left")


def wrong(found):
    return f"{100 * (1 - found['accuracy']):.1f} %"


def shown(figures):
    """The charts and the table, as Markdown."""
    means = headline()
    model, fixed = means["vanilla"], means["realign"]
    errors = ", ".join(f"{HEADLINE[m][0]} {100 * means[m]['ece']:.1f} %" for m in HEADLINE)
    alts = {
        "results": f"Mean calibration error under 12 corruptions: {errors}",
        "risk": f"Wrong predictions: {wrong(model)} of all rows, {wrong(fixed)} after Realign, and "
        "fewer at every coverage",
    }
    themes = ("light",) if figures.startswith("docs") else ("light", "dark")
    for theme in themes:
        only = f"#only-{theme}" if len(themes) > 1 else ""
        yield from (f"![{alt}]({figures}/{name}-{theme}.svg{only})" for name, alt in alts.items())
    yield from ("", "| | ECE | NLL | AURC | accuracy |", "|---|--:|--:|--:|--:|")
    columns = [
        [f"{100 * means[name]['ece']:.1f}" for name in HEADLINE],
        [f"{means[name]['nll']:.2f}" for name in HEADLINE],
        [f"{100 * means[name]['aurc']:.1f}" for name in HEADLINE],
        [f"{100 * means[name]['accuracy']:.1f}" for name in HEADLINE],
    ]
    for column, best in zip(columns, (min, min, min, max), strict=True):
        found = best(column[:-1], key=float)  # the last one is the oracle
        if column.count(found) < len(column) / 2:
            column[:-1] = [f"**{text}**" if text == found else text for text in column[:-1]]
    for (label, _, _), *cells in zip(HEADLINE.values(), *columns, strict=True):
        yield f"| {' | '.join([label, *cells])} |"
    yield ""


def renewed(page, text):
    """The text of a page with the results as they are now."""
    lines = "\n".join(shown(SHOWN_ON[page]))
    return _SHOWN.sub(lambda found: f"{found[1]}\n{lines}\n{found[3]}", text)


def draw():
    charts = {
        "results": (draw_results, (3.75, 2.6)),
        "risk": (draw_risk, (3.75, 2.6)),
        "bench-severities": (draw_severities, (4.8, 3.2)),
        "bench-settings": (draw_settings, (4.8, 5.2)),
        "bench-estimates": (draw_estimates, (4.8, 2.8)),
    }
    for theme, ink in THEMES.items():
        inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        style = dict.fromkeys(inked, ink)
        style |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
        with mpl.rc_context(style | {"svg.hashsalt": "shiftcal"}):
            for name, (chart, size) in charts.items():
                figure = Figure(figsize=size, layout="constrained")
                FigureCanvasSVG(figure)
                chart(figure.subplots())
                path = HERE / f"{name}-{theme}.svg"
                # The light version is on a white ground: the README is read on dark ones too.
                figure.savefig(path, transparent=theme == "dark", metadata={"Date": None})


if __name__ == "__main__":
    write_data()
    draw()
    for page in SHOWN_ON:
        path = HERE.parents[1] / page
        path.write_text(renewed(page, path.read_text("utf-8")), "utf-8")

"""Write the tables of the docs: committed results of benchmarks/accuracy, recipes of trainers.

A table stands on its page between ``<!-- table: name -->`` and ``<!-- end -->``. Run as a script
this renews all of them; a test asks that they are what the results say.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

from shiftcal import adaptation

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS / "figures"))
import adaptation_tables  # noqa: E402 (they are beside this file)
import beyond_tables  # noqa: E402
import groups_tables  # noqa: E402
import monitor_tables  # noqa: E402
import other_inputs_tables  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "accuracy" / "results"
SPEED = DOCS.parent / "benchmarks" / "speed" / "results"
TRAINERS = adaptation.names()
PAGES = (
    *("accuracy.md", "banks.md", "choose.md", "corruptions.md", "metrics.md", "research.md"),
    *("results.md", "scale.md", "groups.md", "monitoring.md", "other-inputs.md"),
    *(f"adaptation/{name}.md" for name in (*TRAINERS, "index", "calibrate")),
)
# Settings of a training that every trainer's table shows.
SHOWN = ("iterations", "batch_size", "lr", "lr_gamma", "weight_decay", "backbone_lr", "bottleneck")
METHODS = ("vanilla", "ts", "ace", "cpcs", "transcal", "sts", "sac", "rehearsal")
SHIFTS = {
    "none": "none: new clean digits",
    "dead-pixels-05": "5 % dead pixels",
    "dead-pixels-15": "15 % dead pixels",
    "dead-pixels-30": "30 % dead pixels",
    "brighter": "brighter",
    "column-black": "one column black",
    "moved": "moved by one pixel",
    "turned": "turned by 15°",
    "classes-389": "only the classes 3, 8, 9",
    "blur": "blur",
    "faded": "faded to half",
}
_MARKED = re.compile(r"(<!-- table: ([a-z0-9/-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def load(name, folder=RESULTS):
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def markdown(head, rows, *, words=1):
    """A table; the first ``words`` columns are text, the others numbers."""
    rule = ["---" if i < words else "--:" for i in range(len(head))]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *rows))


def percent(value):
    return f"{100 * value:.1f}"


def by_shift(results):
    return {name: [r for r in results if r["shift"] == name] for name in SHIFTS}


def mean(rows, pick):
    return statistics.fmean(pick(row) for row in rows)


def method_row(title, rows):
    errors = {m: percent(mean(rows, lambda r, m=m: r["methods"][m]["ece"])) for m in METHODS}
    least = min(errors.values(), key=float)
    return [
        title,
        percent(mean(rows, lambda r: r["oracle"]["accuracy"])),
        percent(mean(rows, lambda r: r["methods"]["vanilla"]["mean_confidence"])),
        *(f"**{value}**" if value == least else value for value in errors.values()),
        percent(mean(rows, lambda r: r["oracle"]["ece"])),
        percent(mean(rows, lambda r: r["floor"])),
    ]


def digits_methods():
    groups = by_shift(load("digits")["results"])
    head = ["shift", "accuracy", "confidence", *METHODS, "labels", "floor"]
    table = markdown(head, [method_row(SHIFTS[name], rows) for name, rows in groups.items()])
    spreads = [
        statistics.stdev(r["methods"][m]["ece"] for r in rows)
        for rows in groups.values()
        for m in METHODS
    ]
    middle, most = percent(statistics.median(spreads)), percent(max(spreads))
    return (
        f"{table}\nStandard deviation over the splits: {middle} points at the median of the "
        f"table, {most} at the most.\n"
    )


def digits_choices():
    rows = []
    for name, group in by_shift(load("digits")["results"]).items():
        chosen = [r["methods"]["sac"] for r in group]
        flags = sorted({code for found in chosen for code in found["flags"]})
        counts = [f"`{f}` {sum(f in c['flags'] for c in chosen)}/{len(chosen)}" for f in flags]
        sets = ", ".join(str(c["set"]) for c in chosen)
        wanted = mean(group, lambda r: r["oracle"]["temperature"])
        used = statistics.fmean(c["temperature"] for c in chosen)
        rows.append(
            [SHIFTS[name], ", ".join(counts) or "none", sets, f"{used:.2f}", f"{wanted:.2f}"]
        )
    head = ["shift", "flags (of five splits)", "sets chosen", "mean T", "T from labels"]
    return markdown(head, rows, words=3)


def map_row(name, results):
    groups = by_shift(results)
    cells = [
        percent(mean(rows, lambda r, m=m: r["maps"][m][name]["ece"]))
        for m in ("sac", "sts")
        for rows in (groups["none"], groups["dead-pixels-15"], groups["blur"], results)
    ]
    gain = mean(results, lambda r: r["maps"]["sac"][name]["accuracy"] - r["oracle"]["accuracy"])
    return [f"`{name}`", *cells, f"{100 * gain:+.1f}" if abs(gain) > 1e-9 else "same"]


def digits_maps():
    results = load("digits")["results"]
    rows = [map_row(name, results) for name in results[0]["maps"]["sac"]]
    parts = ("clean", "15 % dead", "blur", "all")
    head = ["map", *(f"{m} {part}" for m in ("SAC", "STS") for part in parts), "accuracy (SAC)"]
    return markdown(head, rows)


def weighting_row(title, pick, results):
    groups = by_shift(results)
    cells = [
        percent(mean(rows, lambda r, m=m: pick(r)[m]["ece"]))
        for m in ("cpcs", "transcal")
        for rows in (groups["none"], groups["dead-pixels-15"], groups["blur"], results)
    ]
    early = sum("weights-not-converged" in pick(r)["cpcs"]["flags"] for r in results)
    return [title, f"{early}/{len(results)}", *cells]


def digits_weightings():
    results = load("digits")["results"]
    rows = [
        weighting_row("as published: 100 iterations", lambda r: r["methods"], results),
        weighting_row("`max_iter=10000`", lambda r: r["weightings"]["max_iter"], results),
        weighting_row("`standardize=True`", lambda r: r["weightings"]["standardize"], results),
    ]
    parts = ("clean", "15 % dead", "blur", "all")
    head = ["regression", "not converged"]
    head += [f"{m} {part}" for m in ("CPCS", "TransCal") for part in parts]
    return markdown(head, rows)


def ece_floor():
    found = load("ece_bias")["floor"]
    rows = [
        [
            f"{a / (a + b):.2f}, Beta({a:g}, {b:g})",
            f"{row['n']:,}",
            *(f"{row[key]:.4f}" for key in ("rule", "size", "width", "debiased", "smooth")),
        ]
        for row in found
        for a, b in [row["shape"]]
    ]
    head = ["mean confidence", "n", "rule", "ece", "ece, width", "debiased_ece", "smooth_ece"]
    return markdown(head, rows)


def ece_coverage():
    found = load("ece_bias")
    rows = []
    for case in found["coverage"]:
        cells = [f"{case['g']:g}", f"{case['truth']:.4f}", f"{case['ece']:.4f}"]
        for kind in ("bootstrap", "percentile"):
            ends = case[kind]
            cells += [f"{ends['low']:.4f} to {ends['high']:.4f}", f"{ends['coverage']:.2f}"]
        rows.append(cells)
    head = ["g", "true ECE", "mean ECE", "`bootstrap`", "holds the truth", "percentile", "holds it"]
    note = (
        f"n = {found['coverage_n']:,}, {found['samples']} samples of {found['resamples']:,} "
        "resamples each; ends and ECE are means, the shares should be 0.95.\n"
    )
    return f"{markdown(head, rows)}\n{note}"


def small_coverage():
    found = load("ece_bias")
    rows = [
        [
            f"`{case['metric']}`",
            *(f"{g['low']:.3f} to {g['high']:.3f}, {g['coverage']:.2f}" for g in case["gaps"]),
        ]
        for case in found["small"]
    ]
    head = ["true error", *(f"{g['gap']:g}" for g in found["small"][0]["gaps"])]
    note = (
        f"n = {found['small_n']:,}, {found['samples']} samples of {found['small_resamples']:,} "
        "resamples each; mean ends, and the share that holds the truth.\n"
    )
    return f"{markdown(head, rows)}\n{note}"


def effect_cell(draws, reference):
    """Mean over draws, and the reference in brackets where there is one."""
    beside = "" if reference is None else f" ({reference:.1f})"
    return f"{percent(statistics.fmean(draws))}{beside}"


def corruption_effect():
    found = load("corruptions")
    rows, off = [], []
    for name, levels in found["accuracy"].items():
        theirs = dict(
            zip((0, 2, 4), found["reference"].get(name.partition(" ")[0], ()), strict=False)
        )
        rows.append(
            [f"`{name}`", *(effect_cell(draws, theirs.get(i)) for i, draws in enumerate(levels))]
        )
        if "photos" not in name:
            off += [100 * statistics.fmean(levels[i]) - value for i, value in theirs.items()]
    head = ["corruption", *(f"severity {level}" for level in range(1, 6))]
    note = (
        f"Over the {len(off)} values that have a reference (procedural frost among them) the mean "
        f"difference is {statistics.fmean(off):+.1f} points, the mean absolute one "
        f"{statistics.fmean(abs(d) for d in off):.1f}, the largest {max(off, key=abs):+.1f}.\n"
    )
    return f"{markdown(head, rows)}\n{note}"


def corruption_speed():
    found = load("corruptions", SPEED)

    def cell(seconds):
        return f"{1e6 * seconds:.1f}" if seconds < 1e-5 else f"{1e6 * seconds:,.0f}"

    rows = []
    for name, first in found["first call"].items():
        row = [f"`{name}`"]
        for side in ("32", "224"):
            times = found["seconds an image"][side][name]
            fastest = found["fastest peer"][side][name]
            row += [cell(times["shiftcal"]), f"{fastest[1] / times['shiftcal']:.1f}x, {fastest[0]}"]
        rows.append([*row, f"{first[0]:.1f}", f"{first[1]:.1f}"])
    head = ["corruption", "32 px: µs", "fastest peer takes", "224 px: µs", "fastest peer takes"]
    return markdown([*head, "first call ever, s", "of a later process, s"], rows)


def scoring():
    found = load("scoring", SPEED)
    rows = list(found["rows"].values())
    over = [row["shiftcal"] / row["forward"] for row in rows]
    total = {key: sum(row[key] for row in rows) for key in rows[0]}
    what = {
        "forward": "the network alone, on batches that are ready",
        "shiftcal": "shiftcal, from images to the files of the bank",
        "script": "imagecorruptions in a DataLoader with two workers, then the same network",
    }
    table = markdown(
        ["ResNet-20 at 32 pixels, 16 corruptions at five severities", "ms an image", "of ours"],
        [
            [words, f"{1000 * total[key]:.1f}", f"{total[key] / total['shiftcal']:.2f}x"]
            for key, words in what.items()
        ],
    )
    one, two = found["workers"].values()
    torch = found["torch"]["shiftcal"] / found["torch"]["forward"]
    return (
        f"{table}\nOver the sixteen corruptions the whole takes {statistics.fmean(over):.3f} times "
        f"the network's own time in the mean (from {min(over):.3f} to {max(over):.3f}); in eager "
        f"torch {torch:.3f} times. Two worker processes of one thread score {two / one:.2f} times "
        "as many images a second as one. `benchmarks/speed/scoring.py` measures it.\n"
    )


def costs():
    """Processor seconds of statistics by what is done and the number of classes."""
    found = load("sharding", SPEED)
    cpu = {(t["tool"], t["size"]): t["cpu"] for t in found["timings"]}
    rows = {1000: (50_000, "50,000 x 1,000"), 10: (1_000_000, "1,000,000 x 10")}
    return found, cpu, lambda tool, k: cpu[tool, rows[k][1]] / rows[k][0]


def sharding():
    found, cpu, a_row = costs()
    what = {
        "statistics with labels": "statistics of a million rows, with labels",
        "statistics without labels": "without labels",
        "one more pass for all digits": "one more pass for all digits of the temperature",
    }
    rows = [
        [words, *(f"{1e6 * a_row(tool, k):.1f} s" for k in (1000, 10))]
        for tool, words in what.items()
    ]
    rows.append(
        [
            "file of statistics, whatever it counts",
            *(f"{found[f'bytes_of_a_file_{k}'] / 1e6:.2f} MB" for k in (1000, 10)),
        ]
    )
    merging = cpu["statistics", "1,000 parts"]
    return (
        f"{markdown(['', '1,000 classes', '10 classes'], rows)}\n"
        f"Adding up the statistics of 1,000 parts takes {merging:.1f} s.\n"
    )


def sharding_plan():
    found, cpu, a_row = costs()
    part = 100_000 * a_row("statistics with labels", 1000)
    again = 1e8 * a_row("one more pass for all digits", 1000) / 60
    size = found["bytes_of_a_file_1000"] / 1e6
    rows = [
        ["a part's logits in float16, on the worker's disk if they are kept at all", "200 MB"],
        ["a part's statistics", f"{size:.2f} MB"],
        ["processor time for a part's statistics, with labels", f"{part:.1f} s"],
        ["for all of them", f"{1000 * part / 3600:.1f} hours, spread over the workers"],
        ["what travels to one place", f"{1000 * size:.0f} MB"],
        ["merging there", f"{cpu['statistics', '1,000 parts']:.1f} s"],
        ["memory there", "a few megabytes"],
        [
            "one more pass for all digits of the temperature, if the logits were kept",
            f"{again:.0f} minutes, spread",
        ],
    ]
    return markdown(["", "1,000 parts"], rows)


def adaptation_speed():
    threads = load("adaptation", SPEED)["threads"]
    found = {
        number: {name: sorted(each) for name, each in one["times_plain"].items()}
        for number, one in threads.items()
    }
    header = ["", *(f"{n} thread{'s' if n != '1' else ''}" for n in found)]
    rows = [
        [
            f"`{name}`" if "," not in name else "`source-only`, 64 rows",
            *(
                f"{statistics.median(one[name]):.2f} ({one[name][0]:.2f} to {one[name][-1]:.2f})"
                for one in found.values()
            ),
        ]
        for name in next(iter(found.values()))
    ]
    return markdown(header, rows)


def study_speed():
    found = load("study", SPEED)
    rows = [[stage, f"{seconds:.0f}"] for stage, seconds in found["stages"].items()]
    rows += [
        ["the whole command", f"{found['study_seconds']:.0f}"],
        ["the network alone on all images", f"{found['forward_seconds']:.0f}"],
    ]
    over = found["study_seconds"] / found["forward_seconds"]
    return (
        f"The synthetic study with all sixteen corruptions, {found['images']:,} images and "
        f"{found['evaluations']:,} evaluations, on {found['processors']} processors with ResNet-20 "
        f"in onnxruntime takes {over:.2f} times as long as the network alone:\n\n"
        + markdown(["stage", "seconds"], rows)
    )


def recipes(name):
    """Settings and options of a trainer by recipe; what is alike in all and usual is left out."""
    kind = adaptation.get(name)
    prepared = {"default": kind.prepared(), **{r: kind.prepared(r) for r in kind.recipes}}
    values = {r: {**s.to_dict(), **t.to_dict()} for r, (t, s) in prepared.items()}
    usual = adaptation.Settings().to_dict()
    own = {field.name for field in fields(kind)}

    def is_shown(setting):
        found = {repr(each[setting]) for each in values.values()}
        other = setting not in own and repr(usual[setting]) not in found
        return setting in SHOWN or len(found) > 1 or other

    def cell(value):
        return f"{value:,}" if type(value) is int else str(value)

    rows = [
        [f"`{setting}`", *(cell(each[setting]) for each in values.values())]
        for setting in values["default"]
        if is_shown(setting)
    ]
    return markdown(["", *(f"`{r}`" for r in values)], rows)


TABLES = {
    "adaptation-speed": adaptation_speed,
    "corruption-effect": corruption_effect,
    "corruption-speed": corruption_speed,
    "digits-methods": digits_methods,
    "digits-choices": digits_choices,
    "digits-maps": digits_maps,
    "digits-weightings": digits_weightings,
    "ece-floor": ece_floor,
    "ece-coverage": ece_coverage,
    "scoring": scoring,
    "sharding": sharding,
    "sharding-plan": sharding_plan,
    "small-coverage": small_coverage,
    "study-speed": study_speed,
    **adaptation_tables.TABLES,
    **beyond_tables.TABLES,
    **groups_tables.TABLES,
    **monitor_tables.TABLES,
    **other_inputs_tables.TABLES,
    **{f"recipes-{name}": partial(recipes, name) for name in TRAINERS},
}


def renewed(text):
    """The text of a page with every marked table written anew."""
    return _MARKED.sub(lambda m: f"{m[1]}\n{written(m[2])}\n{m[3]}", text)


def written(name):
    """One table; a name with a slash is a block of the page of results."""
    if "/" not in name:
        return TABLES[name]()
    from results import block

    return block(name)


def main() -> None:
    for page in PAGES:
        path = DOCS / page
        path.write_text(renewed(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()

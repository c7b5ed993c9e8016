"""Tables of what things cost, from the committed results of benchmarks/speed.

``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import statistics

from committed import SPEED, load, markdown


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
    size = found["bytes_of_a_file_1000"] / 1e6
    rows = [
        ["a part's logits in float16, on the worker's disk if they are kept at all", "200 MB"],
        ["a part's statistics", f"{size:.2f} MB"],
        ["processor time for a part's statistics, with labels", f"{part:.1f} s"],
        ["for all of them", f"{1000 * part / 3600:.1f} hours, spread over the workers"],
        ["what travels to one place", f"{1000 * size:.0f} MB"],
        ["merging there", f"{cpu['statistics', '1,000 parts']:.1f} s"],
        ["memory there", "a few megabytes"],
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


TABLES = {
    "adaptation-speed": adaptation_speed,
    "corruption-speed": corruption_speed,
    "scoring": scoring,
    "sharding": sharding,
    "sharding-plan": sharding_plan,
    "study-speed": study_speed,
}

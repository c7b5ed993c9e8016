"""Tables of the methods on digits, from the committed results.

``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import statistics

from committed import load, markdown, percent

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


TABLES = {
    "digits-methods": digits_methods,
    "digits-choices": digits_choices,
    "digits-maps": digits_maps,
    "digits-weightings": digits_weightings,
}

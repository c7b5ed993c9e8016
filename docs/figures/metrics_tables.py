"""Tables of the page on metrics, from the committed results.

``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

from committed import load, markdown


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


TABLES = {
    "ece-floor": ece_floor,
    "ece-coverage": ece_coverage,
    "small-coverage": small_coverage,
}

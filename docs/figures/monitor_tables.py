"""Tables of the page on monitoring, from the committed results."""

import json
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ORDER = (
    *(f"severity {s}" for s in range(1, 6)),
    *(f"{how} severity {s}" for how in ("half of", "ramp to") for s in (3, 5)),
)


def load(kind):
    return json.loads((BENCHMARKS / kind / "results" / "monitor.json").read_text("utf-8"))


def markdown(head, rows):
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def rows_of(told, most):
    """Median and ninth decile; what was not seen took longer than the stream."""
    return [f"{told[q]:,.0f}" if told[q] is not None else f"> {most:,}" for q in ("median", "p90")]


def delays():
    """Rows until a shift is seen, and until its end is, beside the KS detector."""
    found = load("accuracy")
    rows = []
    for name in ORDER:
        s = found["streams"][name]
        most = found["ramp"] if name.startswith("ramp") else found["during"]
        both = [cell for whose in ("monitor", "ks") for cell in rows_of(s[whose], most)]
        seen = [f"{100 * s[whose]['seen']:.0f} %" for whose in ("monitor", "ks")]
        back = [f"{s[whose]['median']:,.0f}" for whose in ("back", "ks_back")]
        rows.append([name, f"{100 * s['accuracy']:.1f}", *both, *seen, *back])
    head = [
        "shift", "accuracy", "seen after", "9 of 10", "KS", "9 of 10", "seen at all", "KS",
        "return", "KS",
    ]  # fmt: skip
    return markdown(head, rows)


def false_alarms():
    """Alarms per 100,000 clean rows: wanted, and measured on several kinds of streams."""
    found = load("accuracy")
    passed = found["one_pass"]
    each = sorted(found["false_alarms"])
    mean = sum(each) / len(each)
    rate = 1e5 * passed["alarms"] / passed["rows"]
    rows = [
        [
            "new rows, none twice",
            f"{passed['wanted']:g}",
            f"{rate:.1f} ({passed['alarms']} alarms in {passed['rows']:,} rows)",
        ],
        [
            "drawn again and again from 5,000 held-out rows",
            f"{found['wanted']:g}",
            f"{mean:.1f} (splits: {', '.join(f'{a:.2g}' for a in each)})",
        ],
    ]
    for length, rates in found["in_runs"].items():
        mean = sum(rates) / len(rates)
        kind = f"the same, in runs of {length} of one class"
        rows.append([kind, f"{found['wanted']:g}", f"{mean:.1f}"])
    return markdown(["clean stream", "wanted", "measured"], rows)


def estimates():
    """Error of the estimated accuracy, as the window fills with shifted rows."""
    found = load("accuracy")
    at = list(found["streams"]["severity 1"]["estimate"])
    rows = []
    for name in ORDER[:7]:
        told = found["streams"][name]["estimate"]
        cells = [f"{100 * told[n]['window']:.1f} / {100 * told[n]['now']:.1f}" for n in at]
        covered = f"{100 * told[at[-1]]['covered']:.0f} %"
        rows.append([name, *cells, covered])
    head = ["shift", *(f"after {int(n):,} rows" for n in at), "interval holds it"]
    return markdown(head, rows)


def speed():
    """Time for a batch beside numpy's softmax."""
    rows = [
        [r["case"], f"{r['ratio']:.1f}", f"{r['rows_per_second'] / 1e6:.2g}"]
        for r in load("speed")["cases"]
    ]
    return markdown(["monitor", "times softmax", "million rows per second"], rows)


TABLES = {
    "monitor-delays": delays,
    "monitor-false-alarms": false_alarms,
    "monitor-estimates": estimates,
    "monitor-speed": speed,
}

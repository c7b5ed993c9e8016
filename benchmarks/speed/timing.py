"""How the speed benchmarks measure time and memory, and write down what they found."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "shiftcal", "numpy", "scipy", "scikit-learn", "netcal", "probmetrics",
    "torch", "torchmetrics", "onnxruntime",
)  # fmt: skip
LIMIT = "limit: one `np.sum`"  # over the same array


@dataclass
class Timing:
    """Seconds: the median over the repeats, the median deviation from it, and processor time."""

    tool: str
    size: str
    wall: float
    mad: float
    cpu: float
    repeats: int
    value: float | None
    threads: int


def measure(
    tool: str,
    size: str,
    function: Callable[[], float | None],
    *,
    threads: int = 1,
    seconds: float = 4,
) -> Timing:
    """Time ``function`` after a warm-up, for about so many seconds and at least three times.

    A call that alone takes longer than that is its own warm-up, and is made three times in all:
    the caller has already used the tool on something small.
    """
    walls, cpus = [], []

    def once() -> float | None:
        wall, cpu = time.perf_counter(), time.process_time()
        value = function()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        return value

    with limited_to(threads):
        value = once()
        if walls[0] < seconds:
            walls.clear()
            cpus.clear()
        while len(walls) < 3 or (sum(walls) < seconds and len(walls) < 50):
            once()
    wall = statistics.median(walls)
    mad = statistics.median(abs(w - wall) for w in walls)
    value = None if value is None else float(value)
    found = Timing(tool, size, wall, mad, statistics.median(cpus), len(walls), value, threads)
    print(found, file=sys.stderr, flush=True)
    return found


@contextmanager
def limited_to(threads: int) -> Iterator[None]:
    """So many threads for shiftcal, BLAS, OpenMP and torch."""
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = str(threads)  # shiftcal reads it at every call
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    with threadpool_limits(threads):
        yield
    del os.environ["OMP_NUM_THREADS"]


def extra_memory(function: Callable[[], object]) -> int | None:
    """Bytes by which the process grew at its largest while ``function`` ran (Linux only).

    The kernel keeps the largest resident size; it is reset first, so that what happened before
    does not count.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    Path("/proc/self/clear_refs").write_text("5")
    before = _kilobytes(status, "VmRSS")
    function()
    return 1024 * (_kilobytes(status, "VmHWM") - before)


def _kilobytes(status: Path, field: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def in_fresh_process(script: str, *arguments: str, **environment: str) -> str:
    """What ``script`` prints when it is run with these arguments."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


def circumstances() -> dict[str, object]:
    """Machine, versions, date and load: what a figure is worth nothing without."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: version for name in PACKAGES if (version := _version(name)) is not None},
    }


def _version(package: str) -> str | None:
    """Of a package, if it is here: peers are not in every environment."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((x.split(":")[1].strip() for x in lines if "model name" in x), platform.machine())


def run(name: str, parts: dict[str, Callable[[], object]], page: Callable[[dict], str]) -> None:
    """Do the parts that the command line names, by default all, and write the results.

    As JSON for programs and as Markdown for people. What other parts found in earlier runs stays;
    with a name that is no part only the Markdown is written again.
    """
    file = RESULTS / f"{name}.json"
    found = json.loads(file.read_text()) if sys.argv[1:] else {}
    for part in sys.argv[1:] or parts:
        if part in parts:
            found[part] = parts[part]()
            found["circumstances"] = circumstances()
            as_json = json.dumps(found, indent=1, default=asdict)
            file.write_text(as_json + "\n")
            found = json.loads(as_json)
    facts = "\n".join(f"- {k}: {v}" for k, v in found["circumstances"].items())
    text = f"{page(found).strip()}\n\n## Circumstances\n\n{facts}\n"
    file.with_suffix(".md").write_text(text)
    print(text)


def timings(rows: list[dict], **chosen: object) -> list[Timing]:
    """Stored timings, those with these values."""
    return [Timing(**row) for row in rows if chosen.items() <= row.items()]


def milliseconds(seconds: float) -> str:
    """Three digits, as many as a timing is good for."""
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:.0f}"


def table(timings: list[Timing], ours: str) -> str:
    """A Markdown table of sizes against tools, with how many times slower each is than ``ours``."""
    tools = list(dict.fromkeys(t.tool for t in timings))
    sizes = list(dict.fromkeys(t.size for t in timings))
    cell = {(t.tool, t.size): t for t in timings}
    lines = ["| tool |" + "".join(f" {size} |" for size in sizes), "|---" * (len(sizes) + 1) + "|"]
    for tool in tools:
        line = f"| {tool} |"
        for size in sizes:
            t, base = cell.get((tool, size)), cell[ours, size]
            if t is None:
                line += " |"
                continue
            ratio = "" if tool == ours else f", **{t.wall / base.wall:.2g}x**"
            ratio = ratio if t.wall < 10 * base.wall else f", **{t.wall / base.wall:.0f}x**"
            line += f" {milliseconds(t.wall)} ± {milliseconds(t.mad)}{ratio} |"
        lines.append(line)
    return "\n".join(lines)


def fastest_peers(timings: list[Timing], ours: str, *, but: str = LIMIT) -> str:
    """For every size, how ours compares with the fastest of the others, but for this one."""
    sentences = []
    for size in dict.fromkeys(t.size for t in timings):
        here = [t for t in timings if t.size == size]
        base = next(t for t in here if t.tool == ours)
        peers = [t for t in here if t.tool not in (LIMIT, but)]
        best = min((t for t in peers if "shiftcal" not in t.tool), key=lambda t: t.wall)
        sentences.append(
            f"- {size}: {best.wall / base.wall:.1f} times as fast as the fastest peer, {best.tool}."
        )
    return "\n".join(sentences)

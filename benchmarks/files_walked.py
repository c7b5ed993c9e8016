"""How many files of shiftcal five commands run through, on small data made here.

    python benchmarks/files_walked.py [compare | bank | monitor | reproduce | train]

A file counts if one of its functions is called in the main process (worker processes are not
traced; commands run with one worker). ``tests/support`` has the small models and studies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROFILED = """
import sys
seen = set()
def profile(frame, event, arg):
    code = frame.f_code
    # Bodies of modules and classes are run by imports; those of classes set __qualname__.
    if event == "call" and "__qualname__" not in code.co_names and code.co_name[0] != "<":
        if not code.co_name.startswith("__") and "/shiftcal/" in code.co_filename:
            seen.add(code.co_filename)
from shiftcal.__main__ import main
sys.setprofile(profile)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
files = {name.rpartition("/shiftcal/")[2] for name in seen if not name.endswith("__init__.py")}
print("WALKED", len(files), *sorted(files), file=sys.stderr)
"""
DATA = """
from pathlib import Path
import numpy as np
from onnx_resnet import mean_colour_onnx
from tiny_study import write_study
from two_domains import drawn, write_domain
rng = np.random.default_rng(0)
for name, strength in (("a", 3), ("b", 2), ("t", 2.5)):
    y = rng.integers(0, 5, 400)
    z = rng.normal(size=(400, 5))
    z[np.arange(400), y] += strength
    np.savez(name, logits=3 * z, labels=y)
write_study(Path("."))
write_domain(Path("photos"), *drawn(60, seed=1))
write_domain(Path("sketches"), *drawn(60, shift=0.7, seed=2))
Path("net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
Path("feed").mkdir()
np.savez("feed/1.npz", logits=3 * z)
import shiftcal as sc
sc.SurrogateBank.from_files(["a.npz", "b.npz"]).save("ladder")
"""
COMMANDS = {
    "compare": "compare --surrogate a.npz --surrogate b.npz --target t.npz",
    "bank": "bank --model net.onnx --images images.npz --corruption fog --workers 1 -o bank",
    "monitor": "monitor ladder --follow feed --once --settle 0 --state state.json",
    "reproduce": "reproduce mine.toml --data . --workers 1",
    "train": "train --method mcc --source photos --target sketches --set iterations=4"
    " --set batch_size=8 --set bottleneck=6 --severity 1,5 -o run"
    " --backbone net.onnx?features_from=x --frozen --workers 1",
}


def run(code: str, folder: str, *words: str) -> str:
    """What a fresh Python says on stderr."""
    path = [str(ROOT / "tests" / "support"), str(ROOT / "src")]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(run(DATA, folder), end="")
        for name in sys.argv[1:] or COMMANDS:
            lines = run(PROFILED, folder, *COMMANDS[name].split()).splitlines()
            _, count, *files = lines[-1].split()
            print(f"{name}: {count} files\n  {' '.join(files)}")
            if len(lines) > 1:
                print(f"  stderr: {lines[-2]}")


if __name__ == "__main__":
    main()

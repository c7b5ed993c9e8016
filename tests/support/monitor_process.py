"""A process that feeds a monitor and keeps its state: ``python monitor_process.py FOLDER BATCHES``.

It goes on from the state in the folder, if there is one, and prints the number of every batch that
it has kept. ``FOLDER/monitor.json`` is the monitor; ``FOLDER/slow`` makes it wait between batches.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np


def batch(number: int) -> np.ndarray:
    """The rows of a batch: clean ones, then harder ones, then clean ones again."""
    from monitored import rows

    return rows(170, 0.7 if 10 <= number < 25 else 1.3, seed=1000 + number)


def main(folder: Path, batches: int) -> None:
    """Feed what is left."""
    import shiftcal

    watch = shiftcal.load(folder / "monitor.json")
    kept = folder / "state.json"
    if kept.exists():
        watch.load_state_dict(json.loads(kept.read_text()))
    done = watch.rows // 170
    for number in range(done, batches):
        update = watch.feed(batch(number))
        line = {
            "number": number,
            "confidence": update.confidence.tolist(),
            "events": [e.to_dict() for e in update.events],
            "statistic": update.statistic,
        }
        with (folder / "out.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")
        temporary = folder / "state.tmp"
        temporary.write_text(json.dumps(watch.state_dict()))
        temporary.replace(kept)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        if (folder / "slow").exists():
            time.sleep(0.02)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

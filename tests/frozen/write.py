"""Write down what shiftcal promises: ``python tests/frozen/write.py``, when a change is meant."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import promises


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        numbers = promises.numbers(Path(folder))
        documents = {
            "names": promises.names(),
            "commands": promises.commands(),
            "invocations": promises.invocations(Path(other)),
            "inputs": promises.inputs(),
            "rounding": promises.rounding(),
        }
    promises.record(documents, numbers)


if __name__ == "__main__":
    main()

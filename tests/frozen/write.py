"""Write down what shiftcal promises, when a change is meant: ``python tests/frozen/write.py``.

Numbers are written with ``--numbers`` only: their last digits depend on the machine.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import promises


def main() -> None:
    documents, numbers = promises.recorded()
    with tempfile.TemporaryDirectory() as folder:
        documents |= {
            "names": promises.names(),
            "commands": promises.commands(),
            "invocations": promises.invocations(Path(folder)),
            "inputs": promises.inputs(),
        }
    if "--numbers" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            numbers = promises.numbers(Path(folder))
        documents["rounding"] = promises.rounding()
    promises.record(documents, numbers)


if __name__ == "__main__":
    main()

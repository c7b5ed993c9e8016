"""The tests of the core, run from an unpacked sdist in an environment without oracles."""

from __future__ import annotations

import re

# The whole way of logits: arithmetic, metrics, maps, methods.
CORE = ("numerics", "metrics", "maps", "methods")
# Tests that are not of the core, though they stand there: which, and why.
LEFT_OUT: dict[str, str] = {}


def check_core_tests(environment, sdist, *, folders=CORE, left_out=LEFT_OUT):
    """Run them; they pass, and hardly any is skipped for want of what it compares with."""
    options = ["-p", "absent_oracles", "-p", "no:cacheprovider", "-m", "not slow", "-rs"]
    options += [f"--deselect={name}" for name in left_out]
    told = environment.call(
        "-m", "pytest", *options, *(f"tests/{name}" for name in folders), cwd=sdist
    ).stdout
    passed = int(re.search(r"(\d+) passed", told)[1])
    skipped = int((re.search(r"(\d+) skipped", told) or ["", "0"])[1])
    assert passed > 20 * skipped, told

"""The tests of the core, run from an unpacked sdist in an environment without oracles."""

from __future__ import annotations

import re

# The whole way of logits: arithmetic, metrics, maps, methods.
CORE = ("numerics", "metrics", "maps", "methods")
# Half the time of them all, for statistics that do not depend on how shiftcal was installed.
LEFT_OUT = ("metrics/test_metric_bootstrap.py",)


def check_core_tests(environment, sdist):
    """They pass, and few are skipped for want of a package that they compare with."""
    options = ["-p", "absent_oracles", "-p", "no:cacheprovider", "-m", "not slow", "-rs"]
    options += [f"--ignore=tests/{file}" for file in LEFT_OUT]
    folders = [f"tests/{name}" for name in CORE]
    told = environment.call("-m", "pytest", *options, *folders, cwd=sdist).stdout
    passed, skipped = (re.search(rf"(\d+) {word}", told) for word in ("passed", "skipped"))
    assert skipped is None or int(passed[1]) > 50 * int(skipped[1]), told

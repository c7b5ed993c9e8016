"""The other versions of Python that the project names, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from released import PROJECT, check_example_of_readme, names_without_extra

NAMED = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
OTHERS = [version for version in NAMED if version != f"3.{sys.version_info.minor}"]


def told(*command):
    """What a command prints, and nothing if there is no such command or it fails."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def found(version):
    """The interpreter: on the path, or among those of pyenv."""
    path = "import sys; print(sys.executable)"
    name = f"python{version}"
    if executable := told(name, "-c", path):
        return executable
    for known in reversed(told("pyenv", "whence", name).split()):
        return f"{told('pyenv', 'root')}/versions/{known}/bin/{name}"
    pytest.skip(f"Python {version} is not installed")


def test_the_oldest_that_is_named_is_the_oldest_that_is_allowed():
    assert PROJECT["requires-python"] == f">={NAMED[0]}"


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS)
def test_the_core_works(environment, version):
    core = environment("core", python=found(version))
    assert core.call("--version").stdout.strip().startswith(f"Python {version}")
    assert set(names_without_extra(core).values()) == {"torch"}
    check_example_of_readme(core)

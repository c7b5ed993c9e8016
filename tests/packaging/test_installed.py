"""The wheel, installed without extras, with each extra alone, and at the oldest versions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
from clean_environment import (
    EXTRAS,
    PROJECT,
    ROOT,
    SERVED,
    check_example_of_readme,
    names_without_extra,
    requirements,
    run,
)

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


HEAVY = ("numpy", "scipy", "sklearn", "typer", "rich")
NAMED = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
OTHERS = [version for version in NAMED if version != f"3.{sys.version_info.minor}"]
# Extras that bring torch, and what each lets one import.
BRINGS = {
    "torch": {"torch"},
    "torchmetrics": {"torch", "torchmetrics"},
    "lightning": {"torch", "torchmetrics", "lightning"},
}
SLOW = {"ray", *BRINGS}  # large ones take a minute each


def test_the_core_is_whole_and_light(environment, tmp_path):
    core = environment("core")
    listing = "from importlib.metadata import distributions as d; print(*(x.name for x in d()))"
    found = {name.lower().replace("_", "-") for name in core.call("-c", listing).stdout.split()}
    optional = {re.split("[>=]", line)[0] for extra in EXTRAS for line in requirements(extra)}
    assert "shiftcal" in found
    assert found & (optional | {"pytest", "pip"}) == set()
    code = f"import shiftcal, sys; print([m for m in {HEAVY} if m in sys.modules])"
    assert core.call("-c", code).stdout.strip() == "[]"
    # Classes that are torch modules themselves, and functions of tensors.
    assert set(names_without_extra(core).values()) == set(BRINGS)
    check_example_of_readme(core)
    assert run(core.folder / "bin" / "shiftcal", "--help", cwd=tmp_path).stdout
    doctor = core.call("-m", "shiftcal", "doctor").stdout
    (listed,) = re.findall(r"pip install 'shiftcal\[([\w,]+)\]'", doctor)
    assert set(listed.split(",")) == set(EXTRAS)


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_serves_says_that_it_is_missing(environment, extra, tmp_path):
    done = environment("core").call("-P", SERVED / f"{extra}.py", cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert done.stderr.strip().endswith(f"Run: pip install 'shiftcal[{extra}]'"), done.stderr


@pytest.mark.parametrize("versions", ["core", "minimum"])
def test_the_core_passes_its_tests(environment, built, versions):
    check_core_tests(environment(versions, "tests"), built.unpacked)


@pytest.mark.parametrize(
    "extra", [pytest.param(x, marks=pytest.mark.slow) if x in SLOW else x for x in EXTRAS]
)
def test_an_extra_serves_alone(environment, extra, tmp_path):
    alone = environment("core", extra)
    assert set(names_without_extra(alone).values()) == set(BRINGS) - BRINGS.get(extra, set())
    alone.call("-P", SERVED / f"{extra}.py", cwd=tmp_path)
    doctor = json.loads(alone.call("-m", "shiftcal", "doctor", "--json").stdout)
    assert doctor["problems"] == []
    assert doctor["extras"][extra]["complete"]


def test_the_lists_of_extras_and_versions_agree():
    assert sorted(file.stem for file in SERVED.glob("*.py")) == EXTRAS
    (line,) = requirements("all")
    assert sorted(line.partition("[")[2].strip("]").split(",")) == EXTRAS
    asked = {*PROJECT["dependencies"], *(line for extra in EXTRAS for line in requirements(extra))}
    lines = (ROOT / "constraints-minimum.txt").read_text("utf-8").splitlines()
    listed = [line for line in lines if not line.startswith("#")]
    assert sorted(listed) == sorted(line.replace(">=", "==") for line in asked)
    assert PROJECT["requires-python"] == f">={NAMED[0]}"


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_serves_at_its_oldest_version(environment, extra, tmp_path):
    # Two environments take less time than many; torch brings gigabytes of CUDA.
    extras = [name for name in EXTRAS if (name in BRINGS) == (extra in BRINGS)]
    environment("minimum", *extras).call("-P", SERVED / f"{extra}.py", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS)
def test_the_core_works_with_another_python(environment, version):
    name = f"python{version}"
    python = shutil.which(name)
    if python is None and shutil.which("pyenv"):
        listed = subprocess.run(["pyenv", "prefix", version], capture_output=True, check=False)
        python = f"{listed.stdout.decode().strip()}/bin/{name}" if not listed.returncode else None
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    core = environment("core", python=python)
    assert core.call("--version").stdout.strip().startswith(f"Python {version}")
    assert set(names_without_extra(core).values()) == set(BRINGS)
    check_example_of_readme(core)

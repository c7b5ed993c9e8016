"""The wheel with no extras: it is whole, it is light, and it says which extra brings the rest."""

from __future__ import annotations

import re

import pytest
from clean_environment import run
from core_tests import check_core_tests
from released import EXTRAS, SERVED, check_example_of_readme, names_without_extra, requirements

HEAVY = ("numpy", "scipy", "sklearn", "numba", "typer", "rich")


@pytest.fixture(scope="module")
def core(environment):
    return environment("core")


def test_nothing_is_there_that_was_not_asked_for(core):
    listing = "from importlib.metadata import distributions as d; print(*(x.name for x in d()))"
    found = {name.lower().replace("_", "-") for name in core.call("-c", listing).stdout.split()}
    assert "shiftcal" in found
    optional = {re.split("[>=]", line)[0] for extra in EXTRAS for line in requirements(extra)}
    assert found & (optional | {"pytest", "pip"}) == set()


def test_importing_it_brings_nothing_heavy(core):
    code = f"import shiftcal, sys; print([m for m in {HEAVY} if m in sys.modules])"
    assert core.call("-c", code).stdout.strip() == "[]"


def test_every_public_name_is_there_or_names_its_extra(core):
    # Classes that are torch modules themselves, and functions of tensors.
    assert set(names_without_extra(core).values()) == {"torch"}


def test_the_example_of_the_readme_runs(core):
    check_example_of_readme(core)


@pytest.mark.parametrize("word", ["--help", "--version", "list", "doctor"])
def test_the_command_is_installed(core, word, tmp_path):
    assert run(core.folder / "bin" / "shiftcal", word, cwd=tmp_path).stdout


def test_the_doctor_says_how_to_install_every_extra(core):
    told = core.call("-m", "shiftcal", "doctor").stdout
    (listed,) = re.findall(r"pip install 'shiftcal\[([\w,]+)\]'", told)
    assert set(listed.split(",")) == set(EXTRAS)


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_serves_says_that_it_is_missing(core, extra, tmp_path):
    done = core.call("-P", SERVED / f"{extra}.py", cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert done.stderr.strip().endswith(f"Run: pip install 'shiftcal[{extra}]'"), done.stderr


def test_the_core_passes_its_tests(environment, built):
    check_core_tests(environment("core", "tests"), built.unpacked)

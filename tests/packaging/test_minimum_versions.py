"""The oldest versions that are allowed, installed and used."""

from __future__ import annotations

import pytest
from core_tests import check_core_tests
from released import (
    EXTRAS,
    PROJECT,
    ROOT,
    SERVED,
    check_example_of_readme,
    names_without_extra,
    requirements,
)

# torch of that age comes with two gigabytes of CUDA.
LARGE = ["torch"]
OTHERS = sorted(set(EXTRAS) - set(LARGE))


def test_the_list_has_the_lower_bounds_of_the_project():
    asked = PROJECT["dependencies"] + [line for extra in EXTRAS for line in requirements(extra)]
    lines = (ROOT / "constraints-minimum.txt").read_text("utf-8").splitlines()
    listed = [line for line in lines if not line.startswith("#")]
    assert sorted(listed) == sorted(line.replace(">=", "==") for line in asked)


def test_a_package_has_one_lower_bound_wherever_it_is_named():
    bounds: dict[str, set[str]] = {}
    for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for name, at_least, version in (line.partition(">=") for line in lines):
            if at_least:
                bounds.setdefault(name, set()).add(version)
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_the_core_is_whole(environment):
    minimum = environment("minimum")
    assert set(names_without_extra(minimum).values()) == {"torch"}
    check_example_of_readme(minimum)


def test_the_core_passes_its_tests(environment, built):
    check_core_tests(environment("minimum", "tests"), built.unpacked)


@pytest.mark.slow
@pytest.mark.parametrize("extra", OTHERS)
def test_an_extra_serves(environment, extra, tmp_path):
    # All in one environment, which takes half the time; each alone is tried with new versions.
    environment("minimum", *OTHERS).call("-P", SERVED / f"{extra}.py", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("extra", LARGE)
def test_a_large_extra_serves(environment, extra, tmp_path):
    environment("minimum", extra).call("-P", SERVED / f"{extra}.py", cwd=tmp_path)

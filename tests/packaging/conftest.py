"""The distributions, and environments they are installed into, made once in ``.venv-packages``.

``make packages`` begins with an empty folder. Tests that are run by hand use what is there.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from clean_environment import ROOT, Environment, create, made_once, run

FOLDER = ROOT / ".venv-packages"
CONSTRAINTS = {"core": "constraints.txt", "minimum": "constraints-minimum.txt"}


@pytest.fixture(scope="session")
def built():
    """The sdist, as file and unpacked; and the wheel made of it."""
    folder = FOLDER / "built"
    with made_once(folder) as wanted:
        if wanted:
            # From the tree to the sdist and from that to the wheel, as a release is built.
            run(sys.executable, "-m", "build", "-o", folder, ROOT, cwd=ROOT)
            (sdist,) = folder.glob("*.tar.gz")
            with tarfile.open(sdist) as archive:
                archive.extractall(folder / "unpacked", filter="data")
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    (unpacked,) = folder.glob("unpacked/*")
    return SimpleNamespace(sdist=sdist, wheel=wheel, unpacked=unpacked)


@pytest.fixture(scope="session")
def environment(built):
    """``environment("core", "onnx")``: the wheel with these extras and nothing else.

    The first word says which versions: ``core`` the newest, ``minimum`` those of
    ``constraints-minimum.txt``. ``tests`` among the extras is what tests are run with.
    """

    def get(versions: str, *extras: str, python: str | Path = sys.executable) -> Environment:
        name = Path(python).name if python != sys.executable else versions
        place = FOLDER / "+".join([name, *extras])
        like = get(versions) if extras else None
        with made_once(place) as wanted:
            if wanted:
                own = [extra for extra in extras if extra != "tests"]
                asked = [f"{built.wheel}[{','.join(own)}]" if own else built.wheel]
                asked += ["pytest", "hypothesis"] if "tests" in extras else []
                made = create(place, python=python, like=like)
                # Compiled where others are made like it.
                limits = ROOT / CONSTRAINTS[versions]
                made.install(*asked, constraints=limits, compiled=not extras)
        return Environment(place)

    return get

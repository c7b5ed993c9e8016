"""Virtual environments that hold what pip was asked for and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


def run(*command, cwd: Path, check: bool = True, **variables: str) -> subprocess.CompletedProcess:
    """Run a program that sees neither this environment's packages nor the source tree."""
    shown = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "COV_"))}
    threads = {"MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**shown, **threads, "PYTHONNOUSERSITE": "1", "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, (
        f"{done.args}\n{done.stdout[-6000:]}{done.stderr[-6000:]}"
    )
    return done


@dataclass(frozen=True)
class Environment:
    """One virtual environment, in a folder."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python3*/site-packages")
        return found

    def install(self, *requirements: str | Path, constraints: Path, compiled: bool) -> None:
        """What any user's pip does, from outside: the environment itself has no pip.

        ``compiled`` says whether modules are compiled now, or each when it is first imported.
        """
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python)
        compile_ = "--compile" if compiled else "--no-compile"
        run(*pip, "install", "-q", compile_, "-c", constraints, *requirements, cwd=self.folder)

    def call(self, *arguments, cwd: Path | None = None, check: bool = True, **variables: str):
        """Its Python, with these arguments."""
        return run(self.python, *arguments, cwd=cwd or self.folder, check=check, **variables)


def create(folder: Path, *, python: str | Path = sys.executable, like: Environment | None = None):
    """A new environment; with ``like``, it has the packages of another, as links to its files.

    Linked files are never changed in place: pip and Python replace what they write.
    """
    run(python, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    made = Environment(folder)
    if like is not None:
        shutil.copytree(like.packages, made.packages, copy_function=os.link, dirs_exist_ok=True)
    return made


@contextmanager
def made_once(folder: Path) -> Iterator[bool]:
    """Whether ``folder`` has to be made; of several processes, the first makes it, others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    whole = folder.with_name(f"{folder.name}.whole")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if whole.exists():
            yield False
            return
        shutil.rmtree(folder, ignore_errors=True)
        yield True
        whole.touch()


ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Those for users; "all" is made of them.
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"all", "dev"})
# One script for each: it works where the extra is installed.
SERVED = ROOT / "tests" / "packaging" / "served"


def requirements(extra: str) -> list[str]:
    """What an extra asks for, as ``name>=version``."""
    return PROJECT["optional-dependencies"][extra]


def check_example_of_readme(environment) -> None:
    """The Python example of the README runs and prints what it says."""
    text = (ROOT / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    printed = environment.call("-c", code).stdout
    (before, after), (accuracy, corrected) = re.findall(r"([\d.]+) -> ([\d.]+)", printed)
    assert float(after) < float(before) / 4
    assert float(corrected) > float(accuracy) + 0.05


def names_without_extra(environment) -> dict[str, str]:
    """Public names that cannot be had, each with the extra that brings it.

    Every other public name of every public module could be imported.
    """
    told = environment.call(ROOT / "tests" / "support" / "public_names.py").stdout
    outcomes = json.loads(told)
    assert len(outcomes) > 300
    wanting = {name: text for name, text in outcomes.items() if text}
    message = re.compile(r"MissingExtra: .*\. Run: pip install 'shiftcal\[(\w+)\]'")
    unclear = {name: text for name, text in wanting.items() if not message.fullmatch(text)}
    assert unclear == {}
    return {name: message.fullmatch(text)[1] for name, text in wanting.items()}

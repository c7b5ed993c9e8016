"""The types of the wheel, as a user's checkers see them: ``py.typed`` is true."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clean_environment import ROOT, made_once, run

PROGRAM = Path(__file__).with_name("typed_user.py")
PYRIGHT = "pyright@1.1.414"


@pytest.fixture
def program(tmp_path):
    return Path(shutil.copy(PROGRAM, tmp_path))


def test_mypy_finds_nothing_in_a_users_program_that_runs(environment, program):
    environment("core").call(program)
    options = ["--strict", "--python-executable", environment("core").python]
    done = run(
        sys.executable, "-m", "mypy", *options, program.name, cwd=program.parent, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_nothing_in_a_users_program(environment, program):
    folder = ROOT / ".venv-packages" / "pyright"
    npm = shutil.which("npm")
    with made_once(folder) as wanted:
        if wanted and npm:
            options = ["--silent", "--no-fund", "--no-audit", "--prefix", str(folder)]
            subprocess.run([npm, "install", *options, PYRIGHT], check=False, env=os.environ)
    checker = folder / "node_modules" / ".bin" / "pyright"
    if not checker.exists():
        pytest.skip("pyright could not be installed: it needs npm and its registry")
    settings = {"typeCheckingMode": "strict", "include": [program.name]}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    options = ["--pythonpath", environment("core").python]
    done = run(checker, *options, cwd=program.parent, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

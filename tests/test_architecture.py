"""What the tree promises: light imports, sizes, one public list, no extras in the core."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import shiftcal

SOURCE = Path(shiftcal.__file__).parent
HEAVY = ("sklearn", "torch", "cv2", "matplotlib", "onnxruntime", "ray", "pandas", "scipy")
EXTRAS = ("torch", "cv2", "PIL", "matplotlib", "onnx", "onnxruntime", "ray", "pyarrow", "jinja2")


def fresh(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("statement", ["import shiftcal", "import shiftcal.cli.main"])
def test_nothing_heavy_is_imported(statement):
    loaded = fresh(f"{statement}; import sys; print([m for m in {HEAVY} if m in sys.modules])")
    assert loaded == "[]"


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from shiftcal.cli.main import run\n"
        "sys.argv = ['shiftcal', '--help']\n"
        "try:\n    run()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stdout)"
    )
    assert fresh(code).splitlines()[-1] == "[]"


def test_every_public_name_is_there():
    for name in shiftcal.__all__:
        assert getattr(shiftcal, name) is not None
    assert dir(shiftcal) == sorted(shiftcal.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = shiftcal.nonsense


def test_the_names_checkers_see_are_those_that_exist():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body for alias in node.names}
    assert seen - {"Any"} == set(shiftcal.__all__) - {"__version__"}


def test_the_core_works_without_any_extra():
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import numpy as np, shiftcal as sc
for name in sc.__all__:
    getattr(sc, name)
rng = np.random.default_rng(0)
z, y = rng.standard_normal((200, 4)) * 3, rng.integers(0, 4, 200)
z[np.arange(200), y] += 2
bank = sc.SurrogateBank.from_arrays([z, z / 2], y)
sac = sc.SAC().fit(bank)
sac.adapt(z / 2)
print(sc.ece(sac.confidence(z), z.argmax(axis=1) == y) < 0.5)
"""
    assert fresh(code) == "True"


def test_every_file_says_what_it_is():
    for file in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(file.read_text())), file


def test_the_license_and_types_marker_ship():
    assert (SOURCE / "py.typed").exists()

"""A file is written whole or not at all."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from shiftcal.errors import FileError, MissingExtra
from shiftcal.scores import Scores, read_scores, write_scores

pytest.importorskip("pyarrow")

FORMATS = [".npz", ".csv", ".parquet", ".safetensors"]

FULL_DISK = """
import resource, sys
import numpy as np
from shiftcal.errors import FileError
from shiftcal.scores import Scores, write_scores
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
values = np.random.default_rng(0).standard_normal((2000, 10))
try:
    write_scores(sys.argv[1], Scores(values))
except FileError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path, suffix):
    # A limit on the size of files fails in the same calls as a full disk, and needs no disk.
    pytest.importorskip("resource", reason="limits on file size are a POSIX matter")
    path = tmp_path / f"set{suffix}"
    write_scores(path, Scores(np.zeros((2, 2))))
    old = path.read_bytes()
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], check=False, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert f"set{suffix} could not be written" in run.stderr
    assert "File too large" in run.stderr
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".safetensors"])
@pytest.mark.parametrize("part", ["ids", "classes"])
def test_text_that_utf8_cannot_express_is_refused(tmp_path, suffix, part):
    scores = Scores(np.zeros((2, 2)), labels=[0, 1], **{part: np.array(["a", "\ud800"])})
    with pytest.raises(FileError, match="among its ids or classes is not valid text"):
        write_scores(tmp_path / f"set{suffix}", scores)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "hint"), [("x.npzz", "'.npz'"), ("x", "There are: .npz, .csv")])
def test_an_unknown_suffix_is_refused_with_the_nearest(tmp_path, name, hint):
    with pytest.raises(FileError, match=rf"{name} must end in the suffix of its format.*{hint}"):
        write_scores(tmp_path / name, Scores(np.zeros((2, 2))))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    write_scores(tmp_path / "old.parquet", Scores(np.zeros((2, 2))))
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_NoPyarrow(), *sys.meta_path])
    for use in (
        lambda: write_scores(tmp_path / "new.parquet", Scores(np.zeros((2, 2)))),
        lambda: read_scores(tmp_path / "old.parquet"),
    ):
        with pytest.raises(MissingExtra, match=r"a .parquet file needs pyarrow.*shiftcal\[parquet"):
            use()
    assert [p.name for p in tmp_path.iterdir()] == ["old.parquet"]


class _NoPyarrow:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name="pyarrow")


def test_importing_the_package_loads_neither_pyarrow_nor_safetensors():
    code = "import sys, shiftcal.scores; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(run.stdout.split())
    assert "shiftcal.scores" in loaded
    assert not loaded & {"pyarrow", "safetensors", "sklearn", "scipy", "numba", "pandas"}

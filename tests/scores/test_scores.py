"""The Scores object, and what is said of a path before its content is read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from shiftcal.errors import FileError, InputError, MissingExtra
from shiftcal.scores import Scores, read_features, read_scores, write_scores

pytest.importorskip("pyarrow")

LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]])
FORMATS = [".npz", ".csv", ".parquet"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "file-formats.md"
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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_floats_stay_as_they_came_and_are_not_copied(dtype):
    values = LOGITS.astype(dtype)
    assert Scores(values).values is values


@pytest.mark.parametrize(
    ("values", "parts", "words"),
    [
        *((np.zeros(s), {}, r"logits must have shape \(n, k\)") for s in [(3,), (0, 3), (4, 1)]),
        (LOGITS.astype(str), {}, "logits must be real numbers; got dtype"),
        (LOGITS, {"labels": [0, 1, 2]}, "2 rows, 3 labels"),
        *((LOGITS, {"features": np.zeros(s)}, r"shape \(2, d\)") for s in [(2,), (3, 4), (2, 0)]),
        (LOGITS, {"ids": ["a"]}, r"ids .* shape \(2,\)"),
        (LOGITS, {"ids": [0.5, 1.5]}, "ids must be text or whole numbers.* float64"),
        (LOGITS, {"classes": ("cat", "dog")}, r"3 columns .*; got shape \(2,\)"),
        (LOGITS, {"classes": ("cat", "dog", "cat")}, "'cat' comes twice"),
        (LOGITS, {"classes": [3, 7, 9]}, "names of the 3 columns of the scores, as text"),
    ],
)
def test_parts_that_do_not_fit_raise(values, parts, words):
    with pytest.raises(InputError, match=words):
        Scores(values, **parts)


def test_logits_become_probabilities_and_back_even_at_zero():
    converted = Scores(LOGITS, labels=np.array([0, 1]), source="x.npz").as_kind("probabilities")
    # scipy's softmax rounds in another order.
    np.testing.assert_allclose(converted.values, softmax(LOGITS, axis=1), rtol=1e-14)
    assert (converted.input, converted.source) == ("probabilities", "x.npz")
    assert converted.labels.tolist() == [0, 1]
    p = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    logits = Scores(p, "probabilities").as_kind("logits").values
    assert np.isfinite(logits).all()
    # Zero comes back as 1.2e-38.
    np.testing.assert_allclose(softmax(logits, axis=1), p, atol=1e-30, rtol=1e-14)


def test_probabilities_called_logits_raise_naming_the_file():
    p = softmax(np.tile(LOGITS, (5, 1)), axis=1)
    with pytest.raises(InputError, match="these logits are probabilities") as raised:
        Scores(p).logits()
    assert not isinstance(raised.value, FileError)
    with pytest.raises(FileError, match=r"^x.npz: these logits are prob.*name the array"):
        Scores(p, source="x.npz").logits()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("targte.npz", None, "does not exist. Did you mean 'target.npz'"),
        ("other.csv", None, "does not exist. Check the path"),
        ("folder.npz", "folder", "is a folder; name one scores file in it"),
        *((f"x{suffix}", b"", "is empty; write it again") for suffix in FORMATS),
        ("x.parq", b"1", "Did you mean '.parquet'"),
        ("x.pt", b"1", "There are: .npz, .npy, .csv, .parquet"),
    ],
)
def test_a_path_that_is_no_scores_file_raises(tmp_path, name, content, words):
    np.savez(tmp_path / "target.npz", logits=LOGITS)
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=f"{re.escape(name)} .*{words}"):
        read_scores(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_raises_instead_of_being_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(FileError, match="is not a regular file"):
        read_scores(tmp_path / "x.npz")


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


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("part", ["ids", "classes"])
def test_text_that_utf8_cannot_express_raises(tmp_path, suffix, part):
    scores = Scores(np.zeros((2, 2)), labels=[0, 1], **{part: np.array(["a", "\ud800"])})
    with pytest.raises(FileError, match="among its ids or classes is not valid text"):
        write_scores(tmp_path / f"set{suffix}", scores)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    class NoPyarrow:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "pyarrow":
                raise ModuleNotFoundError(f"No module named {name!r}", name="pyarrow")

    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoPyarrow(), *sys.meta_path])
    with pytest.raises(MissingExtra, match=r"a .parquet file needs pyarrow.*shiftcal\[parquet"):
        write_scores(tmp_path / "new.parquet", Scores(np.zeros((2, 2))))
    assert list(tmp_path.iterdir()) == []


def test_importing_the_package_loads_neither_pyarrow_nor_safetensors():
    code = "import sys, shiftcal.scores; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(run.stdout.split())
    assert "shiftcal.scores" in loaded
    assert not loaded & {"pyarrow", "safetensors", "sklearn", "scipy", "pandas"}


def test_the_examples_of_the_page_on_file_formats_are_read(tmp_path, monkeypatch):
    section = PAGE.read_text("utf-8").partition("## Scores files\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec("\n".join(code for language, code in blocks if language == "python"), {})
    files = sorted(tmp_path.glob("*.npz"))
    assert files
    assert {read_scores(file).classes for file in files} == {("cat", "dog", "fox")}
    (table,) = (code for language, code in blocks if language == "csv")
    (tmp_path / "x.csv").write_text(table, "utf-8")
    scores = read_scores(tmp_path / "x.csv")
    assert scores.classes == ("cat", "dog", "red fox")
    assert scores.ids.tolist() == ["0001.png", "a, b.png"]
    assert scores.labels.tolist() == [1, 0]


FEATURES = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("name", ["train_features.npy", "x.npz", "x.csv"])
def test_features_are_read_from_a_file_of_their_own_or_of_scores(tmp_path, name):
    path = tmp_path / name
    if name == "x.npz":
        np.savez(path, features=FEATURES)
    elif path.suffix == ".npy":
        np.save(path, FEATURES)
    else:
        write_scores(path, Scores(LOGITS, features=FEATURES))
    np.testing.assert_array_equal(read_features(path), FEATURES)

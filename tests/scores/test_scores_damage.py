"""Damaged, hostile and foreign files end in a FileError that names them, and in nothing else."""

from __future__ import annotations

import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.errors import FileError
from shiftcal.scores import Scores, read_scores, write_scores

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ALL = [".npz", ".npy", ".csv", ".parquet", ".safetensors"]
WITH_A_SIZE = [".npz", ".npy", ".parquet", ".safetensors"]


def sound_bytes(folder, suffix):
    """A sound file of the format: 50 rows, 3 classes, labels, ids and names where they fit."""
    path = folder / f"sound{suffix}"
    values = np.random.default_rng(5).standard_normal((50, 3))
    if suffix == ".npy":
        np.save(path, values)
    else:
        ids = np.array([f"image {i}" for i in range(50)])
        labels = np.arange(50) % 3
        write_scores(path, Scores(values, labels=labels, ids=ids, classes=("a", "b", "c")))
    content = path.read_bytes()
    path.unlink()
    return content


@pytest.mark.parametrize("suffix", WITH_A_SIZE)
@pytest.mark.parametrize("tenth", range(1, 10))
def test_a_file_cut_short_is_refused(tmp_path, suffix, tenth):
    content = sound_bytes(tmp_path, suffix)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(content[: len(content) * tenth // 10])
    with pytest.raises(FileError, match=rf"cut{suffix} could not be read as .* Write it again"):
        read_scores(path)


def test_text_cut_short_inside_a_row_is_refused_with_the_line(tmp_path):
    content = sound_bytes(tmp_path, ".csv")
    lines = content.splitlines(keepends=True)
    (tmp_path / "cut.csv").write_bytes(b"".join(lines[:20]) + lines[20].rpartition(b",")[0])
    with pytest.raises(FileError, match=r"cut.csv, line 21: every row must have 5 cells.*has 4"):
        read_scores(tmp_path / "cut.csv")


@pytest.mark.parametrize("suffix", ALL)
@given(garbage=st.binary(min_size=1, max_size=200))
def test_garbage_is_refused(tmp_path_factory, suffix, garbage):
    path = tmp_path_factory.mktemp("garbage") / f"x{suffix}"
    path.write_bytes(garbage)
    with pytest.raises(FileError, match=f"x{suffix}"):
        read_scores(path)


@pytest.mark.parametrize("suffix", ALL)
@given(data=st.data())
def test_a_few_wrong_bytes_give_scores_or_a_file_error(tmp_path_factory, suffix, data):
    folder = tmp_path_factory.mktemp("wrong")
    content = bytearray(sound_bytes(folder, suffix))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = folder / f"x{suffix}"
    path.write_bytes(content)
    try:
        assert read_scores(path).k >= 2
    except FileError as error:
        assert f"x{suffix}" in str(error)  # noqa: PT017


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


@pytest.mark.parametrize("name", ["logits", "labels", "classes"])
def test_pickled_objects_in_an_npz_are_never_loaded(tmp_path, name):
    arrays = {"logits": np.zeros((1, 2)), name: np.array([Bomb()], dtype=object)}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(FileError, match=r"pickled Python objects, .* dtype=str"):
        read_scores(tmp_path / "x.npz")


@pytest.mark.parametrize("mapped_from", [0, 1 << 20])
def test_pickled_objects_in_an_npy_are_never_loaded(tmp_path, mapped_from, monkeypatch):
    monkeypatch.setattr("shiftcal.scores.formats._MAPPED_FROM", mapped_from)
    np.save(tmp_path / "x.npy", np.array([Bomb()], dtype=object))
    with pytest.raises(FileError, match="pickled Python objects"):
        read_scores(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_a_bare_pickle_is_never_loaded(tmp_path, suffix):
    (tmp_path / f"x{suffix}").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileError, match="pickled Python objects"):
        read_scores(tmp_path / f"x{suffix}")


def header_only(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(10**15, 10**3), (10**7, 10), (-3, -4)])
def test_a_header_that_promises_more_than_there_is_costs_no_memory(tmp_path, shape):
    (tmp_path / "x.npy").write_bytes(header_only(shape) + b"\0" * 80)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("logits.npy", header_only(shape) + b"\0" * 80)
    for suffix in (".npy", ".npz"):
        with pytest.raises(FileError, match=rf"x{suffix} (could not be read|needs more memory)"):
            read_scores(tmp_path / f"x{suffix}")


@pytest.fixture
def low_limit(monkeypatch):
    """The limit of 1 GiB put to 1 MiB, so that the test needs no such file."""
    monkeypatch.setattr("shiftcal.files._LARGE", 1 << 20)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, low_limit):
    np.savez_compressed(tmp_path / "x.npz", logits=np.zeros((300_000, 10)))
    tracemalloc.start()
    with pytest.raises(FileError, match=r"would unpack from \d+ bytes to 24000128"):
        read_scores(tmp_path / "x.npz")
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_a_parquet_bomb_is_refused_before_it_is_unpacked(tmp_path, low_limit):
    column = pa.array(np.zeros(1_000_000))
    pq.write_table(pa.table({"logit_a": column, "logit_b": column}), tmp_path / "x.parquet")
    with pytest.raises(FileError, match=r"would unpack from \d+ bytes to \d+"):
        read_scores(tmp_path / "x.parquet")


@pytest.mark.parametrize(("real", "named"), [(".npy", ".npz"), (".npz", ".npy")])
def test_a_wrong_suffix_is_said(tmp_path, real, named):
    (tmp_path / f"x{named}").write_bytes(sound_bytes(tmp_path, real))
    with pytest.raises(FileError, match=r"it begins with the bytes .* Give it the suffix"):
        read_scores(tmp_path / f"x{named}")

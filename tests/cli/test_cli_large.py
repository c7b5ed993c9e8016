"""Folders of files, engines and remote storage give what one local file gives, to the bit."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal.errors import FileError
from shiftcal.files import atomic_write

fsspec = pytest.importorskip("fsspec")
COLUMNS = ("values", "labels", "ids")


def cut(scores, rows):
    parts = {name: getattr(scores, name)[rows] for name in COLUMNS}
    return sc.Scores(input=scores.input, classes=scores.classes, **parts)


@pytest.fixture
def target(files, shiftcal):
    """A method, the target as one file, and as three of two formats in a folder."""
    bank = "--surrogate clean.npz --surrogate s1.npz --surrogate s2.npz"
    assert shiftcal("fit --method rehearsal -o method.json", bank).status == 0
    whole = sc.read_scores("target.npz")
    Path("parts").mkdir()
    for i, name in enumerate(("a.parquet", "b.npz", "c.parquet")):
        sc.write_scores(f"parts/{name}", cut(whole, slice(200 * i, 200 * (i + 1))))
    Path("parts/notes.txt").write_text("not read")
    assert shiftcal("apply method.json target.npz -o whole.npz").status == 0
    return sc.read_scores("whole.npz")


def check(folder, whole):
    found = [sc.read_scores(f"{folder}/{name}") for name in ("a.parquet", "b.npz", "c.parquet")]
    for name in COLUMNS:
        together = np.concatenate([getattr(one, name) for one in found])
        np.testing.assert_array_equal(together, getattr(whole, name))
    assert len(list(Path(folder).iterdir())) == 3


@pytest.mark.parametrize("options", ["", "--workers 2"])
def test_a_folder_gives_what_one_file_gives(target, shiftcal, shiftcal_json, options):
    document = shiftcal_json("apply method.json parts -o out", options)
    check("out", target)
    alone = shiftcal_json("apply method.json target.npz -o x.npz")
    for name in ("n", "raw_mean_confidence", "n_predictions_changed", "selection"):
        assert document[name] == alone[name]
    assert document["mean_confidence"] == pytest.approx(alone["mean_confidence"], rel=1e-12)
    assert document["n_files"] == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_and_ray_data_too(target, shiftcal):
    ray_data = pytest.importorskip("ray.data")
    words = "apply method.json parts -o out --engine ray --workers 2 --save-adapted adapted.json"
    assert shiftcal(words).status == 0
    check("out", target)

    def calibrate(rows):
        method = sc.load(adapted)
        logits = np.column_stack([rows[f"logit_{name}"] for name in target.classes])
        return {"id": rows["id"], "probabilities": method.predict_proba(logits)}

    adapted = str(Path("adapted.json").absolute())
    data = ray_data.read_parquet([str(Path(f"parts/{x}.parquet").absolute()) for x in "ac"])
    rows = {row["id"]: row["probabilities"] for row in data.map_batches(calibrate).take_all()}
    for name, probs in zip(target.ids, target.values, strict=True):
        if name in rows:
            np.testing.assert_array_equal(rows[name], probs)
    assert len(rows) == 300


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("parts -o parts", "read by this command"),
        ("parts -o target.npz", "could not be made"),
        ("parts -o out --target-accuracy 0.9", "need one file"),
        ("target.npz -o out.npz --workers 2", "go with a folder"),
        ("empty -o out", "has no file that ends in"),
        ("mixed -o out", "same number of columns"),
        ("kinds -o out", "all hold logits or all probabilities"),
    ],
)
def test_what_cannot_be_done_with_a_folder_is_said(target, shiftcal, options, words):
    for name in ("empty", "mixed", "kinds"):
        Path(name).mkdir()
    x = sc.read_scores("parts/a.parquet")
    sc.write_scores("mixed/a.npz", x)
    sc.write_scores("mixed/b.npz", x._with(values=x.values.astype(np.float16)))
    sc.write_scores("kinds/a.npz", x)
    sc.write_scores("kinds/b.npz", sc.Scores(x.as_kind("probabilities").values, "probabilities"))
    done = shiftcal("apply method.json", options)
    assert (done.status, words in done.err) == (2, True), done.err
    assert not Path("out").exists() or not list(Path("out").iterdir())


@pytest.fixture(params=["memory", "file"])
def remote(request, files):
    """The start of URLs of a storage that is empty."""
    storage = fsspec.filesystem("memory")
    storage.store.clear()
    yield "memory://bucket" if request.param == "memory" else f"file://{files}"
    storage.store.clear()


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_scores_on_remote_storage_are_those_that_were_written(remote, suffix):
    scores = sc.read_scores("target.npz")
    sc.write_scores(f"{remote}/x.{suffix}", scores)
    found = sc.read_scores(f"{remote}/x.{suffix}")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(scores, name))
    assert found.classes == scores.classes


def test_commands_read_and_write_remote_storage(remote, target, shiftcal):
    sc.write_scores(f"{remote}/target.parquet", sc.read_scores("target.npz"))
    assert shiftcal(f"apply method.json {remote}/target.parquet -o {remote}/out.npz").status == 0
    np.testing.assert_array_equal(sc.read_scores(f"{remote}/out.npz").values, target.values)
    words = f"compare --surrogate clean.npz --target {remote}/target.parquet --method ts"
    assert shiftcal(words, "--resamples 0").status == 0
    assert shiftcal(f"evaluate {remote}/out.npz --labels {remote}/target.parquet").status == 0


def test_a_failed_write_leaves_remote_storage_as_it_was(remote):
    sc.write_scores(f"{remote}/x.npz", sc.read_scores("target.npz"))
    with suppress(ZeroDivisionError), atomic_write(f"{remote}/x.npz") as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert sc.read_scores(f"{remote}/x.npz").n == 500


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://bucket/none.npz", "none.npz"),
        ("memory://bucket/none.txt", "none.txt"),
        ("zip://x.npz", "cannot be reached"),
        ("nonsense://x.npz", "does not exist"),
    ],
)
def test_what_cannot_be_read_is_said(url, words):
    with pytest.raises(FileError, match=words):
        sc.read_scores(url)


def test_without_fsspec_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(sc.errors.MissingExtra, match=r"shiftcal\[fsspec\]"):
        sc.read_scores("s3://bucket/x.npz")

"""Files of every command: whose labels are, which numbers are probabilities, what is written."""

from __future__ import annotations

import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, write_images

import shiftcal as sc

LADDER = "--surrogate clean.npz --surrogate s1.npz --surrogate s2.npz"
JUDGE = {
    "evaluate": "evaluate {} --resamples 0",
    "compare": f"compare --target {{}} {LADDER} --method ts --resamples 0",
    "estimate": f"estimate --target {{}} {LADDER} --estimator doc",
    "report": f"report --target {{}} {LADDER} --resamples 0 --method ts -o r.html",
}


def accuracy_of(command, document):
    if command == "evaluate":
        return document["metrics"]["accuracy"]["value"]
    if command == "compare":
        return document["methods"][0]["metrics"]["accuracy"]["value"]
    return document["accuracy"]


def write_table(column, names, labels, path="y.csv"):
    rows = [f"{name},{label}\n" for name, label in zip(names, labels, strict=True)]
    Path(path).write_text(f"{column},label\n" + "".join(np.random.default_rng(0).permutation(rows)))


@pytest.mark.parametrize("column", ["file", "path", "id"])
@pytest.mark.parametrize("command", JUDGE)
def test_every_command_joins_labels_by_the_names_beside_them(files, shiftcal_json, command, column):
    target = sc.read_scores("target.npz")
    names = [f"images/{i:03d}.png" for i in range(target.n)]
    np.savez("unknown.npz", logits=target.values, ids=names)
    np.savez("known.npz", logits=target.values, ids=names, labels=target.labels)
    write_table(column, names, target.labels)
    if command == "report":
        expected = shiftcal_json(JUDGE[command].format("known.npz"))["report"]
        found = shiftcal_json(JUDGE[command].format("unknown.npz"), "--labels y.csv")["report"]
        assert found["verdict"] == expected["verdict"]
        assert found["methods"] == expected["methods"]
        return
    expected = (target.values.argmax(axis=1) == target.labels).mean()
    document = shiftcal_json(JUDGE[command].format("unknown.npz"), "--labels y.csv")
    assert accuracy_of(command, document) == pytest.approx(expected, rel=1e-12)
    assert document["warnings"] == []


@pytest.mark.parametrize("command", JUDGE)
def test_no_command_takes_named_labels_by_position(files, refused, command):
    target = sc.read_scores("target.npz")
    np.savez("nameless.npz", logits=target.values)
    write_table("file", [f"{i}.png" for i in range(target.n)], target.labels)
    reason = refused(JUDGE[command].format("nameless.npz"), "--labels y.csv")
    assert "y.csv: it names the row of each label, but the scores have no ids" in reason
    reason = refused(JUDGE[command].format("target.npz"), "--labels y.csv")
    assert "y.csv: 500 of 500 have no label here" in reason


@pytest.mark.parametrize("command", ["score -o out.npz", "bank --severity 1 -o out"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_labels_of_images_are_read_by_the_same_reader(
    tmp_path, monkeypatch, shiftcal, command, suffix
):
    monkeypatch.chdir(tmp_path)
    Path("net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    names = [f"{i:02d}.png" for i in range(12)]
    write_images(tmp_path / "images", draw_images(12, 16, 16, seed=31), names)
    order = np.random.default_rng(1).permutation(12)
    labels = np.arange(12) % 3
    if suffix == ".csv":
        write_table("file", names, labels)
    elif suffix == ".npz":
        np.savez("y.npz", labels=labels[order], ids=np.array(names)[order])
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"file": np.array(names)[order].tolist(), "label": labels[order]}
        parquet.write_table(pa.table(columns), "y.parquet")
    done = shiftcal(command, f"--model net.onnx --images images --labels y{suffix}")
    assert done.status == 0, done.err
    found = sc.read_scores("out.npz" if command.startswith("score") else "out/clean.npz")
    assert found.labels.tolist() == labels.tolist()


def rounded(decimals, *, scale=1):
    return np.random.default_rng(3).dirichlet([1, 1, 1], 400).round(decimals) * scale


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("probabilities", rounded(4, scale=100), "in percent.*ivide them by 100"),
        ("probabilities", rounded(2, scale=100), "in percent.*ivide them by 100"),
        ("logits", rounded(2, scale=100), "in percent.*ivide them by 100"),
        ("logits", rounded(3), "these logits are probabilities.*name the array"),
        ("probabilities", rounded(1), "If they were rounded.*--normalize.*normalize=True"),
    ],
)
def test_probabilities_of_another_form_are_recognised(files, refused, name, values, words):
    np.savez("x.npz", **{name: values}, labels=np.arange(len(values)) % 3)
    for command in ("evaluate x.npz", "fit --method ts --surrogate x.npz -o m.json"):
        reason = refused(command)
        assert re.search(f"x.npz: .*{words}", reason), reason


@pytest.mark.parametrize(
    "command",
    [
        "evaluate x.npz --resamples 0",
        "fit --method ts --surrogate x.npz -o m.json",
        "apply m.json x.npz -o o.npz",
        "compare x.npz x.npz --method ts --resamples 0",
        "estimate x.npz x.npz --estimator doc",
        "report x.npz x.npz --method ts --resamples 0 -o r.html",
    ],
)
def test_rounded_rows_are_normalized_on_request(files, shiftcal, refused, command):
    values = rounded(1)
    labels = np.where(np.arange(400) % 4, values.argmax(axis=1), 0)
    np.savez("x.npz", probabilities=values, labels=labels)
    exact = values / values.sum(axis=1, keepdims=True)
    np.savez("exact.npz", probabilities=exact, labels=labels)
    np.testing.assert_allclose(sc.read_scores("x.npz", normalize=True).values, exact)
    np.testing.assert_allclose(sc.Scores(values, "probabilities", normalize=True).values, exact)
    sc.SurrogateBank.from_files(["exact.npz"]).save("hand")
    Path("feed").mkdir()
    Path("feed/x.npz").write_bytes(Path("x.npz").read_bytes())
    assert shiftcal("fit --method ts --surrogate exact.npz -o m.json").status == 0
    assert "must sum to 1" in refused(command)
    done = shiftcal(command, "--normalize")
    assert done.status == 0, done.err
    page = Path("r.html")
    if page.exists():
        assert "--normalize" in page.read_text("utf-8")


@pytest.mark.parametrize(
    "command",
    [
        "apply m.json target.npz -o {} --save-adapted {}",
        "score --model none.onnx --images none -o {} --statistics {}",
        "monitor bank --state {} --confidences {}",
        "monitor bank --save {} --state {}",
        "monitor bank --save {} --confidences {}",
        "bank --model none.onnx --images none -o {} --cache {}",
        "score --model none.onnx --images none -o {} --cache {}",
        "reproduce synthetic -o {} --cache {}",
    ],
)
def test_two_outputs_must_not_be_one_file(files, refused, command):
    Path("sub").mkdir()
    Path("there.json").write_text("kept")
    Path("hard.json").hardlink_to("there.json")
    Path("soft.json").symlink_to("new.json")
    before = sorted(files.rglob("*"))
    for first, second in (
        ("new.json", "new.json"),
        ("new.json", "sub/../new.json"),
        (files / "new.json", "new.json"),
        ("soft.json", "new.json"),
        ("there.json", "hard.json"),
    ):
        reason = refused(command.format(first, second))
        assert "must be two files" in reason
        assert str(second) in reason
    assert sorted(files.rglob("*")) == before
    assert Path("there.json").read_text() == "kept"


def test_a_stream_of_rounded_rows_is_normalized_on_request(files):
    values = rounded(1)
    exact = values / values.sum(axis=1, keepdims=True)
    sc.SurrogateBank.from_arrays([exact], values.argmax(axis=1), input="probabilities").save("hand")
    stream = BytesIO()
    np.save(stream, values)
    words = ["monitor", "hand", "--method", "ts", "--estimator", "none"]
    for more, status in (([], 2), (["--normalize"], 0)):
        done = subprocess.run(
            [sys.executable, "-m", "shiftcal", *words, *more],
            input=stream.getvalue(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == status, done.stderr

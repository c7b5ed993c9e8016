"""What benchmarks/accuracy keeps of a run, and what it says that the run was made of."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(tmp_path, monkeypatch):
    file = ROOT / "benchmarks" / "accuracy" / "studies.py"
    spec = importlib.util.spec_from_file_location("kept_studies", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr("sys.path", ["unchanged"])  # the script adds to it
    monkeypatch.setitem(__import__("sys").modules, "kept_studies", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    return module


def test_a_run_is_kept_with_what_it_was_made_of(script, once, data, tmp_path):
    run = shutil.copytree(once.folder, tmp_path / "runs" / "toy")
    (run / "data").mkdir()
    (run / "data" / "more.csv").write_text(f"{data}\n")
    (tmp_path / "weights.th").write_bytes(b"weights")
    (tmp_path / "net.onnx").write_bytes(b"onnx")
    files = tmp_path / "weights.th", tmp_path / "net.onnx"
    network = script.Network(*files, "by hand", "batch_size=2")
    assert network.spec == f"onnx:{files[1]}?batch_size=2"
    script.keep("toy", data, {"commit": "abc", "dirty": False, **network.origin()})
    kept = tmp_path / "results" / "toy"
    assert json.loads((kept / "origin.json").read_text("utf-8")) == {
        "commit": "abc",
        "dirty": False,
        "weights": "weights.th",
        "weights_sha256": hashlib.sha256(b"weights").hexdigest(),
        "onnx": "net.onnx",
        "onnx_sha256": hashlib.sha256(b"onnx").hexdigest(),
        "made": "by hand",
    }
    assert (kept / "data" / "more.csv").read_text("utf-8") == "{data}\n"
    assert (kept / "records.csv").read_bytes() == (run / "records.csv").read_bytes()
    assert str(data) not in (kept / "plan.toml").read_text("utf-8")
    assert {file.suffix for file in (kept / "tables").iterdir()} == {".csv", ".md"}
    assert {file.suffix for file in (kept / "figures").iterdir()} == {".json"}


def test_large_tables_are_packed_and_what_was_kept_before_is_gone(
    script, once, data, tmp_path, monkeypatch
):
    run = shutil.copytree(once.folder, tmp_path / "runs" / "toy")
    script.keep("toy", data, {})
    monkeypatch.setattr(script, "PACKED_BYTES", 1000)
    script.keep("toy", data, {})
    kept = tmp_path / "results" / "toy"
    packed = gzip.decompress((kept / "records.csv.gz").read_bytes())
    assert packed == (run / "records.csv").read_bytes()
    assert not (kept / "records.csv").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
def test_the_commit_is_told_and_whether_anything_but_results_differs(script, tmp_path):
    project = tmp_path / "project"
    results = project / "benchmarks" / "accuracy" / "results"
    results.mkdir(parents=True)
    assert script.commit_of(project) == {"commit": None, "dirty": None}

    def git(*words):
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", "-C", str(project), *who, *words], check=True, text=True,
                              capture_output=True).stdout.strip()  # fmt: skip

    git("init", "-q")
    (project / "code.py").write_text("x = 1\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    head = git("rev-parse", "HEAD")
    assert script.commit_of(project) == {"commit": head, "dirty": False}
    (results / "new.json").write_text("{}")
    assert script.commit_of(project) == {"commit": head, "dirty": False}
    (project / "code.py").write_text("x = 2\n")
    assert script.commit_of(project) == {"commit": head, "dirty": True}

"""What benchmarks/accuracy keeps of a run, and what it says that the run was made of."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import shutil
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


def test_a_run_is_kept_with_what_it_was_made_of(script, once, data, tmp_path, monkeypatch):
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
    monkeypatch.setattr(script, "PACKED_BYTES", 1000)
    script.keep("toy", data, {})
    packed = gzip.decompress((kept / "records.csv.gz").read_bytes())
    assert packed == (run / "records.csv").read_bytes()
    assert not (kept / "records.csv").exists()

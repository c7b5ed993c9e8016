"""Compiled functions are right wherever the cache is, and numba comes only when needed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
import threading

import numba
import numpy as np
import pytest

from shiftcal.numerics import jit as _jit
from shiftcal.numerics.jit import in_parts, thread_count

KERNEL = """
from shiftcal.numerics.jit import compiled

@compiled(error_model="numpy")
def total(values):
    s = 0.0
    for v in values:
        s += v
    return s
"""
VALUES = np.arange(10.0)


@pytest.fixture
def total(tmp_path, monkeypatch):
    """A compiled function in a file of its own, with a cache folder of its own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL)
    return lambda: load(tmp_path / "kernel.py").total


def load(path, name="kernel"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cache_files(folder):
    return sorted(folder.rglob("*.nb[ic]"))


@pytest.mark.parametrize("content", [b"", b"not a cache"])
def test_a_damaged_cache_costs_only_time(total, tmp_path, content):
    total()(VALUES)
    for file in cache_files(tmp_path / "cache"):
        file.write_bytes(content)
    assert total()(VALUES) == 45.0


def test_the_first_call_may_come_from_many_threads(total, monkeypatch):
    calls = []
    compile_ = _jit._compile
    monkeypatch.setattr(_jit, "_compile", lambda *a, **k: calls.append(k) or compile_(*a, **k))
    function, found, start = total(), [], threading.Barrier(8)

    def work():
        start.wait()
        found.append(function(VALUES))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [45.0] * 8
    assert len(calls) == 1


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_fresh_process_works_where_nothing_at_all_can_be_written(tmp_path):
    # Permissions do not bind the superuser; a file in the place of every folder does.
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    (tmp_path / "__pycache__").write_text("")
    (tmp_path / "kernel.py").write_text(KERNEL)
    below = {
        name: str(in_the_way / "cache") for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    }
    code = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from kernel import total
        import numpy as np
        print(total(np.arange(10.0)))
    """
    assert run(code, **below) == "45.0"
    assert {p.name for p in tmp_path.iterdir()} == {"file", "__pycache__", "kernel.py"}


def test_neither_importing_nor_small_data_brings_numba():
    code = """
        import sys
        import numpy as np
        from shiftcal import maps
        from shiftcal.numerics import binning
        logits = np.random.default_rng(0).standard_normal((300, 5))
        labels = (logits + np.random.default_rng(1).standard_normal((300, 5))).argmax(axis=1)
        maps.get("temperature")().fit(logits, labels)
        maps.get("brier-temperature")().fit(logits, labels)
        confidence = np.linspace(0, 1, 300)
        binning.equal_size_bins(confidence, confidence > 0.5, 15)
        binning.equal_width_bins(confidence, confidence > 0.5, 15)
        print("numba" in sys.modules)
    """
    assert run(code) == "False"


@pytest.mark.parametrize("processors", [1, 3])
@pytest.mark.parametrize(("n", "least"), [(0, 1), (1, 1), (7, 1), (7, 3), (100, 9), (100, 200)])
def test_the_parts_cover_everything_once(monkeypatch, processors, n, least):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(processors), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seen = [0] * n

    def work(start, stop):
        for i in range(start, stop):
            seen[i] += 1

    in_parts(work, n, least=least)
    assert seen == [1] * n


def test_threads_are_as_many_as_processors_or_as_few_as_asked_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == 4
    for wanted, given in (("1", 1), ("3", 3), ("9", 4), ("0", 1), ("", 4), ("two", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert thread_count() == given

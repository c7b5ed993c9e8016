"""``shiftcal bank`` as a process that is killed, or interrupted, and given again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from bank_process import kill, wait_for
from onnx_resnet import resnet20_onnx
from small_disk import files


def random_resnet20():
    """An ONNX file of the right size; its weights do not matter."""
    rng = np.random.default_rng(0)
    weights, width = {}, 3

    def layer(name, norm, before, after):
        weights[f"{name}.weight"] = rng.standard_normal((after, before, 3, 3), np.float32) / 10
        for part in ("weight", "bias", "running_mean", "running_var"):
            weights[f"{norm}.{part}"] = np.ones(after, np.float32)

    layer("conv1", "bn1", 3, 16)
    width = 16
    for stage, after in ((1, 16), (2, 32), (3, 64)):
        for block in range(3):
            name = f"layer{stage}.{block}"
            layer(f"{name}.conv1", f"{name}.bn1", width, after)
            layer(f"{name}.conv2", f"{name}.bn2", after, after)
            width = after
    weights["linear.weight"] = rng.standard_normal((10, 64), np.float32)
    weights["linear.bias"] = np.zeros(10, np.float32)
    return resnet20_onnx(weights)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A folder with a network, images and labels, and the bank that nothing happened to."""
    folder = tmp_path_factory.mktemp("network")
    rng = np.random.default_rng(1)
    (folder / "net.onnx").write_bytes(random_resnet20())
    np.save(folder / "images.npy", rng.integers(0, 256, (192, 32, 32, 3), dtype=np.uint8))
    np.save(folder / "labels.npy", rng.integers(0, 10, 192))
    out, err = command(folder, folder / "bank").communicate(timeout=300)
    assert "scored    576 images" in out, err
    return folder


def command(folder, bank):
    """The command line, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "shiftcal", "bank", "--model", "net.onnx", "--images", "images.npy",
         "--severity", "1,5", "--shard-size", "16", "-o", bank],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SHIFTCAL_CACHE": ""},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signal_", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["kill", "interrupt"]
)
def test_a_command_that_was_stopped_is_gone_on_with(tmp_path, network, signal_, status):
    bank = tmp_path / "bank"
    process = command(network, bank)
    wait_for(lambda: len(list(bank.rglob("*.shard"))) >= 3, process)
    code, _, err = kill(process, signal_)
    assert code == status, err
    if signal_ == signal.SIGINT:
        assert err.startswith("error: interrupted. Finished work is kept")
        assert not any(bank.rglob("*.tmp"))
    finished = len(list(bank.rglob("*.shard")))
    out, err = command(network, bank).communicate(timeout=300)
    assert f"scored    {576 - 16 * finished:,} images in this run" in out, err
    assert files(bank) == files(network / "bank")

"""Real faults: killed processes, full disks, damaged shards, models that misbehave."""

from __future__ import annotations

import random
import signal
import time

import numpy as np
import pytest
import small_disk  # noqa: F401  (named in needs_disk)
from bank_process import SETS, SHARD, N, begin, build, calls, finish, kill, wait_for
from exact_model import Exact
from small_disk import files, play

from shiftcal.errors import InputError

TOTAL = N * SETS
SHARDS = TOTAL // SHARD

needs_disk = pytest.mark.skipif(
    "small_disk.way() is None", reason="no tmpfs can be mounted, neither by unshare -rm nor by root"
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The files of a bank that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed") / "bank"
    build(folder)
    return files(folder)


@pytest.mark.slow
def test_a_bank_whose_process_was_killed_again_and_again_is_no_different(tmp_path, undisturbed):
    rng = random.Random(20)
    bank, log = tmp_path / "bank", tmp_path / "log"
    kills = [rng.randint(1, 4) for _ in range(4)]
    for more in kills:
        before = calls(log)
        process = begin(bank, log=log, sleep=0.05)
        wait_for(lambda at=before + more: calls(log) >= at, process)
        time.sleep(rng.uniform(0, 0.06))
        assert kill(process)[0] == -signal.SIGKILL
        assert not (bank / "bank.json").exists()
    done = finish(begin(bank, log=log))
    assert files(bank) == undisturbed
    assert done["added"] == SETS
    # Of every process that was killed, the shard that it was at is done again.
    assert SHARDS <= calls(log) <= SHARDS + len(kills)
    assert done["computed"] < TOTAL


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", [".shiftcal-*.tmp", "clean.npz", "speckled-5.npz"], ids=["set", "between", "document"]
)
def test_a_process_killed_while_it_puts_the_bank_together_costs_nothing(
    tmp_path, undisturbed, moment
):
    bank = tmp_path / "bank"
    process = begin(bank, slow=0.4)
    wait_for(lambda: any(bank.glob(moment)), process)
    assert kill(process)[0] == -signal.SIGKILL
    if moment != "speckled-5.npz":  # after that the document may be written in time
        assert not (bank / "bank.json").exists()
    log = tmp_path / "log"
    finish(begin(bank, log=log))
    assert files(bank) == undisturbed
    assert calls(log) == 0


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_processes_on_one_bank_share_the_work(tmp_path, undisturbed, processes):
    bank, log = tmp_path / "bank", tmp_path / "log"
    begun = [begin(bank, log=log, sleep=0.1) for _ in range(processes)]
    done = [finish(process) for process in begun]
    assert files(bank) == undisturbed
    assert sum(one["added"] for one in done) == SETS
    assert TOTAL <= sum(one["computed"] for one in done) <= TOTAL + SHARD
    assert SHARDS <= calls(log) <= SHARDS + 1


class Misbehaves(Exact):
    """From the third batch on."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def __call__(self, batch):
        z = super().__call__(batch)
        return self.how(z) if len(self.calls) >= 3 else z


def raises(z):
    raise ZeroDivisionError("by zero")


def gives_nan(z):
    z[4, 1] = np.nan
    return z


def loses_a_class(z):
    return z[:, :3]


def loses_a_row(z):
    return z[:-1]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (raises, "the model failed on images 0 to 7.*ZeroDivisionError: by zero"),
        (gives_nan, "images 0 to 7.*(nan|NaN|finite)"),
        (loses_a_class, "images 0 to 7 .*the 4 columns .*got 3 columns"),
        (loses_a_row, r"images 0 to 7 .*\(8, k\).*got shape \(7, 4\)"),
    ],
)
def test_what_a_model_did_before_it_misbehaved_is_kept(tmp_path, undisturbed, how, message):
    bank = tmp_path / "bank"
    with pytest.raises(InputError, match=rf"images, speckled, severity 5: .*{message}"):
        build(bank, Misbehaves(how))
    mended = Exact()
    assert build(bank, mended).computed == mended.seen == TOTAL - 2 * SHARD
    assert files(bank) == undisturbed


def test_an_interrupted_call_is_gone_on_with(tmp_path, undisturbed):
    def interrupt(z):
        raise KeyboardInterrupt

    bank = tmp_path / "bank"
    with pytest.raises(KeyboardInterrupt):
        build(bank, Misbehaves(interrupt))
    mended = Exact()
    build(bank, mended)
    assert mended.seen == TOTAL - 2 * SHARD
    assert files(bank) == undisturbed


@needs_disk
@pytest.mark.parametrize("pages", [6, SHARDS + 2], ids=["shards", "sets"])
def test_a_full_disk_is_said_and_a_larger_one_gone_on_with(tmp_path, undisturbed, pages):
    told = play("full", tmp_path, pages)
    kind, message = told["error"]
    assert kind == "FileError"
    assert "No space left on device" in message
    assert "bank" in message
    assert told["half"] == 0
    done = min(pages, SHARDS)
    assert told["shards"] == done
    # The model may have been given the shard that had no place, and the next.
    assert told["first"] >= done * SHARD
    assert told["second"] == TOTAL - done * SHARD
    assert told["files"] == undisturbed


@needs_disk
def test_a_read_only_cache_is_read_and_what_it_lacks_is_done(tmp_path, undisturbed):
    told = play("read_only", tmp_path)
    assert told["first"] == TOTAL
    assert told["second"] == TOTAL - told["left"] * SHARD == 2 * SHARD
    assert len(told["warnings"]) == 1
    assert "cannot be written (Read-only file system)" in told["warnings"][0]
    assert told["one"] == told["two"] == undisturbed


def test_a_damaged_shard_in_the_folder_is_made_again(tmp_path, undisturbed):
    bank = tmp_path / "bank"
    with pytest.raises(InputError):
        build(bank, Misbehaves(raises))
    one, two = sorted(bank.rglob("*.shard"))
    one.write_bytes(one.read_bytes()[:100])
    content = bytearray(two.read_bytes())
    content[-1] ^= 1
    two.write_bytes(content)
    mended = Exact()
    assert build(bank, mended).computed == mended.seen == TOTAL
    assert files(bank) == undisturbed

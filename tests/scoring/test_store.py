"""Finished shards on disk: read back as they were, or made again."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from shiftcal.errors import FileError, InputWarning
from shiftcal.scoring.store import FolderStore, Notes, alone_in, workshop
from shiftcal.scoring.work import ShardResult

KEY = "ab" * 20


def result(key=KEY, *, dtype="float32", features=True, n=4):
    rng = np.random.default_rng(5)
    return ShardResult(
        key,
        np.arange(10, 10 + n, dtype=np.int64),
        rng.standard_normal((n, 3)).astype(dtype),
        rng.standard_normal((n, 2)).astype(dtype) if features else None,
        {14: "cut short: ümläut", 17: "gone"},
    )


def file_of(folder, key=KEY):
    return folder / key[:2] / f"{key}.shard"


def assert_same(found, given):
    assert found.key == given.key
    np.testing.assert_array_equal(found.rows, given.rows, strict=True)
    np.testing.assert_array_equal(found.logits, given.logits, strict=True)
    assert (found.features is None) == (given.features is None)
    if given.features is not None:
        np.testing.assert_array_equal(found.features, given.features, strict=True)
    assert found.bad == given.bad


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("features", [True, False])
def test_what_is_put_is_got(tmp_path, dtype, features):
    given = result(dtype=dtype, features=features)
    store = FolderStore(tmp_path)
    assert not store.has(KEY)
    assert store.get(KEY) is None
    store.put(given)
    assert store.has(KEY)
    assert_same(FolderStore(tmp_path).get(KEY), given)


def test_the_same_shard_is_the_same_file(tmp_path):
    for name in ("one", "two"):
        FolderStore(tmp_path / name).put(result())
    assert file_of(tmp_path / "one").read_bytes() == file_of(tmp_path / "two").read_bytes()
    assert [f.name for f in (tmp_path / "one").rglob("*") if f.is_file()] == [f"{KEY}.shard"]


def test_a_file_cut_short_anywhere_is_not_there(tmp_path):
    FolderStore(tmp_path).put(result())
    file = file_of(tmp_path)
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        assert not FolderStore(tmp_path).has(KEY)
        assert FolderStore(tmp_path).get(KEY) is None
    FolderStore(tmp_path).put(result())
    assert file.read_bytes() == whole


def test_a_bit_that_flipped_is_never_believed(tmp_path):
    given = result()
    FolderStore(tmp_path).put(given)
    file = file_of(tmp_path)
    whole = file.read_bytes()
    believed = 0
    for place in range(0, len(whole), 3):
        file.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        found = FolderStore(tmp_path).get(KEY)
        if found is None:
            continue
        assert_same(found, given)  # it was in the name of the format, or white space
        believed += 1
    assert believed < 0.1 * len(whole) / 3


def test_a_damaged_file_is_removed_and_can_be_put_again(tmp_path):
    store = FolderStore(tmp_path)
    store.put(result())
    file = file_of(tmp_path)
    content = bytearray(file.read_bytes())
    content[-3] ^= 4
    file.write_bytes(content)
    assert store.has(KEY)  # it is as long as it should be
    assert store.get(KEY) is None
    assert not file.exists()
    assert not store.has(KEY)
    store.put(result())
    assert_same(store.get(KEY), result())


def test_a_shard_under_the_name_of_another_is_not_taken_for_it(tmp_path):
    FolderStore(tmp_path).put(result())
    other = "cd" * 20
    file_of(tmp_path, other).parent.mkdir()
    file_of(tmp_path).rename(file_of(tmp_path, other))
    assert FolderStore(tmp_path).get(other) is None


def test_with_a_cache_shards_are_written_there_and_read_from_both(tmp_path):
    cache, one, two = (tmp_path / name for name in ("cache", "one", "two"))
    FolderStore(one, cache=cache).put(result())
    assert file_of(cache).exists()
    assert not file_of(one).exists()
    assert_same(FolderStore(two, cache=cache).get(KEY), result())
    other = result("cd" * 20)
    FolderStore(two).put(other)
    assert_same(FolderStore(two, cache=cache).get("cd" * 20), other)


@pytest.fixture
def stubborn(tmp_path):
    """A cache that nobody can write to, root neither: files stand where folders should be."""
    cache = tmp_path / "cache"
    FolderStore(cache).put(result())
    for name in ("cd", "ef"):
        (cache / name).write_text("in the way")
    return cache


def test_a_cache_that_cannot_be_written_is_read_and_warned_of_once(tmp_path, stubborn):
    store = FolderStore(tmp_path / "work", cache=stubborn)
    assert_same(store.get(KEY), result())
    others = [result("cd" * 20), result("ef" * 20), result("01" * 20)]
    with pytest.warns(InputWarning, match=r"cache .* cannot be written .*only read"):
        store.put(others[0])
    for other in others[1:]:
        store.put(other)  # a second warning would be an error
    for other in others:
        assert_same(store.get(other.key), other)
        assert file_of(tmp_path / "work", other.key).exists()


def test_a_damaged_file_that_cannot_be_removed_is_passed_over(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    FolderStore(cache).put(result())
    file = file_of(cache)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    store = FolderStore(tmp_path / "work", cache=cache)
    with monkeypatch.context() as patch:
        patch.setattr(type(file), "unlink", refuse)
        assert store.get(KEY) is None
    assert file.exists()
    assert not store.has(KEY)
    store.put(result())
    assert store.has(KEY)
    assert_same(store.get(KEY), result())


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(FileError, match=r"No space left on device\. Finished"):
        FolderStore(tmp_path).put(result())
    assert not any(f.is_file() for f in tmp_path.rglob("*"))


def test_without_folders_shards_are_in_memory():
    store = FolderStore()
    assert store.claim(KEY)
    assert (store.has(KEY), store.get(KEY)) == (False, None)
    store.put(result())
    store.release(KEY)
    assert store.has(KEY)
    assert_same(store.get(KEY), result())


def test_a_shard_is_claimed_by_one_at_a_time(tmp_path):
    one, two = FolderStore(tmp_path), FolderStore(tmp_path)
    assert one.claim(KEY)
    assert not two.claim(KEY)
    one.close()
    assert two.claim(KEY)
    two.close()


HOLD = "import sys; from pathlib import Path; from shiftcal.scoring.store import *; {}; input()"


def held(code):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(code)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    return process


def test_locks_of_a_killed_process_are_released(tmp_path):
    code = f"s = FolderStore(Path({str(tmp_path)!r})); s.claim({KEY!r}); print('held', flush=True)"
    store = FolderStore(tmp_path)
    with held(code) as process:
        assert not store.claim(KEY)
        process.kill()
        process.wait()
    assert store.claim(KEY)
    store.close()


def test_a_folder_for_unfinished_work_is_removed_by_the_last_who_is_done(tmp_path):
    folder = tmp_path / "out.parts"
    with workshop(folder):
        FolderStore(folder).put(result())
        with workshop(folder):
            pass
        assert file_of(folder).exists()
    assert not folder.exists()


def test_a_folder_for_unfinished_work_stays_if_anything_was_finished(tmp_path):
    def interrupted(finish):
        with workshop(tmp_path / "work" / ".work", host=tmp_path / "work") as folder:
            if finish:
                FolderStore(folder).put(result())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(False)
    assert not (tmp_path / "work").exists()
    with pytest.raises(KeyboardInterrupt):
        interrupted(True)
    assert file_of(tmp_path / "work" / ".work").exists()


def test_one_at_a_time_in_a_folder(tmp_path):
    seen = []

    def work():
        with alone_in(tmp_path):
            seen.append("in")
            time.sleep(0.05)
            seen.append("out")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["in", "out"] * 3
    assert list(tmp_path.iterdir()) == []


def test_numbers_found_by_trial_are_kept_in_both_folders(tmp_path):
    one, two, cache = (tmp_path / name for name in ("one", "two", "cache"))
    assert Notes(one, cache).settled("size", lambda: 7) == 7
    assert Notes(one).settled("size", lambda: 8) == 7
    assert Notes(two, cache).settled("size", lambda: 9) == 7
    (one / "notes.json").write_text("damaged")
    (tmp_path / "file").write_text("")
    assert Notes(one, tmp_path / "file").settled("size", lambda: 10) == 10
    assert Notes().settled("size", lambda: 11) == 11

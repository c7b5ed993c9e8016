"""The folder of what is not finished: it goes with the last who is done."""

from __future__ import annotations

from contextlib import suppress

from holder import holder

from shiftcal.scoring.workshop import workshop


def test_it_is_there_for_the_block_and_gone_after_it(tmp_path):
    with workshop(tmp_path / "a.parts") as folder:
        (folder / "one.shard").write_text("done")
    assert not folder.exists()


def broken_off(folder, *, host=None, name="notes.json"):
    with suppress(KeyboardInterrupt), workshop(folder, host=host):
        (folder / name).write_text("something")
        raise KeyboardInterrupt


def test_work_that_was_broken_off_stays_if_something_was_finished(tmp_path):
    broken_off(tmp_path / "a.parts", name="one.shard")
    assert (tmp_path / "a.parts" / "one.shard").exists()
    broken_off(tmp_path / "b.parts")
    assert not (tmp_path / "b.parts").exists()


def test_it_stays_while_another_process_is_in_it(tmp_path):
    folder = tmp_path / "a.parts"
    with holder("guest", folder):
        with workshop(folder):
            pass
        assert folder.exists()
    with workshop(folder):
        pass
    assert not folder.exists()


def test_a_host_is_swept_and_removed_only_if_nothing_is_in_it(tmp_path):
    host = tmp_path / "bank"
    broken_off(host / ".work", host=host)
    assert not host.exists()
    with workshop(host / ".work", host=host):
        (host / "bank.json").write_text("{}")
        (host / ".shiftcal-1.tmp").write_text("left by a process that was killed")
    assert [file.name for file in host.iterdir()] == ["bank.json"]


def test_a_host_keeps_what_a_broken_off_run_has_finished(tmp_path):
    host = tmp_path / "bank"
    broken_off(host / ".work", host=host, name="one.shard")
    assert (host / ".work" / "one.shard").exists()

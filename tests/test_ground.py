"""The parts below everything else: registry, optional packages, atomic files, error classes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import sklearn.exceptions

from shiftcal import errors, maps
from shiftcal._files import atomic_write
from shiftcal._optional import require
from shiftcal._registry import Registry


def test_names_are_files_and_dashes_mean_underscores():
    assert "brier-temperature" in maps.names()
    assert maps.get("brier_temperature") is maps.get("brier-temperature")
    assert "base" not in maps.names()


def test_a_mistyped_name_is_answered_with_the_nearest():
    with pytest.raises(errors.UnknownName, match="Did you mean 'temperature'"):
        maps.get("temprature")
    with pytest.raises(errors.UnknownName, match="There are: "):
        maps.get("zzz")


def test_capitals_do_not_matter_and_classes_go_by_their_names():
    assert maps.get("Temperature") is maps.Temperature
    assert maps.EnsembleTemperature.name() == "ensemble-temperature"
    assert "BrierTemperature" in dir(maps)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = maps.Nonsense


def test_a_plug_in_is_one_file(tmp_path, monkeypatch):
    package = tmp_path / "plugins_for_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text("class Thing: ...\n")
    (package / "_private.py").write_text("raise RuntimeError\n")
    (package / "first_thing.py").write_text(
        "from plugins_for_test.base import Thing\nclass FirstThing(Thing): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from plugins_for_test.base import Thing

    registry = Registry("plugins_for_test", "thing", Thing)
    assert registry.names() == ["first-thing"]
    assert registry.get("first-thing").__name__ == "FirstThing"


def test_a_missing_package_names_the_extra():
    with pytest.raises(errors.MissingExtra, match=r"reading x needs nosuchpackage.*\[parquet\]"):
        require("nosuchpackage.part", extra="parquet", needed_by="reading x")


def test_a_broken_package_raises_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_for_test.py").write_text("import nosuchdependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nosuchdependency"):
        require("broken_for_test", extra="x", needed_by="y")


def test_not_fitted_is_scikit_learns_too():
    assert issubclass(errors.NotFittedError, sklearn.exceptions.NotFittedError)
    assert issubclass(errors.NotFittedError, errors.ShiftcalError)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = errors.Nonsense


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, failure):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail_half_way():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_a_file_error_that_loses_nothing(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    full = OSError(28, "No space left on device")
    with pytest.raises(errors.FileError, match=r"No space left.*unchanged"), atomic_write(path):
        raise full
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failing_clean_up_does_not_hide_the_error(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "touch", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(errors.FileError, match="Read-only"), atomic_write(tmp_path / "x"):
        pass


def test_a_name_as_long_as_the_disk_allows_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    with atomic_write(path) as temporary:
        temporary.write_text("x")
    assert path.read_text() == "x"


def test_a_folder_that_does_not_exist_is_a_file_error(tmp_path):
    missing = tmp_path / "none" / "out.txt"
    with pytest.raises(errors.FileError, match="could not be written"), atomic_write(missing):
        pass


def test_new_files_get_the_usual_permissions(tmp_path):
    with atomic_write(tmp_path / "a") as temporary:
        temporary.write_text("x")
    Path(tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("name", [".", "", "/", "folder", ".."])
def test_a_folder_is_no_file_to_write(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.FileError, match=r"a folder\. Name the file"), atomic_write(name):
        pytest.fail("nothing must be written")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_the_content_is_on_the_disk_before_the_name_and_the_name_thereafter(tmp_path, monkeypatch):
    steps = []
    fsync, rename = os.fsync, Path.replace

    def flush(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("folder" if is_folder else f"file of {os.fstat(descriptor).st_size}")
        fsync(descriptor)

    def replace(self, target):
        steps.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "replace", replace)
    with atomic_write(tmp_path / "x") as temporary:
        temporary.write_text("seven 7")
    # Windows cannot open folders, and so cannot flush them.
    assert steps == ["file of 7", "rename", *(["folder"] if os.name == "posix" else [])]


def test_a_folder_that_cannot_be_flushed_is_no_failure(tmp_path, monkeypatch):
    def flush(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", flush)
    with atomic_write(tmp_path / "x") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "x").read_text() == "new"

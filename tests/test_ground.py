"""The parts below everything else: registry, optional packages, atomic files, error classes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import sklearn.exceptions

from shiftcal import errors, maps
from shiftcal import registry as _registry
from shiftcal.errors import require
from shiftcal.files import atomic_write


def test_names_are_listed_and_dashes_mean_underscores():
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
    assert maps.EnsembleTemperature.name == "ensemble-temperature"
    assert "BrierTemperature" in dir(maps)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = maps.Nonsense


def test_every_line_of_the_tables_is_a_class_that_carries_that_name():
    for registry in vars(_registry).values():
        for name in registry.entries if isinstance(registry, _registry.Registry) else ():
            found = registry.get(name)
            carried = getattr(found, "name", None) or getattr(found, "kind", None)
            if carried is not None:  # a data set is a record with a loader, a metric a function
                assert carried == name
            assert name == registry.canonical(name)


def test_a_missing_package_names_the_extra():
    with pytest.raises(errors.MissingExtra, match=r"reading x needs nosuchpackage.*\[parquet\]"):
        require("nosuchpackage.part", extra="parquet", needed_by="reading x")


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


def test_a_folder_that_does_not_exist_is_a_file_error(tmp_path):
    missing = tmp_path / "none" / "out.txt"
    with pytest.raises(errors.FileError, match="could not be written"), atomic_write(missing):
        pass


@pytest.mark.parametrize("name", [".", "", "/", "folder", ".."])
def test_a_folder_is_no_file_to_write(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.FileError, match=r"a folder\. Name the file"), atomic_write(name):
        pytest.fail("nothing must be written")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


# What a read-only container does to every attempt to write, whoever the user is.
READ_ONLY = """
import os, sys
import shiftcal as sc  # light; an editable install may rebuild itself here
def refuse(event, args):
    written = event == "open" and isinstance(args[2], int) and args[2] & (os.O_RDWR | os.O_WRONLY)
    if (written and args[0] != os.devnull) or event in ("os.mkdir", "os.rename", "os.symlink"):
        raise PermissionError(f"{event} {args}")
sys.addaudithook(refuse)
try:
    open("made", "w")
except PermissionError:
    pass
else:
    sys.exit("could write")
import numpy as np
from shiftcal.__main__ import main
scores = np.load(sys.argv[1])
sc.TS().fit(scores["logits"], scores["labels"])
sc.ece(np.linspace(0.5, 1, 60), np.arange(60) % 3 > 0)
for name in sc.corruptions.names():
    sc.corrupt(np.zeros((2, 32, 32, 3), np.uint8), name, severity=3, threads=2)
sys.argv = ["shiftcal", "compare", *sys.argv[1:3], "--resamples", "10"]
main()
"""


def test_nothing_needs_a_place_to_write(tmp_path):
    rng = np.random.default_rng(0)
    files = [tmp_path / f"{part}.npz" for part in ("clean", "target")]
    for file in files:
        labels = rng.integers(0, 3, 200)
        np.savez(file, logits=2 * np.eye(3)[labels] + rng.normal(size=(200, 3)), labels=labels)
    nowhere = str(files[0] / "home")  # below a file there is no folder
    names = ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "LOCALAPPDATA", "TMPDIR", "TMP", "TEMP")
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", READ_ONLY, *map(str, files)],
        env={**os.environ, **dict.fromkeys(names, nowhere)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "vanilla" in done.stdout
    assert sorted(tmp_path.iterdir()) == sorted(files)

"""Runs that are killed, wherever they are, and gone on with to the same result."""

from __future__ import annotations

import pytest
from adapt_process import adapted, killed
from two_domains import arrays_of

from shiftcal.adaptation import Adapted
from shiftcal.errors import FileError

MODES = ("frozen", "network")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What comes of runs that nothing happened to."""
    return {mode: adapted(tmp_path_factory.mktemp(mode) / "run", mode).folder for mode in MODES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "place", "number"),
    [
        ("frozen", "model", 5),
        ("frozen", "batch", 17),
        ("frozen", "checkpoint", 2),
        ("frozen", "write", 1),
        ("frozen", "write", 4),
        ("frozen", "write", 8),
        ("network", "batch", 17),
        ("network", "checkpoint", 3),
        ("network", "write", 2),
        ("network", "write", 5),
    ],
)
def test_a_run_that_was_killed_comes_to_the_same_result(tmp_path, whole, mode, place, number):
    folder = tmp_path / "run"
    killed(folder, mode, place, number)
    with pytest.raises(FileError, match="holds a run that is not finished"):
        Adapted.open(folder)
    made = adapted(folder, mode)
    if place == "batch":
        assert made.document["trained"]["resumed_at"] == 14
    expected = arrays_of(whole[mode])
    assert arrays_of(folder).keys() == expected.keys()
    assert arrays_of(folder) == expected
    left = {file.name for file in folder.iterdir()}
    assert left == {file.name for file in whole[mode].iterdir()}


def test_what_a_process_left_behind_that_died_at_the_very_end_is_removed(tmp_path):
    made = adapted(tmp_path / "run", "frozen")
    (made.folder / "training").mkdir()
    (made.folder / "training" / "checkpoint.json").write_text("{}")
    adapted(made.folder, "frozen")
    assert not (made.folder / "training").exists()

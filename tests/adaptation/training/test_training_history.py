"""The history of the losses, and how progress is told."""

from __future__ import annotations

import re

import pytest
from training_process import Moments, training

from shiftcal.adaptation.training.history import History, Row, Tally, read_history
from shiftcal.adaptation.training.progress import telling
from shiftcal.errors import FileError
from shiftcal.scoring.run import Reporting


def test_rows_are_means_since_the_row_before(tmp_path):
    every, _ = tmp_path / "every", tmp_path / "some"
    training(every, changes={"iterations": 100})
    single = read_history(every)
    assert [row.step for row in single] == list(range(1, 101))
    training(tmp_path / "some", changes={"iterations": 250}, checkpoint_every=500)
    rows = read_history(tmp_path / "some")
    assert [row.step for row in rows] == [*range(3, 250, 3), 250]
    for name in ("classification", "transfer", "total"):
        first = sum(getattr(row, name) for row in single[:3]) / 3
        # Nine digits are written.
        assert getattr(rows[0], name) == pytest.approx(first, rel=1e-7)
    # Of the last iteration of each: 0.05 (1 + 3e-4 t) ** -0.75, t from 0.
    assert rows[0].lr == pytest.approx(0.05 * (1 + 3e-4 * 2) ** -0.75, rel=1e-8)
    assert rows[-1].lr == pytest.approx(0.05 * (1 + 3e-4 * 249) ** -0.75, rel=1e-8)


def test_the_total_is_the_sum(tmp_path):
    training(tmp_path, trainer=Moments(trade_off=0.25))
    for row in read_history(tmp_path):
        assert row.total == pytest.approx(row.classification + 0.25 * row.transfer, rel=1e-5)


def test_a_history_is_read_as_it_was_written(tmp_path):
    rows = [Row(10, 0.01, 1.5, 0.0, 1.5), Row(20, 0.009, 1e-12, 3.25e8, 2.0, 0.875)]
    history = History(tmp_path, rows[:1])
    history.append(rows[1])
    assert read_history(tmp_path) == rows
    first = (tmp_path / "history.csv").read_text().splitlines()[0]
    assert first == "step,lr,classification,transfer,total,source_validation"
    History(tmp_path, rows[:1])
    assert read_history(tmp_path) == rows[:1]


def test_only_one_process_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    History(None).append(Row(1, 0.1, 1.0, 1.0, 1.0))
    assert not list(tmp_path.iterdir())


def test_no_iteration_is_a_mean_of_nothing():
    tally = Tally()
    assert tally.means() == (0, 0, 0)
    tally.add([1.0, 2.0, 3.0])
    tally.add([2.0, 4.0, 8.0])
    assert tally.means() == (1.5, 3.0, 5.5)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "step,lr\n1,x\n"])
def test_another_file_is_told(tmp_path, text):
    (tmp_path / "history.csv").write_text(text)
    with pytest.raises(FileError, match="not a training's history, or it is damaged"):
        read_history(tmp_path)


def test_a_missing_history_is_told(tmp_path):
    with pytest.raises(FileError, match=r"history\.csv could not be read: No such file"):
        read_history(tmp_path)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_line_says_steps_losses_speed_and_time_left():
    lines, clock = [], Clock()
    with telling(200, 1000, Reporting(False, lines.append), clock=clock) as tell:
        for _ in range(20):
            clock.now += 2.0
            tell(20, (0.5, 0.25, 0.75), 64)
    # Every 15 seconds; 20 steps of 64 images in 2 seconds.
    assert len(lines) == 2
    assert lines[0] == (
        "training: step 360 of 1,000, loss 0.75 (classification 0.5, transfer 0.25), "
        "640 images/s, 1:04 left"
    )


def test_without_anybody_to_tell_nothing_is_said(capsys):
    clock = Clock()
    with telling(0, 10, Reporting(False), clock=clock) as tell:
        clock.now = 100.0
        tell(10, (1.0, 1.0, 2.0), 8)
    assert capsys.readouterr() == ("", "")


def test_a_bar_says_the_same_in_a_narrow_terminal(capsys):
    clock = Clock()
    with telling(0, 30_000, Reporting(shown=True), clock=clock) as tell:
        clock.now = 300.0
        tell(10_000, (12.3456, 0.1234, 12.469), 64)
    shown = capsys.readouterr()
    assert not shown.out
    last = shown.err.strip().splitlines()[-1]
    assert re.fullmatch(
        r"training \S+ *10000/30000 loss 12\.346 \+ 0\.123, 2,133 images/s, 10:00 left", last
    )
    assert len(last) < 80


def test_a_training_shows_a_bar_if_it_is_asked_to(tmp_path, capsys):
    training(tmp_path, reporting=Reporting(shown=True))
    assert re.search(r"training .*60/60", capsys.readouterr().err)

"""Calibration plots: bars are the bins, empty bins have none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from sample_figures import calibration

from shiftcal._drawing.palette import BLUE, ORANGE
from shiftcal.errors import InputError
from shiftcal.report.figures import CalibrationPlots

VANILLA, TS = calibration().panels


def bars(axes, colour=None):
    return [
        (bar.get_x(), bar.get_width(), bar.get_height())
        for bar in axes.patches
        if colour is None or to_hex(bar.get_facecolor()).upper() == colour
    ]


def test_the_bars_are_accuracy_and_confidence_over_their_bins():
    vanilla, ts, *_ = calibration().draw().axes
    assert bars(vanilla, BLUE) == [(0.25, 0.25, 30.0), (0.5, 0.5, 60.0)]
    assert bars(vanilla, ORANGE) == [(0.25, 0.25, 40.0), (0.5, 0.5, 85.0)]
    assert bars(ts, BLUE) == [(0.0, 0.5, 30.0), (0.5, 0.5, 60.0)]
    assert all(0 < bar.get_alpha() < 1 for bar in vanilla.patches)


def test_below_stands_which_share_of_the_samples_a_bin_holds():
    *_, vanilla, ts = calibration().draw().axes
    assert [height for _, _, height in bars(vanilla)] == [0.0, 25.0, 75.0]
    assert [height for _, _, height in bars(ts)] == [50.0, 50.0]


def test_ece_and_temperature_are_written_above():
    vanilla, ts, *_ = calibration().draw().axes
    assert vanilla.get_title(loc="left") == "Vanilla\nECE 21.25 %"
    assert ts.get_title(loc="left") == "TS\nECE 3.50 %, T = 1.50"


@pytest.mark.parametrize("count", [1, 5, 7])
def test_as_many_panels_as_methods_are_seen(count):
    figure = CalibrationPlots(panels=(VANILLA,) * count).draw()
    assert sum(axes.get_visible() for axes in figure.axes) == 2 * count


@pytest.mark.parametrize(
    ("counts", "shown"), [((50, 50), False), ((51, 50), False), ((52, 50), True)]
)
def test_shares_are_left_out_if_all_bins_hold_equally_many(counts, shown):
    figure = CalibrationPlots(panels=(TS, replace(TS, count=counts))).draw()
    assert len(figure.axes) == (4 if shown else 2)
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("share of samples" in told) == shown
    assert all(axes.get_xlabel() for axes in figure.axes[-2:])
    assert [tick.get_text() for tick in figure.axes[-1].get_xticklabels()] == ["0", "0.5", "1"]


def test_bins_too_narrow_to_be_seen_are_counted_below():
    near_one = replace(
        TS,
        edges=(0.0, 0.5, 0.99, 0.995, 1.0),
        accuracy=(30.0, 60.0, 80.0, 90.0),
        confidence=(35.0, 62.0, 99.2, 99.9),
        count=(25, 25, 25, 25),
    )
    figure = CalibrationPlots(panels=(TS, near_one), note="A note.").draw()
    (note,) = figure.texts
    assert " ".join(note.get_text().split()) == (
        "A note. Bins above 0.99, too narrow to be seen: TS 2."
    )
    assert not CalibrationPlots(panels=(TS,)).draw().texts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edges": (0.0, 1.0)}, "'TS' must have as many.*bins has 1, accuracy has 2"),
        ({"edges": (0.0, 0.5, 0.5)}, r"rising edges within \[0, 1\]"),
        ({"edges": (0.0, 0.5, 1.5)}, r"rising edges within \[0, 1\]"),
        ({"count": (0, 50)}, "where a bin holds samples.*bin 0 holds 0 and has"),
        ({"accuracy": (None, 60.0)}, "bin 0 holds 50 and has"),
        ({"count": (-1, 50)}, "bin 0 holds -1"),
        (
            {"count": (0, 0), "accuracy": (None, None), "confidence": (None, None)},
            "at least one sample",
        ),
    ],
)
def test_bins_that_cannot_be_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        replace(TS, **change)


def test_no_panel_is_refused():
    with pytest.raises(InputError, match="at least one panel"):
        CalibrationPlots(panels=())

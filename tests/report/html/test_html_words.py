"""Names and numbers as they are shown."""

from __future__ import annotations

import pytest

from shiftcal.report.html._words import counted, number, percent, rough, shown, whole
from shiftcal.report.html.charts.scene import ticks


def test_what_would_turn_or_break_a_line_is_escaped_and_long_names_are_cut():
    assert shown("a\u202eb\x00c\nd") == "a\\u202eb\\u0000c\\u000ad"
    assert shown("\u05e9\u05dc") == "\u05e9\u05dc"
    assert len(shown("x" * 5000)) == 120
    assert shown("x" * 5000).endswith("…")
    assert shown("lone \udcff").encode("utf-8") == b"lone \\udcff"


def test_what_has_to_be_copied_is_not_cut():
    assert whole("x" * 5000 + "\nnext") == "x" * 5000 + "\nnext"
    assert whole("a\x00b") == "a\\u0000b"


def test_numbers_are_rounded_for_readers():
    assert percent(0.9123) == "91.2\u00a0%"
    assert [rough(x) for x in (0.583, 0.996, 1.0, 0.004, 0.0)] == ["58", "99.6", "100", "0.4", "0"]
    assert number(4.512) == "4.51"
    assert (counted(1, "row"), counted(1024, "row")) == ("1 row", "1,024 rows")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.0321, 0.4), (0.91, 0.93), (0, 1e-6)])
def test_ticks_are_round_rising_and_within(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert found == sorted(found)
    assert low - 1e-9 <= found[0] <= found[-1] <= high + 1e-9

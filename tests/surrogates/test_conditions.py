"""Which sets a bank shall have."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.corruptions import as_corruption
from shiftcal.errors import InputError
from shiftcal.surrogates.build import conditions_of


def named(corruption, severities=None):
    found = conditions_of(corruption, severities)
    assert found[0].corruption is None
    assert found[0].severity == 0
    assert found[0].name == "clean"
    return [(c.corruption.name, c.severity) for c in found[1:]]


def test_one_name_has_all_its_severities():
    assert named("pixelate") == [("pixelate", s) for s in (1, 2, 3, 4, 5)]


def test_several_come_one_after_the_other():
    assert named(["fog", "pixelate"], (1, 3)) == [
        ("fog", 1), ("fog", 3), ("pixelate", 1), ("pixelate", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "severities", [(3, 1, 3), [1, 3], range(1, 4, 2), np.array([3, 1]), {1, 3}]
)
def test_severities_rise_and_are_there_once(severities):
    assert named("fog", severities) == [("fog", 1), ("fog", 3)]


@pytest.mark.parametrize("severity", [2, np.int64(2), (n for n in [2])])
def test_one_severity_can_be_a_number(severity):
    assert named("fog", severity) == [("fog", 2)]


def test_a_corruption_and_a_function_can_be_given():
    def darker(image, severity):
        return image // (severity + 1)

    assert named(as_corruption("fog"), 1) == [("fog", 1)]
    assert named(darker) == [("darker", s) for s in (1, 2, 3, 4, 5)]
    assert named([as_corruption(darker), "fog"], 5) == [("darker", 5), ("fog", 5)]


def test_a_list_of_functions_is_one_corruption():
    def little(image):
        return image // 2

    def much(image):
        return image // 4

    assert len(named([little, much])) == 2


@pytest.mark.parametrize(
    ("corruption", "severities", "message"),
    [
        ([], None, "corruption must be given"),
        (["fog", "fog"], None, r"each once; got \['fog', 'fog'\]"),
        ("fog", (), "severities must name one at least"),
        ("fog", 6, "severity must be .* at most 5; got 6"),
        ("fog", [0, 1], "severity must be a whole number of at least 1; got 0"),
        ("fog", ["1", 2], "severity must be a whole number of at least 1; got '1'"),
        ("fog", 1.5, "severity must be a whole number"),
        ("fog", True, "severity must be a whole number"),
        ("no such", None, "no such"),
    ],
)
def test_what_cannot_be_is_refused(corruption, severities, message):
    with pytest.raises(InputError, match=message):
        conditions_of(corruption, severities)

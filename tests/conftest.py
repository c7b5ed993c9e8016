"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from map_data import draw_logits

settings.register_profile("fast", max_examples=30, deadline=None, derandomize=True)
settings.register_profile(
    "night", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# A shell without job control starts what it puts in the background with SIGINT ignored, and what
# that starts ignores it, too: tests that interrupt a process would wait for it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def find_shared_data() -> Path | None:
    """The folder of real data: $SHIFTCAL_DATA, else ../shared/data beside the project."""
    named = os.environ.get("SHIFTCAL_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (Path(named) if named else None, beside):
        if folder is not None and folder.is_dir():
            return folder
    return None


@pytest.fixture(autouse=True)
def same_environment(monkeypatch):
    """The command line keeps the current folder off the path of what it starts; tests do not."""
    monkeypatch.setenv("PYTHONSAFEPATH", "")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = find_shared_data()
    if folder is None:
        pytest.skip("real data not found: set SHIFTCAL_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def overconfident():
    """2,000 rows of 5 classes, over-confident by a factor of two."""
    return draw_logits(2000, 5, temperature=2.0, seed=7)

"""Skips tests that themselves import a package which is not installed.

Loaded by ``pytest -p absent_oracles`` in an environment without the packages that results are
compared with. A test is skipped only if its own file, or one of ``tests/support``, has the import;
where shiftcal asks for something that is absent, the test fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def _reason(error: BaseException) -> str | None:
    if not isinstance(error, ModuleNotFoundError) or (error.name or "").startswith("shiftcal"):
        return None
    asked, frame = None, error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith("<frozen importlib"):
            asked = Path(file)
        frame = frame.tb_next
    if asked is None or not asked.resolve().is_relative_to(TESTS):
        return None
    return f"{error.name}, which the test compares with or runs, is not installed"


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule(module_path, parent):
    module = yield
    load = module._getobj

    def load_or_skip():
        try:
            return load()
        except module.CollectError as error:
            cause = error.__context__ or error.__cause__
            reason = _reason(cause) if cause else None
            if reason is None:
                raise
            pytest.skip(reason, allow_module_level=True)

    module._getobj = load_or_skip
    return module


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except ModuleNotFoundError as error:
        reason = _reason(error)
        if reason is None:
            raise
        pytest.skip(reason)

"""The most memory that something takes while it runs."""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from shiftcal._optional import require

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak(NamedTuple):
    """A measurement that has begun.

    Attributes:
        above: Gives the most bytes in use since it began, above those in use then.
        exact: Whether that is all of them; else what was freed before may hide some.
    """

    above: Callable[[], int]
    exact: bool


def begin(memory: str) -> Peak | None:
    """Begin to measure; ``None`` where that cannot be done.

    For a process this is resident memory. On Linux the kernel's peak of it is reset, which counts
    what every thread takes; where that is not permitted, the peak since the process began is all
    there is. On a GPU it is torch's own count.

    Args:
        memory: ``"process"``, or a device of torch such as ``"cuda:0"``.
    """
    if memory != "process":
        return _on_device(memory)
    _give_back()
    return _resident_peak() or _lifetime_peak()


def _resident_peak() -> Peak | None:
    try:
        _RESET.write_text("5")  # proc(5): sets the peak to what is resident now
        before = _resident("VmRSS")
        _resident("VmHWM")
    except (OSError, LookupError):
        return None
    return Peak(lambda: max(0, _resident("VmHWM") - before), exact=True)


def _lifetime_peak() -> Peak | None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024

    def read() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    before = read()
    return Peak(lambda: read() - before, exact=False)


def _on_device(device: str) -> Peak:
    cuda: Any = require("torch.cuda", extra="torch", needed_by="a PyTorch model")
    cuda.reset_peak_memory_stats(device)
    before = cuda.memory_allocated(device)
    return Peak(lambda: max(0, cuda.max_memory_allocated(device) - before), exact=True)


def _resident(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise LookupError(field)
    return int(found[1]) << 10


def _give_back() -> None:
    """Give freed memory back, of which what comes next would else be made without being seen."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library has no such call
            ctypes.CDLL(None).malloc_trim(0)

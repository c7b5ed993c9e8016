"""What of this machine decides how shiftcal runs: threads, the cache of compiled kernels, disks."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def program() -> dict[str, Any]:
    """Python, the platform and where shiftcal is."""
    import shiftcal

    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "location": str(Path(shiftcal.__file__).parent),
    }


def threads() -> dict[str, Any]:
    """Processors of the machine, those this process may use, and what the environment says."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such thing
        usable = os.cpu_count() or 1
    return {
        "processors": os.cpu_count(),
        "usable": usable,
        "environment": {name: os.environ[name] for name in _THREADS if name in os.environ},
    }


def kernel_cache() -> dict[str, Any]:
    """Where compiled kernels are kept, and why they cannot be, if so."""
    import numba

    try:
        # As numba itself decides: beside the sources, in $NUMBA_CACHE_DIR, or in the user's cache.
        dispatcher = numba.njit(_kept, cache=True)
        path = Path(dispatcher._cache.cache_path)
    except Exception as error:  # numba has no class for it
        return {"path": None, "problem": str(error)}
    return {"path": str(path), "problem": unwritable(path)}


def score_cache() -> dict[str, Any]:
    """The folder of finished shards that ``$SHIFTCAL_CACHE`` names, and why it cannot be used."""
    told = os.environ.get("SHIFTCAL_CACHE")
    if not told:
        return {"path": None, "problem": ""}
    folder = Path(told).expanduser()
    # It is made when it is needed: what matters until then is the folder it would be made in.
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return {"path": str(folder), "problem": unwritable(there)}


def temporary() -> dict[str, Any]:
    """The folder for temporary files, and what is free there."""
    folder = Path(tempfile.gettempdir())
    return {
        "path": str(folder),
        "free_bytes": shutil.disk_usage(folder).free,
        "problem": unwritable(folder),
    }


def terminal() -> dict[str, Any]:
    """What is known of where output goes."""
    return {
        "stdout_is_terminal": sys.stdout is not None and sys.stdout.isatty(),
        "encoding": getattr(sys.stdout, "encoding", None),
        "no_color": "NO_COLOR" in os.environ,
    }


def unwritable(folder: Path) -> str:
    """Why no file can be written to a folder; empty if one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")
    except OSError as error:
        return f"{folder} cannot be written to: {error.strerror or error}"
    return ""


def _kept(x: int) -> int:
    return x

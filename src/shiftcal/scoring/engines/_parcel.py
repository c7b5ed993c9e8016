"""Work on its way to other processes of this machine: a file that each of them opens once."""

from __future__ import annotations

import mmap
import pickle
import shutil
import tempfile
from pathlib import Path
from typing import Any

from shiftcal.errors import FileError, InputError
from shiftcal.scoring.engines._joblib import part_of_joblib
from shiftcal.scoring.work import Work

# Arrays from this size on are not copied into every process, but mapped.
_LARGE = 1 << 20
_ALIGNED = 64


def packed(work: Work, **options: Any) -> bytes:
    """The work as bytes, functions of a script or notebook included.

    Args:
        work: What is to be sent.
        **options: Of the pickler.

    Raises:
        InputError: If a part of it cannot be sent.
    """
    cloudpickle = part_of_joblib("cloudpickle")
    try:
        return cloudpickle.dumps(work, **options)
    except Exception as error:  # an object that cannot be pickled raises what it likes
        raise InputError(
            "the model and the images must be such that they can be sent to other processes; "
            f"pickling them failed with {type(error).__name__}: {error}. With one local worker "
            "they stay in this one."
        ) from error


class Parcel:
    """A folder that holds the work as long as this process lives, or until it is removed.

    Raises:
        InputError: If the work cannot be sent.
        FileError: If there is no room for it.
    """

    def __init__(self, work: Work) -> None:
        self._tracker = part_of_joblib("loky.backend.resource_tracker")
        try:
            self.folder = tempfile.mkdtemp(prefix="shiftcal-")
            # Another process removes the folder if this one is killed.
            self._tracker.register(self.folder, "folder")
            _write(work, Path(self.folder))
        except OSError as error:
            self.remove()
            raise FileError(
                f"{tempfile.gettempdir()} must have room for the model and the images in memory, "
                f"which workers read from there: {error.strerror or error}. Set TMPDIR to another "
                "folder."
            ) from error
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Delete the folder. Processes that have opened it keep what they have."""
        folder = getattr(self, "folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self._tracker.unregister(folder, "folder")
            del self.folder


def opened(folder: str) -> Work:
    """The work; its large arrays are those of the file, copied where they are written to."""
    found = Path(folder)
    content, spans = pickle.loads((found / "work").read_bytes())
    if not spans:
        return pickle.loads(content)
    with (found / "arrays").open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    return pickle.loads(content, buffers=[whole[start:stop] for start, stop in spans])


def _write(work: Work, folder: Path) -> None:
    buffers: list[memoryview] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            buffers.append(raw)
        return raw.nbytes < _LARGE

    content = packed(work, protocol=5, buffer_callback=stays)
    spans = []
    with (folder / "arrays").open("wb") as file:
        for raw in buffers:
            start = -(-file.tell() // _ALIGNED) * _ALIGNED
            file.seek(start)
            file.write(raw)
            spans.append((start, start + raw.nbytes))
    (folder / "work").write_bytes(pickle.dumps((content, spans)))

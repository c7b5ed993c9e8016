"""Reading and writing files: atomic writes, framed documents with version and checksum."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from shiftcal.errors import FileError, InputError, MissingData, MissingExtra, ShiftcalError, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from shiftcal.types import Images

# --------------------------------------------------------------------------------------
# Files written whole or not at all.
# --------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary name next to ``path``; rename it to ``path`` if the block succeeds.

    Whatever interrupts the block (an error, Ctrl-C, a full disk), ``path`` is left as it
    was and the temporary file is removed. A reader sees the old file or the new one, which has
    the mode of the old one. If ``path`` is a symbolic link, the file it leads to is replaced. A
    remote path (:func:`remote_url`) is written in one transaction of its file system.

    Args:
        path: The file.
        durable: Whether it outlives a power cut as soon as the block is left. Otherwise the
            system writes it within seconds, and a power cut may leave it damaged: for files
            with a checksum, that can be made again.

    Raises:
        FileError: If the folder does not exist, ``path`` is one, or the file cannot be written.
    """
    if url := remote_url(path):
        with tempfile.TemporaryDirectory(prefix="shiftcal-") as folder:
            with _reaching(url) as (fs, name):
                temporary = Path(folder) / "written"
            yield temporary
            # What a transaction writes appears when it ends.
            with (
                temporary.open("rb") as made,
                _reaching(url),
                fs.transaction,
                fs.open(name, "wb") as out,
            ):
                shutil.copyfileobj(made, out, 1 << 20)
        return
    target = link_followed(file_to_write(path))
    temporary = target.with_name(f".shiftcal-{secrets.token_hex(6)}.tmp")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        if durable:
            flush_file(temporary)
        put_in_place(temporary, target)
    except OSError as error:
        raise FileError(
            f"{target} could not be written: {error.strerror or error}. What was there before is "
            "unchanged; check that the folder exists and may be written, and the room on the disk."
        ) from error
    finally:
        with suppress(OSError):  # a folder gone read-only must not hide the error above
            temporary.unlink(missing_ok=True)
    if durable:
        flush_folder(target.parent)


def remove_orphans(folder: Path) -> None:
    """Delete the temporary files and folders that a killed process left; hold the folder's lock."""
    for orphan in list(folder.rglob(".shiftcal-*.tmp")):
        if orphan.is_dir():
            shutil.rmtree(orphan, ignore_errors=True)
        else:
            orphan.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder, if it is not there.

    Raises:
        FileError: If that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} could not be made: {error.strerror or error}.") from error


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can have it.

    Raises:
        FileError: If it is a folder or a device, or has no name to give to a file.
    """
    target = Path(path)
    if not target.name or (target.exists() and not target.is_file()):
        what = "a folder" if not target.name or target.is_dir() else "not a regular file"
        raise FileError(f"{target} could not be written: it is {what}. Name the file to write.")
    return target


def link_followed(path: Path) -> Path:
    """Where a symbolic link leads, whether anything is there or not; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a finished file to ``path``, which keeps its mode and stays a symbolic link."""
    target = link_followed(path)
    with suppress(FileNotFoundError):
        finished.chmod(stat.S_IMODE(target.stat().st_mode))
    finished.replace(target)


def flush_file(path: Path) -> None:
    """Have the content of a file on the disk, so that a power cut after the rename keeps it."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Have the names in a folder on the disk, where the system can do that."""
    # The new file is in place by now, so nothing that fails here may be reported as its failure.
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --------------------------------------------------------------------------------------
# Bringing images to one size: resize, then cut from the centre.
# --------------------------------------------------------------------------------------

# More than any camera makes; a small file that claims more is meant to fill the memory.
# Pillow warns of it from here on.
MOST_PIXELS = 89_478_485


@dataclass(frozen=True)
class Framing:
    """How images are brought to one size.

    Attributes:
        resize: Length the shorter side is brought to, the other in proportion and rounded down; or
            ``(height, width)``, which need not keep the proportion; ``None`` leaves them.
        crop: Side of the square cut from the centre after that, or ``None``.
        interpolation: ``"bilinear"`` or ``"bicubic"``, both with antialiasing.
    """

    resize: int | tuple[int, int] | None = None
    crop: int | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"

    def of_picture(self, picture: Any) -> Any:
        """A Pillow image, framed.

        Raises:
            InputError: If it is too small to be cut, or would become too large.
        """
        width, height = picture.size
        size = self._size(height, width)
        if size != (height, width):
            pillow = require("PIL.Image", extra="images", needed_by="resizing images")
            how = pillow.Resampling[self.interpolation.upper()]
            picture = picture.resize(size[::-1], how)
        if self.crop is None or size == (self.crop, self.crop):
            return picture
        top, left = self._corner(*size)
        return picture.crop((left, top, left + self.crop, top + self.crop))

    def of_images(self, images: Images) -> Images:
        """A batch ``(n, height, width, 3)``, framed; the batch itself if nothing changes.

        Raises:
            InputError: If they are too small to be cut, or would become too large.
        """
        import numpy as np

        height, width = images.shape[1:3]
        if self._size(height, width) != (height, width):
            pillow = require("PIL.Image", extra="images", needed_by="resizing images")
            pictures = (pillow.fromarray(np.ascontiguousarray(image)) for image in images)
            return np.stack([np.asarray(self.of_picture(picture)) for picture in pictures])
        if self.crop is None:
            return images
        top, left = self._corner(height, width)
        return images[:, top : top + self.crop, left : left + self.crop]

    def _size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width after resizing."""
        if self.resize is None:
            return height, width
        if isinstance(self.resize, tuple):
            size = self.resize
        elif width <= height:
            size = int(self.resize * height / width), self.resize
        else:
            size = self.resize, int(self.resize * width / height)
        if size[0] * size[1] > MOST_PIXELS:
            raise InputError(
                f"an image of {height} x {width} (height x width) would become {size[0]} x "
                f"{size[1]}; more than {MOST_PIXELS:,} pixels are not made."
            )
        return size

    def _corner(self, height: int, width: int) -> tuple[int, int]:
        side = self.crop or 0
        if min(height, width) < side:
            raise InputError(
                f"images must be at least {side} pixels high and wide to be cropped to that; "
                f"got {height} x {width}. Set resize={side} or more as well."
            )
        return round((height - side) / 2), round((width - side) / 2)


# --------------------------------------------------------------------------------------
# Opening files that may be damaged or hostile.
#
# Every kind of file is opened by one function here. Whatever is wrong with it, the error is a
# FileError that names it, and nothing is unpickled.
# --------------------------------------------------------------------------------------

NPY, NPZ, PARQUET = "a .npy array", "an .npz archive", "a Parquet file"
# What numpy says of arrays that it would have to unpickle, read and memory-mapped.
_OBJECTS = ("Object arrays cannot be loaded", "Python objects in dtype")
# The first byte of every pickle since protocol 2, which torch.save and joblib write too.
_PICKLE = b"\x80"


def find(path: str | os.PathLike[str]) -> Path:
    """The path, if a non-empty file is there.

    Raises:
        FileError: If not, with the nearest name there is. A remote path is not looked for.
    """
    file = Path(path)
    if remote_url(path):
        return file
    with parsing(file, "a file"):
        if not file.exists():
            raise FileError(f"{file} does not exist. {_neighbour(file)}")
        if not file.is_file():
            what = "a folder; name one scores file in it" if file.is_dir() else "not a regular file"
            raise FileError(f"{file} is {what}.")
        if file.stat().st_size == 0:
            raise FileError(f"{file} is empty; write it again.")
    return file


_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+]+):/+(.+)")


def remote_url(path: str | os.PathLike[str]) -> str | None:
    """The URL of a path such as ``s3://bucket/scores.parquet``; ``None`` if it is a local one.

    A ``Path`` of a URL, which has one slash where that had two, counts as well.
    """
    found = _REMOTE.fullmatch(os.fspath(path))
    if found is None or Path(path).exists():
        return None
    fsspec = require("fsspec", extra="fsspec", needed_by=f"{found[1]}://")
    if found[1].lower() not in fsspec.available_protocols():
        return None
    return f"{found[1].lower()}://{'/' if found[1].lower() == 'file' else ''}{found[2]}"


@contextmanager
def _reaching(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of a URL and the name in it; what goes wrong there is a FileError."""
    import fsspec

    try:
        yield fsspec.core.url_to_fs(url)
    except ImportError as error:  # of the package for this kind of storage
        raise MissingExtra(f"{url} cannot be reached: {error}.") from error
    except ShiftcalError:
        raise
    except Exception as error:  # storages raise what they like
        raised = MissingData if isinstance(error, FileNotFoundError) else FileError
        raise raised(
            f"{url} cannot be reached: {_one_line(error)}. Check it, and the access."
        ) from error


@contextmanager
def fetched(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of :func:`find`; of a remote one a copy, which is there inside the block."""
    url = remote_url(path)
    if url is None:
        yield find(path)
        return
    with tempfile.TemporaryDirectory(prefix="shiftcal-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / url.rpartition("/")[2]
        with _reaching(url) as (fs, name):
            fs.get_file(name, str(copy))
        yield find(copy)


def _neighbour(file: Path) -> str:
    # Stems are compared, since a suffix in common makes any two names half alike.
    names = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
    names.sort(key=lambda name: Path(name).suffix == file.suffix)
    by_stem = {Path(name).stem: name for name in names}
    near = difflib.get_close_matches(file.stem, by_stem, n=1, cutoff=0.75)
    return f"Did you mean {by_stem[near[0]]!r}?" if near else "Check the path."


def _require_magic(path: Path, magic: bytes, kind: str) -> None:
    """Reject a file that does not begin as its format does, before numpy takes it for a pickle.

    Raises:
        FileError: Saying what it should be.
    """
    with parsing(path, kind), path.open("rb") as file:
        head = file.read(len(magic))
    if head.startswith(_PICKLE):
        raise FileError(_pickled(path))
    if not head.startswith(magic):
        raise FileError(
            f"{path} is not {kind}: it begins with the bytes {head!r}. "
            "Give it the suffix of its format, or write it again."
        )


@contextmanager
def parsing(path: Path, kind: str, *, fix: str = "Write it again.") -> Iterator[None]:
    """Turn whatever reading a file raises into a FileError that names the file.

    Args:
        path: The file being read.
        kind: What it should be, such as ``"an .npz archive"``.
        fix: What to do if it is damaged.
    """
    try:
        yield
    except ShiftcalError as error:
        if not isinstance(error, InputError) or isinstance(error, FileError):
            raise  # such as a package that is not installed
        named = str(path) in str(error)
        raise FileError(str(error) if named else f"{path} cannot be used: {error}") from error
    except Exception as error:  # damaged bytes make parsers raise anything
        if isinstance(error, OSError) and error.errno is not None:
            raised = MissingData if isinstance(error, FileNotFoundError) else FileError
            raise raised(f"{path} could not be read: {error.strerror}.") from error
        if any(words in str(error) for words in _OBJECTS):
            raise FileError(_pickled(path)) from error
        raise FileError(
            f"{path} could not be read as {kind}: it is damaged, cut short, or something else "
            f"({_one_line(error)}). {fix}"
        ) from error


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of a file before an error about what is in it."""
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise FileError(f"{os.fspath(path)}: {error}") from error


def _pickled(path: Path) -> str:
    return (
        f"{path} holds pickled Python objects, which are never loaded because they can run code. "
        "Save numbers as numbers, and text as np.array(names, dtype=str)."
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."


def read_json(path: Path, kind: str, *, fix: str = "Write it again.") -> Any:
    """What a JSON file holds."""
    with parsing(path, kind, fix=fix):
        try:
            return json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            reason = f"{path} is not {kind}, or it is damaged: not JSON ({_one_line(error)})."
            raise FileError(f"{reason} {fix}") from error


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_of(document: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON document without its field ``checksum``."""
    content = {name: value for name, value in document.items() if name != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_document(
    path: Path,
    content: Mapping[str, Any],
    *,
    format: str,
    version: int,
    durable: bool = True,
    indent: int | None = None,
) -> None:
    """Replace a JSON document atomically, with its format, version, writer and checksum."""
    head = {"format": format, "version": version, "written_by": f"shiftcal {_release()}"}
    document = {**head, **content}
    document["checksum"] = checksum_of(document)
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_text(json.dumps(document, indent=indent, allow_nan=False) + "\n", "utf-8")


def _release() -> str:
    from importlib.metadata import version

    return version("shiftcal")


def read_document(
    path: Path, kind: str, *, format: str, version: int, fix: str = "Write it again."
) -> dict[str, Any]:
    """A document of :func:`write_document`.

    Args:
        path: The file.
        kind: What it should be, such as ``"a saved method"``.
        format: Its format.
        version: The version of the format that can be read.
        fix: What to do if it is damaged.

    Raises:
        FileError: If it is damaged, something else, or has another version.
    """
    document = read_json(path, kind, fix=fix)
    if not isinstance(document, dict) or document.get("format") != format:
        raise FileError(f"{path} is not {kind}: it has no format {format!r}. {fix}")
    if document.get("version") != version:
        raise FileError(
            f"{path} has format version {document.get('version')!r}, written by "
            f"{document.get('written_by')}; this is shiftcal {_release()}, which "
            f"reads version {version}. Upgrade shiftcal, or write the file again."
        )
    if document.get("checksum") != checksum_of(document):
        raise FileError(f"{path} is damaged: its checksum does not match its content. {fix}")
    return document


@contextmanager
def lock(path: Path, *, by: str = "shiftcal") -> Iterator[None]:
    """Hold ``path`` for this process alone; the lock ends with the process, however it ends.

    Args:
        path: The file or folder; a hidden lock file appears alongside the file, or in the folder.
        by: The program, for the message.

    Raises:
        FileError: If another process holds it.
    """
    from filelock import FileLock, Timeout

    name = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    try:
        with FileLock(name, timeout=0):
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps a file that is open
                    name.unlink()
    except Timeout as error:
        raise FileError(
            f"{path} is in use by another {by}. Stop that one first, or name another file."
        ) from error


def read_npy(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """The array of an ``.npy`` file, in memory or mapped."""
    import numpy as np

    _require_magic(path, b"\x93NUMPY", NPY)
    with parsing(path, NPY):
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)


@contextmanager
def open_npz(path: Path) -> Iterator[Any]:
    """The archive as ``numpy.load`` gives it; take arrays out of it with :func:`npz_array`."""
    import numpy as np

    _require_magic(path, b"PK", NPZ)
    # Opened here, since numpy leaves its own handle open when the archive proves damaged.
    with (
        parsing(path, NPZ),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        yield archive


def npz_array(archive: Any, name: str, *, path: Path | None = None) -> NDArray[Any]:
    """One array of :func:`open_npz`.

    Args:
        archive: The open archive.
        name: The array's name.
        path: The archive's file, to map the array where it is stored without compression.
    """
    from numpy.lib import format as npy

    members = archive.zip.namelist()
    info = archive.zip.getinfo(f"{name}.npy" if f"{name}.npy" in members else name)
    if path is not None and info.compress_type == zipfile.ZIP_STORED:
        return _mapped(path, info)
    with archive.zip.open(info) as file:
        shape, _, dtype = npy_head(file)
    if math.prod(shape) * dtype.itemsize > info.file_size:
        raise ValueError(f"{name!r} is shorter than its header says")
    with archive.zip.open(info) as file:
        return npy.read_array(file, allow_pickle=False)


def read_npz(
    path: Path, names: Iterable[str] | None = None, *, mapped: bool = False
) -> dict[str, NDArray[Any]]:
    """Arrays of an ``.npz`` archive by name.

    Args:
        path: The archive.
        names: The arrays to read, those that are there; default: all.
        mapped: Whether arrays that are stored without compression are memory-mapped.
    """
    with open_npz(path) as archive:
        wanted = archive.files if names is None else [n for n in names if n in archive.files]
        return {n: npz_array(archive, n, path=path if mapped else None) for n in wanted}


def _mapped(path: Path, info: zipfile.ZipInfo) -> NDArray[Any]:
    import numpy as np

    with path.open("rb") as file:
        # In front of the member stand 30 bytes, its name, and a field of any length.
        file.seek(info.header_offset + 26)
        lengths = struct.unpack("<HH", file.read(4))
        file.seek(info.header_offset + 30 + sum(lengths))
        shape, fortran, dtype = npy_head(file)
        return np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")


def npy_head(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is stored column by column, and type of the array that begins here."""
    from numpy.lib import format as npy

    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(_OBJECTS[0])
    return shape, fortran, dtype


class NpzStream(AbstractContextManager["NpzStream"]):
    """An archive as ``np.savez`` writes it, array by array, each in pieces if need be.

    The same arrays give the same bytes: nothing of the time or the machine is in them.

    Args:
        path: The file; an existing one is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Add an array that is in memory."""
        self.pieces(name, values.shape, values.dtype, [values])

    def pieces(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, pieces: Iterable[NDArray[Any]]
    ) -> None:
        """Add an array that comes in pieces along its first axis.

        Args:
            name: What it is called in the archive.
            shape: Of the whole.
            dtype: Of the whole; pieces are converted to it.
            pieces: Together ``shape[0]`` rows.
        """
        import numpy as np

        kind = np.dtype(dtype)
        header = {
            "descr": np.lib.format.dtype_to_descr(kind),
            "fortran_order": False,
            "shape": shape,
        }
        rows = 0
        # A member without a date of its own has that of 1980, always the same.
        with self._zip.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, header)
            for piece in pieces:
                member.write(np.ascontiguousarray(piece, kind).tobytes())
                rows += len(piece) if shape else 1
        assert not shape or rows == shape[0], f"{name}: {rows} rows came, {shape[0]} were said"

    def __exit__(self, *exception: object) -> None:
        self._zip.close()


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """The file as ``pyarrow.parquet.ParquetFile``, its pages checked as they are read."""
    parquet = require("pyarrow.parquet", extra="parquet", needed_by="a .parquet file")
    with parsing(path, PARQUET), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield file

"""Archives made member by member."""

from __future__ import annotations

import io
import tarfile
import zipfile

import numpy as np

NOISE = np.random.default_rng(2).bytes(50_000)
FILES = {"set/a/1.bin": NOISE, "set/b/2.bin": b"two", "set/read me": b""}
MODES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}


def entry(name, kind=tarfile.REGTYPE, *, link="", size=0, mode=0o644):
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size, made.mode = kind, link, size, mode
    return made


def tar(path, entries, mode="w"):
    """A tar of ``(entry, content)``."""
    with tarfile.open(path, mode) as opened:
        for made, content in entries:
            made.size = len(content)
            opened.addfile(made, io.BytesIO(content))
    return path


def zipped(path, entries, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as opened:
        for made, content in entries:
            opened.writestr(made, content)
    return path


def archive_of(folder, end, files=FILES):
    path = folder / f"data{end}"
    if end == ".zip":
        return zipped(path, files.items())
    return tar(path, [(entry(name), content) for name, content in files.items()], MODES[end])


def content(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }

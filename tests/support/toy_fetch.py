"""Downloads from a server of this machine, with everything told written down."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np

from shiftcal.datasets.about import Download
from shiftcal.datasets.download import Line, download

BODY = np.random.default_rng(3).bytes(300_000)
OTHER = np.random.default_rng(4).bytes(300_000)
MD5 = hashlib.md5(BODY).hexdigest()


class Seen:
    """Remembers what it is told."""

    def __init__(self):
        self.notes, self.steps = [], []

    def moved(self, doing, done, total):
        self.steps.append((doing, done, total))

    def note(self, text):
        self.notes.append(text)


def fetching_into(folder):
    """``fetch(url)``: the path, what was told, and how long it would have waited."""

    def fetch(url, *, digest=MD5, size=0, algorithm="md5", timeout=5.0, tries=3):
        watch, waits = Seen(), []
        source = Download(url, "data.bin", digest, algorithm, size=size)
        line = Line(timeout=timeout, tries=tries, wait=waits.append)
        path = download(source, folder, watch=watch, line=line)
        return SimpleNamespace(path=path, notes=watch.notes, steps=watch.steps, waits=waits)

    return fetch


def names(folder):
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def left(folder):
    """What a broken download left."""
    return (folder / "data.bin.partial").read_bytes()

"""A file that the system fails to read is not a bad image."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from stored_images import draw_images, write_images

from shiftcal.datasets import base as _retry
from shiftcal.datasets.image_files import FileImages
from shiftcal.errors import FileError

IMAGES = draw_images(4, 12, 10)
NAMES = [f"{i}.png" for i in range(4)]


@pytest.fixture
def held(tmp_path, monkeypatch):
    monkeypatch.setattr(_retry, "PAUSE", 0.0)
    write_images(tmp_path, IMAGES, NAMES)
    return FileImages(tmp_path, NAMES, name="held")


@pytest.fixture
def fail(monkeypatch):
    """Have the reading of a file fail so many times, after so many that succeed."""
    real = Path.read_bytes

    def arrange(name, *, times, number=errno.EIO, after=0):
        tries = []

        def read_bytes(self):
            if self.name == name:
                tries.append(1)
                if after < len(tries) <= after + times:
                    raise OSError(number, os.strerror(number), str(self))
            return real(self)

        monkeypatch.setattr(Path, "read_bytes", read_bytes)
        return tries

    return arrange


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES])
def test_a_failure_that_passes_leaves_no_trace(held, fail, threads, number):
    tries = fail("2.png", times=1, number=number)
    batch = held.read(range(4), threads=threads)
    np.testing.assert_array_equal(batch.images, IMAGES)
    assert (batch.bad, len(tries)) == ({}, 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_that_stays_ends_the_run_and_names_the_file(held, fail, threads):
    tries = fail("2.png", times=99)
    wanted = r"2\.png cannot be read as an image: Input/output error\. That was the second try"
    with pytest.raises(FileError, match=wanted) as caught:
        held.read(range(4), threads=threads)
    assert len(tries) == 2
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    with pytest.raises(FileError, match="nothing is stored of it"):
        held.digest(range(4), threads=threads)


def test_a_digest_does_not_take_a_passing_failure_for_an_unreadable_image(held, fail):
    before = held.digest(range(4))
    fail("2.png", times=1)
    assert held.digest(range(4)) == before


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP])
def test_a_file_that_is_not_there_is_bad_and_not_tried_again(held, fail, number):
    tries = fail("2.png", times=99, number=number)
    batch = held.read(range(4))
    assert batch.indices.tolist() == [0, 1, 3]
    assert "2.png cannot be read as an image" in batch.bad[2]
    assert len(tries) == 1


@pytest.mark.parametrize("content", [b"", b"no image", "cut"])
def test_a_file_that_cannot_be_decoded_is_bad_and_not_tried_again(held, fail, content):
    file = held.root / "2.png"
    file.write_bytes(file.read_bytes()[:60] if content == "cut" else content)
    tries = fail("2.png", times=0)
    assert list(held.read(range(4)).bad) == [2]
    assert len(tries) == 1

"""CIFAR-10: python and binary batches, and files that only look like them."""

from __future__ import annotations

import hashlib
import os
import pickle
import struct
import sys
from contextlib import suppress

import numpy as np
import pytest
from cifar_copies import (
    NAMES,
    as_rows,
    batch_dict,
    drawn,
    python2_pickle,
    write_binary_batches,
    write_python_batches,
)
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.datasets.catalog.cifar10 import ABOUT, cifar10
from shiftcal.errors import FileError, UnknownName

TEST = (drawn(4, 1), [3, 8, 0, 9])
TRAIN = [(drawn(2, 10 + i), [i, 9 - i]) for i in range(5)]
WRITERS = {"py": write_python_batches, "bin": write_binary_batches}


@pytest.fixture(params=["py", "bin"])
def copy(request, tmp_path):
    """The folder above a miniature copy, in both forms."""
    WRITERS[request.param](tmp_path / f"cifar-10-batches-{request.param}", TEST, TRAIN)
    return tmp_path


def test_images_labels_and_names_are_those_that_were_stored(copy):
    images = cifar10(copy)
    assert (len(images), images.name, images.classes) == (4, "CIFAR-10 test", tuple(NAMES))
    assert images.labels.tolist() == [3, 8, 0, 9]
    np.testing.assert_array_equal(images.read([0, 1, 2, 3]).images, TEST[0])
    np.testing.assert_array_equal(images[2], TEST[0][2])


def test_training_batches_follow_one_another_and_can_be_read_in_any_order(copy):
    images = cifar10(copy, split="train")
    assert images.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    everything = np.concatenate([images for images, _ in TRAIN])
    mixed = [9, 0, 5, 5, 2]
    np.testing.assert_array_equal(images.read(mixed).images, everything[mixed])


def test_the_root_may_be_the_folder_of_the_batches_itself(copy):
    (inner,) = copy.iterdir()
    assert cifar10(inner).digest([0, 3]) == cifar10(str(copy)).digest([0, 3])


def test_python_batches_are_preferred_and_both_say_the_same(tmp_path):
    write_binary_batches(tmp_path / "cifar-10-batches-bin", TEST)
    binary = cifar10(tmp_path)
    write_python_batches(tmp_path / "cifar-10-batches-py", TEST)
    python = cifar10(tmp_path)
    assert python.stored[0].file.name == "test_batch"
    assert python.digest(range(4)) == binary.digest(range(4))


def test_another_process_is_sent_no_pixels(copy):
    images = cifar10(copy, split="train")
    sent = pickle.dumps(images)
    assert len(sent) < 3072 * len(images) / 4
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.read([7, 1]).images, images.read([7, 1]).images)
    assert again.labels.tolist() == images.labels.tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_batches_that_python_3_wrote_are_read(tmp_path, protocol):
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch_dict(*TEST), protocol))
    images = cifar10(tmp_path)
    np.testing.assert_array_equal(images.read([0, 1, 2, 3]).images, TEST[0])
    # Protocol 2 of Python 3 has the pixels as text: those are held, and sent along.
    assert (images.stored[0].held is None) == (protocol > 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(images))[3], TEST[0][3])


def test_names_are_the_known_ones_where_no_file_has_them(copy):
    for file in copy.glob("*/batches.meta*"):
        file.unlink()
    assert cifar10(copy).classes == tuple(NAMES)


class Hostile:
    """Pickles to a call."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_batch_that_would_run_a_command_is_refused_and_runs_nothing(tmp_path, protocol):
    witness = tmp_path / "ran"
    command = f"{sys.executable} -c \"open('{witness}', 'w')\""
    batch = {**batch_dict(*TEST), b"extra": Hostile(os.system, command)}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch, protocol))
    with pytest.raises(FileError, match=r"test_batch asks for (posix|nt)\.system.*not run"):
        cifar10(tmp_path)
    assert not witness.exists()
    pickle.loads((tmp_path / "test_batch").read_bytes())
    assert witness.exists()  # plain pickle would have run it


def test_names_of_classes_that_would_run_code_are_refused(tmp_path):
    write_python_batches(tmp_path / "p", TEST)
    meta = {b"label_names": Hostile(eval, "1 + 1")}
    (tmp_path / "p" / "batches.meta").write_bytes(pickle.dumps(meta, 2))
    with pytest.raises(FileError, match=r"batches\.meta asks for (builtins|__builtin__)\.eval"):
        cifar10(tmp_path / "p")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", r"asks for os\.system"),
        (b"(S'true'\nios\nsystem\n.", "asks for INST"),
        (b"\x80\x02\x82\x01.", "asks for EXT1"),
        (b"Pthing\n.", "asks for PERSID"),
        (b"\x80\x02}r\xff\xff\xff\x7f.", "must hold pixels"),
        (b"\x80\x02cnumpy\ndtype\n}\x81.", "asks for NEWOBJ"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", r"asks for os\.system"),
        (b"\x80\x02}K\x01R.", "only names are called"),
        (b"\x80\x02]}b.", "only what was called has a state"),
        (b"\x80\x02}K\x01a.", "only lists are added to"),
        (b"\x80\x02K\x01R.", "stack is empty"),
        (b"\x80\x02]q\x00.", "does not hold a dict"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b"abc.", "cut short"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.", "as latin1"),
        (b"\x80\x02}" + b"(" * 100_000 + b"t" * 100_000 + b"K\x01s.", "with text as keys"),
        (b"not a pickle at all", "could not be read as a batch"),
        (b"", "could not be read as a batch"),
    ],
)
def test_a_file_that_is_no_batch_is_refused(tmp_path, content, words):
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(FileError, match=words):
        cifar10(tmp_path)


SMALL = python2_pickle(batch_dict(drawn(1, 2), [4]))
# Where it holds no pixels, which may be anything.
OPERATIONS = [at for at in range(len(SMALL)) if at < 200 or at > len(SMALL) - 200]


@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 255)), max_size=4))
def test_a_batch_with_changed_bytes_is_read_or_refused(tmp_path_factory, changes):
    content = bytearray(SMALL)
    for at, value in changes:
        content[at] = value
    file = tmp_path_factory.getbasetemp() / "changed" / "test_batch"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    with suppress(FileError):
        assert len(cifar10(file.parent)) == 1


def test_a_python_batch_that_is_cut_short_is_refused(tmp_path):
    whole = python2_pickle(batch_dict(*TEST))
    for size in (10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "test_batch").write_bytes(whole[:size])
        with pytest.raises(FileError, match="could not be read as a batch"):
            cifar10(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({b"labels": [3, 8, 0]}, r"4 images and labels of shape \(3,\)"),
        ({b"labels": []}, r"labels of shape \(1,\)"),
        ({b"labels": [3, 8, 0, 10]}, "labels from 0 to 9; it has 0 to 10"),
        ({b"labels": [3, 8, 0, -1]}, "it has -1 to 8"),
        ({b"labels": [3, 8, 0, 1.5]}, "list of whole numbers as labels"),
        ({b"labels": None}, "list of whole numbers as labels"),
        ({b"data": as_rows(TEST[0])[:, :3000]}, r"uint8 of shape \(n, 3072\)"),
        ({b"data": as_rows(TEST[0]).astype(float)}, r"uint8 of shape \(n, 3072\)"),
        ({b"data": np.asfortranarray(as_rows(TEST[0]))}, r"uint8 of shape \(n, 3072\)"),
        ({b"data": b"pixels"}, r"uint8 of shape \(n, 3072\)"),
        ({b"data": as_rows(TEST[0])[:0]}, r"uint8 of shape \(n, 3072\)"),
    ],
)
def test_labels_and_pixels_must_fit(tmp_path, change, words):
    (tmp_path / "test_batch").write_bytes(python2_pickle(batch_dict(*TEST) | change))
    with pytest.raises(FileError, match=words):
        cifar10(tmp_path)


def test_a_binary_batch_must_hold_whole_records_of_known_classes(tmp_path):
    write_binary_batches(tmp_path / "b", TEST)
    file = tmp_path / "b" / "test_batch.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(FileError, match=r"12,291 bytes are no multiple.*cut short"):
        cifar10(tmp_path / "b")
    file.write_bytes(b"\x63" + whole[1:])
    with pytest.raises(FileError, match="it has 0 to 99"):
        cifar10(tmp_path / "b")
    file.write_bytes(b"")
    with pytest.raises(FileError, match="no multiple"):
        cifar10(tmp_path / "b")


def test_what_is_missing_is_named(copy, tmp_path):
    with pytest.raises(FileError, match="is not a folder"):
        cifar10(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"holds no CIFAR-10.*unpack"):
        cifar10(tmp_path / "empty")
    (inner,) = (entry for entry in copy.iterdir() if entry.name.startswith("cifar"))
    next(inner.glob("data_batch_3*")).unlink()
    with pytest.raises(FileError, match="only some batches: data_batch_3"):
        cifar10(copy, split="train")
    assert len(cifar10(copy)) == 4
    with pytest.raises(UnknownName, match="split must be one of 'test', 'train'"):
        cifar10(copy, split="val")


def test_names_must_be_ten(tmp_path):
    write_binary_batches(tmp_path / "b", TEST)
    (tmp_path / "b" / "batches.meta.txt").write_text("cat\ndog\n")
    with pytest.raises(FileError, match=r"batches\.meta\.txt must name the 10 classes.*names 2"):
        cifar10(tmp_path / "b")


def test_a_pickle_larger_than_any_batch_is_not_read(tmp_path):
    with (tmp_path / "test_batch").open("wb") as file:
        file.truncate(1 << 29)
    with pytest.raises(FileError, match="larger than any batch"):
        cifar10(tmp_path)


def test_what_is_known_adds_up():
    assert {part.name: part.n for part in ABOUT.parts} == {"test": 10_000, "train": 50_000}
    assert all(part.n == part.per_class * ABOUT.n_classes for part in ABOUT.parts)
    assert all(len(digest) == len("md5:") + 32 for digest in ABOUT.digests.values())


def test_the_real_test_set_in_its_real_form_is_itself(shared_data, tmp_path):
    from PIL import Image

    mosaic = np.asarray(Image.open(shared_data / "cifar10" / "test.webp").convert("RGB"))
    tiles = mosaic.reshape(100, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    with np.load(shared_data / "cifar10" / "labels.npz") as held:
        labels = held["test"].tolist()
    write_python_batches(tmp_path / "cifar-10-batches-py", (tiles, labels))
    # The size of the published file but for its shorter and longer file names.
    assert abs((tmp_path / "cifar-10-batches-py/test_batch").stat().st_size - 31_035_526) < 200_000
    images = cifar10(tmp_path)
    assert np.bincount(images.labels).tolist() == [1000] * 10
    # What everybody knows of the first ten test images.
    first = [images.classes[label] for label in images.labels[:10]]
    assert first[:5] == ["cat", "ship", "ship", "airplane", "frog"]
    assert first[5:] == ["frog", "automobile", "frog", "cat", "automobile"]
    digest = hashlib.sha256()
    for batch in images.batches(1000):
        digest.update(batch.images.tobytes())
    assert digest.hexdigest() == hashlib.sha256(tiles.tobytes()).hexdigest()
    assert digest.hexdigest() in (shared_data / "cifar10" / "SHA256").read_text()

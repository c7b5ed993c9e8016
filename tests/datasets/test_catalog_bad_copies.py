"""Copies of published data sets that are damaged, hostile or something else: FileError, named."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from cifar_copies import drawn, write_binary_batches
from imagenet_copies import WNIDS, write_class_index, write_image, write_meta
from stored_images import draw_images, write_images

from shiftcal.datasets import load
from shiftcal.errors import FileError

IMAGES, LABELS = drawn(5, 3), np.array([0, 9, 4, 4, 7])


def idx(items, *, n=None):
    head = struct.pack(">BBBB", 0, 0, 8, items.ndim)
    sizes = (len(items) if n is None else n, *items.shape[1:])
    return head + struct.pack(f">{items.ndim}I", *sizes) + items.tobytes()


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("data", IMAGES.astype(np.float32), "must be uint8"),
        ("data", IMAGES.reshape(5, -1), "at least 8 pixels"),
        ("data", IMAGES[:0], "at least one image"),
        ("data", IMAGES[..., 0, :], "at least 8 pixels"),
        ("data", np.uint8(7), "it holds a number"),
        ("data", IMAGES[:4], "4 rows, 5 labels"),
        ("labels", LABELS[:, None], r"must have shape \(5,\)"),
        ("labels", LABELS + 1, "from 1 to 10"),
        ("labels", LABELS - 1, "from -1 to 8"),
        ("labels", LABELS + 0.5, "labels"),
    ],
)
def test_arrays_of_cifar10_1(tmp_path, name, array, words):
    np.save(tmp_path / "cifar10.1_v6_data.npy", IMAGES)
    np.save(tmp_path / "cifar10.1_v6_labels.npy", LABELS)
    np.save(tmp_path / f"cifar10.1_v6_{name}.npy", array)
    with pytest.raises(FileError, match=rf"cifar10.1_v6_data\.npy.*{words}"):
        load("cifar10-1", tmp_path)


@pytest.mark.parametrize(
    ("file", "array", "words"),
    [
        ("labels", np.tile(LABELS[:3], 4), "labels of 3 images"),
        ("labels", np.arange(15) % 10, "labels of 3 images"),
        ("labels", np.tile(LABELS[:3], 5) + 1, "from 1 to 10"),
        ("fog", drawn(14, 1), "14 rows are no multiple"),
        ("fog", drawn(10, 1), "labels of 2 images"),
        ("fog", drawn(15, 1).astype(np.int16), "must be uint8"),
    ],
)
def test_arrays_of_cifar10_c(tmp_path, file, array, words):
    np.save(tmp_path / "fog.npy", drawn(15, 1))
    np.save(tmp_path / "labels.npy", np.tile(LABELS[:3], 5))
    np.save(tmp_path / f"{file}.npy", array)
    with pytest.raises(FileError, match=words):
        load("cifar10-c", tmp_path, corruption="fog")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda whole: whole[:-1], "cut short"),
        (lambda _: b"", "cut short"),
        (lambda whole: b"\x63" + whole[1:], "from 0 to 99"),
    ],
)
def test_binary_batches_of_cifar10(tmp_path, change, words):
    write_binary_batches(tmp_path / "b", (drawn(4, 1), [3, 8, 0, 9]))
    file = tmp_path / "b" / "test_batch.bin"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(FileError, match=rf"test_batch\.bin.*{words}"):
        load("cifar10", tmp_path / "b")


DIGITS = np.random.default_rng(1).integers(0, 256, (5, 28, 28), dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("images", b""),
        ("images", idx(DIGITS)[:-1]),
        ("images", idx(DIGITS) + b"x"),
        ("images", idx(DIGITS[:, :, :27])),
        ("images", idx(DIGITS[:0])),
        ("images", idx(DIGITS[0])),
        ("images", idx(DIGITS)[:10]),
        ("images", idx(DIGITS, n=2**32 - 1)),
        ("images.gz", gzip.compress(idx(DIGITS))[:-20]),
        ("images.gz", b"garbage"),
        ("images.gz", gzip.compress(idx(DIGITS, n=1_000_000))),
        ("images.gz", gzip.compress(idx(DIGITS) + bytes(50_000_000))),
        ("labels", idx(np.arange(4, dtype=np.uint8))),
        ("labels", idx(np.arange(8, 13, dtype=np.uint8))),
    ],
)
def test_idx_files_of_mnist_take_no_memory_either(tmp_path, name, content):
    kind, _, packed = name.partition(".")
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(DIGITS))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.arange(5, dtype=np.uint8)))
    file = tmp_path / f"t10k-{kind}-idx{3 if kind == 'images' else 1}-ubyte"
    file.unlink()
    (file.with_suffix(".gz") if packed else file).write_bytes(content)
    tracemalloc.start()
    with pytest.raises(FileError, match="t10k-"):
        load("mnist", tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("usps.t.bz2", b"garbage"),
        ("usps.t.bz2", bz2.compress(b"1 1:0.5\n" * 100)[:-9]),
        ("usps.t", b""),
        ("usps.t", b"0 1:0.5\n"),
        ("usps.t", b"11 1:0.5\n"),
        ("usps.t", b"1 257:0.5\n"),
        ("usps.t", b"1 1:2\n"),
        ("usps.t", b"1 1:nan\n"),
        ("usps.t", b"1 1\n"),
        ("usps.npz", b"PK garbage"),
    ],
)
def test_files_of_usps(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match="usps"):
        load("usps", tmp_path)


def test_an_npz_header_that_promises_terabytes(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2**32, 256)}
    )
    with zipfile.ZipFile(tmp_path / "usps.npz", "w") as archive:
        archive.writestr("test_data.npy", header.getvalue() + bytes(100))
    with pytest.raises(FileError, match=r"'test_data' is shorter than its header says"):
        load("usps", tmp_path)


OUTSIDE = [
    "../secret.png",
    "sketch/../../secret.png",
    "/etc/secret.png",
    "C:/secret.png",
    "C:\\secret.png",
    "\\\\host\\share\\secret.png",
    "sketch\\..\\..\\secret.png",
    "sketch/dog/\0.png",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_lists_that_lead_outside(tmp_path, path):
    write_images(tmp_path / "sketch" / "dog", draw_images(1), ["1.png"])
    write_images(tmp_path / "mnist_m_test", draw_images(1), ["1.png"])
    write_images(tmp_path / "train" / "car", draw_images(1), ["1.png"])
    (tmp_path / "sketch_train_kfold.txt").write_text(f"sketch/dog/1.png 1\n{path} 1\n")
    (tmp_path / "mnist_m_test_labels.txt").write_text(f"1.png 1\n{path} 1\n")
    (tmp_path / "train" / "image_list.txt").write_text(f"car/1.png 3\n{path} 3\n")
    for name, options in (
        ("pacs", {"domain": "sketch", "split": "train"}),
        ("mnist-m", {}),
        ("visda2017", {"domain": "train"}),
    ):
        with pytest.raises(FileError, match=r"line 2: .* leads outside the folder"):
            load(name, tmp_path, **options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no images"),
        ("dog/1.png 1", "such as sketch/dog/name"),
        ("sketch/dog/1.png 0", "from 1 on"),
        ("sketch/dog/1.png 2", "another label than its folder"),
        ("sketch/stapler/1.png 2", "is not in the folder of a class"),
        ("sketch/dog/1.png x", "a whole number"),
        ("sketch/dog/1.png", "a whole number"),
    ],
)
def test_lists_of_something_else(tmp_path, text, words):
    write_images(tmp_path / "sketch" / "dog", draw_images(1), ["1.png"])
    (tmp_path / "sketch_train_kfold.txt").write_text(text)
    with pytest.raises(FileError, match=words):
        load("pacs", tmp_path, domain="sketch", split="train")


def test_domains_of_something_else(tmp_path):
    write_images(tmp_path / "Art" / "Spaceship", draw_images(1), ["1.png"])
    with pytest.raises(FileError, match=r"has no folder 'Clipart', 'Product', 'Real World'"):
        load("office-home", tmp_path)
    with pytest.raises(FileError, match=r"1\.png is not in the folder of a class of Office-Home"):
        load("office-home", tmp_path, domain="Art")
    (tmp_path / "art").mkdir()
    with pytest.raises(FileError, match="must hold one folder for Art"):
        load("office-home", tmp_path, domain="Art")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("index.json", '{"0": ["n10000007"], "1": ["n10000000"]}', "order of their wnids"),
        ("index.json", '["n10000000", "n10000007"]', "it has 2 different ones"),
        ("index.json", '{"a": 1}', "could not be read as a list of classes"),
        ("index.json", "[" * 100_000, "damaged"),
        ("index.txt", "tench\nshark\n", "it has 'tench'"),
        ("index.txt", "n10000000\n" * 1000, "1 different"),
        ("index.mat", "nonsense" * 40, "could not be read as the meta.mat"),
    ],
)
def test_lists_of_imagenets_classes(tmp_path, name, text, words):
    write_image(tmp_path / "val" / WNIDS[7] / "a.JPEG", 10)
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=words):
        load("imagenet", tmp_path, class_index=tmp_path / name)


def test_folders_of_imagenet(tmp_path):
    write_image(tmp_path / "val" / WNIDS[7] / "a.JPEG", 10)
    write_class_index(tmp_path / "imagenet_class_index.json")
    write_image(tmp_path / "val" / "n99999999" / "a.JPEG", 1)
    with pytest.raises(FileError, match="'n99999999' is not in the list"):
        load("imagenet", tmp_path)
    write_image(tmp_path / "val" / "tench" / "a.JPEG", 1)
    with pytest.raises(FileError, match=r"other images alongside, such as 'tench/a\.JPEG'"):
        load("imagenet", tmp_path)
    write_image(tmp_path / "c" / "fog" / "1" / WNIDS[7] / "a.JPEG", 10)
    with pytest.raises(FileError, match="fog/4 is missing"):
        load("imagenet-c", tmp_path / "c", severity=4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{0},1\n", "none for 1 of 2"),
        ("{0},1\n{1},1000\n", "If they count from 1"),
        ("{0},1\n{1},-4\n", "it has others"),
        ("{0},1\n{1},n10000000\n", "it has others"),
        ("{0},tench\n{1},shark\n", "it has others"),
        ("{0},1\n{1},2\nb/{0},5", "has two that differ"),
        ("", "it has others"),
        ("{0},n10000000\n{1},n10000007\n", "2 of ImageNet's 1,000"),
    ],
)
def test_lists_of_imagenets_labels(tmp_path, text, words):
    names = [f"ILSVRC2012_val_{i:08d}.JPEG" for i in (1, 2)]
    for name in names:
        write_image(tmp_path / "val" / name, 40)
    (tmp_path / "labels.csv").write_text(text.format(*names))
    with pytest.raises(FileError, match=words):
        load("imagenet", tmp_path)
    (tmp_path / "labels.csv").unlink()
    write_meta(tmp_path / "meta.mat", WNIDS)
    (tmp_path / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n1001\n")
    with pytest.raises(FileError, match="line 2 is '1001'"):
        load("imagenet", tmp_path)

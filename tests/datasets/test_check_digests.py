"""Files of a copy held against the checksums that are published."""

from __future__ import annotations

import bz2
import gzip
import hashlib

import numpy as np
import pytest
from toy_sets import about_toys, source_of, use_toys, write_toys

from shiftcal import datasets
from shiftcal.datasets.about import Part
from shiftcal.datasets.catalog.mnist import ABOUT as MNIST
from shiftcal.datasets.check import check_data_set
from shiftcal.datasets.checksums import checksum
from shiftcal.datasets.known import known
from shiftcal.errors import FileError


@pytest.fixture
def root(tmp_path, monkeypatch):
    use_toys(monkeypatch)
    return write_toys(tmp_path / "copy")


def md5(content):
    return f"md5:{hashlib.md5(content).hexdigest()}"


def write_noise(folder):
    """As many images of CIFAR-10.1's shape as there must be, of every class its number."""
    folder.mkdir(parents=True)
    noise = np.random.default_rng(3).integers(0, 256, (2000, 32, 32, 3), dtype=np.uint8)
    np.save(folder / "cifar10.1_v6_data.npy", noise)
    np.save(folder / "cifar10.1_v6_labels.npy", np.arange(2000) % 10)


@pytest.mark.parametrize("below", ["", "datasets"])
def test_noise_of_the_right_shape_is_no_complete_cifar10_1(tmp_path, below):
    write_noise(tmp_path / "copy" / below)
    found = check_data_set("cifar10-1", tmp_path / "copy", parts=["v6"], sample=1)
    assert found.parts[0].state == "complete"
    assert not found.complete
    assert (found.checksums, found.verified, found.absent) == ("altered", (), ())
    data, labels = found.altered
    assert data.startswith("cifar10.1_v6_data.npy: its sha256 must be 2997188e")
    assert labels.startswith("cifar10.1_v6_labels.npy: its sha256 must be ae40beda")


def test_a_download_that_is_not_unpacked_is_verified_where_it_is(root, monkeypatch):
    file = root / "toys" / "extra.bin"
    file.write_bytes(b"as published")
    source = source_of("https://example.org/x", b"as published", file="extra.bin", unpack=False)
    archive = source_of("https://example.org/y", b"an archive")
    about_toys(monkeypatch, downloads=(source, archive), paths=lambda name: [f"toys/{name}"])
    found = check_data_set("toys", root)
    assert (found.verified, found.checksums, found.complete) == (("extra.bin",), "verified", True)
    file.write_bytes(b"something else")
    assert check_data_set("toys", root).checksums == "altered"
    file.unlink()
    found = check_data_set("toys", root)
    assert (found.absent, found.checksums, found.complete) == (("extra.bin",), "absent", True)


def test_a_set_without_published_checksums_says_so(root):
    assert check_data_set("toys", root).checksums == "none known"
    assert check_data_set("toys", root, digests=False).checksums == "not compared"


def test_only_files_of_the_parts_asked_for_are_verified(root, monkeypatch):
    image = (root / "toys" / "test" / "car" / "1.png").read_bytes()
    parts = (
        Part("train", {"split": "train"}, n=12, files=("toys/train/car/1.png",)),
        Part("test", {"split": "test"}, n=6, files=("toys/test/car/1.png",)),
    )
    digests = {"toys/train/car/1.png": "md5:00", "toys/test/car/1.png": md5(image)}
    about_toys(monkeypatch, parts=parts, digests=digests)
    assert check_data_set("toys", root, parts=["test"]).complete
    assert check_data_set("toys", root, parts=["train"]).checksums == "altered"
    assert len(check_data_set("toys", root).altered) == 1


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_what_a_file_unpacks_to_counts_where_its_checksum_is_known(root, monkeypatch, end, pack):
    names = ["list", f"list{end}"]
    source = source_of("https://example.org/x", b"first", file=f"list{end}", unpack=False)
    facts = {"downloads": (source,), "digests": {"list": md5(b"content")}}
    about_toys(monkeypatch, paths=lambda _: names, **facts)
    (root / f"list{end}").write_bytes(pack(b"content"))
    assert check_data_set("toys", root).verified == ("list",)
    (root / f"list{end}").write_bytes(pack(b"other content"))
    assert "list: its md5 must be" in check_data_set("toys", root).altered[0]
    (root / f"list{end}").write_bytes(pack(b"content" * 1000)[:-9])
    assert "is damaged or cut short" in check_data_set("toys", root).altered[0]
    (root / f"list{end}").write_bytes(b"no archive")
    assert "could not be read" in check_data_set("toys", root).altered[0]
    (root / "list").write_bytes(b"content")
    assert check_data_set("toys", root).verified == ("list",)


def test_a_file_that_cannot_be_read_has_no_checksum(tmp_path):
    with pytest.raises(FileError, match="could not be read"):
        checksum(tmp_path / "none", "md5")


@pytest.mark.parametrize("name", datasets.names())
def test_every_file_of_a_part_has_a_checksum_of_the_right_form(name):
    _, _, about = known(name)
    sums = about.checksums()
    listed = {file for part in about.parts for file in part.files}
    assert listed == set(sums)
    lengths = {"md5": 32, "sha256": 64}
    for text in sums.values():
        algorithm, _, digits = text.partition(":")
        assert len(digits) == lengths[algorithm]
        assert int(digits, 16) >= 0
    assert len(set(sums.values())) == len(sums)


def test_which_sets_have_checksums():
    having = [name for name in datasets.names() if known(name)[2].checksums()]
    assert having == ["cifar10", "cifar10-1", "cifar10-c", "mnist", "usps"]


def test_mnist_compressed_anew_is_as_published_and_one_changed_pixel_is_not(shared_data, tmp_path):
    found = check_data_set("mnist", shared_data / "digits", sample=3)
    assert found.complete
    assert (set(found.verified), found.checksums) == (set(MNIST.digests), "verified")
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        packed = (shared_data / "digits" / f"mnist_{name}.gz").read_bytes()
        (tmp_path / name).write_bytes(gzip.decompress(packed))
    assert check_data_set("mnist", tmp_path, parts=["test"], sample=3).complete
    content = bytearray((tmp_path / "t10k-images-idx3-ubyte").read_bytes())
    content[5000] ^= 1
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(content)
    found = check_data_set("mnist", tmp_path, parts=["test"], sample=3)
    assert [part.state for part in found.parts] == ["complete"]
    assert (found.complete, found.checksums) == (False, "altered")


def test_usps_in_another_layout_is_compared_with_nothing(shared_data):
    found = check_data_set("usps", shared_data / "digits", sample=3)
    assert (found.complete, found.checksums) == (True, "absent")
    assert found.absent == ("usps.bz2", "usps.t.bz2")


def test_the_checksum_of_cifar10_cs_labels_is_that_of_cifar10s_five_times(shared_data, tmp_path):
    with np.load(shared_data / "cifar10" / "labels.npz") as held:
        np.save(tmp_path / "labels.npy", np.tile(held["test"].astype(np.uint8), 5))
    found = check_data_set("cifar10-c", tmp_path, parts=["fog"])
    assert found.verified == ("CIFAR-10-C/labels.npy",)

"""Tar shards: samples by name, labels from .cls and .json, nothing unpacked, nothing lost."""

from __future__ import annotations

import gzip
import json
import pickle
import tarfile

import numpy as np
import pytest
from stored_images import draw_images, encode, write_tar

from shiftcal.datasets.image_files import expand_braces
from shiftcal.datasets.tar import TarImages
from shiftcal.errors import FileError, InputError

IMAGES = draw_images(6)


def sample(i, label=None, *, key=None, ending="png"):
    key = key or f"s{i:04d}"
    made = [(f"{key}.{ending}", encode(IMAGES[i]))]
    return made if label is None else [*made, (f"{key}.cls", str(label).encode())]


def members(*samples):
    return [member for one in samples for member in one]


def test_shards_are_read_in_order_with_their_labels(tmp_path):
    write_tar(tmp_path / "t-000.tar", members(sample(0, 4), sample(1, 0), sample(2, 2)))
    write_tar(tmp_path / "t-001.tar", members(sample(3, 1), sample(4, "3\n")))
    for source in (
        tmp_path,
        tmp_path / "t-{000..001}.tar",
        str(tmp_path / "t-{000,001}.tar"),
        [tmp_path / "t-000.tar", tmp_path / "t-001.tar"],
    ):
        held = TarImages(source)
        assert held.labels.tolist() == [4, 0, 2, 1, 3]
        np.testing.assert_array_equal(held.read(range(5), threads=3).images, IMAGES[:5])
    assert held.ids([0, 4]) == ["t-000.tar/s0000.png", "t-001.tar/s0004.png"]
    assert held.classes is None


def test_a_sample_is_what_shares_the_name_up_to_the_first_dot(tmp_path):
    described = json.dumps({"label": 1, "text": "a car"}).encode()
    write_tar(
        tmp_path / "t.tar",
        [
            ("a.b/x.seg.png", encode(IMAGES[5])),  # ends in "seg.png": another part of the sample
            ("a.b/x.PNG", encode(IMAGES[0])),
            ("a.b/y.json", described),
            ("a.b/x.json", json.dumps({"label": 0}).encode()),
            ("README", b"no dot"),
            (".hidden.png", b"no name before the dot"),
            ("notes.txt", b"no image and no label"),
            ("a.b/y.png", encode(IMAGES[1])),
        ],
    )
    held = TarImages(tmp_path / "t.tar")
    np.testing.assert_array_equal(held.read([0, 1]).images, IMAGES[:2])
    assert held.labels.tolist() == [0, 1]
    assert held.ids([0, 1]) == ["t.tar/a.b/x.PNG", "t.tar/a.b/y.png"]


def test_names_in_the_labels_give_sorted_classes_or_are_looked_up_in_those_given(tmp_path):
    write_tar(tmp_path / "t.tar", members(sample(0, "dog"), sample(1, "cat"), sample(2, "dog")))
    held = TarImages(tmp_path / "t.tar")
    assert held.classes == ("cat", "dog")
    assert held.labels.tolist() == [1, 0, 1]
    assert TarImages(tmp_path / "t.tar", classes=["dog", "cat"]).labels.tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="among the 2 classes; 'cat' is not"):
        TarImages(tmp_path / "t.tar", classes=["dog", "bird"])


def test_other_processes_open_the_shards_themselves(tmp_path):
    write_tar(tmp_path / "t.tar", members(*(sample(i, i) for i in range(6))))
    sent = pickle.dumps(TarImages(tmp_path / "t.tar"))
    assert len(sent) < 2000  # the images alone are 1,782 bytes and their files longer
    np.testing.assert_array_equal(pickle.loads(sent).read(range(6)).images, IMAGES)


def test_absolute_names_and_names_with_dots_are_names_and_nothing_is_written(tmp_path):
    inside = tmp_path / "in"
    inside.mkdir()
    evil = [f"{tmp_path}/evil/x", "../../up/y"]
    write_tar(inside / "t.tar", members(*(sample(i, i, key=key) for i, key in enumerate(evil))))
    held = TarImages(inside / "t.tar")
    np.testing.assert_array_equal(held.read([0, 1]).images, IMAGES[:2])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "t.tar"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, r"plain files; s.png is a link.*tar --dereference"),
        (tarfile.LNKTYPE, "s.png is a link"),
        (tarfile.FIFOTYPE, "s.png is a link or the like"),
        (tarfile.CHRTYPE, "s.png is a link or the like"),
    ],
)
def test_links_and_devices_are_refused(tmp_path, kind, words):
    special = tarfile.TarInfo("s.png")
    special.type, special.linkname = kind, "/etc/passwd"
    write_tar(tmp_path / "t.tar", [*sample(0, 1), special])
    with pytest.raises(FileError, match=words):
        TarImages(tmp_path / "t.tar")


def test_a_tar_cut_anywhere_is_refused(tmp_path):
    file = tmp_path / "t.tar"
    write_tar(file, members(sample(0, 1), sample(1, 0)))
    whole = file.read_bytes()
    with tarfile.open(file) as archive:
        last = archive.getmembers()[-1]
        end = last.offset_data + 512
    for length in [*range(100, end, 300), last.offset, end]:
        file.write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"t\.tar.*cut short"):
            TarImages(file)
    file.write_bytes(whole[: end + 512])
    assert len(TarImages(file)) == 2


def test_a_damaged_header_in_the_middle_does_not_end_the_set_silently(tmp_path):
    file = tmp_path / "t.tar"
    write_tar(file, members(sample(0, 1), sample(1, 0)))
    with tarfile.open(file) as archive:
        where = archive.getmembers()[2].offset
    data = bytearray(file.read_bytes())
    data[where + 3] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(FileError, match=rf"after {where:,} bytes neither the next member nor"):
        TarImages(file)


@pytest.mark.parametrize(
    ("ending", "pack", "words"),
    [
        (".tar.gz", gzip.compress, "is compressed.*only a plain .tar.*Run gunzip"),
        (".tar", gzip.compress, "is compressed"),
        (".tar", lambda data: b"BZh9" + data, "Run bunzip2"),
        (".tar", lambda data: b"\xfd7zXZ\0" + data, "Run unxz"),
        (".tar", lambda data: b"\x28\xb5\x2f\xfd" + data, "Run unzstd"),
        (".tar", lambda _: b"some text" * 200, "could not be read as a tar file"),
        (".tar", lambda _: b"", "could not be read as a tar file"),
    ],
)
def test_what_is_no_plain_tar_file_is_refused_with_what_to_do(tmp_path, ending, pack, words):
    write_tar(tmp_path / "plain.tar", sample(0, 1))
    held = pack((tmp_path / "plain.tar").read_bytes())
    (tmp_path / f"t{ending}").write_bytes(held)
    with pytest.raises(FileError, match=words):
        TarImages(tmp_path / f"t{ending}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([("a.png", b"x"), ("a.jpg", b"y")], "a.jpg is another"),
        ([("a.cls", b"1"), ("a.cls", b"1")], "a.cls is another"),
        ([("a.cls", b"1")], "an image for every label; sample a has none"),
        ([("a.txt", b"1")], "holds no images"),
        ([("a.png", b"x"), ("a.cls", b"\xff\xfe")], "a.cls is not text"),
        ([("a.png", b"x"), ("a.json", b"{")], "a.json is not text or JSON"),
        ([("a.png", b"x"), ("a.json", b"[" * 100_000)], "a.json is not text or JSON"),
        ([("a.png", b"x"), ("a.json", b'{"label": 1.5}')], "whole number or a name; got 1.5"),
        ([("a.png", b"x"), ("a.json", b'{"label": true}')], "whole number or a name; got True"),
        ([("a.png", b"x"), ("a.cls", b"1" * 2_000_000)], "it has 2,000,000 bytes"),
        (
            [("a.png", b"x"), ("a.cls", b"1"), ("b.png", b"x")],
            "all images have a label or none has; 1 of 2 have none, the first of them b.png",
        ),
        (
            [("a.png", b"x"), ("a.cls", b"1"), ("b.png", b"x"), ("b.cls", b"dog")],
            "all numbers or all names; that of b.png is 'dog'",
        ),
    ],
)
def test_samples_that_do_not_add_up_are_refused(tmp_path, content, words):
    write_tar(tmp_path / "t.tar", content)
    with pytest.raises(FileError, match=words):
        TarImages(tmp_path / "t.tar")


def test_damaged_images_are_bad_by_name_and_the_others_are_read(tmp_path):
    good = encode(IMAGES[0])
    content = [("a.png", good), ("b.png", good[:60]), ("c.png", b""), ("d.png", bytes(200))]
    write_tar(tmp_path / "t.tar", content)
    batch = TarImages(tmp_path / "t.tar").read(range(4))
    assert batch.indices.tolist() == [0]
    assert "t.tar/b.png" in batch.bad[1]
    assert "is empty" in batch.bad[2]
    assert "cannot identify" in batch.bad[3]


def test_a_shard_that_shrinks_or_goes_later_is_said(tmp_path):
    file = tmp_path / "t.tar"
    write_tar(file, members(sample(0, 1), sample(1, 0)))
    held = TarImages(file)
    file.write_bytes(file.read_bytes()[:1600])
    assert "has become shorter since" in held.read([1]).bad[1]
    file.unlink()
    assert "t.tar could not be read: No such file" in held.read([0]).bad[0]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a-{08..10}.tar", ["a-08.tar", "a-09.tar", "a-10.tar"]),
        ("{9..11}", ["9", "10", "11"]),
        ("{a,b}{0..1}x", ["a0x", "a1x", "b0x", "b1x"]),
    ],
)
def test_braces_stand_for_what_a_shell_makes_of_them(pattern, expected):
    assert list(expand_braces(pattern)) == expected


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("t-{0..99999999}.tar", "stands for more than 100,000 files"),
        ("t-{0..999}{0..999}.tar", "stands for more than 100,000 files"),
        ("t-{}.tar", r"a range such as \{000..009\} or a list such as \{a,b\}; got \{\}"),
        ("t-{000..001}.tar", "t-001.tar does not exist"),
        ("none.tar", "none.tar does not exist"),
        ("empty", "empty holds no file ending in .tar"),
    ],
)
def test_files_that_are_not_there_are_named(tmp_path, pattern, words):
    write_tar(tmp_path / "t-000.tar", sample(0, 1))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=words):
        TarImages(tmp_path / pattern)

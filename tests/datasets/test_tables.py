"""Images in Parquet files and tar shards."""

from __future__ import annotations

import pickle
import tarfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_images import draw_images, encode, hf_table, write_tar

from shiftcal.datasets.image_files import ParquetImages, TarImages
from shiftcal.errors import FileError

IMAGES = draw_images(10)
LABELS = [2, 0, 1, 1, 0, 2, 2, 0, 1, 0]
NAMES = ["dog", "cat", "bird"]


def write(path, table, rows=3):
    pq.write_table(table, path, row_group_size=rows)
    return path


def plain(images, labels=None, image="image", label="label"):
    columns = {image: pa.array([encode(x) for x in images], pa.binary())}
    if labels is not None:
        columns[label] = pa.array(labels)
    return pa.table(columns)


def test_the_layout_of_hugging_face_is_read_with_its_names_of_classes(tmp_path):
    held = ParquetImages(write(tmp_path / "t.parquet", hf_table(IMAGES, LABELS, NAMES)))
    assert held.classes == ("dog", "cat", "bird")
    assert held.labels.tolist() == LABELS
    np.testing.assert_array_equal(held.read(range(10), threads=3).images, IMAGES)
    np.testing.assert_array_equal(held.read([9, 0, 4]).images, IMAGES[[9, 0, 4]])


def test_a_folder_is_read_in_order_of_names_with_ids_by_file_and_row(tmp_path):
    write(tmp_path / "b.parquet", plain(IMAGES[6:], LABELS[6:]))
    write(tmp_path / "a.parquet", plain(IMAGES[:6], LABELS[:6]), rows=2)
    held = ParquetImages(tmp_path)
    np.testing.assert_array_equal(held.read(range(10)).images, IMAGES)
    assert held.labels.tolist() == LABELS
    assert held.ids([0, 5, 6, 9]) == [
        "a.parquet[0]",
        "a.parquet[5]",
        "b.parquet[0]",
        "b.parquet[3]",
    ]


def test_labels_kept_secret_as_minus_one_are_no_labels(tmp_path):
    held = ParquetImages(write(tmp_path / "t.parquet", hf_table(IMAGES, [-1] * 10, NAMES)))
    assert held.labels is None
    assert held.classes == ("dog", "cat", "bird")


def test_many_threads_read_the_same_pixels(tmp_path):
    held = ParquetImages(write(tmp_path / "t.parquet", plain(IMAGES, LABELS), rows=1))
    order = np.random.default_rng(3).integers(0, 10, 300)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(held._image, order.tolist()))
    np.testing.assert_array_equal(made, IMAGES[order])


def test_other_processes_open_the_files_themselves(tmp_path):
    held = ParquetImages(write(tmp_path / "t.parquet", plain(IMAGES, LABELS)))
    held.read(range(10))
    sent = pickle.dumps(held)
    assert len(sent) < 1500  # the images are 2,970 bytes
    np.testing.assert_array_equal(pickle.loads(sent).read(range(10)).images, IMAGES)


PHOTOS = draw_images(6)


def sample(i, label=None, *, key=None, ending="png"):
    key = key or f"s{i:04d}"
    made = [(f"{key}.{ending}", encode(PHOTOS[i]))]
    return made if label is None else [*made, (f"{key}.cls", str(label).encode())]


def members(*samples):
    return [member for one in samples for member in one]


def test_shards_are_read_in_order_with_their_labels(tmp_path):
    write_tar(tmp_path / "t-000.tar", members(sample(0, 4), sample(1, 0), sample(2, 2)))
    write_tar(tmp_path / "t-001.tar", members(sample(3, 1), sample(4, "3\n")))
    for source in (
        tmp_path,
        [tmp_path / "t-000.tar", tmp_path / "t-001.tar"],
    ):
        held = TarImages(source)
        assert held.labels.tolist() == [4, 0, 2, 1, 3]
        np.testing.assert_array_equal(held.read(range(5), threads=3).images, PHOTOS[:5])
    assert held.ids([0, 4]) == ["t-000.tar/s0000.png", "t-001.tar/s0004.png"]
    assert held.classes is None


def test_a_sample_is_what_shares_the_name_up_to_the_first_dot(tmp_path):
    write_tar(
        tmp_path / "t.tar",
        [
            ("a.b/x.seg.png", encode(PHOTOS[5])),  # another part of the sample
            ("a.b/x.PNG", encode(PHOTOS[0])),
            ("a.b/y.cls", b"1"),
            ("a.b/x.cls", b"0"),
            ("README", b"no dot"),
            (".hidden.png", b"no name before the dot"),
            ("notes.txt", b"no image and no label"),
            ("a.b/y.png", encode(PHOTOS[1])),
        ],
    )
    held = TarImages(tmp_path / "t.tar")
    np.testing.assert_array_equal(held.read([0, 1]).images, PHOTOS[:2])
    assert held.labels.tolist() == [0, 1]
    assert held.ids([0, 1]) == ["t.tar/a.b/x.PNG", "t.tar/a.b/y.png"]


def test_other_processes_open_the_shards_themselves(tmp_path):
    write_tar(tmp_path / "t.tar", members(*(sample(i, i) for i in range(6))))
    sent = pickle.dumps(TarImages(tmp_path / "t.tar"))
    assert len(sent) < 2000  # the images alone are 1,782 bytes and their files longer
    np.testing.assert_array_equal(pickle.loads(sent).read(range(6)).images, PHOTOS)


def test_absolute_names_and_names_with_dots_are_names_and_nothing_is_written(tmp_path):
    inside = tmp_path / "in"
    inside.mkdir()
    evil = [f"{tmp_path}/evil/x", "../../up/y"]
    write_tar(inside / "t.tar", members(*(sample(i, i, key=key) for i, key in enumerate(evil))))
    held = TarImages(inside / "t.tar")
    np.testing.assert_array_equal(held.read([0, 1]).images, PHOTOS[:2])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "t.tar"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, r"plain files; s.png is a link.*tar --dereference"),
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

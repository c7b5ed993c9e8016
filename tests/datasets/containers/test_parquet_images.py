"""Parquet: columns found or named, groups of rows read once, damage said."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_images import draw_images, encode, hf_table

from shiftcal.datasets.parquet import ParquetImages
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


def test_large_binary_and_odd_names_of_columns_are_found_by_type(tmp_path):
    table = pa.table({"jpg": pa.array([encode(x) for x in IMAGES], pa.large_binary())})
    held = ParquetImages(write(tmp_path / "t.parquet", table))
    assert held.labels is None
    np.testing.assert_array_equal(held[7], IMAGES[7])


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


def test_a_damaged_file_is_refused_when_it_is_opened_or_its_rows_are_bad(tmp_path):
    file = write(tmp_path / "t.parquet", plain(IMAGES, LABELS))
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"PAR1", b"", b"text" * 100):
        file.write_bytes(damaged)
        with pytest.raises(FileError, match=r"t.parquet could not be read as a Parquet file"):
            ParquetImages(file)
    file.write_bytes(whole)
    held = ParquetImages(file)
    file.write_bytes(whole[:200])
    assert "could not be read as a Parquet file" in held.read([0]).bad[0]

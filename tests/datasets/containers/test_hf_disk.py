"""Folders that ``save_to_disk`` wrote, by their files alone."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from stored_images import draw_images, hf_table, save_hf

from shiftcal.datasets.tables import HuggingFaceImages
from shiftcal.errors import FileError

IMAGES = draw_images(10)
LABELS = [2, 0, 1, 1, 0, 2, 2, 0, 1, 0]
NAMES = ["dog", "cat", "bird"]


def tables(**options):
    return [
        hf_table(IMAGES[:7], LABELS[:7], NAMES, **options),
        hf_table(IMAGES[7:], LABELS[7:], NAMES, **options),
    ]


@pytest.mark.parametrize("told", [True, False])
def test_images_labels_and_names_come_from_all_files_in_order(tmp_path, told):
    save_hf(tmp_path / "d", tables(told=told), names=NAMES)
    held = HuggingFaceImages(tmp_path / "d")
    assert held.classes == ("dog", "cat", "bird")
    assert held.labels.tolist() == LABELS
    np.testing.assert_array_equal(held.read(range(10), threads=3).images, IMAGES)
    np.testing.assert_array_equal(held.read([8, 6, 2]).images, IMAGES[[8, 6, 2]])


def test_a_split_of_several_is_named(tmp_path):
    save_hf(tmp_path / "d" / "train", tables(), names=NAMES)
    save_hf(tmp_path / "d" / "test", [hf_table(IMAGES[:2], [1, 0], NAMES)], names=NAMES)
    (tmp_path / "d" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    held = HuggingFaceImages(tmp_path / "d", split="test")
    assert held.labels.tolist() == [1, 0]
    with pytest.raises(FileError, match=r"has the splits train, test. Say which: split="):
        HuggingFaceImages(tmp_path / "d")
    with pytest.raises(FileError, match=r"no split 'tests'. Did you mean 'test'"):
        HuggingFaceImages(tmp_path / "d", split="tests")
    (tmp_path / "d" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    assert len(HuggingFaceImages(tmp_path / "d")) == 2


def test_a_split_asked_of_one_data_set_must_be_the_one_it_is(tmp_path):
    save_hf(tmp_path / "d", tables(), names=NAMES, split="train")
    assert len(HuggingFaceImages(tmp_path / "d", split="train")) == 10
    with pytest.raises(FileError, match="not several splits; it is the split 'train'"):
        HuggingFaceImages(tmp_path / "d", split="test")


def test_other_processes_map_the_files_themselves(tmp_path):
    save_hf(tmp_path / "d", tables(), names=NAMES)
    sent = pickle.dumps(HuggingFaceImages(tmp_path / "d"))
    assert len(sent) < 1500  # the images are 2,970 bytes
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.read(range(10), threads=4).images, IMAGES)


def test_folders_that_are_damaged_or_something_else_are_refused(tmp_path):
    folder = tmp_path / "d"
    with pytest.raises(FileError, match="d is not a folder; a folder that save_to_disk wrote"):
        HuggingFaceImages(folder)
    save_hf(folder, tables(), names=NAMES)
    state = (folder / "state.json").read_text()

    def refused(words):
        with pytest.raises(FileError, match=words):
            HuggingFaceImages(folder)

    arrow = folder / "data-00001-of-00002.arrow"
    whole = arrow.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"text" * 50):
        arrow.unlink()  # a file that is mapped must not be cut
        arrow.write_bytes(damaged)
        refused(r"data-00001-of-00002.arrow could not be read as an Arrow file")
    arrow.unlink()
    refused(r"data-00001-of-00002.arrow does not exist, though state.json names it")
    for text, words in {
        "{": "state.json is not JSON",
        "[]": "state.json must hold an object",
        "{}": "must name the files next to it in _data_files",
        '{"_data_files": [{"filename": "../x.arrow"}]}': "must name the files next to it",
        '{"_data_files": [{"filename": 3}]}': "must name the files next to it",
        '{"_indices_data_files": [{"filename": "i.arrow"}]}': r"flatten_indices\(\)",
    }.items():
        (folder / "state.json").write_text(text)
        refused(words)
    (folder / "state.json").unlink()
    refused("holds no state.json")
    assert json.loads(state)["_data_files"]


def test_a_name_of_a_column_that_is_no_text_is_damage(tmp_path):
    save_hf(tmp_path / "d", [hf_table(IMAGES[:2], [0, 1], told=False)])
    arrow = tmp_path / "d" / "data-00000-of-00001.arrow"
    whole = arrow.read_bytes()
    assert whole.count(b"image") == 1
    arrow.unlink()
    arrow.write_bytes(whole.replace(b"image", b"\xdfmage"))
    with pytest.raises(FileError, match="could not be read as saved Arrow tables: it is damaged"):
        HuggingFaceImages(tmp_path / "d")


def test_a_saved_data_set_without_rows_is_refused(tmp_path):
    save_hf(tmp_path / "d", [hf_table(IMAGES[:0], [], NAMES)], names=NAMES)
    with pytest.raises(FileError, match="holds no images: it has no rows"):
        HuggingFaceImages(tmp_path / "d")

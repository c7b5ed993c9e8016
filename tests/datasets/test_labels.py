"""Labels from files, by name and by number, and groups of classes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from exact_model import exact
from stored_images import draw_images, write_images

from shiftcal.datasets import as_image_set, class_groups, grouped
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError, InputError
from shiftcal.scoring import score

FILES = ["cat/a.png", "cat/b.png", "dog/c.png"]


def files(names=FILES):
    return FileImages(".", names, name="three files")


@pytest.mark.parametrize("column", ["file", "path", "id"])
def test_a_table_that_names_the_images_is_joined_by_their_names(tmp_path, column):
    table = tmp_path / "l.csv"
    table.write_text(f"label,{column}\n2,dog/c.png\n9,cow/d.png\n1,cat/b.png\n0,cat/a.png\n")
    assert labels_for(files(), table).tolist() == ["0", "1", "2"]
    assert as_image_set(files(), labels=table).labels.tolist() == [0, 1, 2]


def test_folders_may_be_left_out_where_the_names_tell_the_images_apart(tmp_path):
    table = tmp_path / "l.csv"
    table.write_text("file,label\nc.png,2\nx.png,7\n/data/old/b.png,1\n.\\cat\\a.png,0\n")
    assert labels_for(files(), table).tolist() == ["0", "1", "2"]
    table.write_text("file,label\na.png,2\nb.png,7\n")
    with pytest.raises(FileError, match=r"several are called 'a.png'"):
        labels_for(files(["cat/a.png", "dog/a.png", "dog/b.png"]), table)
    table.write_text("file,label\n1/a.png,0\n2/a.png,5\n1/b.png,1\n1/c.png,2\n")
    with pytest.raises(FileError, match=r"it has 'a.png' twice, as 0 and 5"):
        labels_for(files(), table)
    table.write_text("file,label\ncat/a.png,0\ndog/b.png,1\nold/c.png,1\n")
    # One is found by its whole name, so that dog/b.png is another image than cat/b.png.
    with pytest.raises(FileError, match=r"2 of 3 have no label here.* 'cat/b.png'"):
        labels_for(files(), table)


def test_labels_in_order_must_be_as_many_as_the_images(tmp_path):
    (tmp_path / "l.csv").write_text("label\n1\n0\n")
    np.save(tmp_path / "l.npy", np.arange(4))
    with pytest.raises(FileError, match=r"for every image of three files, 3 in order; it has 2"):
        labels_for(files(), tmp_path / "l.csv")
    with pytest.raises(FileError, match=r"3 in order; it has 4\. A column 'file'"):
        as_image_set(files(), labels=tmp_path / "l.npy")


@pytest.fixture
def folder(tmp_path):
    """Two classes, of a model's four."""
    write_images(
        tmp_path / "images", draw_images(3, 12, 10), ["cat/0.png", "cat/1.png", "dog/0.png"]
    )
    return tmp_path / "images"


@pytest.mark.parametrize("kind", ["txt", "csv", "npy"])
def test_columns_from_a_file_take_the_place_of_the_folders_names(folder, kind):
    file = folder.parent / f"labels.{kind}"
    if kind == "npy":
        np.save(file, [3, 3, 1])
    else:
        file.write_text(("label\n" if kind == "csv" else "") + "3\n3\n1\n")
    images = as_image_set(folder, labels=file)
    assert images.labels.tolist() == [3, 3, 1]
    assert images.classes is None
    for given in (file, [3, 3, 1]):
        assert score(exact(), folder, given).labels.tolist() == [3, 3, 1]


def test_names_stay_where_labels_are_names_or_names_are_given(folder):
    assert as_image_set(folder, labels=["dog", "cat", "dog"]).classes == ("cat", "dog")
    named = as_image_set(folder, labels=[2, 0, 1], classes=["a", "b", "c"])
    assert named.classes == ("a", "b", "c")
    with pytest.raises(InputError, match="'cow' is not"):
        as_image_set(folder, labels=["dog", "cow", "dog"])
    assert as_image_set(folder).relabelled(None).classes == ("cat", "dog")


def test_text_that_is_the_name_of_a_class_is_no_number():
    held = ArrayImages(draw_images(3), labels=[0, 1, 2], classes=["10", "7", "2"])
    other = held.relabelled(["2", "2", "10"])
    assert other.labels.tolist() == [2, 2, 0]
    assert other.classes == ("10", "7", "2")
    assert held.relabelled([1, 1, 0]).classes is None


GROUPS = {"pet": [3, 5], "car": (9,), "bird": np.array([2])}


def images(labels, **options):
    return as_image_set(draw_images(len(labels)), labels=labels, **options)


def test_images_of_no_group_are_left_out_and_the_others_labelled_by_group():
    whole = images([9, 0, 5, 2, 3, 9])
    made = grouped(whole, GROUPS)
    assert made.classes == ("pet", "car", "bird")
    assert made.labels.tolist() == [1, 0, 2, 0, 1]
    assert made.ids(range(5)) == ["0", "2", "3", "4", "5"]
    np.testing.assert_array_equal(made[1], whole[2])
    assert made.name == "5 of images"
    assert grouped(whole, GROUPS, name="few").name == "few"
    assert whole.labels.tolist() == [9, 0, 5, 2, 3, 9]
    assert whole.classes is None
    assert pickle.loads(pickle.dumps(made)).labels.tolist() == made.labels.tolist()


def test_images_that_cannot_be_grouped_are_refused():
    with pytest.raises(InputError, match="images must have labels to be grouped by; it has none"):
        grouped(as_image_set(draw_images(2)), GROUPS)
    with pytest.raises(InputError, match="must have images of the groups, pet, car, bird"):
        grouped(images([0, 1]), GROUPS)
    with pytest.raises(InputError, match="'car' must be from 0 to 5"):
        grouped(images([0, 1], classes=list("abcdef")), GROUPS)


def test_the_sixteen_groups_have_the_published_sizes():
    groups = class_groups("imagenet16")
    assert list(groups) == sorted(groups)
    sizes = [1, 4, 2, 49, 5, 7, 3, 6, 4, 3, 109, 2, 2, 1, 1, 8]  # airplane to truck
    assert [len(members) for members in groups.values()] == sizes
    members = [one for group in groups.values() for one in group]
    assert len(set(members)) == len(members) == 207
    assert all(list(group) == sorted(group) for group in groups.values())
    # ImageNet's dogs are 151 to 268, its birds 7 to 24, 80 to 100 and 127 to 146.
    assert set(groups["dog"]) <= set(range(151, 269))
    assert set(groups["bird"]) <= {*range(7, 25), *range(80, 101), *range(127, 147)}

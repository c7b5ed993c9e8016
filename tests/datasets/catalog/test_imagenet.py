"""ImageNet's validation images: class folders, lists of labels, the development kit."""

from __future__ import annotations

import numpy as np
import pytest
from imagenet_copies import WNIDS, write_class_index, write_image, write_meta

from shiftcal.datasets.catalog.imagenet import imagenet
from shiftcal.errors import FileError

# Neither of these is 0 and 1, as sorting the two alone would have it.
LOW, HIGH = WNIDS[7], WNIDS[421]
TRUTH = "ILSVRC2012_validation_ground_truth.txt"


def flat(n):
    return [f"ILSVRC2012_val_{i:08d}.JPEG" for i in range(1, n + 1)]


@pytest.fixture
def two_classes(tmp_path):
    write_image(tmp_path / "val" / HIGH / "ILSVRC2012_val_00000001.JPEG", 10)
    write_image(tmp_path / "val" / LOW / "ILSVRC2012_val_00000002.JPEG", 20)
    write_image(tmp_path / "val" / HIGH / "ILSVRC2012_val_00000003.JPEG", 30)
    return tmp_path


@pytest.fixture
def together(tmp_path):
    """Four images without class folders."""
    for value, name in enumerate(flat(4)):
        write_image(tmp_path / "val" / name, 40 * value)
    return tmp_path


def test_some_class_folders_get_their_index_among_all_classes(two_classes):
    write_class_index(two_classes / "imagenet_class_index.json")
    images = imagenet(two_classes)
    assert images.ids(range(3)) == [
        f"{LOW}/ILSVRC2012_val_00000002.JPEG",
        f"{HIGH}/ILSVRC2012_val_00000001.JPEG",
        f"{HIGH}/ILSVRC2012_val_00000003.JPEG",
    ]
    assert images.labels.tolist() == [7, 421, 421]
    assert images.classes == tuple(WNIDS)
    # JPEG of a flat image of quality 95 is off by at most one or two levels.
    assert [abs(int(images[i].mean()) - value) <= 2 for i, value in enumerate([20, 10, 30])]


@pytest.mark.parametrize("name", ["synset_words.txt", "LOC_synset_mapping.txt", "synsets.txt"])
def test_a_text_of_all_classes_in_any_order_serves_as_well(two_classes, name):
    lines = [f"{wnid} some, words" for wnid in reversed(WNIDS)]
    (two_classes / "val" / name).write_text("\n".join(lines))
    assert imagenet(two_classes).labels.tolist() == [7, 421, 421]


def test_the_list_of_classes_may_be_given_or_be_the_kits(two_classes, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("kit")
    write_meta(elsewhere / "meta.mat", WNIDS[::-1])
    images = imagenet(two_classes / "val", class_index=elsewhere / "meta.mat")
    assert images.labels.tolist() == [7, 421, 421]


def test_some_class_folders_without_a_list_are_refused(two_classes):
    with pytest.raises(FileError, match=r"has 2 of ImageNet's 1,000 classes.*class_index"):
        imagenet(two_classes)


def test_all_class_folders_need_no_list(two_classes):
    for wnid in WNIDS:
        (two_classes / "val" / wnid).mkdir(exist_ok=True)
    assert imagenet(two_classes / "val").labels.tolist() == [7, 421, 421]


def test_numbers_of_the_kit_are_taken_through_its_table_to_sorted_wnids(together):
    kit = together / "ILSVRC2012_devkit_t12" / "data"
    # The kit's numbers run the other way: number 1 is the last wnid, number 1,000 the first.
    write_meta(kit / "meta.mat", WNIDS[::-1])
    (kit / TRUTH).write_text("1\n1000\n579\n2\n490\n")
    images = imagenet(together)
    assert images.labels.tolist() == [999, 0, 421, 998]
    assert images.classes == tuple(WNIDS)
    (together / "val" / flat(4)[1]).unlink()
    assert imagenet(together).labels.tolist() == [999, 421, 998]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.csv", "file,label\n{0},65\n{1},970\n{2},0\n{3},999\n"),
        ("labels.csv", "{3},999\n{0},65\n{2},0\n{1},970\nILSVRC2012_val_00000099.JPEG,3\n"),
        ("val.txt", "{0} 65\n{1} 970\n{2} 0\n{3} 999\n"),
        ("labels.txt", "\ufeff{0}\t65\r\n{1}\t970\r\n{2}\t0\r\n{3}\t999"),
        ("labels.csv", '"{0}","65"\n"{1}","970"\n"{2}","0"\n"{3}","999"\n'),
    ],
)
def test_a_list_of_files_and_indices_gives_the_labels(together, name, text):
    (together / name).write_text(text.format(*flat(4)), "utf-8")
    images = imagenet(together)
    assert images.labels.tolist() == [65, 970, 0, 999]
    assert images.classes is None
    write_class_index(together / "imagenet_class_index.json")
    assert imagenet(together).classes[970] == WNIDS[970]


def test_the_list_of_the_kaggle_layout_gives_wnids_and_boxes(tmp_path):
    root = tmp_path / "kaggle"
    for name in flat(2):
        write_image(root / "ILSVRC/Data/CLS-LOC/val" / name, 5)
    (root / "LOC_synset_mapping.txt").write_text("\n".join(f"{wnid} name" for wnid in WNIDS))
    (root / "LOC_val_solution.csv").write_text(
        "ImageId,PredictionString\n"
        f"ILSVRC2012_val_00000002,{LOW} 85 1 499 272 \n"
        f"ILSVRC2012_val_00000001,{HIGH} 131 0 499 254 {HIGH} 1 2 3 4\n"
    )
    assert imagenet(root).labels.tolist() == [421, 7]


def test_a_list_in_the_root_is_taken_before_one_beside_it(together):
    (together / "labels.csv").write_text("".join(f"{name},1\n" for name in flat(4)))
    root = together / "inner"
    (together / "val").rename(root)
    assert imagenet(root).labels.tolist() == [1] * 4
    (root / "labels.csv").write_text("".join(f"{name},2\n" for name in flat(4)))
    assert imagenet(root).labels.tolist() == [2] * 4


def test_real_images_with_their_list_load(shared_data):
    images = imagenet(shared_data / "imagenet-val-2000")
    assert np.bincount(images.labels).tolist() == [2] * 1000
    assert images.ids([0]) == ["ILSVRC2012_val_00000001.jpg"]
    assert (images.labels[0], images.classes[0]) == (65, "n01440764")
    assert images.classes[65] == "n01751748"  # the sea snake that the set begins with
    assert images.read([0, 1999]).images.shape == (2, 256, 256, 3)

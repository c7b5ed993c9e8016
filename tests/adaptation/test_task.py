"""Tasks: what must hold of two domains, and the four parts of them."""

from __future__ import annotations

import numpy as np
import pytest
from two_domains import CLASSES, domains, drawn

from shiftcal.adaptation.task import Task
from shiftcal.datasets import as_image_set, source_split, target_split
from shiftcal.errors import InputError

IMAGES, LABELS = drawn(30)


def of(labels=LABELS, classes=CLASSES, name="domain"):
    made = as_image_set(IMAGES, labels=labels, classes=classes)
    made.name = name
    return made


def test_the_parts_are_the_papers_and_come_from_the_seed():
    task = Task(*domains(50))
    parts = task.split(3)
    assert [len(part) for part in vars(parts).values()] == [40, 10, 25, 25]
    for first, second in ((parts.train, parts.calibration), (parts.seen, parts.held_out)):
        np.testing.assert_array_equal(np.sort(np.concatenate([first, second])), np.arange(50))
    np.testing.assert_array_equal(parts.train, source_split(task.source.labels, seed=3)[0])
    np.testing.assert_array_equal(parts.seen, target_split(50, seed=3)[0])
    other = task.split(4)
    assert (other.train != parts.train).any()
    assert (other.seen != parts.seen).any()


def test_labels_of_the_target_decide_no_part():
    source, target = domains(50)
    bare = Task(source, target.relabelled(None)).split(1)
    for name, part in vars(Task(source, target).split(1)).items():
        np.testing.assert_array_equal(part, getattr(bare, name))


def test_a_target_without_labels_has_the_names_of_the_source():
    source, target = domains(30)
    task = Task(source, as_image_set(IMAGES))
    assert (task.classes, task.n_classes) == (CLASSES, 3)
    assert Task(source, target.relabelled(None)).n_classes == 3


def test_without_names_the_labels_of_the_source_tell_how_many_classes_there_are():
    source = as_image_set(IMAGES, labels=LABELS)
    task = Task(source, as_image_set(IMAGES))
    assert (task.classes, task.n_classes) == (None, 3)
    with pytest.raises(InputError, match=r"labels of .* must be from 0 to 2, .* got 5"):
        Task(source, as_image_set(IMAGES, labels=np.where(LABELS == 2, 5, LABELS)))


def test_a_source_without_labels_is_refused():
    with pytest.raises(InputError, match="domain has no labels, and what a network learns from"):
        Task(of(None, None), of())


@pytest.mark.parametrize(
    ("classes", "told"),
    [
        (("ant", "cat", "bee"), "class 1 is 'bee' in the one and 'cat' in the other"),
        (("ant", "bee", "dog"), "it lacks 'cat' and it has 'dog', which the source has not"),
        (("ant", "bee", "cat", "dog"), "it has 'dog', which the source has not"),
        (
            ("a", "b", "c", "d", "e"),
            "it lacks 'ant', 'bee', 'cat' and it has 'a', 'b', 'c' and 2 more, which",
        ),
    ],
)
def test_classes_must_agree_by_name_and_order(classes, told):
    with pytest.raises(InputError, match="photos must have the classes of domain") as raised:
        Task(of(), of(classes=classes, name="photos"))
    assert told in str(raised.value)


def test_one_class_is_too_few():
    with pytest.raises(InputError, match="must have two classes or more"):
        Task(as_image_set(IMAGES, labels=np.zeros(30, int)), as_image_set(IMAGES))


@pytest.mark.parametrize(
    ("n_source", "n_target", "told"),
    [
        (2, 30, r"photos must have at least 3 images, .* calibrated on; it has 2\. Take more"),
        (30, 1, r"sketches must have at least 2 images, .* held out; it has 1\. Take more"),
    ],
)
def test_too_few_images_are_told(n_source, n_target, told):
    source = of().subset(np.arange(n_source), name="photos")
    task = Task(source, of().subset(np.arange(n_target), name="sketches"))
    with pytest.raises(InputError, match=told):
        task.split()


def test_as_few_images_as_are_asked_for_are_enough():
    source = as_image_set(IMAGES[:3], labels=LABELS[:3])
    parts = Task(source, as_image_set(IMAGES[:2])).split()
    assert [len(part) for part in vars(parts).values()] == [2, 1, 1, 1]

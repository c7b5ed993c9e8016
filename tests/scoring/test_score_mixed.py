"""Scores of mixed images."""

from __future__ import annotations

import numpy as np
import pytest
from exact_model import Exact, exact, labelled, logits_of
from stored_images import write_images

from shiftcal import Scores
from shiftcal.errors import InputError, InputWarning
from shiftcal.scoring import score, score_mixed

IMAGES, _ = labelled(60, seed=6)
PREDICTED = logits_of(IMAGES).argmax(axis=1)


def by_hand(seed=0, ratio=0.65):
    """Every mixture, from the published recipe."""
    partner = np.random.default_rng(seed).permutation(len(IMAGES))
    kept = PREDICTED[partner] != PREDICTED
    a, b = IMAGES[kept].astype(np.float32), IMAGES[partner[kept]].astype(np.float32)
    mixed = np.rint(np.float32(ratio) * a + np.float32(1 - ratio) * b).astype(np.uint8)
    return logits_of(mixed), PREDICTED[kept]


@pytest.mark.parametrize(("seed", "ratio"), [(0, 0.65), (5, 0.8)])
def test_the_mixtures_go_through_the_model_with_the_predictions_as_labels(seed, ratio):
    found = score_mixed(exact(), IMAGES, seed=seed, ratio=ratio)
    logits, labels = by_hand(seed, ratio)
    np.testing.assert_array_equal(found.values, logits)
    np.testing.assert_array_equal(found.labels, labels)
    assert 10 < found.n < 60


def test_scores_that_are_given_save_the_first_pass():
    model = exact()
    known = score(model, IMAGES)
    model.function.calls.clear()
    found = score_mixed(model, IMAGES, known)
    assert model.function.seen == found.n
    np.testing.assert_array_equal(found.values, by_hand()[0])
    both = Exact()
    score_mixed(exact(both), IMAGES)
    assert both.seen == found.n + 60


def test_images_that_cannot_be_read_are_mixed_with_nobody(tmp_path):
    names = [f"{i:02}.png" for i in range(60)]
    write_images(tmp_path, IMAGES, names)
    (tmp_path / "07.png").write_bytes(b"no image")
    files = [str(tmp_path / name) for name in names]
    with pytest.warns(InputWarning, match="left out 1 of 60"):
        found = score_mixed(exact(), files)
    assert len(found.ids) == found.n
    parts = {part for name in found.ids for part in name.split("+")}
    assert not any(part.endswith("07.png") for part in parts)
    firsts = [int(name.split("+")[0].removesuffix(".png")[-2:]) for name in found.ids]
    np.testing.assert_array_equal(found.labels, PREDICTED[firsts])


def test_scores_of_other_images_are_refused():
    with pytest.raises(InputError, match=r"60 images, 59 rows\. Leave images that"):
        score_mixed(exact(), IMAGES, Scores(logits_of(IMAGES[1:])))
    named = Scores(logits_of(IMAGES[1:]), ids=np.array([f"x{i}" for i in range(59)]))
    with pytest.raises(InputError, match="59 rows of other ids"):
        score_mixed(exact(), IMAGES, named)
    with pytest.raises(InputError, match=r"must be Scores of the images.*got ndarray"):
        score_mixed(exact(), IMAGES, logits_of(IMAGES))


def test_a_model_that_sees_one_class_everywhere_is_told_of():
    model = exact(lambda batch: np.tile(np.float32([0, 5, 0, 0]), (len(batch), 1)))
    with pytest.raises(InputError, match=r"of different classes to be mixed.*no pair is"):
        score_mixed(model, IMAGES)

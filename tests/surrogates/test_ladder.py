"""Ladders whose steps are even in accuracy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import shiftcal as sc
from shiftcal.corruptions import Custom, Strengths
from shiftcal.errors import FitWarning, InputError
from shiftcal.models import Preprocessing, as_model
from shiftcal.surrogates import even_ladder

PLAIN = Preprocessing(layout="nhwc", dtype="uint8")


def first_channel(batch):
    return batch[..., 0].reshape(len(batch), -1)


@functools.cache
def digits():
    """A classifier of digits, and digits it has not seen."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8) * 15.9).astype(np.uint8)
    fitted = LogisticRegression(C=0.01, max_iter=300).fit(
        first_channel(images[:600, ..., None]), labels[:600]
    )
    return as_model(fitted, features=first_channel, preprocessing=PLAIN), images[600:], labels[600:]


# Means of the digits, as a model that is quickly asked.
PIXELS, CLASSES = load_digits(return_X_y=True)
WEIGHTS = np.stack([PIXELS[k == CLASSES].mean(axis=0) - PIXELS.mean(axis=0) for k in range(10)], 1)

# Grey images of value 0 to 199, and a model that says "dark" below 200: brightness b leaves it an
# accuracy of 1 - 255 b / 200.
GREY = np.broadcast_to(np.arange(200, dtype=np.uint8)[:, None, None, None], (200, 8, 8, 3)).copy()
DARK = np.zeros(200, int)


def is_dark(batch):
    value = batch[:, 4, 4, 0].astype(np.float32)
    return np.stack([199.5 - value, np.zeros_like(value)], axis=1)


def test_strengths_of_a_straight_line_are_those_of_its_formula():
    model = as_model(is_dark, raw=True)
    ladder = even_ladder(model, GREY, DARK, corruption="brightness", levels=5, tolerance=0.02)
    assert [rung.wanted for rung in ladder.table] == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5])
    for rung in ladder.table[1:]:
        # a step of grey is half a percent of the images
        assert rung.accuracy == pytest.approx(1 - 255 * rung.strength / 200, abs=0.01)
        assert rung.accuracy == pytest.approx(rung.wanted, abs=0.02)


def test_accuracies_of_a_real_model_fall_in_even_steps_and_are_those_of_the_bank():
    model, images, labels = digits()
    ladder = even_ladder(model, images, labels, corruption="impulse_noise", levels=5)
    clean, *steps = ladder.table
    assert (clean.severity, clean.strength) == (0, None)
    assert clean.accuracy > 0.85
    wanted = np.linspace(clean.accuracy, 0.1, 6)
    np.testing.assert_allclose([step.wanted for step in steps], wanted[1:])
    bank = sc.SurrogateBank.synthesize(model, images, labels, corruption=ladder.corruption)
    found = [np.mean(s.logits.argmax(axis=1) == s.labels) for s in bank]
    assert found == [rung.accuracy for rung in ladder.table]
    # the tolerance, and two standard errors of the difference between two draws of noise
    np.testing.assert_allclose(found[1:], [step.wanted for step in steps], atol=0.03 + 0.03)
    assert isinstance(ladder.corruption, Strengths)
    assert ladder.corruption.name == "impulse_noise_even"
    assert [step.strength for step in steps] == [s for (s,) in ladder.corruption.strengths]
    assert np.all(np.diff([step.strength for step in steps]) > 0)
    assert len(ladder.tried) <= 5 * 6
    # where nothing is recognised any more, not the strongest noise there is
    assert steps[-1].strength < 0.97
    assert sc.STS().fit(bank).map_.temperature_ > sc.TS().fit(bank).map_.temperature_


def test_a_cache_saves_the_bank_the_scoring(tmp_path):
    _, images, labels = digits()

    class Counted:
        seen = 0

        def __call__(self, batch):
            self.seen += len(batch)
            return first_channel(batch) @ WEIGHTS

    counted = Counted()
    model = as_model(counted, raw=True, key="counted", batch_size=512)
    ladder = even_ladder(model, images[:300], labels[:300], levels=2, floor=0.4, cache=tmp_path)
    counted.seen = 0
    sc.SurrogateBank.synthesize(
        model, images[:300], labels[:300], corruption=ladder.corruption, cache=tmp_path
    )
    assert counted.seen == 0


def test_a_floor_out_of_reach_is_told_of_and_the_steps_end_above_it():
    model, images, labels = digits()
    with pytest.warns(FitWarning, match=r"setting, 1, leaves.*above the floor of 0\.1") as caught:
        ladder = even_ladder(model, images, labels, corruption="shot_noise", levels=3)
    assert [warning.filename for warning in caught] == [__file__]
    lowest = dict(ladder.tried)[1]
    assert lowest > 0.13
    expected = np.linspace(ladder.table[0].accuracy, lowest, 4)
    np.testing.assert_allclose([rung.wanted for rung in ladder.table], expected)
    # smaller numbers are the stronger shot noise
    assert np.all(np.diff([rung.strength for rung in ladder.table[1:]]) < 0)


def test_accuracies_between_two_settings_are_told_of_and_no_setting_is_taken_twice():
    model, images, labels = digits()  # 8 pixels have few sizes below them
    with pytest.warns(FitWarning, match=r"no strength has an accuracy within 0\.03 of") as caught:
        ladder = even_ladder(model, images, labels, corruption="pixelate")
    assert [warning.filename for warning in caught] == [__file__]
    strengths = [rung.strength for rung in ladder.table[1:]]
    assert strengths == sorted(set(strengths), reverse=True)
    assert [rung.severity for rung in ladder.table] == list(range(len(strengths) + 1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": 0}, "levels must be a whole number"),
        ({"tolerance": 0}, "tolerance must lie strictly between 0 and 1"),
        ({"floor": 1.5}, "floor must lie strictly between 0 and 1"),
        ({"name": "pixelate"}, "name must not be that of a published corruption"),
        ({"corruption": "fog"}, r"fog takes 3\. Take one of brightness, contrast, gaussian_blur"),
        ({"corruption": Custom(lambda image: image, name="own")}, r"is none\. Take one of"),
        ({"corruption": "contrast"}, "must cost the model accuracy"),  # flat images have none
        ({"corruption": "brightness", "floor": 0.98}, r"better than the floor, 0\.98, .*is 1\."),
    ],
)
def test_settings_that_cannot_be_used_raise(options, words):
    with pytest.raises(InputError, match=words):
        even_ladder(as_model(is_dark, raw=True), GREY, DARK, **options)

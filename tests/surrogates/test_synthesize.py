"""Banks made of a model and images, against the same steps done by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exact_model import exact, features_of, labelled, logits_of
from onnx_resnet import mean_colour_onnx
from stored_images import write_images

from shiftcal import SurrogateBank, corrupt
from shiftcal.errors import InputError, InputWarning
from shiftcal.models import Preprocessing, as_model
from shiftcal.surrogates.build import Options, conditions_of, synthesize_in_memory

IMAGES, LABELS = labelled(20, seed=8, size=(32, 32))


def made(model=None, images=IMAGES, labels=LABELS, *, corruption, severities=None, **options):
    conditions = conditions_of(corruption, severities)
    return synthesize_in_memory(
        model or exact(), images, labels, conditions, options=Options(shard_size=8, **options)
    )


@pytest.mark.parametrize("seed", [0, 12345678901234567890])
def test_every_set_is_the_corrupted_images_through_the_model(seed):
    names = ["gaussian_noise", "pixelate", "motion_blur", "jpeg_compression"]
    model = exact()
    bank = SurrogateBank.synthesize(
        model, IMAGES, LABELS, corruption=names, severities=(1, 4), seed=seed
    )
    assert [(s.corruption, s.severity) for s in bank] == [
        (None, 0), *((name, severity) for name in names for severity in (1, 4)),
    ]  # fmt: skip
    np.testing.assert_array_equal(bank.clean.logits, model.logits(IMAGES))
    for each in bank.sets[1:]:
        images = corrupt(IMAGES, each.corruption, severity=each.severity, seed=seed)
        np.testing.assert_array_equal(each.logits, model.logits(images))
        np.testing.assert_array_equal(each.labels, LABELS)
        assert each.name == f"{each.corruption}, severity {each.severity}"


def test_a_table_can_be_named():
    bank = made(corruption="pixelate", severities=3, table="imagenet")
    by_hand = logits_of(corrupt(IMAGES, "pixelate", severity=3, table="imagenet"))
    np.testing.assert_array_equal(bank[1].logits, by_hand)
    assert not np.array_equal(
        by_hand, logits_of(corrupt(IMAGES, "pixelate", severity=3, table="cifar"))
    )


def test_a_function_of_ones_own_is_applied_with_its_random_numbers():
    def speckled(image, severity, rng):
        image[rng.random(image.shape[:2]) < 0.1 * severity] = 255
        return image

    bank = made(corruption=speckled, seed=3)
    assert len(bank) == 6
    for each in bank.sets[1:]:
        images = corrupt(IMAGES, speckled, severity=each.severity, seed=3)
        np.testing.assert_array_equal(each.logits, logits_of(images))


def test_images_are_framed_before_they_are_corrupted_and_made_numbers_after():
    file = mean_colour_onnx(["n", 3, 24, 24])
    steps = Preprocessing(crop=24, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    model = as_model(file, preprocessing=steps, batch_size=8)
    bank = made(model, labels=LABELS % 3, corruption="gaussian_noise", severities=5, seed=1)
    noisy = corrupt(IMAGES[:, 4:28, 4:28], "gaussian_noise", severity=5, seed=1)
    plain = as_model(
        file, preprocessing=Preprocessing(mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7)), batch_size=8
    )
    np.testing.assert_array_equal(bank[1].logits, plain.logits(noisy))


def test_only_the_clean_set_has_features():
    model = exact(lambda batch: (logits_of(batch), features_of(batch)))
    bank = made(model, corruption="pixelate", severities=(1, 2))
    np.testing.assert_array_equal(bank.clean.features, features_of(IMAGES))
    assert [s.features for s in bank.sets[1:]] == [None, None]


def test_every_set_has_features_where_all_are_wanted():
    model = exact(lambda batch: (logits_of(batch), features_of(batch)))
    bank = made(model, corruption=["pixelate", "gaussian_noise"], severities=(1, 2), features="all")
    np.testing.assert_array_equal(bank.clean.features, features_of(IMAGES))
    for each in bank.sets[1:]:
        images = corrupt(IMAGES, each.corruption, severity=each.severity)
        np.testing.assert_array_equal(each.features, features_of(images))
        np.testing.assert_array_equal(each.logits, logits_of(images))


def test_sets_with_features_and_without_do_not_share_a_cache(tmp_path):
    def model():
        return exact(lambda batch: (logits_of(batch), features_of(batch)))

    for features, expected in (("clean", (1, 0)), ("all", (1, 1)), ("none", (0, 0))):
        bank = made(
            model(), corruption="fog", severities=3, features=features, cache=tmp_path / "cache"
        )
        assert [int(s.features is not None) for s in bank] == list(expected)


def test_an_unknown_choice_of_features_is_refused_before_the_model_runs():
    model = exact()
    with pytest.raises(InputError, match=r"features must be one of 'clean', 'all', 'none'; got 'x"):
        SurrogateBank.synthesize(model, IMAGES, LABELS, features="x")
    assert model.function.seen == 0


def test_the_origin_can_be_written_as_json_and_says_everything():
    bank = made(corruption="pixelate", severities=1, seed=9, table="cifar")
    told = json.loads(json.dumps(bank.origin))
    assert told == bank.origin
    assert (told["seed"], told["table"], told["left_out"]) == (9, "cifar", [])
    assert (told["n_classes"], told["shard_size"]) == (4, 8)
    assert told["model"]["fingerprint"] == exact().fingerprint


def test_classes_are_matched_by_name(tmp_path):
    write_images(tmp_path, IMAGES, [f"{'ab'[i // 10]}/{i:02d}.png" for i in range(20)])
    bank = made(
        exact(classes=["x", "b", "y", "a"]), str(tmp_path), None, corruption="fog", severities=1
    )
    assert bank.classes == ("x", "b", "y", "a")
    assert bank[1].labels.tolist() == [3] * 10 + [1] * 10


def test_images_left_out_are_left_out_of_every_set_and_keep_the_numbers_of_the_others(tmp_path):
    write_images(tmp_path, IMAGES, [f"{'ab'[i // 10]}/{i:02d}.png" for i in range(20)])
    (tmp_path / "a" / "05.png").write_bytes(b"\x89PNG gone")
    model = exact(classes=["a", "b", "c", "d"])
    with pytest.warns(InputWarning, match=r"left out 1 of 20 images: .*05\.png"):
        bank = made(model, str(tmp_path), None, corruption="gaussian_noise", severities=3)
    good = np.delete(np.arange(20), 5)
    noisy = corrupt(IMAGES, "gaussian_noise", severity=3)
    np.testing.assert_array_equal(bank.clean.logits, logits_of(IMAGES[good]))
    np.testing.assert_array_equal(bank[1].logits, logits_of(noisy[good]))
    assert [bad["id"] for bad in bank.origin["left_out"]] == ["a/05.png"]


def test_a_failing_model_is_named_with_the_condition():
    def fails(batch):
        z = logits_of(batch)
        z[0, 0] = np.nan if len(batch) == 4 else z[0, 0]
        return z

    with pytest.raises(InputError, match=r"images, clean: .*16"):
        made(exact(fails), corruption="pixelate", severities=1)

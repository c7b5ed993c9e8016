"""The model and the images of a plan: what is there, what is not, what is damaged."""

from __future__ import annotations

import numpy as np
import pytest
from toy_study import ALL, CLASSES, SPEC, N, toy_plan

from shiftcal import datasets
from shiftcal.errors import FileError, InputError, InputWarning, MissingData
from shiftcal.studies.plan.plan import NaturalSet
from shiftcal.studies.stages.sources import check_made, open_sources

DAMAGED = {
    "onnx": ("onnx:{}", "net.onnx"),
    "cifar-resnet": ("cifar-resnet:20?weights={}", "weights.th"),
    "safetensors": ("cifar-resnet:20?weights={}", "weights.safetensors"),
    "torchscript": ("torchscript:{}", "net.pt"),
    "export": ("export:{}", "net.pt2"),
    "sklearn": ("sklearn:{}", "net.skops"),
}


def natural(data, name="natural", **changes):
    told = {"images": (str(data / f"{name}.npy"),), "labels": str(data / f"{name}-labels.npy")}
    return NaturalSet(name, name.title(), **{**told, **changes})


def test_the_first_alternative_that_is_there_is_used_and_written_down(data, tmp_path):
    there = str(data / "test.npy")
    plan = toy_plan(
        data,
        methods=ALL,
        model__spec=(f"onnx:{tmp_path}/none.onnx", SPEC, "python:toy_study:nothing"),
        data__images=(f"cifar10:{tmp_path}?split=test", str(tmp_path / "none.npy"), there, "later"),
        data__train=(f"folder:{tmp_path}/none", str(data / "train.npy")),
        shifts__sets=(natural(data, images=("nowhere.npy", str(data / "natural.npy"))),),
    )
    sources = open_sources(plan)
    assert sources.plan.model.spec == (SPEC,)
    assert sources.plan.data.images == (there,)
    assert sources.plan.data.train == (str(data / "train.npy"),)
    assert sources.plan.shifts.sets[0].images == (str(data / "natural.npy"),)
    assert len(sources.images) == N
    assert len(sources.train) == 90
    assert len(sources.sets["natural"]) == 45
    assert sources.missing == ()


def test_all_that_is_missing_is_named_at_once_with_where_to_get_it(data, tmp_path):
    plan = toy_plan(
        data,
        methods=ALL,
        model__spec=("onnx:/none/net.onnx",),
        data__images=("/none/images", "cifar10:/none"),
        data__train=("/none/train",),
        data__fetch="get the images here",
        shifts__sets=(
            natural(data, images=("/none/a",), fetch="get a there"),
            natural(data, name="other", images=("/none/b",), fetch="get b there"),
        ),
    )
    with pytest.raises(MissingData) as caught:
        open_sources(plan)
    said = str(caught.value)
    for words in (
        *("/none/net.onnx", "/none/images", "cifar10:/none", "/none/train", "/none/a", "/none/b"),
        *("get the images here", "get a there", "get b there", "CPCS, TRANSCAL"),
        *("Natural", "Other", "--skip-missing", "--data"),
    ):
        assert words in said


def test_natural_sets_and_training_images_can_be_done_without(data):
    plan = toy_plan(
        data,
        methods=ALL,
        data__train=("/none/train",),
        shifts__sets=(natural(data, name="other", images=("/none/b",)), natural(data)),
    )
    sources = open_sources(plan, skip_missing=True)
    assert [each.name for each in sources.plan.methods] == ["vanilla", "ts", "sts", "sac", "oracle"]
    assert [each.name for each in sources.plan.shifts.sets] == ["natural"]
    assert sources.train is None
    assert "/none/train" in sources.missing[0]
    assert "/none/b" in sources.missing[1]


def test_methods_are_left_out_if_no_training_images_are_named(data):
    plan = toy_plan(data, methods=("ts", "cpcs"), data__train=())
    with pytest.raises(MissingData, match=r"\[data\] train"):
        open_sources(plan)
    kept = open_sources(plan, skip_missing=True).plan.methods
    assert [each.name for each in kept] == ["ts"]


def test_the_images_cannot_be_done_without(data):
    with pytest.raises(MissingData, match="/none"):
        open_sources(toy_plan(data, data__images=("/none",)), skip_missing=True)


def test_training_images_are_not_asked_for_if_no_method_needs_them(data):
    assert open_sources(toy_plan(data, data__train=("/none",))).train is None


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_model_file_that_is_not_there_is_missing(data, tmp_path, kind):
    text, name = DAMAGED[kind]
    spec = text.format(tmp_path / name)
    with pytest.raises(MissingData, match=name):
        open_sources(toy_plan(data, model__spec=(spec,)))
    sources = open_sources(toy_plan(data, model__spec=(spec, SPEC)))
    assert sources.plan.model.spec == (SPEC,)


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_model_file_is_an_error_and_not_passed_over(data, tmp_path, kind):
    text, name = DAMAGED[kind]
    (tmp_path / name).write_bytes(b"damaged" * 9)
    with pytest.raises(FileError, match=name) as caught:
        open_sources(toy_plan(data, model__spec=(text.format(tmp_path / name), SPEC)))
    assert not isinstance(caught.value, MissingData)


def test_damaged_images_are_an_error_and_not_passed_over(data, tmp_path):
    (tmp_path / "a.npy").write_bytes(b"damaged" * 9)
    broken = (str(tmp_path / "a.npy"), str(data / "test.npy"))
    with pytest.raises(FileError, match=r"a\.npy") as caught:
        open_sources(toy_plan(data, data__images=broken))
    assert not isinstance(caught.value, MissingData)
    plan = toy_plan(data, shifts__sets=(natural(data, images=broken),))
    with pytest.raises(FileError, match=r"a\.npy"):
        open_sources(plan, skip_missing=True)


def test_a_natural_set_needs_labels(data):
    plan = toy_plan(data, shifts__sets=(natural(data, labels=None),))
    with pytest.raises(InputError, match="Natural has no labels"):
        open_sources(plan)


def test_a_model_without_features_is_refused_before_anything_is_scored(data):
    spec = "python:toy_study:logits_only?key=a&raw=true"
    with pytest.raises(InputError, match="CPCS, TRANSCAL need features, and the model python:toy"):
        open_sources(toy_plan(data, methods=ALL, model__spec=(spec,)))
    assert open_sources(toy_plan(data, model__spec=(spec,))).train is None


def test_a_limit_takes_of_every_class_its_share_and_always_the_same(data):
    labels = np.load(data / "test-labels.npy")
    plan = toy_plan(data, methods=ALL, data__limit=30, data__train_limit=12)
    sources = open_sources(plan)
    assert np.bincount(sources.images.labels).tolist() == [10] * CLASSES
    assert np.bincount(sources.train.labels).tolist() == [4] * CLASSES
    rows, _ = datasets.calibration_split(labels, n=30, seed=0)
    wanted = np.load(data / "test.npy")[rows]
    assert np.array_equal(sources.images.read(np.arange(30)).images, wanted)
    assert len(open_sources(toy_plan(data, data__limit=N)).images) == N


def test_classes_are_put_together_in_all_sets(tmp_path, monkeypatch, data):
    groups = {"stripes": (0, 1), "squares": (2,)}
    monkeypatch.setattr(datasets, "class_groups", lambda _: groups)
    np.save(tmp_path / "grouped.npy", np.load(data / "natural.npy"))
    labels = (np.load(data / "natural-labels.npy") == 2).astype(int)
    np.save(tmp_path / "grouped-labels.npy", labels)
    np.savez(tmp_path / "named.npz", images=np.load(data / "natural.npy"), labels=labels,
             classes=["stripes", "squares"])  # fmt: skip
    named = NaturalSet("named", "Named", (str(tmp_path / "named.npz"),))
    plan = toy_plan(
        data,
        methods=ALL,
        model__groups="stripes-or-squares",
        shifts__sets=(natural(data), named),
        data__limit=60,
    )
    sources = open_sources(plan)
    assert sources.model.classes == ("stripes", "squares")
    assert np.bincount(sources.images.labels).tolist() == [40, 20]
    for images in (sources.train, *sources.sets.values()):
        assert tuple(images.classes) == ("stripes", "squares")
        assert np.bincount(images.labels).tolist() == [len(images) * 2 // 3, len(images) // 3]


def test_the_batch_size_of_the_plan_is_the_models(data):
    assert open_sources(toy_plan(data, model__batch_size=7)).model.batch_size == 7


def test_labels_that_the_model_does_not_know_are_found_before_anything_is_scored(data, tmp_path):
    labels = np.load(data / "natural-labels.npy")
    labels[-1] = CLASSES
    np.save(tmp_path / "labels.npy", labels)
    plan = toy_plan(data, shifts__sets=(natural(data, labels=str(tmp_path / "labels.npy")),))
    with pytest.raises(InputError, match=r"the set Natural: labels .* from 0 to 2, .*; got 3"):
        open_sources(plan)
    strange = toy_plan(data, methods=ALL, data__train_labels=str(tmp_path / "train.npy"))
    np.save(tmp_path / "train.npy", np.full(90, CLASSES))
    with pytest.raises(InputError, match=r"the training images: labels .* got 3"):
        open_sources(strange)


def test_every_class_needs_an_image_to_calibrate_on(data):
    with pytest.raises(InputError, match=r"images must be at least the 3 classes.*; got 2\."):
        open_sources(toy_plan(data, calibration__images=CLASSES - 1))
    assert open_sources(toy_plan(data, calibration__images=CLASSES)).images


def test_a_few_test_images_in_a_bin_are_warned_of(data):
    with pytest.warns(InputWarning, match="60 images are left for the test, in 7 bins of the ECE"):
        open_sources(toy_plan(data, bins=7))
    open_sources(toy_plan(data, bins=6))  # warnings are errors


def test_a_natural_set_needs_an_image_for_each_bin(data):
    plan = toy_plan(data, bins=46, calibration__images=3, shifts__sets=(natural(data),))
    with pytest.raises(InputError, match=r"the set natural must have .* 46 bins .*; it has 45"):
        open_sources(plan)


def test_a_limit_that_limits_nothing_is_noted(data):
    with pytest.warns(InputWarning, match=r"\[data\] limit is 121, and there are 120 images"):
        assert len(open_sources(toy_plan(data, data__limit=N + 1)).images) == N


def test_ready_made_sets_that_are_missing_are_counted_and_told_once(tmp_path):
    made = {f"fog-{s}": f"cifar10-c:{tmp_path}?corruption=fog&severity={s}" for s in range(1, 9)}
    with pytest.raises(MissingData) as caught:
        check_made(made)
    said = str(caught.value)
    assert "8 of 8 sets of ready-made corrupted images ([shifts] made): fog-1, fog-2" in said
    assert "fog-6 and 2 more; the first:" in said
    assert said.count(str(tmp_path)) == said.split("severity=1")[1].count(str(tmp_path)) + 1
    assert "severity=2" not in said


def test_nothing_is_to_be_run_again_if_nothing_is_to_be_got(data):
    with pytest.raises(MissingData) as caught:
        open_sources(toy_plan(data, data__images=("/none",)))
    assert "run the same command again" not in str(caught.value)
    with pytest.raises(MissingData, match=r"get it here.*\n.*run the same command again"):
        open_sources(toy_plan(data, data__images=("/none",), data__fetch="get it here"))

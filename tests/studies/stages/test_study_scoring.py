"""Which sets are scored, where they are kept, and that nothing is scored twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toy_study import ALL, CLASSES, SPEC, N, net, ten, toy_plan

from shiftcal import corrupt
from shiftcal.errors import InputError, InputWarning, MissingData
from shiftcal.studies.archive import Archive
from shiftcal.studies.plan.plan import LadderPlan, NaturalSet
from shiftcal.studies.planned import variants_of
from shiftcal.studies.stages.scoring import Means, score_sets, wanted_of
from shiftcal.studies.stages.sources import check_made, open_sources

OTHER = SPEC.replace("toy_study:net?key=toy-v1", "toy_study:other_net?key=other")
# With the ten columns that CIFAR-10-C's labels are of.
TEN = SPEC.replace("toy_study:net?key=toy-v1", "toy_study:ten?key=ten")


def wanted(plan, n=N):
    return wanted_of(plan, variants_of(plan, n))


def scored(plan, folder, **means):
    sources = open_sources(plan)
    return score_sets(sources, wanted(sources.plan, len(sources.images)), folder, Means(**means))


def natural(data):
    return NaturalSet(
        "natural", "N", (str(data / "natural.npy"),), str(data / "natural-labels.npy")
    )


def write_made(folder, data, names=("fog", "gaussian_noise", "pixelate"), shift=0):
    """Images in the layout of CIFAR-10-C: each version brighter by its severity, to be told."""
    folder.mkdir()
    images, labels = np.load(data / "test.npy"), np.load(data / "test-labels.npy")
    for name in names:
        made = [np.maximum(images, s + shift) for s in range(1, 6)]
        np.save(folder / f"{name}.npy", np.concatenate(made))
    np.save(folder / "labels.npy", np.tile(labels, 5))
    return f"cifar10-c:{folder}?corruption={{corruption}}&severity={{severity}}"


def made_plan(data, made, **changes):
    return toy_plan(data, shifts__made=made, model__spec=(TEN,), **changes)


def test_the_sets_are_those_that_are_learnt_from_and_tested_on(data):
    found = wanted(toy_plan(data, shifts__sets=(natural(data),)))
    assert set(found.names) == {
        *("clean", "pixelate-1", "pixelate-3", "natural"),
        *("fog-1", "fog-5", "gaussian_noise-1", "gaussian_noise-5"),
    }
    assert found.conditions[0].corruption is None
    assert found.own == ("natural",)


def test_the_corruption_that_is_calibrated_with_is_no_target(data):
    plan = toy_plan(data, shifts__corruptions=("pixelate", "fog"))
    assert set(wanted(plan).names) == {"clean", "pixelate-1", "pixelate-3", "fog-1", "fog-5"}


def test_severities_that_a_corruption_has_not_are_refused(data):
    with pytest.raises(InputError, match="fog has the severities 1 to 5; the plan asks for 6"):
        wanted(toy_plan(data, shifts__severities=(0, 6)))
    ladder = LadderPlan("fine", "pixelate", ((0.9,), (0.8,)))
    plan = toy_plan(data, ladders=(ladder,), calibration__corruption="fine")
    with pytest.raises(InputError, match=r"^fine has the severities 1 to 2; the plan asks for 3"):
        wanted(plan)


def test_scores_are_those_of_the_model_on_the_corrupted_images(data, tmp_path):
    archive, computed = scored(toy_plan(data, shifts__seed=5), tmp_path)
    assert computed == 7 * N
    images, labels = np.load(data / "test.npy"), np.load(data / "test-labels.npy")
    for name, corruption, severity in (("fog-5", "fog", 5), ("gaussian_noise-1", None, 1)):
        made = corrupt(images, corruption or "gaussian_noise", severity=severity, seed=5)
        logits, features = net(made)
        found = archive.scores(name)
        # The same function on other batches: sums of float32 may round in another order.
        np.testing.assert_allclose(found.logits, logits, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(found.features, features, rtol=1e-5, atol=1e-4)
        assert np.array_equal(found.labels, labels)


def test_features_are_kept_for_targets_and_training_images(data, tmp_path):
    archive, computed = scored(toy_plan(data, methods=ALL, shifts__sets=(natural(data),)), tmp_path)
    assert computed == 7 * N + 90 + 45
    assert archive.train_features().shape == (90, CLASSES + 1)
    for name in archive.entries:
        assert archive.scores(name).features.shape[1] == CLASSES + 1
    assert archive.entries["natural"].own
    assert not archive.entries["fog-1"].own


def test_the_archive_is_the_same_when_opened(data, tmp_path):
    archive, _ = scored(toy_plan(data, methods=ALL), tmp_path)
    again = Archive.open(tmp_path)
    assert again.entries == archive.entries
    assert again.train == archive.train
    assert again.model == archive.model
    assert again.made_of == archive.made_of
    assert np.array_equal(again.scores("fog-5").logits, archive.scores("fog-5").logits)


def test_a_changed_plan_scores_only_what_is_missing(data, tmp_path):
    plan = toy_plan(data)
    scored(plan, tmp_path)
    assert scored(plan, tmp_path)[1] == 0
    shuffled = replace(plan, bins=4, seeds=(5,), methods=plan.methods[::-1])
    assert scored(shuffled, tmp_path)[1] == 0
    more = toy_plan(
        data, methods=ALL, shifts__severities=(0, 1, 3, 5), shifts__sets=(natural(data),)
    )
    archive, computed = scored(more, tmp_path)
    assert computed == 2 * N + 90 + 45
    assert "fog-3" in archive.entries
    fewer, computed = scored(plan, tmp_path)
    assert computed == 0
    assert "fog-3" not in fewer.entries


@pytest.mark.parametrize(
    "changes",
    [
        {"model__spec": (OTHER,)},
        {"data__limit": 90, "bins": 3},
        {"shifts__seed": 1},
        {"model__dtype": "float16"},
    ],
    ids=["model", "images", "seed", "dtype"],
)
def test_what_decides_all_scores_has_another_folder(data, tmp_path, changes):
    first, _ = scored(toy_plan(data), tmp_path)
    second, computed = scored(toy_plan(data, **changes), tmp_path)
    assert computed == 7 * changes.get("data__limit", N)
    assert not {each.file for each in first.entries.values()} & {
        each.file for each in second.entries.values()
    }
    assert scored(toy_plan(data), tmp_path)[1] == 0
    assert Archive.open(tmp_path).entries == first.entries


def test_other_images_under_the_name_of_a_natural_set_are_scored(data, tmp_path):
    plan = toy_plan(data, shifts__sets=(natural(data),))
    before, _ = scored(plan, tmp_path)
    other = replace(
        natural(data), images=(str(data / "train.npy"),), labels=str(data / "train-labels.npy")
    )
    after, computed = scored(replace(plan, shifts=replace(plan.shifts, sets=(other,))), tmp_path)
    assert computed == 90
    assert len(after.scores("natural").logits) == 90
    assert after.entries["natural"].key != before.entries["natural"].key


def test_a_ladder_of_other_strengths_is_scored_and_the_old_one_kept(data, tmp_path):
    def plan(*strengths):
        ladder = LadderPlan("fine", "pixelate", tuple((each,) for each in strengths))
        changes = {"calibration__corruption": "fine", "calibration__severities": (1, 2)}
        return toy_plan(data, ladders=(ladder,), **changes)

    first, computed = scored(plan(0.9, 0.5), tmp_path)
    assert computed == 7 * N
    second, computed = scored(plan(0.8, 0.4), tmp_path)
    assert computed == 2 * N
    assert set(first.entries) == set(second.entries) >= {"fine-1", "fine-2"}
    images = np.load(data / "test.npy")
    from shiftcal.corruptions import Strengths

    made = corrupt(images, Strengths("pixelate", [0.4], name="x"), severity=1)
    np.testing.assert_allclose(second.scores("fine-2").logits, net(made)[0], rtol=1e-5, atol=1e-4)
    again, computed = scored(plan(0.9, 0.5), tmp_path)
    assert computed == 0
    assert again.entries == first.entries


def test_a_model_that_cannot_be_known_again_is_scored_anew_and_never_refused(data, tmp_path):
    plan = toy_plan(data, model__spec=("python:toy_study:net?raw=true",))
    for _ in range(2):
        with pytest.warns(InputWarning, match="cannot be told whether this model is the same"):
            assert scored(plan, tmp_path)[1] == 7 * N


def test_a_cache_is_shared_between_runs(data, tmp_path):
    plan = toy_plan(data, methods=ALL)
    assert scored(plan, tmp_path / "a", cache=tmp_path / "cache")[1] == 7 * N + 90
    assert scored(plan, tmp_path / "b", cache=tmp_path / "cache")[1] == 0


def test_ready_made_images_are_used_in_the_place_of_corruptions(data, tmp_path):
    plan = made_plan(data, write_made(tmp_path / "C", data))
    archive, computed = scored(plan, tmp_path / "run")
    assert computed == 7 * N
    images = np.load(data / "test.npy")
    for name, severity in (("fog-5", 5), ("pixelate-3", 3), ("gaussian_noise-1", 1)):
        logits = ten(np.maximum(images, severity))[0]
        np.testing.assert_allclose(archive.scores(name).logits, logits, rtol=1e-5, atol=1e-4)
    assert scored(plan, tmp_path / "run")[1] == 0


def test_of_ready_made_images_the_same_are_taken_as_of_the_clean_ones(data, tmp_path):
    plan = made_plan(data, write_made(tmp_path / "C", data), data__limit=90, bins=3)
    archive, computed = scored(plan, tmp_path / "run")
    assert computed == 7 * 90
    assert np.array_equal(archive.scores("fog-1").labels, archive.scores("clean").labels)
    # Severity 1 changes nothing but pixels that are 0.
    np.testing.assert_allclose(
        archive.scores("fog-1").logits, archive.scores("clean").logits, atol=0.5
    )


def test_ladders_of_ones_own_are_made_on_the_fly_beside_ready_made_images(data, tmp_path):
    ladder = LadderPlan("fine", "pixelate", ((0.9,), (0.5,), (0.3,)))
    made = write_made(tmp_path / "C", data, names=("fog", "gaussian_noise"))
    plan = made_plan(data, made, ladders=(ladder,), calibration__corruption="fine")
    found = wanted(plan)
    assert set(found.made) == {"fog-1", "fog-5", "gaussian_noise-1", "gaussian_noise-5"}
    assert scored(plan, tmp_path / "run")[1] == 7 * N


@pytest.mark.parametrize("wrong", ["order", "number"])
def test_ready_made_images_must_be_the_clean_ones_row_by_row(data, tmp_path, wrong):
    made = write_made(tmp_path / "C", data)
    labels = tmp_path / "C" / "labels.npy"
    if wrong == "order":
        np.save(labels, np.tile(np.load(labels)[:N][::-1], 5))
    else:
        np.save(labels, np.tile(np.load(labels)[:100], 5))
        for name in ("fog", "gaussian_noise", "pixelate"):
            np.save(tmp_path / "C" / f"{name}.npy", np.load(tmp_path / "C" / f"{name}.npy")[:500])
    words = {"order": "they are 120, with other labels", "number": "they are 100"}
    with pytest.raises(InputError, match=rf"must be those of the clean set.*{words[wrong]}"):
        scored(made_plan(data, made), tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.npz"))


def test_ready_made_images_that_are_not_there_are_missing(data, tmp_path):
    made = write_made(tmp_path / "C", data, names=("fog",))
    with pytest.raises(MissingData, match="gaussian_noise"):
        check_made(wanted(toy_plan(data, shifts__made=made)).made)

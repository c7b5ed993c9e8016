"""Runs of a whole network, from images to what calibration needs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from one_layer import OneLayer, one_layer
from two_domains import CLASSES, arrays_of, domains, drawn, write_domain

import shiftcal as sc
from shiftcal.adaptation import Adapted, adapt
from shiftcal.adaptation.backbones import make_backbone
from shiftcal.adaptation.choice import choose
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.network_mode import NetworkMode
from shiftcal.adaptation.task import Task
from shiftcal.errors import FileError, InputError

N = 45
QUICK = {"iterations": 12, "batch_size": 6, "bottleneck": 5}


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


def run(folder, **options):
    wanted = {"trainer": "cdan", "backbone": one_layer(), "severities": (1, 5), "changes": QUICK}
    return adapt(*domains(N), folder, **{**wanted, **options})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with cpu_threads(1):
        return run(tmp_path_factory.mktemp("run") / "run")


def test_everything_that_calibration_needs_is_stored(finished):
    source, target = domains(N)
    model = finished.model(one_layer())
    parts = finished.split
    expected = sc.SurrogateBank.synthesize(
        model, source.subset(parts.calibration), severities=(1, 5)
    )
    for mine, theirs in zip(finished.bank, expected, strict=True):
        assert (mine.name, mine.severity) == (theirs.name, theirs.severity)
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(mine.labels, source.labels[parts.calibration])
    assert finished.bank.clean.features.shape == (len(parts.calibration), 5)
    train = sc.score(model, source.subset(parts.train))
    np.testing.assert_allclose(finished.source_features, train.features, rtol=1e-4, atol=1e-5)
    held_out = sc.score(model, target.subset(parts.held_out))
    np.testing.assert_allclose(finished.target.values, held_out.values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(finished.target.features, held_out.features, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(finished.target.labels, target.labels[parts.held_out])
    assert finished.bank.classes == finished.target.classes == CLASSES


def test_the_model_is_the_one_that_the_bank_was_made_with(finished):
    assert finished.model(one_layer()).fingerprint == finished.bank.origin["model"]["fingerprint"]


def test_the_backbone_is_trained_and_the_given_one_left_as_it_was(finished):
    begun, given = one_layer().state_dict(), one_layer()
    trained = finished.classifier(given).backbone.network.state_dict()
    assert any((trained[name] != begun[name]).any() for name in begun)
    for name, value in given.state_dict().items():
        assert (value == begun[name]).all()
    assert (trained["layers.1.running_mean"] != 0).any()


def test_a_seed_is_a_result_and_torchs_generator_is_left_alone(tmp_path, finished):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    same = run(tmp_path / "same")
    assert (torch.get_rng_state() == before).all()
    assert arrays_of(same.folder) == arrays_of(finished.folder)


def test_the_same_call_has_nothing_to_do(finished):
    before = {file: file.stat().st_mtime_ns for file in finished.folder.rglob("*")}
    run(finished.folder)
    assert {file: file.stat().st_mtime_ns for file in finished.folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"backbone": one_layer(4)}, "training.inputs.backbone was"),
        ({"transform": "none"}, 'training.inputs.transform was "default" and is "none"'),
    ],
)
def test_another_run_is_refused_in_the_same_folder(finished, options, told):
    with pytest.raises(FileError, match="holds another run") as raised:
        run(finished.folder, **options)
    assert told in str(raised.value)


def test_weights_are_chosen_by_the_calibration_images_and_by_no_label_of_the_target(tmp_path):
    made = run(tmp_path / "run", select="source-validation")
    measured = [row.source_validation for row in made.history if row.source_validation is not None]
    assert len(set(measured)) > 1  # or there is nothing to choose
    assert made.bank.clean.summary().accuracy == pytest.approx(max(measured))
    source, target = domains(N)
    wrong = target.relabelled(np.roll(target.labels, 1), classes=CLASSES)
    options = {"trainer": "cdan", "severities": (1, 5), "changes": QUICK, "backbone": one_layer()}
    other = adapt(source, wrong, tmp_path / "wrong", select="source-validation", **options)
    assert other.document["trained"]["selected_step"] == made.document["trained"]["selected_step"]
    weights = [(each.folder / "classifier.safetensors").read_bytes() for each in (made, other)]
    assert weights[0] == weights[1]


def test_no_label_of_the_target_decides_anything(tmp_path, finished):
    source, target = domains(N)
    options = {"trainer": "cdan", "severities": (1, 5), "changes": QUICK}
    expected = arrays_of(finished.folder)
    for name, labels in (("bare", None), ("wrong", np.roll(target.labels, 1))):
        other = target.relabelled(labels, classes=CLASSES)
        made = adapt(source, other, tmp_path / name, backbone=one_layer(), **options)
        assert made.accuracy != finished.accuracy
        came = arrays_of(made.folder)
        # How a file was made says of what labels it is.
        apart = {"target.npz/labels", "target.npz/origin"}
        assert came.keys() | apart == expected.keys() | apart
        for array in expected.keys() - apart:
            assert came[array] == expected[array], array


def test_batches_are_made_of_the_seen_half_of_the_target_without_its_labels():
    task = Task(*domains(N))
    parts = task.split()
    mode = NetworkMode(task, parts, make_backbone(one_layer()), "default", "pixelate", (1,))
    chosen = choose("cdan", changes=QUICK)
    feed = mode.feed(chosen.trainer, chosen.settings, seed=0, rank=0, world=1)
    assert feed.target.labels is None
    assert len(feed.target) == len(parts.seen)
    np.testing.assert_array_equal(feed.labels, task.source.labels[parts.train])


def test_the_held_out_half_of_the_target_is_never_trained_on(tmp_path, finished):
    """Another held-out half gives the same network; another seen half does not."""

    def with_other(part):
        images, labels = drawn(N, shift=0.7, seed=2)
        rows = getattr(finished.split, part)
        images[rows] = 255 - images[rows]
        target = sc.datasets.as_image_set(images, labels=labels, classes=CLASSES)
        options = {"trainer": "cdan", "severities": (1, 5), "changes": QUICK}
        folder = tmp_path / part
        made = adapt(domains(N)[0], target, folder, backbone=one_layer(), **options)
        return (made.folder / "classifier.safetensors").read_bytes()

    before = (finished.folder / "classifier.safetensors").read_bytes()
    assert with_other("held_out") == before
    assert with_other("seen") != before


def test_a_backbone_with_a_name_is_made_again_from_its_name(tmp_path):
    small = {"iterations": 3, "batch_size": 4, "bottleneck": 4}
    run(tmp_path / "run", backbone="digits-cnn", changes=small)
    made = Adapted.open(tmp_path / "run")
    assert made.document["recipe"] == "digits"
    scored = sc.score(made.model(), domains(N)[1].subset(made.split.held_out))
    np.testing.assert_allclose(scored.values, made.target.values, rtol=1e-4, atol=1e-5)
    assert made.document["backbone"]["spec"] == "digits-cnn"


def test_a_backbone_without_a_name_must_be_passed_again(finished):
    with pytest.raises(InputError, match="does not say how its backbone is made"):
        finished.model()
    with pytest.raises(FileError, match="does not hold the weights of the network of"):
        finished.model(torch.nn.Sequential(OneLayer(), torch.nn.Conv2d(8, 8, 1)))


def test_images_are_the_same_from_memory_and_from_files(tmp_path):
    """Without random steps small images are kept; with a worker they are read by a process."""
    for name, (images, labels) in {"a": drawn(N, seed=1), "b": drawn(N, seed=2)}.items():
        write_domain(tmp_path / name, images, labels)
    from shiftcal.adaptation import network_mode

    def weights(folder, **options):
        made = adapt(
            tmp_path / "a",
            tmp_path / "b",
            tmp_path / folder,
            trainer="mcc",
            backbone=one_layer(),
            severities=(5,),
            transform="none",
            changes=QUICK,
            **options,
        )
        return (made.folder / "classifier.safetensors").read_bytes()

    kept = weights("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_mode, "are_small", lambda *_: False)
        assert weights("read") == kept
        assert weights("by-worker", workers=1) == kept


def test_an_image_that_cannot_be_read_is_not_left_out_of_a_training(tmp_path):
    for name in ("a", "b"):
        write_domain(tmp_path / name, *drawn(N))
    for file in (tmp_path / "b" / "ant").iterdir():
        file.write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"b/ant/\d+\.png .* No image is left out of a training"):
        adapt(
            tmp_path / "a",
            tmp_path / "b",
            tmp_path / "run",
            trainer="dan",
            backbone=one_layer(),
            transform="none",
            changes=QUICK,
        )


def test_images_of_any_size_need_a_preprocessing_that_says_theirs(tmp_path):
    free = torch.nn.Conv2d(3, 4, 3)
    free.preprocessing = sc.models.Preprocessing()
    with pytest.raises(InputError, match="'default' must know how large images are"):
        run(tmp_path / "run", backbone=free)
    made = run(tmp_path / "other", backbone=free, transform="none", trainer="source-only")
    assert made.target.values.shape[1] == 3

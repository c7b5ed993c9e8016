"""Runs on frozen features, from images to what calibration needs."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
import torch
from two_domains import (
    CLASSES,
    Counting,
    arrays_of,
    colour_features,
    colour_model,
    domains,
    drawn,
)

from shiftcal import corrupt, methods
from shiftcal.adaptation import Adapted, adapt
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.frozen import frozen_features
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.errors import FileError, FitError, FitWarning, InputError, UnknownName

N = 60
QUICK = {"iterations": 40, "batch_size": 8, "bottleneck": 8}


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """Features of both domains, the source's at severities 1 and 5."""
    folder = tmp_path_factory.mktemp("features")
    source, target = domains(N)
    return (
        frozen_features(colour_model(), source, folder / "source", severities=(1, 5)),
        frozen_features(colour_model(), target, folder / "target", severities=()),
    )


def run(folder, frozen, source=None, target=None, **options):
    ours, theirs = domains(N)
    wanted = {"trainer": "dan", "severities": (1, 5), "changes": QUICK, **options}
    return adapt(source or ours, target or theirs, folder, features=frozen, **wanted)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, frozen):
    with cpu_threads(1):
        return run(tmp_path_factory.mktemp("run") / "run", frozen)


def by_hand(adapted, pixels):
    """Logits and bottleneck features of raw pixels, layer by layer."""
    classifier = adapted.classifier()
    with torch.inference_mode():
        x = torch.from_numpy(colour_features(pixels)[1])
        features = classifier.bottleneck(x)
        return classifier.head(features).numpy(), features.numpy()


def test_everything_that_calibration_needs_is_stored(finished):
    (pixels, labels), (others, theirs) = drawn(N, seed=1), drawn(N, shift=0.7, seed=2)
    parts = finished.split
    assert [each.name for each in finished.bank] == [
        "clean",
        "pixelate, severity 1",
        "pixelate, severity 5",
    ]
    assert finished.bank.classes == CLASSES
    mine = pixels[parts.calibration]
    for each in finished.bank:
        seen = corrupt(mine, "pixelate", severity=each.severity) if each.severity else mine
        logits, features = by_hand(finished, seen)
        # Sums in float32 go by the number of rows.
        np.testing.assert_allclose(each.logits, logits, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(each.labels, labels[parts.calibration])
        if each.severity:
            assert each.features is None
        else:
            np.testing.assert_allclose(each.features, features, rtol=1e-4, atol=1e-5)
    logits, features = by_hand(finished, pixels[parts.train])
    np.testing.assert_allclose(finished.source_features, features, rtol=1e-4, atol=1e-5)
    logits, features = by_hand(finished, others[parts.held_out])
    np.testing.assert_allclose(finished.target.values, logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(finished.target.features, features, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(finished.target.labels, theirs[parts.held_out])
    right = logits.argmax(axis=1) == theirs[parts.held_out]
    assert finished.accuracy == pytest.approx(right.mean())


def test_what_is_left_in_the_folder_is_named(finished):
    assert sorted(file.name for file in finished.folder.iterdir()) == [
        "adapt.json",
        "bank",
        "classifier.safetensors",
        "history.csv",
        "source-train.npz",
        "split.npz",
        "target.npz",
    ]


def test_every_method_takes_it(finished):
    for name in methods.names():
        method = methods.get(name)()
        if method.uses_mixed:
            continue
        with warnings.catch_warnings():
            # one or no row of the clean set is wrong, which ACE finds too few for its hard set
            hard = "every row of the clean set|hard resample of clean"
            warnings.filterwarnings("ignore", hard, FitWarning)
            method.fit(finished.bank, source_features=finished.source_features)
        method.adapt(finished.target.logits(), features=finished.target.features)
        assert np.isfinite(method.predict_proba(finished.target.logits())).all(), name


def test_no_label_of_the_target_decides_anything(tmp_path, frozen, finished):
    target = domains(N)[1]
    bare = run(tmp_path / "bare", frozen, target=target.relabelled(None))
    assert bare.accuracy is None
    wrong = target.relabelled(np.roll(target.labels, 1), classes=CLASSES)
    wrong = run(tmp_path / "wrong", frozen, target=wrong)
    assert wrong.accuracy != finished.accuracy
    expected = arrays_of(finished.folder)
    for other in (bare, wrong):
        came = arrays_of(other.folder)
        unlabelled = [name for name in came if name != "target.npz/labels"]
        assert {name: came[name] for name in unlabelled} == {
            name: expected[name] for name in unlabelled
        }
    assert set(expected) - set(arrays_of(bare.folder)) == {"target.npz/labels"}


def test_the_held_out_half_of_the_target_is_never_trained_on(tmp_path, frozen, finished):
    """Another held-out half gives the same network; another seen half does not."""

    def with_other(part, folder):
        images, labels = drawn(N, shift=0.7, seed=2)
        rows = getattr(finished.split, part)
        images[rows] = 255 - images[rows]
        target = ArrayImages(images, labels=labels, classes=CLASSES)
        other = frozen_features(colour_model(), target, tmp_path / f"f-{part}", severities=())
        made = run(folder, (frozen[0], other), target=target)
        return (made.folder / "classifier.safetensors").read_bytes()

    before = (finished.folder / "classifier.safetensors").read_bytes()
    assert with_other("held_out", tmp_path / "a") == before
    assert with_other("seen", tmp_path / "b") != before


@pytest.mark.filterwarnings("ignore:source and target are the same images")
def test_source_only_never_looks_at_the_target(tmp_path, frozen):
    made = [
        run(tmp_path / name, (frozen[0], other), target=target, trainer="source-only")
        for name, other, target in (
            ("a", frozen[1], domains(N)[1]),
            ("b", frozen[0], domains(N)[0]),
        )
    ]
    first, second = ((each.folder / "classifier.safetensors").read_bytes() for each in made)
    assert first == second


def test_the_same_call_has_nothing_to_do(frozen, finished):
    before = {file: file.stat().st_mtime_ns for file in finished.folder.rglob("*")}
    again = run(finished.folder, frozen)
    assert {file: file.stat().st_mtime_ns for file in finished.folder.rglob("*")} == before
    assert again.document == finished.document


def test_a_seed_is_a_result(tmp_path, frozen, finished):
    same = run(tmp_path / "same", frozen)
    assert arrays_of(same.folder) == arrays_of(finished.folder)
    other = run(tmp_path / "other", frozen, seed=1)
    assert (other.split.train != finished.split.train).any()
    assert arrays_of(other.folder).keys() == arrays_of(finished.folder).keys()
    weights = "classifier.safetensors"
    assert arrays_of(other.folder)[weights] != arrays_of(finished.folder)[weights]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seed": 7}, "training.seed was 0 and is 7"),
        ({"trainer": "mcc"}, 'another run: trainer was "dan" and is "mcc". Give'),
        ({"changes": {**QUICK, "lr": 0.5}}, "training.settings.lr was 0.003 and is 0.5"),
        ({"severities": (1,)}, "severities was [1, 5] and is [1]"),
    ],
)
def test_another_run_is_refused_in_the_same_folder(frozen, finished, options, told):
    with pytest.raises(FileError, match="holds another run") as raised:
        run(finished.folder, frozen, **options)
    assert told in str(raised.value)
    assert str(raised.value).endswith("Give the same, or name a new folder.")


def test_features_are_made_once_for_all_runs(tmp_path):
    source, target = domains(N)
    counting = Counting()
    for trainer, seed in (("dan", 0), ("mcc", 1)):
        adapt(
            source,
            target,
            tmp_path / trainer,
            trainer=trainer,
            backbone=colour_model(counting),
            frozen=True,
            changes=QUICK,
            seed=seed,
            severities=(2,),
            features=tmp_path / "shared",
        )
        assert counting.seen == 3 * N  # the source twice, the target once
    assert len(list((tmp_path / "shared").iterdir())) == 2
    assert not (tmp_path / "dan" / "features").exists()


class Watched(ArrayImages):
    """Images that can be closed to readers."""

    closed = False

    def _image(self, index):
        assert not self.closed, "an image was read"
        return super()._image(index)

    def _images(self, indices):
        assert not self.closed, "images were read"
        return super()._images(indices)


def test_with_features_no_image_is_read_and_no_backbone_made(tmp_path, frozen, finished):
    """Nor in another process, to which images and features are sent."""
    images, labels = drawn(N, seed=1)
    source = Watched(images, labels=labels, classes=CLASSES)
    ours = frozen_features(colour_model(), source, tmp_path / "f", severities=(1, 5))
    source.closed = True
    source, ours = pickle.loads(pickle.dumps((source, ours)))
    made = run(tmp_path / "run", (ours, frozen[1]), source=source, backbone="no such thing")
    assert arrays_of(made.folder) == arrays_of(finished.folder)


def test_images_are_looked_at_once_to_see_whose_features_are_given(tmp_path, frozen):
    images, labels = drawn(N, seed=1)
    source = Watched(images, labels=labels, classes=CLASSES)
    run(tmp_path / "first", frozen, source=source)
    source.closed = True
    run(tmp_path / "second", frozen, source=source, seed=1)


def test_features_of_as_many_other_images_are_refused(tmp_path, frozen):
    source = domains(N)[0]
    turned = source.subset(np.arange(N)[::-1])
    with pytest.raises(
        InputError, match=r"must hold features of the images of .* in another order"
    ):
        run(tmp_path / "run", frozen, source=turned)
    with pytest.raises(InputError, match="it holds those of other images"):
        run(tmp_path / "run", (frozen[0], frozen[0]))
    assert not (tmp_path / "run").exists()


def test_a_frozen_backbone_has_its_recipe_unless_told(tmp_path, frozen, finished):
    assert finished.document["recipe"] == "frozen"
    made = run(tmp_path / "run", frozen, recipe="default")
    assert made.document["recipe"] == "default"
    assert made.settings.iterations == 40


def test_the_best_on_the_calibration_images_can_be_kept(tmp_path, frozen):
    made = run(tmp_path / "run", frozen, select="source-validation")
    best = max(row.source_validation for row in made.history if row.source_validation is not None)
    assert made.bank.clean.summary().accuracy == pytest.approx(best)
    assert made.document["accuracy"]["calibration"] == pytest.approx(best)


def test_a_training_that_diverges_says_so_and_leaves_no_run(tmp_path, frozen):
    with pytest.raises(FitError, match="lr"):
        run(tmp_path / "run", frozen, changes={**QUICK, "lr": 1e30})
    with pytest.raises(FileError, match=r"holds no finished run: the training diverged: .* lr"):
        Adapted.open(tmp_path / "run")


def test_features_of_other_images_are_refused(tmp_path, frozen):
    few = domains(30)[0]
    with pytest.raises(InputError, match="must hold a row for each of the 30 images"):
        run(tmp_path / "run", frozen, source=few)


def test_features_of_two_backbones_are_refused(tmp_path, frozen):
    other = colour_model(key="another")
    theirs = frozen_features(other, domains(N)[1], tmp_path / "f", severities=())
    with pytest.raises(InputError, match="must hold features of one backbone; they are of two"):
        run(tmp_path / "run", (frozen[0], theirs))


def test_features_of_another_corruption_are_refused(tmp_path, frozen):
    with pytest.raises(InputError, match="must be of the corruption fog; they are of pixelate"):
        run(tmp_path / "run", frozen, corruption="fog")


def test_severities_that_were_not_made_are_told(tmp_path, frozen):
    with pytest.raises(FileError, match="no features of pixelate at severity 3"):
        run(tmp_path / "run", frozen, severities=(1, 3))


def test_a_folder_with_something_else_is_left_alone(tmp_path, frozen):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match=r"holds 'letter\.txt' and is no run"):
        run(tmp_path, frozen)
    with pytest.raises(FileError, match="is a file"):
        run(tmp_path / "letter.txt", frozen)
    assert (tmp_path / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"features": None, "frozen": True}, "backbone must say what gives the features"),
        ({"features": None}, "backbone must say what gives the features"),
        ({"trainer": "cdam"}, "no trainer is called 'cdam'. Did you mean 'cdan'"),
        ({"recipe": "office"}, "DAN has no recipe 'office'"),
        ({"severities": ()}, "severities must name one at least"),
        ({"severities": (6,)}, "severity must be .* 5; got 6"),
        ({"seed": -1}, "seed must be"),
        ({"select": "best"}, "select must be"),
        ({"transform": "none"}, "a frozen backbone sees none of them then"),
        ({"transform": "mirror"}, "transform must be"),
        ({"precision": "float8"}, "precision must be"),
        ({"device": "abacus"}, "device must be one that torch has here"),
        ({"workers": -1}, "workers must be"),
        ({"features": "f"}, "features are those of a frozen backbone: say frozen=True"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_done(tmp_path, frozen, options, told):
    with pytest.raises((InputError, UnknownName), match=told):
        adapt(
            *domains(N),
            tmp_path / "run",
            **{"trainer": "dan", "features": frozen, "severities": (1, 5), **options},
        )
    assert not (tmp_path / "run").exists()


def test_the_document_says_what_was_done(finished):
    told = json.loads((finished.folder / "adapt.json").read_text())
    assert told["images"] == {"train": 48, "calibration": 12, "seen": 30, "held_out": 30}
    assert (told["trainer"], told["seed"], told["frozen"]) == ("dan", 0, True)
    assert told["backbone"]["n_features"] == 6
    assert told["trained"]["steps"] == 40
    assert finished.history[-1].step == 40
    assert told["trained"]["losses"]["total"] == pytest.approx(finished.history[-1].total)

"""Runs from images to what calibration needs: whole networks, and heads on frozen features."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from adapt_process import adapted, killed
from one_layer import OneLayer, one_layer
from onnx_resnet import mean_colour_onnx
from two_domains import (
    CLASSES,
    Counting,
    arrays_of,
    colour_features,
    colour_model,
    domains,
    drawn,
    write_domain,
)

import shiftcal as sc
from shiftcal import corrupt
from shiftcal.adaptation import Adapted, Settings, adapt, frozen_features
from shiftcal.adaptation.run import FORMAT, VERSION, Task
from shiftcal.datasets import as_image_set, source_split, target_split
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.files import write_document
from shiftcal.models.pytorch import torch_threads

N = 45
QUICK = {"iterations": 12, "batch_size": 6, "bottleneck": 5}
MODES = ("frozen", "network")
BOTH = pytest.mark.parametrize("mode", MODES)
WEIGHTS = "classifier.safetensors"


@pytest.fixture(autouse=True)
def one_thread():
    with torch_threads(1):
        yield


def run(folder, mode, source=None, target=None, **options):
    ours, theirs = domains(N)
    backbone = colour_model() if mode == "frozen" else one_layer()
    wanted = {"trainer": "dan", "backbone": backbone, "frozen": mode == "frozen"}
    wanted |= {"severities": (1, 5), "changes": QUICK, **options}
    return adapt(source or ours, target or theirs, folder, **wanted)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One of each."""
    with torch_threads(1):
        return {mode: run(tmp_path_factory.mktemp(mode) / "run", mode) for mode in MODES}


@pytest.fixture
def copied(tmp_path, finished):
    """A copy of a run, to be damaged."""
    return Adapted.open(shutil.copytree(finished["frozen"].folder, tmp_path / "copy"))


def times(folder):
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*")}


def test_scores_of_a_network_are_those_of_its_model(finished):
    made, (source, target) = finished["network"], domains(N)
    model, parts = made.model(one_layer()), made.split
    calibration = source.subset(parts.calibration)
    expected = sc.SurrogateBank.synthesize(model, calibration, severities=(1, 5))
    for mine, theirs in zip(made.bank, expected, strict=True):
        assert (mine.name, mine.severity) == (theirs.name, theirs.severity)
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(mine.labels, source.labels[parts.calibration])
    train = sc.score(model, source.subset(parts.train))
    np.testing.assert_allclose(made.source_features, train.features, rtol=1e-4, atol=1e-5)
    held_out = sc.score(model, target.subset(parts.held_out))
    np.testing.assert_allclose(made.target.values, held_out.values, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(made.target.labels, target.labels[parts.held_out])
    assert made.bank.classes == made.target.classes == CLASSES
    assert model.fingerprint == made.bank.origin["model"]["fingerprint"]


def test_scores_of_frozen_features_are_those_of_the_layers_by_hand(finished):
    made = finished["frozen"]
    (pixels, labels), (others, theirs) = drawn(N, seed=1), drawn(N, shift=0.7, seed=2)
    classifier, parts = made.classifier(), made.split

    def by_hand(images):
        with torch.inference_mode():
            features = classifier.bottleneck(torch.from_numpy(colour_features(images)[1]))
            return classifier.head(features).numpy(), features.numpy()

    for each in made.bank:
        mine = pixels[parts.calibration]
        mine = corrupt(mine, "pixelate", severity=each.severity) if each.severity else mine
        np.testing.assert_allclose(each.logits, by_hand(mine)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(each.labels, labels[parts.calibration])
    features = by_hand(pixels[parts.train])[1]
    np.testing.assert_allclose(made.source_features, features, rtol=1e-4, atol=1e-5)
    logits, features = by_hand(others[parts.held_out])
    np.testing.assert_allclose(made.target.values, logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(made.target.features, features, rtol=1e-4, atol=1e-5)
    correct = logits.argmax(axis=1) == theirs[parts.held_out]
    assert made.accuracy == pytest.approx(correct.mean())


@BOTH
def test_a_run_describes_itself(finished, mode):
    made = finished[mode]
    document = json.loads((made.folder / "adapt.json").read_text())
    assert document["images"] == {"train": 36, "calibration": 9, "seen": 23, "held_out": 22}
    assert (document["trainer"], document["frozen"]) == ("dan", mode == "frozen")
    assert document["recipe"] == ("frozen" if mode == "frozen" else "default")
    opened = Adapted.open(made.folder)
    assert (opened.trainer.label, opened.settings.iterations) == ("DAN", 12)
    assert isinstance(opened.settings, Settings)
    assert [row.step for row in opened.history] == list(range(1, 13))
    assert f"<Adapted: DAN in {made.folder}, accuracy {made.accuracy:.4f}" in repr(opened)
    names = {"adapt.json", "bank", WEIGHTS, "source-train.npz", "split.npz"}
    names |= {"target.npz", *(["features"] if mode == "frozen" else [])}
    assert {file.name for file in made.folder.iterdir()} == names


@BOTH
def test_no_label_of_the_target_decides_anything(tmp_path, finished, mode):
    target, expected = domains(N)[1], arrays_of(finished[mode].folder)
    for name, labels in (("bare", None), ("wrong", np.roll(target.labels, 1))):
        other = target.relabelled(labels, classes=CLASSES)
        made = run(tmp_path / name, mode, target=other)
        assert made.accuracy != finished[mode].accuracy
        came = arrays_of(made.folder)
        # The origin of a scores file names its labels.
        apart = {"target.npz/labels", "target.npz/origin"}
        assert came.keys() | apart == expected.keys() | apart
        for array in expected.keys() - apart:
            assert came[array] == expected[array], array


@BOTH
def test_the_held_out_half_of_the_target_is_never_trained_on(tmp_path, finished, mode):
    """Another held-out half gives the same network; another seen half does not."""

    def with_other(part):
        images, labels = drawn(N, shift=0.7, seed=2)
        rows = getattr(finished[mode].split, part)
        images[rows] = 255 - images[rows]
        target = as_image_set(images, labels=labels, classes=CLASSES)
        made = run(tmp_path / part, mode, target=target)
        return (made.folder / WEIGHTS).read_bytes()

    before = (finished[mode].folder / WEIGHTS).read_bytes()
    assert with_other("held_out") == before
    assert with_other("seen") != before


@BOTH
def test_the_same_call_has_nothing_to_do_and_a_seed_is_a_result(tmp_path, finished, mode):
    before = times(finished[mode].folder)
    again = run(finished[mode].folder, mode)
    assert again.finished_before
    assert times(finished[mode].folder) == before
    assert again.document == finished[mode].document
    torch.manual_seed(5)
    state = torch.get_rng_state()
    same = run(tmp_path / "same", mode)
    assert torch.equal(torch.get_rng_state(), state)
    assert arrays_of(same.folder) == arrays_of(finished[mode].folder)
    other = run(tmp_path / "other", mode, seed=1)
    assert (other.split.train != finished[mode].split.train).any()


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("frozen", {"seed": 7}, "another run: seed differ. Pass the same"),
        ("frozen", {"trainer": "mcc", "severities": (1,)}, "settings, severities, trainer differ"),
        ("frozen", {"backbone": colour_model(key="v2")}, "backbone differ"),
        ("frozen", {"target": domains(N)[1].subset(np.arange(N)[::-1])}, "images, labels differ"),
        ("network", {"backbone": one_layer(4)}, "backbone differ"),
        ("network", {"transform": "none"}, "transform differ"),
    ],
)
def test_another_run_in_the_same_folder_raises(finished, mode, options, message):
    before = times(finished[mode].folder)
    with pytest.raises(FileError, match="holds another run") as raised:
        run(finished[mode].folder, mode, **options)
    assert message in str(raised.value)
    assert times(finished[mode].folder) == before


@pytest.mark.parametrize(
    ("mode", "place", "number"),
    [
        ("frozen", "batch", 17),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("frozen", "model", 5),
                ("frozen", "write", 1),
                ("frozen", "write", 9),
                ("frozen", "write", 15),
                ("network", "batch", 17),
                ("network", "write", 4),
                ("network", "write", 9),
            )
        ),
    ],
)
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, mode, place, number):
    whole = adapted(tmp_path / "whole", mode).folder
    folder = tmp_path / "run"
    killed(folder, mode, place, number)
    with pytest.raises(FileError, match="holds a run that is not finished"):
        Adapted.open(folder)
    made = adapted(folder, mode)
    assert made.resumed_at == 14 or place != "batch"
    for file in whole.rglob("*"):
        if file.is_file():
            assert (folder / file.relative_to(whole)).read_bytes() == file.read_bytes(), file
    assert {file.name for file in folder.iterdir()} == {file.name for file in whole.iterdir()}


def test_features_are_shared_between_runs_and_not_needed_after(tmp_path):
    counting = Counting()
    for trainer in ("dan", "mcc"):
        options = {"trainer": trainer, "features": tmp_path / "shared"}
        made = run(tmp_path / trainer, "frozen", backbone=colour_model(counting), **options)
        assert counting.seen == 2 * N + 3 * len(made.split.calibration)
    assert not (made.folder / "features").exists()
    shutil.rmtree(tmp_path / "shared")
    assert run(made.folder, "frozen", backbone=colour_model(counting), **options).finished_before
    assert counting.seen == 2 * N + 3 * len(made.split.calibration)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Features of both domains, the source's at severities 1 and 5."""
    folder = tmp_path_factory.mktemp("features")
    source, target = domains(N)
    return (
        frozen_features(colour_model(), source, folder / "source", severities=(1, 5)),
        frozen_features(colour_model(), target, folder / "target", severities=()),
    )


def test_with_features_no_backbone_is_made(tmp_path, pair, finished):
    made = run(tmp_path / "run", "frozen", backbone="no such thing", features=pair)
    for name, array in arrays_of(finished["frozen"].folder).items():
        if name.startswith(("bank", "target", WEIGHTS)):
            assert arrays_of(made.folder)[name] == array


def test_features_of_something_else_raise(tmp_path, pair):
    other = frozen_features(colour_model(key="v2"), domains(N)[1], tmp_path / "f", severities=())
    turned = domains(N)[0].subset(np.arange(N)[::-1])
    for options in (
        {"source": turned},
        {"features": (pair[0], pair[0])},
        {"features": (pair[0], other)},
        {"corruption": "fog"},
    ):
        with pytest.raises(InputError, match="features must be of the source and target images"):
            run(tmp_path / "run", "frozen", **{"features": pair, **options})
    with pytest.raises(FileError, match="no features of pixelate at severity 3"):
        run(tmp_path / "run", "frozen", features=pair, severities=(1, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": None}, "backbone must be a name such as 'resnet50'"),
        ({"trainer": "cdam"}, "no trainer is called 'cdam'. Did you mean 'cdan'"),
        ({"severities": ()}, "severities must name at least one"),
        ({"severities": (6,)}, "severity must be .* 5; got 6"),
        ({"transform": "none"}, "a frozen backbone sees none"),
        ({"device": "abacus"}, "device must be one that torch has here"),
        ({"features": "f", "frozen": False}, "features are those of a frozen backbone"),
        ({"source": as_image_set(drawn(9)[0])}, "has no labels, and the source needs them"),
    ],
)
def test_bad_input_raises_before_anything_is_done(tmp_path, options, message):
    with pytest.raises((InputError, UnknownName), match=message):
        run(tmp_path / "run", "frozen", **options)
    assert not (tmp_path / "run").exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match=r"holds 'letter\.txt' and is not a run"):
        run(tmp_path, "frozen")
    with pytest.raises(FileError, match="is a file"):
        run(tmp_path / "letter.txt", "frozen")
    with pytest.raises(FileError, match=r"holds no run: there is no adapt\.json in it"):
        Adapted.open(tmp_path)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / ".lock").touch()  # of a process that was killed at once
    assert run(tmp_path / "begun", "frozen").accuracy is not None


def test_images_are_read_from_files_by_workers_too(tmp_path):
    for name, (images, labels) in {"a": drawn(N, seed=1), "b": drawn(N, seed=2)}.items():
        write_domain(tmp_path / name, images, labels)

    def weights(folder, **options):
        sets = {"source": tmp_path / "a", "target": tmp_path / "b", "transform": "none"}
        made = run(tmp_path / folder, "network", **sets, **options)
        return (made.folder / WEIGHTS).read_bytes()

    assert weights("by-worker", workers=1) == weights("read")
    for file in (tmp_path / "b" / "ant").iterdir():
        file.write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"b/ant/\d+\.png .* No image is left out of a training"):
        weights("broken")


def test_a_named_backbone_is_rebuilt_from_its_name_and_a_module_must_be_passed(tmp_path, finished):
    made = run(tmp_path / "run", "network", backbone="digits-cnn")
    assert made.document["recipe"] == "digits"
    scored = sc.score(Adapted.open(made.folder).model(), domains(N)[1].subset(made.split.held_out))
    np.testing.assert_allclose(scored.values, made.target.values, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="does not say how its model is made"):
        finished["network"].model()
    with pytest.raises(FileError, match="does not hold the weights of the network of"):
        finished["network"].model(torch.nn.Sequential(OneLayer(), torch.nn.Conv2d(8, 8, 1)))


def test_the_model_of_frozen_features_takes_images(tmp_path):
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    made = run(tmp_path / "run", "frozen", backbone=f"{tmp_path / 'net.onnx'}?features_from=x")
    model = Adapted.open(made.folder).model()
    assert model.classes == CLASSES
    assert model.fingerprint == made.bank.origin["model"]["fingerprint"]
    scored = sc.score(model, domains(N)[1].subset(made.split.held_out))
    np.testing.assert_allclose(scored.values, made.target.values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scored.features, made.target.features, rtol=1e-4, atol=1e-5)
    (tmp_path / "other.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    with pytest.raises(InputError, match="was made with another backbone"):
        made.model(f"{tmp_path / 'other.onnx'}?features_from=x")


def changed(adapted, **entries):
    file = adapted.folder / "adapt.json"
    write_document(file, {**adapted.document, **entries}, format=FORMAT, version=VERSION)
    return Adapted.open(adapted.folder)


@pytest.mark.parametrize(
    ("spec", "frozen"),
    [
        ("python:os:system?features_from=x", True),
        ("timm:resnet18", False),
        ("resnet50", True),  # downloaded; trained whole, its weights are in the run
    ],
)
def test_a_stored_backbone_that_would_run_code_must_be_named_by_the_user(copied, spec, frozen):
    backbone = {**copied.document["backbone"], "spec": spec}
    with pytest.raises(InputError, match=r"may run code or contact a host.*adapted\.model\('"):
        changed(copied, backbone=backbone, frozen=frozen).model()


def test_damaged_files_raise_with_their_name(copied):
    settings = {**copied.document["settings"], "bottleneck": 6}
    with pytest.raises(FileError, match="does not hold the weights of the network of"):
        changed(copied, settings=settings).classifier()
    for name, get in (
        (WEIGHTS, copied.classifier),
        ("split.npz", lambda: copied.split),
        ("adapt.json", lambda: Adapted.open(copied.folder)),
    ):
        file = copied.folder / name
        file.write_bytes(file.read_bytes()[:100])
        with pytest.raises(FileError, match=name):
            get()


def test_the_parts_of_a_task_are_the_papers_and_come_from_the_seed():
    source, target = domains(50)
    parts = Task(source, target).split(3)
    assert [len(part) for part in vars(parts).values()] == [40, 10, 25, 25]
    np.testing.assert_array_equal(parts.train, source_split(source.labels, seed=3)[0])
    np.testing.assert_array_equal(parts.seen, target_split(50, seed=3)[0])
    bare = Task(source, target.relabelled(None))
    assert (bare.classes, bare.n_classes) == (CLASSES, 3)


IMAGES, LABELS = drawn(30)


def named(classes, factor=1):
    return as_image_set(IMAGES, labels=factor * LABELS, classes=classes)


SOURCE = named(CLASSES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Task(as_image_set(IMAGES), SOURCE), "has no labels"),
        (lambda: Task(SOURCE, named(CLASSES[::-1])), "must have the classes of"),
        (lambda: Task(SOURCE, as_image_set(IMAGES, labels=LABELS + 3)), "labels of .* below 3"),
        (lambda: Task(named(("ant",), 0), as_image_set(IMAGES)), "two classes"),
        (lambda: Task(SOURCE.subset([0, 1]), SOURCE).split(), "must have 3 images; it has 2"),
        (lambda: Task(SOURCE, SOURCE.subset([0])).split(), "must have 2 images; it has 1"),
    ],
)
def test_tasks_that_cannot_be_raise(call, message):
    with pytest.raises(InputError, match=message):
        call()

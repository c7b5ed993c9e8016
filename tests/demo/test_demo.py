from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from absent_package import hide
from cifar_copies import drawn, publish, write_python_batches
from PIL import Image
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from small_demo import Steps, demonstrate, small_subject, whole_subject

import shiftcal as sc
from shiftcal import demo as demo_module
from shiftcal.demo import (
    STEPS,
    Network,
    Target,
    cifar_subject,
    enlarged,
    model_of,
    rows_of,
    run_demo,
)
from shiftcal.errors import FileError, MissingData
from shiftcal.scoring.run import Reporting

pytestmark = pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with a small demonstration, what it found and what it told; read-only."""
    folder = tmp_path_factory.mktemp("done") / "demo"
    told = Steps()
    return folder, demonstrate(folder, step=told), told


@pytest.fixture
def copied(done, tmp_path):
    """The folder again, for a test of its own."""
    shutil.copytree(done[0], tmp_path / "demo")
    return tmp_path / "demo"


def test_every_step_is_told(done):
    _, found, told = done
    assert len(told.steps) == STEPS
    assert "brightness" in found.subject.corruptions
    assert "bank of 11 sets" in told.steps[1]


def test_the_files_are_of_the_kinds_that_commands_take(done):
    folder, found, _ = done
    bank = sc.SurrogateBank.load(folder / "bank")
    assert len(bank) == found.n_sets == 11
    assert bank.clean.features is not None
    for met in found.targets:
        scores = sc.read_scores(met.scores)
        assert (scores.n, scores.k) == (200, 10)
        assert scores.features is not None
        assert np.load(folder / f"{met.target.name}-images.npy").shape[0] == 200
    assert sc.read_scores(folder / "train.npz").features.shape == (240, 64)
    assert isinstance(sc.load(folder / "rehearsal.json"), sc.Rehearsal)
    assert "<!doctype html>" in (folder / "report.html").read_text().lower()


def test_the_numbers_are_those_of_the_files(done):
    folder, found, _ = done
    told = json.loads((folder / "demo.json").read_text())
    bank = sc.SurrogateBank.load(folder / "bank")
    right = bank.clean.logits.argmax(axis=1) == bank.clean.labels
    assert told["clean_accuracy"] == pytest.approx(right.mean(), abs=1e-12)
    names = ("vanilla", "sts", "sac", "rehearsal")
    fitted = {name: sc.methods.get(name)().fit(bank) for name in names}
    for one in told["targets"]:
        scores = sc.read_scores(one["scores"])
        by_name = {method["name"]: method for method in one["methods"]}
        for name, method in fitted.items():
            method.adapt(scores.values)
            probs = method.predict_proba(scores.values)
            ece = sc.ece(probs.max(axis=1), probs.argmax(axis=1) == scores.labels)
            # The scores are float32; the map is the same to the last bits.
            assert by_name[name]["ece"]["value"] == pytest.approx(ece, abs=1e-6), name
            assert by_name[name]["mean_confidence"] == pytest.approx(probs.max(axis=1).mean())
    assert [one["name"] for one in told["targets"]] == [met.target.name for met in found.targets]


def test_run_again_it_finds_its_work_done(copied, monkeypatch):
    before = {file: file.stat().st_mtime_ns for file in copied.rglob("*.npz")}
    old = json.loads((copied / "demo.json").read_text())
    calls = []
    network = Network.__call__
    monkeypatch.setattr(
        Network, "__call__", lambda self, images: calls.append(1) or network(self, images)
    )
    demonstrate(copied)
    assert not calls
    assert {file: file.stat().st_mtime_ns for file in copied.rglob("*.npz")} == before
    new = json.loads((copied / "demo.json").read_text())
    for told in (old, new):
        del told["seconds"], told["next"], told["folder"], told["report"]
        for one in told["targets"]:
            del one["scores"]
    assert new == old


def test_it_goes_on_where_it_was_stopped(tmp_path):
    told = Steps(KeyboardInterrupt(), at=4)
    with pytest.raises(KeyboardInterrupt):
        demonstrate(tmp_path / "demo", step=told)
    banked = (tmp_path / "demo" / "bank" / "bank.json").stat().st_mtime_ns
    assert not (tmp_path / "demo" / "report.html").exists()
    demonstrate(tmp_path / "demo")
    assert (tmp_path / "demo" / "bank" / "bank.json").stat().st_mtime_ns == banked
    assert (tmp_path / "demo" / "report.html").exists()
    assert not list((tmp_path / "demo").rglob("*.tmp"))


def other_model():
    network = whole_subject().model.function
    other = object.__new__(Network)
    other.weights = [weights * 0.5 for weights in network.weights]
    other.biases = network.biases
    return model_of(other)


def test_the_bank_of_another_network_is_made_anew(copied):
    before = sc.SurrogateBank.load(copied / "bank").clean.logits
    found = demonstrate(copied, small_subject(model=other_model()))
    after = sc.SurrogateBank.load(copied / "bank").clean.logits
    assert not np.array_equal(before, after)
    facts = found.targets[0].facts
    assert not [note for note in facts.warnings if note.code == "another-model"]


def test_a_disk_that_fails_is_no_other_network(copied, monkeypatch):
    def full(*_, **__):
        raise FileError("no room") from OSError(28, "No space left on device")

    monkeypatch.setattr(demo_module, "build_bank", full)
    with pytest.raises(FileError, match="no room"):
        demonstrate(copied)
    assert len(sc.SurrogateBank.load(copied / "bank")) == 11


def test_without_extras_and_training_images_the_rest_is_there(copied, done, monkeypatch):
    hide(monkeypatch, "jinja2")
    hide(monkeypatch, "PIL")
    found = demonstrate(copied, replace(small_subject(), train=None))
    assert found.report is None
    assert "needs jinja2" in found.no_report
    assert "pip install 'shiftcal[report]'" in found.no_report
    assert not (copied / "report.html").exists()  # that of the run before
    assert json.loads((copied / "demo.json").read_text())["report"] is None
    assert [words[1] for words in found.next] == ["apply", "compare", "estimate"]
    assert found.targets[0].facts.examples == ()
    assert done[1].targets[0].facts.examples
    assert not (copied / "train.npz").exists()
    assert {"cpcs", "transcal"} <= set(found.targets[0].facts.missing)
    assert "--source-train" not in found.next[1]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"holiday.jpg": ""}, r"holds 'holiday\.jpg' and is no folder of a demo.*with -o"),
        ({"demo.json": "["}, r"holds 'demo\.json' and is no folder of a demo"),
        ({"demo.json": "[" * 9999}, r"holds 'demo\.json' and is no folder of a demo"),
        ({"demo.json": '{"format": "shiftcal-bank", "data": "digits"}'}, "no folder of a demo"),
        (
            {"demo.json": '{"format": "shiftcal-demo", "data": "cifar10"}'},
            "holds the demo with cifar10, not digits",
        ),
        (None, "Not a directory"),
    ],
)
def test_a_folder_of_something_else_is_rejected_first(tmp_path, files, words):
    folder, steps = tmp_path / "demo", Steps()
    if files is None:
        folder.touch()
    else:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    with pytest.raises(FileError, match=words):
        demonstrate(folder, step=steps)
    assert steps.steps == []


@pytest.fixture(scope="module")
def pictures():
    return enlarged(load_digits().images)


def test_the_network_is_that_of_scikit_learn(pictures):
    labels = load_digits().target
    with pytest.warns(UserWarning, match="Maximum iterations"):
        theirs = MLPClassifier((16, 8), max_iter=3, random_state=1).fit(
            rows_of(pictures[:300]), labels[:300]
        )
    logits, hidden = Network(theirs)(pictures[300:400, ..., None])
    # Sums of a thousand products in another order.
    wanted = theirs.predict_proba(rows_of(pictures[300:400]))
    np.testing.assert_allclose(softmax(logits, axis=1), wanted, rtol=1e-9, atol=1e-12)
    assert hidden.shape == (100, 8)
    assert hidden.min() == 0.0


def test_pictures_are_the_digits_enlarged(pictures):
    assert pictures.shape == (1797, 32, 32)
    assert pictures.dtype == np.uint8
    level = enlarged(np.full((1, 8, 8), 4.0))
    np.testing.assert_array_equal(level, np.full((1, 32, 32), 64))  # 4 of 16, rounded
    for digit, picture in zip(load_digits().images[:20], pictures, strict=False):
        theirs = Image.fromarray((digit * 255 / 16).astype(np.float32)).resize(
            (32, 32), Image.Resampling.BILINEAR
        )
        # Pillow's weights are of single precision, which may round a half the other way.
        assert np.abs(np.asarray(theirs) - picture).max() < 0.51


def test_no_digit_is_used_twice(pictures):
    subject = whole_subject()
    train, calibration = (
        {int(name) for name in part.ids(range(len(part)))}
        for part in (subject.train, subject.calibration)
    )
    new = sorted(set(range(1797)) - train - calibration)
    assert (len(train), len(calibration), len(new)) == (600, 598, 599)
    np.testing.assert_array_equal(subject.new, pictures[new])
    np.testing.assert_array_equal(subject.new_labels, load_digits().target[new])


def test_corruptions_of_targets_are_not_in_the_bank():
    subject = whole_subject()
    assert {one.corruption for one in subject.targets}.isdisjoint(subject.corruptions)
    assert [one.mixture for one in subject.targets] == [False, True, False]


def test_every_second_image_of_a_mixture_is_unchanged():
    new = whole_subject().new[:9]
    before = new.copy()
    all_of_them = Target("a", "a", "fog", 2).images(new, table="imagenet")
    mixed = Target("a", "a", "fog", 2, mixture=True).images(new, table="imagenet")
    np.testing.assert_array_equal(mixed[::2], new[::2])
    np.testing.assert_array_equal(mixed[1::2], all_of_them[1::2])
    assert (all_of_them != new).any(axis=(1, 2)).all()
    np.testing.assert_array_equal(new, before)


WEIGHTS = "resnet20-12fca82f.th"


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(demo_module, "CALIBRATED_ON", 20)


@pytest.fixture
def weights(shared_data):
    return shared_data / "cifar10-resnet-weights" / WEIGHTS


def pair(n, seed):
    return drawn(n, seed), (np.arange(n) % 10).tolist()


def mosaic(folder, name, n, seed):
    folder.mkdir(parents=True, exist_ok=True)
    rows = drawn(n, seed).reshape(-1, 10, 32, 32, 3).transpose(0, 2, 1, 3, 4)
    picture = rows.reshape(-1, 320, 3)
    Image.fromarray(picture).save(folder / f"{name}.webp", lossless=True)


@pytest.mark.parametrize(("place", "beside"), [("cifar10", "cifar10-resnet-weights"), (".", ".")])
def test_batches_and_weights_are_found_where_they_are_usual(
    tmp_path, monkeypatch, few, weights, place, beside
):
    train = [pair(10, 50 + i) for i in range(5)]
    write_python_batches(tmp_path / place / "cifar-10-batches-py", pair(60, 1), train)
    publish(monkeypatch, tmp_path)
    (tmp_path / beside).mkdir(exist_ok=True)
    shutil.copy(weights, tmp_path / beside / WEIGHTS)
    subject = cifar_subject(tmp_path)
    assert (len(subject.calibration), len(subject.new)) == (20, 20)
    assert len(subject.train) == 20
    used = {int(name) for name in subject.calibration.ids(range(20))}
    new = {next(i for i in range(60) if (drawn(60, 1)[i] == one).all()) for one in subject.new}
    assert len(used | new) == 40
    assert subject.model.spec is not None  # so that `shiftcal score --bank` can make it again
    assert WEIGHTS in subject.model.spec
    assert subject.model.classes[3] == "cat"  # the page names classes, not numbers


def test_mosaics_are_found_too_and_training_images_can_be_missing(tmp_path, few, weights):
    mosaic(tmp_path / "cifar10", "test", 60, 2)
    np.savez(tmp_path / "cifar10" / "labels.npz", test=np.arange(60) % 10)
    shutil.copy(weights, tmp_path / WEIGHTS)
    subject = cifar_subject(tmp_path)
    assert subject.train is None
    assert subject.calibration.classes[3] == "cat"
    assert {one.corruption for one in subject.targets}.isdisjoint(subject.corruptions)


def test_a_training_set_with_holes_is_left_aside(tmp_path, monkeypatch, few, weights):
    folder = tmp_path / "cifar-10-batches-py"
    write_python_batches(folder, pair(60, 1), [pair(10, 3)])
    publish(monkeypatch, tmp_path)
    shutil.copy(weights, tmp_path / WEIGHTS)
    assert cifar_subject(tmp_path).train is None


def test_missing_data_is_named_with_how_to_get_it(tmp_path, monkeypatch):
    with pytest.raises(MissingData, match=r"must be a folder with CIFAR-10.*data get.*weights"):
        cifar_subject(tmp_path / "nowhere")
    with pytest.raises(MissingData, match=r"lacks CIFAR-10 .*data get.*weights"):
        cifar_subject(tmp_path)
    write_python_batches(tmp_path / "cifar-10-batches-py", pair(60, 1))
    publish(monkeypatch, tmp_path)
    with pytest.raises(MissingData, match=f"lacks weights .*{WEIGHTS}"):
        cifar_subject(tmp_path)


def test_damaged_files_are_refused_by_name(tmp_path, monkeypatch, few):
    write_python_batches(tmp_path / "cifar-10-batches-py", pair(60, 1))
    publish(monkeypatch, tmp_path)
    (tmp_path / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(FileError, match=WEIGHTS):
        cifar_subject(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(b"no batch")
    with pytest.raises(FileError, match="test_batch"):
        cifar_subject(tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_real_images_and_the_real_network(tmp_path, shared_data, monkeypatch):
    monkeypatch.setattr(demo_module, "CALIBRATED_ON", 120)
    whole = cifar_subject(shared_data)
    # Fewer sets, and corruptions that are soon compiled.
    subject = replace(whole, corruptions=("brightness", "gaussian_noise"), n_resamples=50)
    found = run_demo(
        lambda: subject,
        "cifar10",
        tmp_path / "demo",
        step=Steps(),
        reporting=Reporting(shown=False),
        command="shiftcal demo",
    )
    # Published: 91.7 %; 120 images have a standard error of 2.5 points.
    assert found.clean_accuracy > 0.84
    frost = found.targets[0].facts
    assert frost.target.mean_confidence > frost.target.accuracy.value + 0.1
    assert frost.of("rehearsal").ece.value < frost.of("vanilla").ece.value
    assert {"cpcs", "transcal"}.isdisjoint(frost.missing)
    assert {one.name for one in frost.classes} == set(whole.calibration.classes)

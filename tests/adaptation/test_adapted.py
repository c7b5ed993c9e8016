"""Finished runs, opened again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from two_domains import CLASSES, domains

import shiftcal as sc
from shiftcal.adaptation import Adapted, Settings, adapt
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.errors import FileError, InputError, UnknownName

N = 45
QUICK = {"iterations": 15, "batch_size": 6, "bottleneck": 5, "trade_off": 0.25}


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """The text of an ONNX file that gives features."""
    file = tmp_path_factory.mktemp("net") / "net.onnx"
    file.write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    return f"{file}?features_from=x"


@pytest.fixture(scope="module")
def finished(tmp_path_factory, backbone):
    folder = tmp_path_factory.mktemp("run") / "run"
    options = {"trainer": "safn", "frozen": True, "changes": QUICK, "severities": (5,)}
    with cpu_threads(1):
        return adapt(*domains(N), folder, backbone=backbone, **options)


@pytest.fixture
def copied(tmp_path, finished):
    return Adapted.open(shutil.copytree(finished.folder, tmp_path / "copy"))


def changed(adapted, **entries):
    """The same run with other entries in its document."""
    file = adapted.folder / "adapt.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))
    return file


def test_a_run_says_what_it_is(finished):
    opened = Adapted.open(finished.folder)
    assert opened.trainer.label == "SAFN"
    assert opened.trainer.trade_off == 0.25
    assert isinstance(opened.settings, Settings)
    assert (opened.settings.iterations, opened.settings.bottleneck) == (15, 5)
    assert [row.step for row in opened.history] == list(range(1, 16))
    assert repr(opened) == (
        f"<Adapted: SAFN in {finished.folder}, accuracy {opened.accuracy:.4f} on the held-out "
        "target>"
    )


def test_its_model_takes_images(finished):
    model = Adapted.open(finished.folder).model()
    assert model.classes == CLASSES
    assert model.fingerprint == finished.bank.origin["model"]["fingerprint"]
    source, target = domains(N)
    scored = sc.score(model, target.subset(finished.split.held_out))
    # The last digits go by the number of rows that the heads are given.
    np.testing.assert_allclose(scored.values, finished.target.values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scored.features, finished.target.features, rtol=1e-4, atol=1e-5)
    bank = sc.SurrogateBank.synthesize(
        model, source.subset(finished.split.calibration), severities=(5,)
    )
    for mine, theirs in zip(bank, finished.bank, strict=True):
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=1e-4, atol=1e-5)


def test_scores_say_which_model_they_are_of(finished):
    from shiftcal.scores._origin import model_digest, model_digest_of_file

    digest = model_digest(finished.bank.origin)
    assert digest is not None
    for name in ("target.npz", "source-train.npz"):
        assert model_digest_of_file(finished.folder / name) == digest


def test_another_backbone_is_refused(finished, tmp_path):
    (tmp_path / "other.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    with pytest.raises(InputError, match="was made with another backbone"):
        finished.model(f"{tmp_path / 'other.onnx'}?features_from=x")


def test_a_backbone_that_would_run_code_must_be_named_by_the_user(copied):
    told = {**copied.document["backbone"], "spec": "python:os:system?features_from=x"}
    changed(copied, backbone=told)
    with pytest.raises(InputError, match="making it would run code"):
        Adapted.open(copied.folder).model()


def test_bottleneck_features_can_be_left_out(tmp_path, backbone):
    made = adapt(
        *domains(N),
        tmp_path / "run",
        trainer="source-only",
        backbone=backbone,
        frozen=True,
        changes={**QUICK, "bottleneck": 0},
        severities=(5,),
    )
    from shiftcal.adaptation.frozen import Frozen

    source = Frozen.open(made.document["backbone"]["features"][0])
    np.testing.assert_array_equal(made.source_features, source.features()[made.split.train])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", r"adapt\.json is damaged: not JSON"),
        ("[]", "does not describe a run"),
        ('{"format": "shiftcal-adapted", "version": 99}', "format version 99"),
    ],
)
def test_a_document_that_cannot_be_read_is_told(copied, content, told):
    (copied.folder / "adapt.json").write_text(content)
    with pytest.raises(FileError, match=told):
        Adapted.open(copied.folder)


def test_a_folder_without_a_run_is_told(tmp_path):
    with pytest.raises(FileError, match=r"holds no run: there is no adapt\.json in it"):
        Adapted.open(tmp_path)


def test_damaged_weights_are_told(copied):
    file = copied.folder / "classifier.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(FileError, match=r"classifier\.safetensors"):
        copied.classifier()


def test_weights_of_another_network_are_told(copied):
    changed(copied, settings={**copied.document["settings"], "bottleneck": 6})
    with pytest.raises(FileError, match="does not hold the weights of the network of"):
        Adapted.open(copied.folder).classifier()


def test_an_unknown_trainer_is_told(copied):
    changed(copied, trainer="from-the-future")
    with pytest.raises(UnknownName, match="no trainer is called 'from-the-future'"):
        _ = Adapted.open(copied.folder).trainer


@pytest.mark.parametrize(
    "damaged", [lambda data: data[: len(data) // 2], lambda _: b"nothing", lambda _: b""]
)
def test_a_damaged_split_is_told(copied, damaged):
    file = copied.folder / "split.npz"
    file.write_bytes(damaged(file.read_bytes()))
    with pytest.raises(FileError, match=r"split\.npz could not be read: .* run again"):
        _ = copied.split


def test_a_split_of_other_parts_is_told(copied):
    np.savez(copied.folder / "split.npz", train=np.arange(3))
    with pytest.raises(FileError, match="must hold train, calibration, seen, held_out; it holds t"):
        _ = copied.split


@pytest.mark.parametrize(
    ("name", "entries", "told"),
    [
        ("settings", {"settings": {"iterations": 5, "speed": 3}}, "settings: .*'speed'"),
        ("settings", {"settings": {"iterations": -5}}, "settings: iterations must be"),
        ("settings", {"settings": None}, "settings: "),
        ("trainer", {"options": {"strength": 2}}, "trainer and options: .*'strength'"),
        ("accuracy", {"accuracy": {}}, "accuracy: 'target'"),
    ],
)
def test_entries_that_cannot_be_used_are_told(copied, name, entries, told):
    changed(copied, **entries)
    with pytest.raises(FileError, match=rf"adapt\.json is damaged, .* in its {told}"):
        getattr(Adapted.open(copied.folder), name)


def test_numbers_of_a_run_are_read_without_torch(finished):
    code = (
        "import sys\n"
        "from shiftcal.adaptation import Adapted\n"
        f"run = Adapted.open({str(finished.folder)!r})\n"
        "run.bank, run.target, run.source_features, run.history, run.split, run.settings, repr(run)"
        "\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr

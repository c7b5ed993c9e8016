"""``shiftcal bank``, ``score`` and ``merge``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from bank_process import kill, wait_for
from exact_model import write_parts
from ladder_data import draw
from onnx_resnet import mean_colour_onnx, resnet20_onnx
from small_disk import files
from stored_images import draw_images, encode, write_images

import shiftcal as sc
from shiftcal import SurrogateBank, corrupt, read_scores
from shiftcal.models import as_model
from shiftcal.scoring.statistics import ScoreStatistics

# Six each are red, green, blue, as the network of mean colours has its classes.
IMAGES = draw_images(18, 16, 16, seed=30) // 2
IMAGES[np.arange(18), ..., np.arange(18) // 6] += 100
CLASSES = ("ant", "bee", "cat")
NAMES = [f"{CLASSES[i // 6]}/{i:02d}.png" for i in range(18)]
COMMAND = "bank --model net.onnx --images images --batch-size 6 --shard-size 6"
FEW = "the clean set has 18 images; fewer than 100 tell little. Add more."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A network of three classes, images in class folders, and an array of them."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    write_images(tmp_path / "images", IMAGES, NAMES)
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "three.npy", np.arange(18) // 6)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def contents(bank):
    return {file.name: file.read_bytes() for file in bank.iterdir()}


def test_a_bank_is_made_and_says_what_is_next(folder, shiftcal):
    done = shiftcal(COMMAND, "--corruption pixelate -o bank")
    assert (done.status, done.err) == (0, f"warning: {FEW}\n")
    bank = SurrogateBank.load("bank")
    lines = done.out.splitlines()
    for line, each in zip(lines[1:7], bank.summaries(), strict=True):
        assert line.endswith(
            f" {each.n}           {each.mean_confidence:.4f}    {each.accuracy:.4f}"
        )
    assert lines[-1] == "next      shiftcal score --bank bank --images NEW -o new.npz"
    model = as_model("net.onnx", batch_size=6)
    for each in bank:
        pixels = corrupt(IMAGES, "pixelate", severity=each.severity) if each.severity else IMAGES
        np.testing.assert_array_equal(each.logits, model.logits(pixels))
        assert each.labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert bank.origin["model"]["spec"] == f"onnx:{folder / 'net.onnx'}"


def test_the_same_command_again_has_nothing_to_do_and_a_bank_is_added_to(folder, shiftcal_json):
    shiftcal_json(COMMAND, "-o bank --severity 1")
    before = contents(folder / "bank")
    told = shiftcal_json(COMMAND, "-o bank --severity 1")
    assert (told["sets_added"], told["images_scored"]) == (0, 0)
    assert contents(folder / "bank") == before
    told = shiftcal_json(COMMAND, "-o bank --severity 1-2 --corruption pixelate,fog")
    assert (told["sets_added"], told["images_scored"]) == (3, 54)


def test_two_workers_make_the_same_bank(folder, shiftcal):
    shiftcal(COMMAND, "--severity 1 -o one")
    done = shiftcal(COMMAND, "--severity 1 --workers 2 -o two")
    assert done.status == 0, done.err
    assert contents(folder / "one") == contents(folder / "two")


def test_a_function_of_ones_own_is_a_corruption(folder, shiftcal):
    (folder / "mine.py").write_text("def dark(image, severity):\n    return image // severity\n")
    done = shiftcal(COMMAND, "--corruption mine:dark --severity 2 -o bank")
    assert done.status == 0, done.err
    np.testing.assert_array_equal(
        SurrogateBank.load("bank")[1].logits, as_model("net.onnx", batch_size=6).logits(IMAGES // 2)
    )


@pytest.fixture
def damaged(folder):
    """Four images that cannot be read: cut short, empty, something else, gone."""
    png = (folder / "images" / NAMES[0]).read_bytes()
    (folder / "images" / NAMES[0]).write_bytes(png[: len(png) // 2])
    (folder / "images" / NAMES[7]).write_bytes(b"")
    (folder / "images" / NAMES[8]).write_text("this is no image")
    jpeg = encode(IMAGES[17], "JPEG")
    (folder / "images" / NAMES[17]).unlink()
    (folder / "images" / "cat" / "17.jpg").write_bytes(jpeg[: len(jpeg) // 3])
    return ["ant/00.png", "bee/07.png", "bee/08.png", "cat/17.jpg"]


def test_images_that_cannot_be_read_are_left_out_listed_and_status_2(folder, shiftcal, damaged):
    done = shiftcal(COMMAND, "--severity 1 -o bank")
    assert done.status == 2
    assert "left out       4\n" in done.out
    lines = done.err.splitlines()
    assert lines[0].startswith("warning: left out 4 of 18 images: ")
    assert "ant/00.png" in lines[0]
    assert lines[-1].startswith("error: images that could not be read: 4.")
    bank = SurrogateBank.load("bank")
    assert [len(each) for each in bank] == [14, 14]
    assert [bad["id"] for bad in bank.origin["left_out"]] == damaged


def test_no_better_than_guessing_is_warned_of(folder, shiftcal_json):
    np.save("wrong.npy", (np.arange(18) // 6 + 1) % 3)
    told = shiftcal_json(
        "bank --model net.onnx --images images.npy --labels wrong.npy --severity 1 -o bank"
    )
    assert told["sets"][0]["accuracy"] == 0
    assert "no better than guessing among 3 classes" in told["warnings"][0]


def test_classes_are_named_by_commas_or_by_a_file(folder, shiftcal):
    (folder / "names.txt").write_text("cat\nbee\nant\n")
    assert shiftcal(COMMAND, "--classes cat,bee,ant --severity 1 -o a").status == 0
    assert shiftcal(COMMAND, "--classes names.txt --severity 1 -o b").status == 0
    for name in ("a", "b"):
        bank = SurrogateBank.load(name)
        assert bank.classes == ("cat", "bee", "ant")
        assert bank.clean.labels.tolist() == [2] * 6 + [1] * 6 + [0] * 6


def test_what_others_print_does_not_break_the_document(folder, shiftcal_json):
    (folder / "chatty.py").write_text(
        'def dark(image):\n    print("hello")\n    return image // 2\n'
    )
    told = shiftcal_json(COMMAND, "--corruption chatty:dark --severity 1 -o bank")
    assert told["sets_added"] == 2


def random_resnet20():
    """An ONNX file of the right size; its weights do not matter."""
    rng = np.random.default_rng(0)
    weights, width = {}, 3

    def layer(name, norm, before, after):
        weights[f"{name}.weight"] = rng.standard_normal((after, before, 3, 3), np.float32) / 10
        for part in ("weight", "bias", "running_mean", "running_var"):
            weights[f"{norm}.{part}"] = np.ones(after, np.float32)

    layer("conv1", "bn1", 3, 16)
    width = 16
    for stage, after in ((1, 16), (2, 32), (3, 64)):
        for block in range(3):
            name = f"layer{stage}.{block}"
            layer(f"{name}.conv1", f"{name}.bn1", width, after)
            layer(f"{name}.conv2", f"{name}.bn2", after, after)
            width = after
    weights["linear.weight"] = rng.standard_normal((10, 64), np.float32)
    weights["linear.bias"] = np.zeros(10, np.float32)
    return resnet20_onnx(weights)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A folder with a network, images and labels, and the bank that nothing happened to."""
    folder = tmp_path_factory.mktemp("network")
    rng = np.random.default_rng(1)
    (folder / "net.onnx").write_bytes(random_resnet20())
    np.save(folder / "images.npy", rng.integers(0, 256, (192, 32, 32, 3), dtype=np.uint8))
    np.save(folder / "labels.npy", rng.integers(0, 10, 192))
    out, err = command(folder, folder / "bank").communicate(timeout=300)
    assert "images scored  576\n" in out, err
    return folder


def command(folder, bank):
    """The command line, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "shiftcal", "bank", "--model", "net.onnx", "--images", "images.npy",
         "--severity", "1,5", "--shard-size", "16", "-o", bank],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SHIFTCAL_CACHE": ""},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signal_", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["kill", "interrupt"]
)
def test_a_command_that_was_stopped_is_gone_on_with(tmp_path, network, signal_, status):
    bank = tmp_path / "bank"
    process = command(network, bank)
    wait_for(lambda: len(list(bank.rglob("*.shard"))) >= 3, process)
    code, _, err = kill(process, signal_)
    assert code == status, err
    if signal_ == signal.SIGINT:
        assert err.startswith("error: interrupted. Finished work is kept")
        assert not any(bank.rglob("*.tmp"))
    finished = len(list(bank.rglob("*.shard")))
    out, err = command(network, bank).communicate(timeout=300)
    assert f"images scored  {576 - 16 * finished:,}\n" in out, err
    assert files(bank) == files(network / "bank")


SCORE_IMAGES = draw_images(18, 16, 16, seed=31)
SCORE_COMMAND = "score --model net.onnx --images images.npy --batch-size 6 --shard-size 6"


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """A network of three classes and images, with labels in a file."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    np.save(tmp_path / "images.npy", SCORE_IMAGES)
    np.save(tmp_path / "y.npy", np.arange(18) % 3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def expected():
    return as_model("net.onnx", batch_size=6).logits(SCORE_IMAGES)


def test_scores_are_written_once(scored, shiftcal):
    done = shiftcal(SCORE_COMMAND, "-o a.npz")
    assert (done.status, done.err) == (0, "")
    np.testing.assert_array_equal(read_scores("a.npz").values, expected(), strict=True)
    before = (scored / "a.npz").stat().st_mtime_ns
    done = shiftcal(SCORE_COMMAND, "-o a.npz")
    assert "images scored  0\n" in done.out
    assert (scored / "a.npz").stat().st_mtime_ns == before


def test_labels_come_into_the_file_and_into_json(scored, shiftcal_json):
    told = shiftcal_json(SCORE_COMMAND, "--labels y.npy -o a.npz --dtype float16")
    right = expected().argmax(axis=1) == np.arange(18) % 3
    assert told["accuracy"] == right.mean()
    assert told["command"] == "score"
    assert (told["n"], told["n_classes"], told["labels"]) == (18, 3, True)
    assert (told["output"], told["statistics"], told["shard"]) == ("a.npz", None, None)
    assert (told["images_scored"], told["left_out"], told["warnings"]) == (18, [], [])
    found = read_scores("a.npz")
    np.testing.assert_array_equal(found.labels, np.arange(18) % 3)
    np.testing.assert_array_equal(found.values, expected().astype(np.float16))


def test_a_bank_never_loads_a_program_that_the_command_does_not_name(scored, shiftcal, refused):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    torch.export.save(torch.export.export(net, (torch.zeros(2, 3, 16, 16),)), "net.pt2")
    made = shiftcal("bank --model net.pt2 --images images.npy --labels y.npy --severity 1 -o bank")
    assert made.status == 0, made.err
    message = refused("score --bank bank --images images.npy -o a.npz")
    assert "net.pt2', and loading it may run code or contact a host" in message
    assert "name it yourself: --model 'export:" in message
    assert not (scored / "a.npz").exists()
    done = shiftcal("score --bank bank --model net.pt2 --images images.npy -o a.npz")
    assert done.status == 0, done.err


def test_a_bank_brings_its_model_and_preprocessing(scored, shiftcal):
    bank = "bank --images images.npy --labels y.npy --severity 1 --batch-size 6 -o bank"
    assert shiftcal(bank, "--model net.onnx?std=0.5,0.5,0.5").status == 0
    assert shiftcal("score --bank bank --images images.npy -o a.npz").status == 0
    assert shiftcal("score --bank bank --model net.onnx --images images.npy -o b.npz").status == 0
    for name in ("a.npz", "b.npz"):
        np.testing.assert_allclose(read_scores(name).values, 2 * expected(), rtol=1e-6)


def test_another_model_than_that_of_the_bank_is_refused(scored, shiftcal, refused):
    shiftcal("bank --model net.onnx --images images.npy --labels y.npy --severity 1 -o bank")
    (scored / "other.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    words = "score --bank bank --model other.onnx --images images.npy -o a.npz"
    assert "was made with another model" in refused(words)
    assert not (scored / "a.npz").exists()


FOREIGN_COMMAND = "score --model net.onnx --images images --batch-size 6 --shard-size 6"


@pytest.fixture
def two_classes(tmp_path, monkeypatch):
    """A network of three classes, and images of two classes in folders."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    write_images(
        tmp_path / "images", SCORE_IMAGES, [f"{'ab'[i // 9]}/{i:02d}.png" for i in range(18)]
    )
    np.save(tmp_path / "images.npy", SCORE_IMAGES)
    np.save(tmp_path / "y.npy", np.arange(18) % 3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def test_labels_that_are_not_the_models_are_left_aside_with_a_warning(two_classes, shiftcal):
    for times in ("first", "again"):
        done = shiftcal(FOREIGN_COMMAND, "-o a.npz")
        assert done.status == 0, times
        assert done.err.startswith("warning: scored without labels: images has 2 classes")
        assert done.err.count("\n") == 1
    assert "images scored  0\n" in done.out
    assert read_scores("a.npz").labels is None
    assert shiftcal(FOREIGN_COMMAND, "-o b.npz --no-labels").err == ""


def test_classes_make_the_labels_those_of_the_model(two_classes, shiftcal_json):
    told = shiftcal_json(FOREIGN_COMMAND, "-o a.npz --classes x,b,a")
    assert (told["labels"], told["warnings"]) == (True, [])
    found = read_scores("a.npz")
    assert found.classes == ("x", "b", "a")
    assert found.labels.tolist() == [2] * 9 + [1] * 9
    assert told["accuracy"] == (found.values.argmax(axis=1) == found.labels).mean()


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    z, y = draw(300, 0.9, seed=8)
    write_parts(tmp_path, (100, 180), logits=z, labels=y)
    return z, y


def test_parts_become_one_file_that_evaluate_reads(parts, shiftcal, shiftcal_json):
    z, y = parts
    document = shiftcal_json("merge part-3.npz part-1.npz part-2.npz -o all.npz")
    assert (document["holds"], document["n_parts"], document["n"]) == ("scores", 3, 300)
    merged = sc.read_scores("all.npz")
    assert np.array_equal(merged.values, z)
    assert np.array_equal(merged.labels, y)
    judged = shiftcal_json("evaluate all.npz --resamples 0")["metrics"]
    for name in ("accuracy", "ece", "nll", "brier"):
        assert document["metrics"][name] == pytest.approx(judged[name]["value"], abs=1e-6), name
    exact = sc.maps.Temperature().fit(z, y).temperature_
    assert document["metrics"]["temperature"] == pytest.approx(exact, rel=1e-7)
    assert document["metrics"]["temperature_status"] == "converged"


def test_statistics_are_written_for_a_json_name(parts, shiftcal_json):
    whole = ScoreStatistics.of_rows(*parts)
    names = "part-1.npz part-2.npz part-3.npz"
    assert shiftcal_json("merge", names, "-o all.json")["holds"] == "statistics"
    assert ScoreStatistics.read("all.json") == whole

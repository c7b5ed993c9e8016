"""``shiftcal score``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, write_images

from shiftcal import read_scores
from shiftcal.models import as_model

IMAGES = draw_images(18, 16, 16, seed=31)
COMMAND = "score --model net.onnx --images images.npy --batch-size 6 --shard-size 6"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A network of three classes and images, with labels in a file."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "y.npy", np.arange(18) % 3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def expected():
    return as_model("net.onnx", batch_size=6).logits(IMAGES)


def test_scores_are_written_and_told_of(folder, shiftcal):
    done = shiftcal(COMMAND, "-o a.npz")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "images    images.npy",
        "rows      18 of 3 classes, no labels",
        "scored    18 images in this run",
        "written   a.npz",
    ]
    np.testing.assert_array_equal(read_scores("a.npz").values, expected(), strict=True)


def test_the_same_command_again_has_nothing_to_do(folder, shiftcal):
    shiftcal(COMMAND, "-o a.npz")
    before = (folder / "a.npz").stat().st_mtime_ns
    done = shiftcal(COMMAND, "-o a.npz")
    assert "scored    0 images in this run (all of them were there already)" in done.out
    assert (folder / "a.npz").stat().st_mtime_ns == before


def test_labels_come_into_the_file_and_into_json(folder, shiftcal_json):
    told = shiftcal_json(COMMAND, "--labels y.npy -o a.npz --dtype float16")
    right = expected().argmax(axis=1) == np.arange(18) % 3
    assert told["accuracy"] == right.mean()
    assert told["command"] == "score"
    assert (told["n"], told["n_classes"], told["labels"]) == (18, 3, True)
    assert (told["output"], told["statistics"], told["shard"]) == ("a.npz", None, None)
    assert (told["images_scored"], told["left_out"], told["warnings"]) == (18, [], [])
    found = read_scores("a.npz")
    np.testing.assert_array_equal(found.labels, np.arange(18) % 3)
    np.testing.assert_array_equal(found.values, expected().astype(np.float16))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
def test_a_bank_never_loads_a_program_that_the_command_does_not_name(folder, shiftcal, refused):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    torch.jit.script(net).save("net.pt")
    made = shiftcal("bank --model net.pt --images images.npy --labels y.npy --severity 1 -o bank")
    assert made.status == 0, made.err
    message = refused("score --bank bank --images images.npy -o a.npz")
    assert "net.pt', and loading it may run code or contact a host" in message
    assert "name it yourself: --model 'torchscript:" in message
    assert not (folder / "a.npz").exists()
    done = shiftcal("score --bank bank --model net.pt --images images.npy -o a.npz")
    assert done.status == 0, done.err


def test_parts_merge_to_the_whole(folder, shiftcal):
    shiftcal(COMMAND, "--labels y.npy -o whole.npz")
    for i in (1, 2):
        done = shiftcal(COMMAND, f"--labels y.npy --shard {i}/2 -o part-{i}.npz")
        assert done.status == 0, done.err
    done = shiftcal("merge part-2.npz part-1.npz -o merged.npz")
    assert done.status == 0, done.err
    one, other = read_scores("whole.npz"), read_scores("merged.npz")
    np.testing.assert_array_equal(one.values, other.values, strict=True)
    np.testing.assert_array_equal(one.labels, other.labels)


def test_a_bank_brings_its_model_and_preprocessing(folder, shiftcal):
    bank = "bank --images images.npy --labels y.npy --severity 1 --batch-size 6 -o bank"
    assert shiftcal(bank, "--model net.onnx?std=0.5,0.5,0.5").status == 0
    assert shiftcal("score --bank bank --images images.npy -o a.npz").status == 0
    assert shiftcal("score --bank bank --model net.onnx --images images.npy -o b.npz").status == 0
    for name in ("a.npz", "b.npz"):
        np.testing.assert_allclose(read_scores(name).values, 2 * expected(), rtol=1e-6)


def test_another_model_than_that_of_the_bank_is_refused(folder, shiftcal, refused):
    shiftcal("bank --model net.onnx --images images.npy --labels y.npy --severity 1 -o bank")
    (folder / "other.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    words = "score --bank bank --model other.onnx --images images.npy -o a.npz"
    assert "was made with another model" in refused(words)
    assert not (folder / "a.npz").exists()


def test_the_scores_of_a_bank_go_all_the_way(folder, shiftcal):
    shiftcal("bank --model net.onnx --images images.npy --labels y.npy -o bank")
    shiftcal("score --bank bank --images images.npy -o target.npz")
    assert shiftcal("fit --method sac --bank bank -o sac.json").status == 0
    done = shiftcal("apply sac.json target.npz -o out.npz")
    assert done.status == 0, done.err


def test_images_that_cannot_be_read(folder, shiftcal, shiftcal_json):
    write_images(folder / "images", IMAGES, [f"{i:02d}.png" for i in range(18)])
    (folder / "images" / "04.png").write_bytes(b"\x89PNG")
    words = "score --model net.onnx --images images -o a.npz"
    done = shiftcal(words)
    assert done.status == 2
    assert "scored    17 images in this run\nleft out  1 image\n" in done.out
    assert "warning: left out 1 of 18 images: " in done.err
    assert "could not be read and left out: 1 image. --skip-bad accepts that." in done.err
    told = shiftcal_json(words, "--skip-bad")
    assert [bad["id"] for bad in told["left_out"]] == ["04.png"]
    assert read_scores("a.npz").ids.tolist() == [f"{i:02d}.png" for i in range(18) if i != 4]

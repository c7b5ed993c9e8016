"""Whatever is wrong with a file, the error is a FileError with its name, and the exit status 2."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from onnx import TensorProto, helper
from onnx_resnet import mean_colour_onnx

import shiftcal
from shiftcal import SAC, SurrogateBank, datasets, maps, models
from shiftcal.cli.main import run
from shiftcal.errors import FileError
from shiftcal.models import ExportedModel
from shiftcal.models.pytorch import read_weights
from shiftcal.scores import Scores, read_labels, read_scores, write_scores
from shiftcal.scoring.statistics import ScoreStatistics

torch = pytest.importorskip("torch")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LOGITS, LABELS = draw(60, STEPS[0], seed=3)
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 12, 12, 3), np.uint8)


def scores(path):
    write_scores(path, Scores(LOGITS, labels=LABELS, ids=np.array([f"r{i}" for i in range(60)])))


def image_table(path):
    from PIL import Image

    files = []
    for image in IMAGES:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        files.append(buffer.getvalue())
    table = pa.table({"image": files, "label": list(range(6))})
    pq.write_table(table, path, write_page_checksum=True, row_group_size=4)


def all_images(path):
    held = datasets.as_image_set(str(path))
    batch = held.read(range(len(held)))
    for reason in batch.bad.values():  # of one image, which a command leaves out with a warning
        raise FileError(reason)


def image_labels(path):
    np.save(path.parent / "pixels.npy", np.repeat(IMAGES, 10, axis=0))
    return datasets.as_image_set(str(path.parent / "pixels.npy"), labels=path)


def method(path):
    SAC(map=maps.Histogram(n_bins=5)).fit(make_bank(300)).save(path)


def bank(path):
    make_bank(60).save(path.parent / "bank")
    (path.parent / "bank" / "bank.json").replace(path)


def load_bank(path):
    path.replace(path.parent / "bank" / "bank.json")
    SurrogateBank.load(path.parent / "bank")


def network(path):
    net = torch.nn.Sequential(torch.nn.Flatten())
    torch.export.save(torch.export.export(net, (torch.zeros(1, 3, 8, 8),)), path)


def weights(path):
    torch.save(torch.nn.Linear(4, 3).state_dict(), path)


def safe_weights(path):
    from safetensors.torch import save_file

    save_file(torch.nn.Linear(4, 3).state_dict(), path)


# Name of the file -> what writes it, what reads it.
KINDS = {
    "scores.npz": (scores, read_scores),
    "scores.npy": (lambda path: np.save(path, LOGITS), read_scores),
    "scores.csv": (scores, read_scores),
    "scores.parquet": (scores, read_scores),
    "of-images.npy": (lambda path: np.save(path, LABELS), image_labels),
    "of-scores.npy": (
        lambda path: np.save(path, LABELS),
        lambda path: read_labels(path, Scores(LOGITS)),
    ),
    "images.npy": (lambda path: np.save(path, IMAGES), all_images),
    "images.npz": (lambda path: np.savez_compressed(path, images=IMAGES), all_images),
    "images.parquet": (image_table, all_images),
    "net.onnx": (
        lambda path: path.write_bytes(mean_colour_onnx(["n", 3, 12, 12])),
        models.OnnxModel,
    ),
    "net.pt2": (network, ExportedModel),
    "weights.pt": (weights, read_weights),
    "weights.safetensors": (safe_weights, read_weights),
    "method.json": (method, shiftcal.load),
    "bank.json": (bank, load_bank),
    "statistics.json": (
        lambda path: ScoreStatistics.of_rows(LOGITS, LABELS).write(path),
        ScoreStatistics.read,
    ),
}


def damaged(content, rng):
    """Cut short at ten places, and with one to four wrong bytes many times over."""
    yield b""
    for tenth in range(1, 10):
        yield content[: len(content) * tenth // 10]
    for _ in range(150):
        wrong = bytearray(content)
        # Headers and footers are a small part of a file, and the part that is parsed.
        ends = [*range(min(300, len(wrong))), *range(max(0, len(wrong) - 600), len(wrong))]
        for _ in range(rng.integers(1, 5)):
            at = rng.choice(ends) if rng.random() < 0.7 else rng.integers(len(wrong))
            wrong[at] ^= 1 << rng.integers(8) if rng.random() < 0.5 else rng.integers(1, 256)
        yield bytes(wrong)


@pytest.mark.filterwarnings("ignore")  # of numpy and torch, on their way to an error
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_named_in_a_file_error(tmp_path, name):
    write, read = KINDS[name]
    path = tmp_path / name
    write(path)
    content = path.read_bytes()
    read(path)
    errors = 0
    for wrong in damaged(content, np.random.default_rng(len(name))):
        path.unlink(missing_ok=True)  # it may be mapped
        path.write_bytes(wrong)
        try:
            read(path)
        except FileError as error:
            named = str(tmp_path / "bank") if name == "bank.json" else name
            assert named in str(error)  # noqa: PT017
            errors += 1
    assert errors >= 10


def no_output(path):
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 12, 12])
    graph = helper.make_graph([], "net", [images], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def flipped_header(path):
    np.save(path, LABELS)
    content = bytearray(path.read_bytes())
    content[content.index(b"'descr'")] ^= 0x40
    path.write_bytes(content)


def garbled_zip(path):
    weights(path)
    content = bytearray(path.read_bytes())
    content[40:60] = bytes(20)
    path.write_bytes(content)


def edited_bank(path):
    make_bank(60).save(path.parent / "bank")
    file = path.parent / "bank" / "bank.json"
    file.write_text(file.read_text().replace('"severity": 1', '"severity": 2', 1))


# Name of a damaged file -> what writes it, and the command that reads it.
CASES = {
    "l.npy": (flipped_header, "evaluate scores.npz --resamples 0 --labels l.npy"),
    "bad.onnx": (no_output, "score --images images.npy -o out.npz --model bad.onnx"),
    "bad.pt2": (garbled_zip, "score --images images.npy -o out.npz --model bad.pt2"),
    "m.json": (
        lambda path: path.write_text("[" * 100_000),
        "apply m.json scores.npz -o out.npz",
    ),
    "bank.json": (edited_bank, "fit bank --method sac -o fitted.json"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_command_names_the_file_and_ends_with_2(tmp_path, monkeypatch, capsys, name):
    make, command = CASES[name]
    monkeypatch.chdir(tmp_path)
    scores(tmp_path / "scores.npz")
    np.save("images.npy", IMAGES)
    make(tmp_path / name)
    assert run(command.split()) == 2
    said = capsys.readouterr().err
    assert name in said
    assert "Traceback" not in said
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("content", [b"\x80\x02.", b"\x80\x02K\x01.", pickle.dumps({"a": [1]})])
def test_files_that_are_no_weights_are_rejected(tmp_path, content):
    path = tmp_path / "bad.pt"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"bad\.pt"):
        models.cifar_resnet(20, weights=path)

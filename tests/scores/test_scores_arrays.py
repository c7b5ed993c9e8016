"""Files of named arrays: .npz, .npy with its siblings, .safetensors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shiftcal.errors import FileError
from shiftcal.scores import read_scores

LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 1.5, -4.0]])
LABELS = np.array([0, 1, 2])


def npz(folder, **arrays):
    np.savez(folder / "x.npz", **arrays)
    return folder / "x.npz"


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32])
def test_labels_of_any_numeric_type_are_read(tmp_path, dtype):
    scores = read_scores(npz(tmp_path, logits=LOGITS, labels=LABELS.astype(dtype)))
    assert scores.labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["U", "S"])
def test_labels_by_name_are_looked_up_among_the_classes(tmp_path, dtype):
    classes, labels = np.array(["cat", "dog", "fox"], dtype), np.array(["fox", "cat", "dog"], dtype)
    scores = read_scores(npz(tmp_path, logits=LOGITS, labels=labels, classes=classes))
    assert scores.labels.tolist() == [2, 0, 1]


def test_what_does_not_fit_together_is_refused_with_the_file_named(tmp_path):
    with pytest.raises(FileError, match=r"x.npz: labels must have one entry per row: 3 rows, 2"):
        read_scores(npz(tmp_path, logits=LOGITS, labels=LABELS[:2]))
    with pytest.raises(FileError, match=r"x.npz: features must have shape \(3, d\)"):
        read_scores(npz(tmp_path, logits=LOGITS, features=np.zeros((4, 2))))
    with pytest.raises(FileError, match=r"x.npz: logits must be real numbers"):
        read_scores(npz(tmp_path, logits=LOGITS.astype(str)))


def test_neither_kind_of_scores_is_refused_with_what_there_is(tmp_path):
    with pytest.raises(FileError, match=r"'logits' .* or 'probabilities' .* holds 'probs', 'y'\."):
        read_scores(npz(tmp_path, y=LABELS, probs=LOGITS))
    many = {f"a{i:02}": LABELS for i in range(10)}
    with pytest.raises(FileError, match=r"'a07' and 2 more\. Save the scores under the name"):
        read_scores(npz(tmp_path, **many))
    with pytest.raises(FileError, match="it holds nothing"):
        read_scores(npz(tmp_path))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *[("label", "labels"), ("Labels", "labels"), ("lables", "labels")],
        *[("feature", "features"), ("feautres", "features"), ("id", "ids"), ("IDs", "ids")],
        *[("class", "classes"), ("clases", "classes")],
    ],
)
def test_a_mistyped_name_is_noticed(tmp_path, typed, meant):
    with pytest.raises(FileError, match=f"'{typed}', which is not read. Did you mean '{meant}'"):
        read_scores(npz(tmp_path, logits=LOGITS, **{typed: LABELS}))


def test_real_outputs_are_read(shared_data):
    scores = read_scores(shared_data / "logits" / "jcpeterson_wrn_28_10_cifar10test.npz")
    # The accuracy that the table beside the data gives.
    assert np.mean(scores.logits().argmax(axis=1) == scores.labels) == pytest.approx(0.9624)
    scores = read_scores(shared_data / "logits" / "efficientnet_lite0_ilsvrc2012val5000.npz")
    assert (scores.n, scores.k, scores.values.dtype) == (5000, 1000, np.float16)


@pytest.mark.parametrize(
    ("scores", "labels", "features"),
    [
        ("target_logits", "target_labels", "target_features"),
        ("target_output", "target_label", "target_feature"),
        ("target", "target_labels", "target_feature"),
        ("logits", "labels", "features"),
        ("a_b_logits", "a_b_label", "a_b_features"),
    ],
)
def test_the_siblings_of_an_npy_are_read_with_it(tmp_path, scores, labels, features):
    np.save(tmp_path / f"{scores}.npy", LOGITS)
    np.save(tmp_path / f"{labels}.npy", LABELS)
    np.save(tmp_path / f"{features}.npy", LOGITS[:, :2])
    np.save(tmp_path / "other_labels.npy", LABELS[:1])
    read = read_scores(tmp_path / f"{scores}.npy")
    assert read.input == "logits"
    np.testing.assert_array_equal(read.values, LOGITS)
    np.testing.assert_array_equal(read.labels, LABELS)
    np.testing.assert_array_equal(read.features, LOGITS[:, :2])
    assert read.ids is read.classes is None


def test_the_name_of_an_npy_can_say_probabilities_and_classes(tmp_path):
    np.save(tmp_path / "x_probabilities.npy", np.full((3, 2), 0.5))
    np.save(tmp_path / "x_classes.npy", np.array(["cat", "dog"]))
    np.save(tmp_path / "x_ids.npy", np.array(["p", "q", "r"]))
    read = read_scores(tmp_path / "x_probabilities.npy")
    assert (read.input, read.classes, read.labels) == ("probabilities", ("cat", "dog"), None)
    assert read.ids.tolist() == ["p", "q", "r"]


def test_bfloat16_from_torch_is_read_exactly(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    z = torch.randn(50, 3, generator=torch.Generator().manual_seed(4)).bfloat16()
    tensors = {"features": z[:, :2].contiguous(), "logits": z, "labels": torch.arange(50) % 3}
    save_file(tensors, tmp_path / "x.safetensors")
    read = read_scores(tmp_path / "x.safetensors")
    assert read.values.dtype == np.float32
    np.testing.assert_array_equal(read.values, z.float().numpy())
    np.testing.assert_array_equal(read.features, z[:, :2].float().numpy())
    np.testing.assert_array_equal(read.labels, np.arange(50) % 3)


def test_names_in_the_header_of_safetensors_give_meaning_to_labels(tmp_path):
    from safetensors.numpy import save_file

    metadata = {"classes": json.dumps(["é", "b", "c"]), "other": "x"}
    save_file({"logits": LOGITS, "labels": LABELS}, tmp_path / "x.safetensors", metadata)
    assert read_scores(tmp_path / "x.safetensors").classes == ("é", "b", "c")


@pytest.mark.parametrize("text", ["a,b,c", '"abc"', "[1, 2, 3]", "[" * 100_000])
def test_names_that_are_no_json_list_are_refused(tmp_path, text):
    from safetensors.numpy import save_file

    save_file({"logits": LOGITS}, tmp_path / "x.safetensors", {"classes": text})
    with pytest.raises(FileError, match="must hold classes as a JSON list of strings"):
        read_scores(tmp_path / "x.safetensors")

"""Surrogate banks: from arrays, from files, to a folder and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ladder_data import draw, make_bank
from scipy.special import softmax

from shiftcal import SurrogateBank, SurrogateSet
from shiftcal.errors import FileError, InputError
from shiftcal.files import checksum_of

Z, Y = draw(50, 1.0, seed=1)
HARD, _ = draw(50, 0.4, seed=1)


def test_one_array_of_labels_serves_all_sets():
    bank = SurrogateBank.from_arrays([Z, HARD], Y)
    np.testing.assert_array_equal(bank[0].labels, bank[1].labels)
    assert [s.name for s in bank] == ["clean", "set 2"]
    logits, labels = bank.union()
    np.testing.assert_array_equal(logits, np.concatenate([Z, HARD]))
    np.testing.assert_array_equal(labels, np.concatenate([Y, Y]))
    names = np.array(list("abcdef"))
    named = SurrogateBank.from_arrays([Z, HARD], names[Y], classes=names)
    np.testing.assert_array_equal(named[1].labels, Y)
    assert named.classes == tuple("abcdef")
    assert "2 sets, 6 classes" in repr(bank)


def test_a_named_corruption_numbers_its_severities():
    bank = SurrogateBank.from_arrays([Z, HARD, HARD], Y, corruption="pixelate")
    assert [s.severity for s in bank] == [0, 1, 2]
    assert bank[2].name == "pixelate, severity 2"
    chosen = SurrogateBank.from_arrays([Z, HARD, HARD], Y, corruption="fog", severities=(2, 5))
    assert [s.name for s in chosen] == ["clean", "fog, severity 2", "fog, severity 5"]


def test_the_summary_is_what_numpy_says():
    summary = SurrogateBank.from_arrays([Z], Y).summaries()[0]
    confidence = softmax(Z, axis=1).max(axis=1)
    assert summary.mean_confidence == pytest.approx(confidence.mean(), rel=1e-12)
    assert summary.standard_error == pytest.approx(confidence.std() / np.sqrt(50), rel=1e-9)
    assert summary.accuracy == (Z.argmax(axis=1) == Y).mean()


def test_a_buffer_used_again_does_not_change_the_bank():
    buffer, labels, features = Z.copy(), Y.copy(), Z.copy()
    bank = SurrogateBank.from_arrays([buffer], labels, features=features)
    features[:] = 7
    np.testing.assert_array_equal(bank.clean.features, Z)
    buffer /= 10
    labels[:] = 0
    np.testing.assert_array_equal(bank.clean.logits, Z)
    np.testing.assert_array_equal(bank.clean.labels, Y)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SurrogateBank([]), "at least one set"),
        (lambda: SurrogateBank.from_arrays(Z, Y), r"pass \[scores\]"),
        (lambda: SurrogateBank.from_arrays([Z, HARD[:, :4]], Y % 4), "same number of classes"),
        (lambda: SurrogateBank.from_arrays([Z, HARD], [Y, Y, Y]), "2 sets, 3 arrays of labels"),
        (lambda: SurrogateBank.from_arrays([Z, HARD], Y, severities=[1, 2]), "1 sets, 2 sever"),
        (
            lambda: SurrogateBank.from_arrays([Z], Y, features=Z[:4]),
            r"shape \(50, d\).* got shape \(4, ",
        ),
        (lambda: SurrogateBank.from_files("clean.npz"), r"for one file pass \[path\]"),
        (lambda: SurrogateSet(np.full((3, 2), np.nan), [0, 1, 1], "x"), "row 0 holds nan"),
        (lambda: SurrogateSet(Z, Y, "x", "fog", -1), "severity of set 'x' .* least 0; got -1"),
        (
            lambda: SurrogateBank([SurrogateSet(Z, Y, "worst", "fog", 5)]),
            r"must be 0 for the first set.*'worst'\) has 5",
        ),
    ],
)
def test_what_cannot_be_a_bank_raises(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_a_bank_survives_the_folder(tmp_path, kind):
    scores = [Z, HARD] if kind == "logits" else [softmax(Z, axis=1), softmax(HARD, axis=1)]
    bank = SurrogateBank.from_arrays(
        scores,
        Y,
        corruption="fog",
        features=Z[:, :3],
        classes=["a", "b", "ç", "d", "e", "f"],
        input=kind,
    )
    bank.save(tmp_path / "bank")
    again = SurrogateBank.load(tmp_path / "bank")
    assert again.classes == bank.classes
    assert again.input == kind
    np.testing.assert_array_equal(again.clean.features, bank.clean.features)
    for ours, theirs in zip(again, bank, strict=True):
        np.testing.assert_array_equal(ours.logits, theirs.logits)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        for name in ("name", "corruption", "severity"):
            assert getattr(ours, name) == getattr(theirs, name)


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileError, match="exists already"):
        make_bank(20).save(tmp_path / "bank")
    assert (tmp_path / "bank" / "thesis.txt").exists()


@pytest.fixture
def folder(tmp_path):
    make_bank(30).save(tmp_path / "bank")
    return tmp_path / "bank"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(version=7, written_by="shiftcal 8"), r"version 7.*Upgrade"),
        (lambda d: d.pop("sets"), "is damaged"),
        (lambda d: d.update(sets=[]), "cannot be used"),
        (lambda d: d["sets"][2].update(severity=0), "cannot be used: severity must be 0 for the"),
    ],
)
def test_a_description_that_is_off_raises(folder, change, words):
    document = json.loads((folder / "bank.json").read_text())
    change(document)
    (folder / "bank.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match=r"checksum does not match|version 7|is not the descr"):
        SurrogateBank.load(folder)
    document["checksum"] = checksum_of(document)
    (folder / "bank.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match=words):
        SurrogateBank.load(folder)


def test_lost_and_replaced_sets_are_named(folder):
    (folder / "set-03.npz").write_bytes((folder / "set-02.npz").read_bytes())
    with pytest.raises(FileError, match=r"set-03\.npz is damaged or was replaced"):
        SurrogateBank.load(folder)
    (folder / "set-03.npz").unlink()
    with pytest.raises(FileError, match=r"set-03\.npz"):
        SurrogateBank.load(folder)


def save_npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_files_make_a_bank_with_their_names(tmp_path):
    clean = save_npz(tmp_path / "cal.npz", logits=Z, labels=Y)
    hard = save_npz(tmp_path / "blur3.npz", logits=HARD, labels=Y)
    bank = SurrogateBank.from_files([clean, hard])
    assert [s.name for s in bank] == ["cal", "blur3"]
    assert [s.severity for s in bank] == [0, None]
    np.testing.assert_array_equal(bank[1].logits, HARD)


def test_files_that_do_not_go_together_raise(tmp_path):
    clean = save_npz(tmp_path / "clean.npz", logits=Z, labels=Y, classes=list("abcdef"))
    bare = save_npz(tmp_path / "bare.npz", logits=HARD)
    probs = save_npz(tmp_path / "probs.npz", probabilities=softmax(HARD, axis=1), labels=Y)
    other = save_npz(tmp_path / "other.npz", logits=HARD, labels=Y, classes=list("fedcba"))
    wrong = save_npz(tmp_path / "wrong.npz", logits=HARD, labels=Y + 1)
    for second, words in [
        (bare, r"bare\.npz has no labels"),
        (probs, "be of one kind, with"),
        (other, "be of one kind, with the same classes"),
        (wrong, r"wrong\.npz: labels must lie in 0\.\.5"),
    ]:
        with pytest.raises(InputError, match=words):
            SurrogateBank.from_files([clean, second])

"""Banks on disk: made once, gone on with, added to, and never mixed."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from built_bank import IMAGES, LABELS, Fails, built, files
from exact_model import exact, logits_of
from stored_images import write_images

from shiftcal import SurrogateBank, corrupt
from shiftcal.errors import FileError, InputError, InputWarning


def test_a_bank_is_bank_json_and_a_file_a_set(tmp_path):
    done, seen = built(tmp_path / "bank")
    assert (done.folder, done.added, done.computed, seen) == (tmp_path / "bank", 3, 60, 60)
    assert done.sets == ("clean", "pixelate, severity 1", "pixelate, severity 2")
    assert done.left_out == []
    names = ["bank.json", "clean.npz", "pixelate-1.npz", "pixelate-2.npz"]
    assert sorted(files(tmp_path / "bank")) == names
    document = json.loads((tmp_path / "bank" / "bank.json").read_text())
    assert (document["format"], document["version"], document["input"]) == (
        "shiftcal-bank", 1, "logits",
    )  # fmt: skip
    for entry in document["sets"]:
        content = (tmp_path / "bank" / entry["file"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_it_is_loaded_as_it_was_synthesized(tmp_path):
    bank = SurrogateBank.synthesize(
        exact(), IMAGES, LABELS, corruption="fog", severities=(1, 3), out=tmp_path / "bank", seed=4
    )
    memory = SurrogateBank.synthesize(
        exact(), IMAGES, LABELS, corruption="fog", severities=(1, 3), seed=4
    )
    assert bank.origin == memory.origin
    for one, other in zip(bank, memory, strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.logits, other.logits, strict=True)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_the_same_call_again_does_nothing(tmp_path):
    built(tmp_path / "bank")
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "bank").iterdir()}
    done, seen = built(tmp_path / "bank")
    assert (done.added, done.computed, seen, len(done.sets)) == (0, 0, 0, 3)
    assert {f: f.stat().st_mtime_ns for f in (tmp_path / "bank").iterdir()} == before


def test_sets_can_be_added_without_doing_the_others_again(tmp_path):
    built(tmp_path / "bank")
    before = files(tmp_path / "bank")
    done, seen = built(tmp_path / "bank", corruption=["pixelate", "gaussian_noise"], severities=2)
    assert (done.added, done.computed, seen) == (1, 20, 20)
    assert done.sets[-1] == "gaussian_noise, severity 2"
    after = files(tmp_path / "bank")
    assert {name for name in after if after[name] != before.get(name)} == {
        "bank.json", "gaussian_noise-2.npz",
    }  # fmt: skip
    bank = SurrogateBank.load(tmp_path / "bank")
    noisy = logits_of(corrupt(IMAGES, "gaussian_noise", severity=2))
    np.testing.assert_array_equal(bank[3].logits, noisy)


def test_a_failed_run_is_gone_on_with_and_no_different(tmp_path):
    built(tmp_path / "whole")
    with pytest.raises(InputError, match="no more"):
        built(tmp_path / "bank", exact(Fails(4)))
    with pytest.raises(FileError, match=r"not finished\. The command that began it, given again"):
        SurrogateBank.load(tmp_path / "bank")
    done, seen = built(tmp_path / "bank")
    assert (done.computed, seen) == (28, 28)
    assert files(tmp_path / "bank") == files(tmp_path / "whole")


def test_a_run_that_failed_at_once_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="no more"):
        built(tmp_path / "bank", exact(Fails(0)))
    assert not (tmp_path / "bank").exists()
    with pytest.raises(InputError, match="has no labels"):
        built(tmp_path / "bank", labels=None)
    assert not (tmp_path / "bank").exists()


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"holds 'thesis.tex' and is no bank. Name a new folder"):
        built(tmp_path)
    assert sorted(files(tmp_path)) == ["thesis.tex"]
    with pytest.raises(FileError, match=r"thesis.tex is a file. Name a folder"):
        built(tmp_path / "thesis.tex")


def test_a_damaged_document_is_named(tmp_path):
    built(tmp_path / "bank")
    (tmp_path / "bank" / "bank.json").write_text("{")
    with pytest.raises(
        FileError, match=r"bank.json could not be read as the description of a bank"
    ):
        built(tmp_path / "bank")


def test_what_a_killed_process_left_is_cleared_up(tmp_path):
    built(tmp_path / "whole")
    bank = tmp_path / "bank"
    (bank / ".work" / "shards" / "claims").mkdir(parents=True)
    (bank / ".work" / "shards" / "claims" / "abc").write_text("")
    (bank / ".shiftcal-0123456789ab.tmp").write_bytes(b"half a set")
    (bank / "clean.npz").write_bytes(b"never named by bank.json")
    built(bank)
    assert files(bank) == files(tmp_path / "whole")


def test_a_batch_size_that_was_found_is_that_of_the_bank_for_ever(tmp_path, monkeypatch):
    sizes = iter([4, 16])
    monkeypatch.setattr("shiftcal.models.model.find_batch_size", lambda *_: next(sizes))
    with pytest.raises(InputError, match="no more"):
        built(tmp_path / "bank", exact(Fails(3), batch_size=None))
    assert built(tmp_path / "bank", exact(batch_size=None))[0].added == 3
    assert built(tmp_path / "bank", exact(batch_size=None))[0].added == 0
    model = exact(batch_size=None)
    built(tmp_path / "bank", model, corruption="fog", severities=1)
    assert set(model.function.calls) == {4}


def test_a_cache_serves_other_banks_and_no_work_is_left_in_the_folder(tmp_path):
    built(tmp_path / "one", cache=tmp_path / "cache")
    done, seen = built(tmp_path / "two", cache=tmp_path / "cache", severities=(2, 3))
    assert (done.computed, seen) == (20, 20)
    assert (tmp_path / "two" / "clean.npz").read_bytes() == (
        tmp_path / "one" / "clean.npz"
    ).read_bytes()
    assert not (tmp_path / "two" / ".work").exists()


def test_images_left_out_are_listed_in_the_bank(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{i:02d}.png" for i in range(20)])
    for index in (2, 19):
        (tmp_path / "images" / f"{index:02d}.png").write_bytes(b"\x89PNG gone")
    with pytest.warns(InputWarning, match="left out 2 of 20 images"):
        done, _ = built(tmp_path / "bank", images=str(tmp_path / "images"))
    assert [bad["id"] for bad in done.left_out] == ["02.png", "19.png"]
    bank = SurrogateBank.load(tmp_path / "bank")
    good = np.delete(np.arange(20), [2, 19])
    np.testing.assert_array_equal(bank.clean.labels, LABELS[good])
    assert [len(s) for s in bank] == [18, 18, 18]
    again, _ = built(tmp_path / "bank", images=str(tmp_path / "images"))
    assert again.left_out == done.left_out


def test_a_method_knows_the_model_of_its_bank(tmp_path):
    from shiftcal import Vanilla
    from shiftcal.scores import model_digest_of_file
    from shiftcal.scoring import score_file

    bank = SurrogateBank.synthesize(exact(), IMAGES, LABELS, severities=1)
    score_file(exact(), IMAGES, tmp_path / "same.npz")
    score_file(exact(key="exact-v2"), IMAGES, tmp_path / "other.npz")
    model = Vanilla().fit(bank).model_
    assert model == model_digest_of_file(tmp_path / "same.npz")
    assert model != model_digest_of_file(tmp_path / "other.npz")
    assert Vanilla().fit(bank.clean.logits, LABELS).model_ is None

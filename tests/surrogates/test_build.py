"""Banks on disk: made once, gone on with, added to, and never mixed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from exact_model import Exact, exact, labelled, logits_of
from stored_images import write_images

from shiftcal import SurrogateBank, corrupt
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.models import Preprocessing
from shiftcal.surrogates import build
from shiftcal.surrogates.build import build_bank
from shiftcal.surrogates.conditions import conditions_of
from shiftcal.surrogates.synthesize import Options

IMAGES, LABELS = labelled(20, seed=9, size=(16, 16))


class Fails(Exact):
    def __init__(self, after):
        super().__init__()
        self.after = after

    def __call__(self, batch):
        if len(self.calls) == self.after:
            raise RuntimeError("no more")
        return super().__call__(batch)


def built(folder, model=None, *, images=IMAGES, labels=LABELS, corruption="pixelate",
          severities=(1, 2), **options):  # fmt: skip
    model = model or exact()
    done = build_bank(
        model,
        images,
        folder,
        labels=labels,
        conditions=conditions_of(corruption, severities),
        options=Options(**{"shard_size": 8, **options}),
    )
    return done, model.function.seen


def files(folder):
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in Path(folder).rglob("*")}


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


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_type_of_the_logits_is_that_of_the_files(tmp_path, dtype):
    built(tmp_path / "bank", dtype=dtype)
    with np.load(tmp_path / "bank" / "pixelate-2.npz") as archive:
        assert archive["logits"].dtype == dtype
        expected = logits_of(corrupt(IMAGES, "pixelate", severity=2)).astype(dtype)
        np.testing.assert_array_equal(archive["logits"], expected)
    assert SurrogateBank.load(tmp_path / "bank").origin["dtype"] == dtype


def test_two_folders_have_the_same_bytes(tmp_path):
    built(tmp_path / "one")
    built(tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")


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
    with pytest.raises(FileError, match="not finished. The command that began it, given again"):
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


def test_a_failed_addition_leaves_the_bank_as_it_was(tmp_path):
    built(tmp_path / "bank")
    before = files(tmp_path / "bank")
    with pytest.raises(InputError, match="no more"):
        built(tmp_path / "bank", exact(Fails(0)), corruption="fog")
    assert files(tmp_path / "bank") == before


def brighter():
    other = IMAGES.copy()
    other[3, 3, 3, 0] ^= 1
    return other


OTHERWISE = {
    "the model": {"model": lambda: exact(key="exact-v2")},
    "the preprocessing": {"model": lambda: exact(preprocessing=Preprocessing(crop=12))},
    "batch size 8, now it is 4": {"model": lambda: exact(batch_size=4)},
    "shard size 8, now it is 16": {"shard_size": 16},
    "images": {"images": brighter()},
    "labels": {"labels": (LABELS + 1) % 4},
    "dtype float32, now it is float16": {"dtype": "float16"},
    "seed 0, now it is 1": {"seed": 1},
    "table auto, now it is imagenet": {"table": "imagenet"},
}


@pytest.mark.parametrize("what", OTHERWISE)
@pytest.mark.parametrize("corruption", ["pixelate", "fog"])
def test_a_bank_that_was_made_otherwise_is_not_added_to(tmp_path, what, corruption):
    built(tmp_path / "bank")
    before = files(tmp_path / "bank")
    options = dict(OTHERWISE[what])
    model = options.pop("model", exact)()
    with pytest.raises(FileError, match=rf"holds a bank with {what}.*or name a new folder"):
        built(tmp_path / "bank", model, corruption=corruption, **options)
    assert model.function.seen == 0
    assert files(tmp_path / "bank") == before


def test_another_corruption_of_the_same_name_is_refused(tmp_path):
    def darker(image):
        return image // 2

    built(tmp_path / "bank", corruption=darker, severities=None)

    def darker(image):
        return image // 3

    with pytest.raises(FileError, match=r"set darker-1.npz that was made otherwise: by shiftcal"):
        built(tmp_path / "bank", corruption=darker, severities=None)


def test_a_bank_of_another_version_is_told_as_such(tmp_path, monkeypatch):
    built(tmp_path / "bank")
    monkeypatch.setattr("shiftcal.scoring.job.version", lambda name: "99.0")
    with pytest.raises(FileError, match=r"made otherwise: by shiftcal \d"):
        built(tmp_path / "bank")


def test_a_bank_that_was_saved_is_not_added_to(tmp_path):
    SurrogateBank.synthesize(exact(), IMAGES, LABELS, severities=1).save(tmp_path / "saved")
    z = logits_of(IMAGES)
    SurrogateBank.from_arrays([z, z / 2], LABELS, corruption="fog").save(tmp_path / "arrays")
    for name in ("saved", "arrays"):
        before = files(tmp_path / name)
        with pytest.raises(FileError, match=r"does not say how it was made, .*SurrogateBank.save"):
            built(tmp_path / name)
        assert files(tmp_path / name) == before


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"holds 'thesis.tex' and is no bank. Name a new folder"):
        built(tmp_path)
    assert sorted(files(tmp_path)) == ["thesis.tex"]
    with pytest.raises(FileError, match=r"thesis.tex is a file. Name a folder"):
        built(tmp_path / "thesis.tex")


def test_an_empty_folder_is_used(tmp_path):
    assert built(tmp_path)[0].added == 3


def test_a_damaged_document_is_named(tmp_path):
    built(tmp_path / "bank")
    (tmp_path / "bank" / "bank.json").write_text("{")
    with pytest.raises(FileError, match=r"bank.json is damaged"):
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
    monkeypatch.setattr("shiftcal.models.batch_size.find_batch_size", lambda *_: next(sizes))
    with pytest.raises(InputError, match="no more"):
        built(tmp_path / "bank", exact(Fails(3), batch_size=None))
    assert built(tmp_path / "bank", exact(batch_size=None))[0].added == 3
    assert built(tmp_path / "bank", exact(batch_size=None))[0].added == 0
    model = exact(batch_size=None)
    built(tmp_path / "bank", model, corruption="fog", severities=1)
    assert set(model.function.calls) == {4}


def test_a_bank_that_another_process_finished_in_the_meantime_is_not_mixed_with(
    tmp_path, monkeypatch
):
    real = build.run_job

    def slow(*arguments):
        done = real(*arguments)
        with monkeypatch.context() as patch:
            patch.setattr(build, "run_job", real)
            built(tmp_path / "bank", exact(key="exact-v2"))
        return done

    monkeypatch.setattr(build, "run_job", slow)
    with pytest.raises(FileError, match="holds a bank with the model"):
        built(tmp_path / "bank", corruption="fog")
    monkeypatch.undo()
    found = SurrogateBank.load(tmp_path / "bank")
    assert [s.corruption for s in found] == [None, "pixelate", "pixelate"]


def test_a_bank_that_another_process_finished_alike_is_taken_as_it_is(tmp_path, monkeypatch):
    real = build.run_job

    def slow(*arguments):
        done = real(*arguments)
        with monkeypatch.context() as patch:
            patch.setattr(build, "run_job", real)
            built(tmp_path / "bank")
        return done

    monkeypatch.setattr(build, "run_job", slow)
    done, _ = built(tmp_path / "bank", severities=(2, 3))
    assert (done.added, len(done.sets)) == (1, 4)
    assert len(SurrogateBank.load(tmp_path / "bank")) == 4


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


def test_a_nameless_model_can_make_a_bank_once(tmp_path):
    with pytest.warns(InputWarning, match="cannot be told"):
        built(tmp_path / "bank", exact(key=None))
    with (
        pytest.warns(InputWarning, match="cannot be told"),
        pytest.raises(FileError, match="the model unknown"),
    ):
        built(tmp_path / "bank", exact(key=None))

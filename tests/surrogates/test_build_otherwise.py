"""Banks that were made otherwise are never added to."""

from __future__ import annotations

import pytest
from built_bank import IMAGES, LABELS, built, files
from exact_model import exact, logits_of

from shiftcal import SurrogateBank
from shiftcal.errors import FileError
from shiftcal.models import Preprocessing
from shiftcal.surrogates import build


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

    darker.key = "halved"
    built(tmp_path / "bank", corruption=darker, severities=None)

    def darker(image):
        return image // 3

    darker.key = "a third"
    with pytest.raises(FileError, match=r"set darker-1.npz that was made otherwise: by shiftcal"):
        built(tmp_path / "bank", corruption=darker, severities=None)


def test_a_bank_of_another_version_is_told_as_such(tmp_path, monkeypatch):
    built(tmp_path / "bank")
    monkeypatch.setattr("shiftcal.scoring.work.version", lambda _: "99.0")
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


@pytest.mark.parametrize("name", ["clean.npz", "pixelate-2.npz"])
@pytest.mark.parametrize("what", ["gone", "damaged"])
def test_a_set_that_was_lost_or_damaged_is_made_again(tmp_path, name, what):
    built(tmp_path / "bank")
    before = files(tmp_path / "bank")
    file = tmp_path / "bank" / name
    file.unlink() if what == "gone" else file.write_bytes(file.read_bytes()[:-9] + bytes(9))
    done, seen = built(tmp_path / "bank")
    assert (done.added, seen) == (1, 20)
    assert files(tmp_path / "bank") == before

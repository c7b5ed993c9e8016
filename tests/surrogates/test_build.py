"""Banks made of a model and images: by hand the same, resumed, extended, and never mixed."""

from __future__ import annotations

import functools
import hashlib
import json
import sys

import numpy as np
import pytest
from bank_process import SHARD, begin, build, calls, finish, kill, wait_for
from exact_model import IMAGES, LABELS, Exact, Fails, built, exact, features_of, files, logits_of
from filelock import FileLock
from hostile_files import trap
from onnx_resnet import mean_colour_onnx
from stored_images import write_images

from shiftcal import SurrogateBank, Vanilla, corrupt
from shiftcal.corruptions import Custom, as_corruption
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import checksum_of
from shiftcal.models import Preprocessing, as_model
from shiftcal.scores import model_digest_of_file
from shiftcal.scoring import score_file
from shiftcal.surrogates.build import model_of_bank
from shiftcal.surrogates.image_sets import corrupt_files


class Featured(Exact):
    def __call__(self, batch):
        return super().__call__(batch), features_of(batch)


def speckled(image, severity, rng):
    image[rng.random(image.shape[:2]) < 0.1 * severity] = 255
    return image


@pytest.mark.parametrize("out", [None, "bank"])
@pytest.mark.parametrize("seed", [0, 12345678901234567890])
def test_every_set_is_the_corrupted_images_through_the_model(tmp_path, seed, out):
    given = ["gaussian_noise", "pixelate", Custom(speckled, key="v1")]
    bank = SurrogateBank.synthesize(
        exact(Featured()),
        IMAGES,
        LABELS,
        corruption=given,
        severities=(1, 4),
        seed=seed,
        table="imagenet",
        features="all",
        out=None if out is None else tmp_path / out,
    )
    assert [(s.corruption, s.severity) for s in bank] == [
        (None, 0),
        *((as_corruption(each).name, severity) for each in given for severity in (1, 4)),
    ]
    for each, corruption in zip(bank, [None, *np.repeat(given, 2)], strict=True):
        images = IMAGES
        if corruption is not None:
            options = {"severity": each.severity, "seed": seed, "table": "imagenet"}
            images = corrupt(IMAGES, corruption, **options)
        np.testing.assert_array_equal(each.logits, logits_of(images), strict=True)
        np.testing.assert_array_equal(each.features, features_of(images))
        np.testing.assert_array_equal(each.labels, LABELS)
    origin = json.loads(json.dumps(bank.origin))
    assert origin == bank.origin
    assert (origin["seed"], origin["table"], origin["n_classes"]) == (seed, "imagenet", 4)
    assert origin["model"]["fingerprint"] == exact().fingerprint


def test_images_are_framed_before_they_are_corrupted_and_made_numbers_after():
    file = mean_colour_onnx(["n", 3, 12, 12])
    numbers = {"mean": (0.1, 0.2, 0.3), "std": (0.5, 0.6, 0.7)}
    model = as_model(file, preprocessing=Preprocessing(crop=12, **numbers), batch_size=8)
    bank = SurrogateBank.synthesize(
        model, IMAGES, LABELS % 3, corruption="gaussian_noise", severities=5, seed=1
    )
    noisy = corrupt(IMAGES[:, 2:14, 2:14], "gaussian_noise", severity=5, seed=1)
    plain = as_model(file, preprocessing=Preprocessing(**numbers), batch_size=8)
    np.testing.assert_array_equal(bank[1].logits, plain.logits(noisy))


def test_images_left_out_are_left_out_of_every_set_and_listed(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{'ab'[i // 10]}/{i:02d}.png" for i in range(20)])
    (tmp_path / "images/a/05.png").write_bytes(b"\x89PNG gone")
    model, good = exact(classes=["x", "b", "y", "a"]), np.delete(np.arange(20), 5)
    options = {"images": str(tmp_path / "images"), "labels": None, "corruption": "gaussian_noise"}
    with pytest.warns(InputWarning, match=r"left out 1 of 20 images: .*05\.png"):
        done, _ = built(tmp_path / "bank", model, severities=3, **options)
    bank = SurrogateBank.load(tmp_path / "bank")
    noisy = corrupt(IMAGES, "gaussian_noise", severity=3)
    np.testing.assert_array_equal(bank[1].logits, logits_of(noisy[good]))
    assert bank[1].labels.tolist() == [3] * 9 + [1] * 10  # classes are matched by name
    assert [bad["id"] for bad in done.left_out] == ["a/05.png"]
    assert built(tmp_path / "bank", model, severities=3, **options)[0].left_out == done.left_out


def test_class_folders_name_the_classes_of_a_model_without_names(tmp_path):
    write_images(tmp_path / "images", IMAGES, [f"{'abcd'[i % 4]}/{i:02d}.png" for i in range(20)])
    options = {"images": str(tmp_path / "images"), "labels": None, "severities": 3}
    built(tmp_path / "bank", **options)
    assert SurrogateBank.load(tmp_path / "bank").classes == tuple("abcd")
    assert built(tmp_path / "bank", **options)[0].added == 0
    score_file(exact(), tmp_path / "images", out=tmp_path / "scores.npz")
    assert np.load(tmp_path / "scores.npz")["classes"].tolist() == list("abcd")
    for number, name in enumerate("abcd"):  # numbers are columns, not names
        (tmp_path / "images" / name).rename(tmp_path / "images" / str(number))
    built(tmp_path / "numbered", **options)
    assert SurrogateBank.load(tmp_path / "numbered").classes is None


def test_a_bank_is_bank_json_and_a_file_per_set(tmp_path):
    done, seen = built(tmp_path / "bank")
    assert (done.folder, done.added, done.computed, seen) == (tmp_path / "bank", 3, 60, 60)
    assert done.sets == ("clean", "pixelate, severity 1", "pixelate, severity 2")
    names = ["bank.json", "clean.npz", "pixelate-1.npz", "pixelate-2.npz"]
    assert sorted(files(tmp_path / "bank")) == names
    document = json.loads((tmp_path / "bank" / "bank.json").read_text())
    assert document["checksum"] == checksum_of(document)
    for entry in document["sets"]:
        content = (tmp_path / "bank" / entry["file"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_bank_is_added_to_and_lost_sets_are_made_again(tmp_path):
    built(tmp_path / "bank")
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "bank").iterdir()}
    done, seen = built(tmp_path / "bank")
    assert (done.added, done.computed, seen, len(done.sets)) == (0, 0, 0, 3)
    assert {f: f.stat().st_mtime_ns for f in (tmp_path / "bank").iterdir()} == before
    done, seen = built(tmp_path / "bank", corruption=["pixelate", "gaussian_noise"], severities=2)
    assert (done.added, done.computed, seen) == (1, 20, 20)
    assert done.sets[-1] == "gaussian_noise, severity 2"
    whole = files(tmp_path / "bank")
    (tmp_path / "bank" / "clean.npz").unlink()
    damaged = tmp_path / "bank" / "pixelate-2.npz"
    damaged.write_bytes(damaged.read_bytes()[:-9] + bytes(9))
    done, seen = built(tmp_path / "bank")
    assert (done.added, seen) == (2, 40)
    assert files(tmp_path / "bank") == whole


# Interrupted runs.


def test_a_killed_process_is_resumed_to_the_same_bytes(tmp_path):
    build(tmp_path / "whole")
    bank, log = tmp_path / "bank", tmp_path / "log"
    process = begin(bank, log=log, sleep=0.05)
    wait_for(lambda: len(list(bank.rglob("*.shard"))) >= 3, process)
    assert kill(process)[0] == -9
    with pytest.raises(FileError, match=r"not finished\. The same command resumes"):
        SurrogateBank.load(bank)
    done = finish(begin(bank, log=log))
    assert files(bank) == files(tmp_path / "whole")
    assert 0 < done["computed"] <= 3 * 48 - 3 * SHARD
    assert calls(log) <= 18 + 1  # the shard it was at is done again


@pytest.mark.slow
@pytest.mark.parametrize("moment", [".shiftcal-*.tmp", "clean.npz", "speckled-5.npz"])
def test_a_process_killed_while_it_writes_the_sets_loses_nothing(tmp_path, moment):
    build(tmp_path / "whole")
    bank, log = tmp_path / "bank", tmp_path / "log"
    process = begin(bank, slow=0.4)
    wait_for(lambda: any(bank.glob(moment)), process)
    kill(process)
    finish(begin(bank, log=log))
    assert files(bank) == files(tmp_path / "whole")
    assert calls(log) == 0


def test_an_interrupted_call_is_resumed(tmp_path):
    built(tmp_path / "whole")
    with pytest.raises(InputError):
        built(tmp_path / "bank", exact(Fails(4)))
    (damaged, *_) = (tmp_path / "bank").rglob("*.shard")
    damaged.write_bytes(damaged.read_bytes()[:100])
    done, seen = built(tmp_path / "bank")
    assert done.computed == seen <= 60 - 3 * 4
    assert files(tmp_path / "bank") == files(tmp_path / "whole")


def test_folders_that_cannot_be_used_raise_and_stay(tmp_path):
    bank = tmp_path / "bank"
    for options, words in (
        ({"model": exact(Fails(0))}, "no more"),
        ({"labels": None}, "no labels"),
    ):
        with pytest.raises(InputError, match=words):
            built(bank, **options)
        assert not bank.exists()
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"holds 'thesis.tex' and is not a bank. Name a new folder"):
        built(tmp_path)
    with pytest.raises(FileError, match=r"thesis.tex is a file. Name a folder"):
        built(tmp_path / "thesis.tex")
    assert sorted(files(tmp_path)) == ["thesis.tex"]
    (bank / ".work").mkdir(parents=True)
    with FileLock(bank / ".lock"), pytest.raises(FileError, match="in use by another"):
        built(bank)
    built(bank)
    (bank / "bank.json").write_text("{")
    with pytest.raises(FileError, match=r"bank.json is not the description of a bank"):
        built(bank)


# Banks made in another way.


def brighter():
    other = IMAGES.copy()
    other[3, 3, 3, 0] ^= 1
    return other


OTHERWISE = {
    "a bank with the model": {"model": lambda: exact(key="exact-v2")},
    "the preprocessing": {"model": lambda: exact(preprocessing=Preprocessing(crop=12))},
    "batch size 8, now it is 4": {"model": lambda: exact(batch_size=4)},
    "shard size 8, now it is 16": {"shard_size": 16},
    "images": {"images": brighter()},
    "seed 0, now it is 1": {"seed": 1},
    "labels .* --relabel": {"labels": LABELS[::-1].copy()},
    "labels or classes other": {"model": lambda: exact(classes=["a", "b", "c", "d"])},
    "pixelate-1.npz that was made in another way": {"features": "all"},
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_bank_made_in_another_way_is_not_added_to(tmp_path, what):
    built(tmp_path / "bank")
    before = files(tmp_path / "bank")
    options = dict(OTHERWISE[what])
    model = options.pop("model", exact)()
    with pytest.raises(FileError, match=what):
        built(tmp_path / "bank", model, **options)
    assert model.function.seen == 0
    assert files(tmp_path / "bank") == before


def test_other_labels_and_classes_are_put_into_a_bank_without_scoring(tmp_path):
    names, other = ["a", "b", "c", "d"], LABELS[::-1].copy()
    built(tmp_path / "bank")
    done, seen = built(tmp_path / "bank", exact(classes=names), labels=other, relabel=True)
    assert (done.added, seen) == (0, 0)
    built(tmp_path / "fresh", exact(classes=names), labels=other)
    assert files(tmp_path / "bank") == files(tmp_path / "fresh")


def scaled(image, factor):
    return (image * factor).astype(np.uint8)


def custom(factor, key):
    return Custom(functools.partial(scaled, factor=factor), name="own", key=key)


def test_results_of_your_own_corruptions_are_reused_under_the_same_key_only(tmp_path):
    def made(factor, key, **options):
        model = exact()
        bank = SurrogateBank.synthesize(
            model, IMAGES, LABELS, corruption=custom(factor, key), severities=1, **options
        )
        np.testing.assert_array_equal(bank[1].logits, logits_of(scaled(IMAGES, factor)))
        return model.function.seen

    assert [made(0.5, "half", out=tmp_path / "bank") for _ in range(2)] == [40, 0]
    with pytest.raises(FileError, match="by another corruption of that name"):
        made(0.25, "quarter", out=tmp_path / "bank")
    cache = tmp_path / "cache"
    assert [made(0.5, "half", cache=cache) for _ in range(2)] == [40, 0]
    assert made(0.25, "quarter", cache=cache) == 20  # the clean images are the same
    with pytest.warns(InputWarning, match="'own' has no key"):
        assert made(0.25, None, cache=cache) == 20
    np.save(tmp_path / "images.npy", IMAGES)
    options = {"corruptions": [custom(0.5, None)]}
    corrupt_files(tmp_path / "images.npy", tmp_path / "copies", **options)
    with pytest.raises(FileError, match=r"was begun with own .*now it is own"):
        corrupt_files(tmp_path / "images.npy", tmp_path / "copies", **options)


# Which sets a bank has.


def little(image):
    return image // 2


@pytest.mark.parametrize(
    ("corruption", "severities", "names"),
    [
        (["fog", "pixelate"], (3, 1, 3), ["fog-1", "fog-3", "pixelate-1", "pixelate-3"]),
        (as_corruption("fog"), np.int64(2), ["fog-2"]),
        ([little, little], None, ["little-1", "little-2"]),
    ],
)
def test_sets_are_each_corruption_at_each_severity(corruption, severities, names):
    bank = SurrogateBank.synthesize(
        exact(), IMAGES, LABELS, corruption=corruption, severities=severities
    )
    assert [f"{s.corruption}-{s.severity}" for s in bank][1:] == names


@pytest.mark.parametrize(
    ("corruption", "severities", "message"),
    [
        ([], None, "corruption must be given"),
        (["fog", "fog"], None, r"each once; got \['fog', 'fog'\]"),
        ("fog", (), "severities must name at least one"),
        ("fog", 6, r"severity must be .* at most 5; got 6"),
    ],
)
def test_sets_that_cannot_be_made_raise(corruption, severities, message):
    with pytest.raises(InputError, match=message):
        SurrogateBank.synthesize(
            exact(), IMAGES, LABELS, corruption=corruption, severities=severities
        )


# The model of a bank, found again for new images.


@pytest.fixture
def bank(tmp_path):
    model = exact(preprocessing=Preprocessing(crop=12), batch_size=5)
    SurrogateBank.synthesize(model, IMAGES, LABELS, severities=1, out=tmp_path / "bank")
    return tmp_path / "bank"


def with_model(bank, **changes):
    """The bank, which says this of its model."""
    document = json.loads((bank / "bank.json").read_text())
    document["origin"]["model"].update(changes)
    document["checksum"] = checksum_of(document)
    (bank / "bank.json").write_text(json.dumps(document))
    return bank


def test_the_same_model_gets_the_preprocessing_and_batch_size_of_the_bank(bank):
    given = exact()
    found = model_of_bank(bank, given)
    assert (found.preprocessing.crop, found.batch_size) == (12, 5)
    assert (given.preprocessing.crop, given.batch_size) == (None, 8)
    np.testing.assert_array_equal(found.logits(IMAGES), logits_of(IMAGES[:, 2:14, 2:14]))
    for other in (exact(key="exact-v2"), exact(key=None)):
        with pytest.raises(InputError, match=r"made with another model.*or leave the bank out"):
            model_of_bank(bank, other)
    with pytest.raises(InputError, match=r"does not say how its model is made.*again: --model"):
        model_of_bank(bank)
    with pytest.raises(FileError, match="does not say which model"):
        model_of_bank(with_model(bank, preprocessing={"no": 1}), exact())


def test_a_model_file_is_found_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    spec = "model.onnx?std=0.5,0.5,0.5"
    SurrogateBank.synthesize(spec, IMAGES, LABELS % 3, severities=1, out="bank")
    wanted = as_model(spec).logits(IMAGES)
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = model_of_bank(tmp_path / "bank")
    assert found.spec == f"onnx:{tmp_path / 'model.onnx'}?std=0.5,0.5,0.5"
    np.testing.assert_array_equal(found.logits(IMAGES), wanted)


@pytest.mark.parametrize(
    "spec",
    [
        "torch:subprocess:getoutput?cmd=touch%20mark",
        "python:subprocess:getoutput?key=a",
        "sklearn:x.skops?trusted=os.system",
        "onnx:net.pt2",  # there is a file of this name, and its ending says torch.export
        "hf:somebody/net",
        "timm:resnet50",
        "onnx://host/share/net.onnx",
        "cifar-resnet:20?weights=//host/share/net.pth",
    ],
)
def test_a_bank_cannot_make_us_run_code_or_contact_a_host(bank, tmp_path, spec, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("net.pt2", "onnx:net.pt2"):
        (tmp_path / name).write_bytes(trap(tmp_path / "mark"))
    before = set(sys.modules)
    with pytest.raises(InputError, match=r"may run code or contact a host.*yourself: --model '"):
        model_of_bank(with_model(bank, spec=spec))
    assert not (tmp_path / "mark").exists()
    hubs = {"timm", "transformers", "torchvision", "huggingface_hub"}
    assert not (set(sys.modules) - before) & hubs


def test_a_method_knows_the_model_of_its_bank(tmp_path):
    bank = SurrogateBank.synthesize(exact(), IMAGES, LABELS, severities=1)
    score_file(exact(), IMAGES, tmp_path / "same.npz")
    score_file(exact(key="exact-v2"), IMAGES, tmp_path / "other.npz")
    model = Vanilla().fit(bank).model_
    assert model == model_digest_of_file(tmp_path / "same.npz")
    assert model != model_digest_of_file(tmp_path / "other.npz")
    assert Vanilla().fit(bank.clean.logits, LABELS).model_ is None

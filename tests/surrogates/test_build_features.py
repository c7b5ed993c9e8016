"""Features of the sets of a bank on disk: those that were asked for, and never mixed up."""

from __future__ import annotations

import numpy as np
import pytest
from built_bank import IMAGES, built, files
from exact_model import Exact, exact, features_of, logits_of

from shiftcal import SurrogateBank, corrupt
from shiftcal.errors import FileError

NPZ = ("clean.npz", "pixelate-1.npz", "pixelate-2.npz")


class Featured(Exact):
    def __call__(self, batch):
        return super().__call__(batch), features_of(batch)


def featured():
    return exact(Featured())


def kept(folder):
    """Which files have features."""
    found = []
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as archive:
            found += [file.name] * ("features" in archive)
    return tuple(found)


@pytest.mark.parametrize(
    ("features", "expected"), [("clean", NPZ[:1]), ("all", NPZ), ("none", ())], ids=str
)
def test_the_files_have_the_features_that_were_asked_for(tmp_path, features, expected):
    built(tmp_path / "bank", featured(), features=features)
    assert kept(tmp_path / "bank") == expected
    again, seen = built(tmp_path / "bank", featured(), features=features)
    assert (again.added, seen) == (0, 0)
    assert kept(tmp_path / "bank") == expected


def test_features_on_disk_are_those_of_the_corrupted_images(tmp_path):
    built(tmp_path / "bank", featured(), corruption="gaussian_noise", features="all", seed=3)
    for each in SurrogateBank.load(tmp_path / "bank"):
        images = IMAGES
        if each.severity:
            images = corrupt(IMAGES, "gaussian_noise", severity=each.severity, seed=3)
        np.testing.assert_array_equal(each.features, features_of(images))
        np.testing.assert_array_equal(each.logits, logits_of(images))


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("clean", "all", "pixelate-1.npz that was made otherwise: without features, now it is to "),
        ("all", "clean", "pixelate-1.npz that was made otherwise: with features, now it is to be "),
        ("none", "clean", "clean.npz that was made otherwise: without features, now it is to be w"),
        ("clean", "none", "clean.npz that was made otherwise: with features, now it is to be with"),
    ],
)
def test_a_set_with_other_features_is_refused_and_left_alone(tmp_path, before, now, told):
    built(tmp_path / "bank", featured(), features=before)
    content = files(tmp_path / "bank")
    model = featured()
    with pytest.raises(FileError, match=rf"{told}.*same features=.*--features.*new folder"):
        built(tmp_path / "bank", model, features=now)
    assert model.function.seen == 0
    assert files(tmp_path / "bank") == content


def test_what_was_broken_off_goes_on_with_its_features(tmp_path):
    class Stops(Featured):
        def __call__(self, batch):
            if len(self.calls) == 5:
                raise RuntimeError("no more")
            return super().__call__(batch)

    with pytest.raises(Exception, match="no more"):
        built(tmp_path / "bank", exact(Stops()), features="all")
    _, seen = built(tmp_path / "bank", featured(), features="all")
    assert 0 < seen < 60
    built(tmp_path / "whole", featured(), features="all")
    assert files(tmp_path / "bank") == files(tmp_path / "whole")

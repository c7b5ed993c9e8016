"""Digests of images: what scoring says, told as they are made, and made by one process."""

from __future__ import annotations

import numpy as np
from two_domains import colour_model, domains

from shiftcal.adaptation.devices import Group
from shiftcal.adaptation.frozen import frozen_features
from shiftcal.adaptation.image_content import content_digest, digest_in_shards
from shiftcal.adaptation.inputs import Wanted
from shiftcal.adaptation.network_mode import NetworkMode
from shiftcal.adaptation.surrogate_choice import SurrogateChoice
from shiftcal.adaptation.task import Task
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.scoring import progress
from shiftcal.scoring.run import Reporting

QUIET = Reporting(shown=False)


def test_they_are_those_of_sets_and_of_scoring(tmp_path):
    images = domains(45)[0]
    assert content_digest(images, QUIET) == images.digest(np.arange(45))
    frozen = frozen_features(colour_model(), domains(45)[0], tmp_path / "f", severities=())
    size = frozen.document["origin"]["shard_size"]
    assert digest_in_shards(images, size, QUIET) == frozen.identity["images"]
    assert digest_in_shards(images, 7, QUIET) != frozen.identity["images"]


def test_they_are_told_as_they_are_made(monkeypatch):
    lines = []
    monkeypatch.setattr(progress, "_BETWEEN", 0.0)
    told = Reporting(shown=False, line=lines.append)
    content_digest(domains(45)[0], told)
    digest_in_shards(domains(45)[0], 7, told)
    for said in (lines[:45], lines[45:]):
        assert said[0].startswith("looking at images: 1 of 45 images")
        assert said[-1].startswith("looking at images: 45 of 45 images")


class Other(Group):
    """The second process of two, which is told what the first has found."""

    def told(self, value):
        assert value is None
        return "found by the first"


def test_of_several_processes_one_looks_at_images(monkeypatch):
    task = Task(*domains(45))
    choice = SurrogateChoice.of("pixelate", (5,))
    wanted = Wanted(task, task.split(0), choice, Other(1, 2), 0, QUIET)
    made = NetworkMode.of(wanted, _Backbone(), "none")

    def unread(*_):
        raise AssertionError("an image was read")

    monkeypatch.setattr(ArrayImages, "_image", unread)
    monkeypatch.setattr(ArrayImages, "_images", unread)
    assert made.identity["source"] == made.identity["target"] == "found by the first"


class _Backbone:
    module = __import__("torch").nn.Linear(2, 2)
    preprocessing = colour_model().preprocessing

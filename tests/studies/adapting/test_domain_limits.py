"""Which images a domain has if a plan wants only some of them, and where they were found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from toy_adaptation import N, toy_plan, write_domains

from shiftcal import studies
from shiftcal.studies.adapting.origins import Origin, sentence, with_earlier
from shiftcal.studies.adapting.sources import open_domains
from shiftcal.studies.stages import reporting

pytestmark = pytest.mark.filterwarnings("ignore:.* images of .* are tested on")


def few(data, **changes):
    plan = toy_plan(data)
    return replace(plan, domains=tuple(replace(d, limit=30) for d in plan.domains), **changes)


def content(images):
    return images.digest(np.arange(len(images)))


def test_labels_of_a_target_have_no_say_in_which_of_its_images_are_used(tmp_path):
    data = write_domains(tmp_path)
    before = open_domains(few(data)).images
    with np.load(data / "dusk.npz") as held:
        images, labels = held["images"], held["labels"]
    # Sorted by another order of classes: whoever looks at labels chooses others.
    other = np.random.default_rng(0).permutation(labels)
    np.savez(data / "dusk.npz", images=images, labels=other)
    after = open_domains(few(data)).images
    assert content(before["dusk"]) == content(after["dusk"])
    assert len(after["dusk"]) == 30


def test_every_class_of_a_source_has_its_share(tmp_path):
    data = write_domains(tmp_path)
    found = open_domains(few(data, tasks=(("dawn", "noon"), ("dusk", "noon")))).images
    for name in ("dawn", "dusk"):
        with np.load(data / f"{name}.npz") as held:
            whole = np.bincount(held["labels"], minlength=3)
        assert np.bincount(found[name].labels, minlength=3).tolist() == (whole // 2).tolist()


def test_a_report_names_the_images_that_were_found(adapted_once, times_of_day):
    about = json.loads((adapted_once.folder / "run.json").read_text("utf-8"))
    dawn, noon, _ = about["domains"]
    assert dawn == {
        "name": "dawn",
        "title": "dawn",
        "images": [f"{times_of_day}/dawn.npz"],
        "n": N,
        "instead_of": [f"{times_of_day}/elsewhere.npz"],
    }
    assert noon["images"] == [f"{times_of_day}/noon-1.npz", f"{times_of_day}/noon-2.npz"]
    assert noon["instead_of"] == []
    page = (adapted_once.folder / "report.md").read_text("utf-8")
    assert (
        f"The images: dawn, 60 images of `{times_of_day}/dawn.npz` (what the plan names first is "
        f"not there: `{times_of_day}/elsewhere.npz`); noon, 60 images of "
    ) in page


def test_what_was_found_is_still_named_when_tables_are_made_again(adapted_run, monkeypatch):
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)
    before = (adapted_run / "report.md").read_text("utf-8")
    studies.rebuild(adapted_run)
    assert (adapted_run / "report.md").read_text("utf-8") == before
    # The plan as it was run names one place only.
    studies.reproduce(studies.Run(adapted_run).plan, adapted_run)
    assert (adapted_run / "report.md").read_text("utf-8") == before


@pytest.mark.parametrize("earlier", [{}, {"domains": 3}, {"domains": [{"name": "dawn"}]}])
def test_without_an_earlier_word_the_plan_is_asked(earlier):
    plan = toy_plan("/data")
    found = with_earlier(plan, earlier)
    assert found[0] == Origin("dawn", "dawn", ("/data/elsewhere.npz",))
    assert sentence(found[1:2]) == (
        "The images: noon, images of `/data/noon-1.npz + /data/noon-2.npz`."
    )

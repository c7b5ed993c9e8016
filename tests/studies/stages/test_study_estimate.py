"""How long a study takes: what is counted is what is then done."""

from __future__ import annotations

import json
import math

import pytest
import toy_study
from test_study_scoring import natural
from toy_study import ALL, N, toy_plan

from shiftcal import studies
from shiftcal.studies import run
from shiftcal.studies.catalog.base import Findings
from shiftcal.studies.stages import costs
from shiftcal.studies.stages import estimate as stage
from shiftcal.studies.stages.enough import one_output
from shiftcal.studies.stages.estimate import Estimate, in_words
from shiftcal.studies.stages.rehearsal import Cost
from shiftcal.studies.stages.sources import open_sources


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Nothing is drawn, and nothing is timed."""
    monkeypatch.setattr(run, "report", lambda *_, **__: Findings({}, {}))
    monkeypatch.setattr(stage, "measured_rate", lambda _: 50.0)
    monkeypatch.setattr(costs, "costs_of", lambda given, *_, **__: [Cost(2, 0.01, 1)] * len(given))
    monkeypatch.setattr(costs, "_READ", math.inf)
    monkeypatch.setattr(costs, "crowding", lambda _: 1.5)


def interrupting(monkeypatch, calls):
    """The same model, which is stopped after some batches."""
    made = toy_study.net
    seen = []

    def net(batch):
        seen.append(len(batch))
        if len(seen) > calls:
            raise KeyboardInterrupt
        return made(batch)

    monkeypatch.setattr(toy_study, "net", net)


def counted_then_done(plan, folder, **means):
    """The estimate, which must be what the run then does."""
    how = studies.Means(**means)
    told = studies.forecast(plan, folder, means=how)
    done = studies.reproduce(plan, folder, means=how)
    assert (told.images, told.evaluations) == (done.scored, done.evaluated)
    return told


def test_a_fresh_run_and_a_finished_one(data, tmp_path):
    plan = toy_plan(data, methods=("ts", "sac", "cpcs"), shifts__sets=(natural(data),))
    told = counted_then_done(plan, tmp_path / "run")
    assert told.images == 7 * N + 90 + 45
    assert told.evaluations == 2 * 3 * 6
    # In each of two splits three methods are fitted, and judged on 5 targets and the natural one.
    split = 3 * (2 + 6 * 1 + 0.01 * (5 * 60 + 45))
    assert told.evaluation_seconds == pytest.approx(2 * split)
    # Two workers: every half of a split is fitted for; each has one half with the natural target.
    half = studies.forecast(plan, tmp_path / "other", workers=2)
    assert half.evaluation_seconds == pytest.approx(1.5 * (costs._START + split + 3 * 2))
    assert told.bytes == told.images * (3 + 4) * 4
    assert told.seconds > told.images / 50
    again = counted_then_done(plan, tmp_path / "run")
    assert (again.images, again.evaluations, again.evaluation_seconds) == (0, 0, 0.0)


def test_a_forecast_leaves_the_folder_as_it_is(data, tmp_path):
    studies.forecast(toy_plan(data), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("calls", [4, 19, 22])
def test_a_run_that_was_interrupted_while_scoring(data, tmp_path, monkeypatch, calls):
    plan = toy_plan(data, methods=("ts", "cpcs"), seeds=(0,))
    with monkeypatch.context() as patch:
        # One call is to see whether there are features.
        interrupting(patch, calls + 1)
        with pytest.raises(KeyboardInterrupt):
            studies.reproduce(plan, tmp_path / "run")
    told = counted_then_done(plan, tmp_path / "run")
    assert told.images == 7 * N + 90 - N * min(7, calls // 3)


def test_a_run_that_was_interrupted_while_evaluating(finished, data):
    plan = toy_plan(data, methods=ALL)
    for target in ("fog-1", "clean"):
        (finished / "evaluated" / "split-1" / f"{target}.json").unlink()
    told = counted_then_done(plan, finished)
    assert (told.images, told.evaluations) == (0, 14)


def test_a_changed_plan(finished, data):
    more = toy_plan(data, seeds=(0, 1, 2), shifts__severities=(0, 1, 2, 5))
    told = counted_then_done(more, finished)
    assert told.images == 2 * N
    assert told.evaluations == 5 * (3 * 7 - 2 * 5)
    told = counted_then_done(toy_plan(data, methods=ALL, data__train_limit=60), finished)
    assert told.images == 60
    assert told.evaluations == 2 * 2 * 5  # CPCS and TransCal


def test_a_cache_that_has_it_all(data, tmp_path):
    plan = toy_plan(data, methods=("ts", "cpcs"), seeds=(0,), shifts__sets=(natural(data),))
    cache = tmp_path / "cache"
    assert counted_then_done(plan, tmp_path / "a", cache=cache).images == 7 * N + 90 + 45
    told = counted_then_done(plan, tmp_path / "b", cache=cache)
    assert (told.images, told.evaluations) == (0, 12)


def test_a_batch_size_that_was_found_is_the_one_that_is_used(data, tmp_path, monkeypatch):
    spec = toy_study.SPEC.replace("batch_size=40", "batch_size=auto")
    plan = toy_plan(data, model__spec=(spec,))
    counted_then_done(plan, tmp_path / "run")
    assert counted_then_done(plan, tmp_path / "run").images == 0


def test_what_two_variants_have_in_common_counts_once(data, tmp_path):
    options = {"panels": ["what the parts give", "number of sets"], "sets": [1, 3]}
    plan = toy_plan(data, study="ablation", options=options, methods=("ts", "sts", "sac"))
    told = counted_then_done(plan, tmp_path / "run")
    # J = 3 is what the first panel has.
    assert told.evaluations == 2 * 5 * (3 + 2)


def test_it_says_what_is_to_be_done():
    told = Estimate(images=81_000, rate=500.0, evaluations=1200, evaluation_seconds=30, bytes=2e6)
    assert str(told) == (
        "81,000 images to score at about 500 a second (3 min), 2 MB on disk; 1,200 evaluations "
        "(30 s). About 3 min in all."
    )
    nothing = Estimate(images=0, rate=0.0, evaluations=0, evaluation_seconds=0.0, bytes=0)
    assert str(nothing).startswith(
        "all images are scored already; all evaluations are made already. About"
    )
    assert 0 < nothing.seconds < 60


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0, "1 s"), (0.4, "1 s"), (1.6, "2 s"), (89.4, "89 s"), (90, "2 min")),
        *((600, "10 min"), (5300, "88 min"), (5400, "1.5 h"), (86_400, "24.0 h")),
    ],
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


def test_the_report_takes_what_it_took_before(data, finished):
    about = json.loads((finished / "run.json").read_text("utf-8"))
    about["seconds"] |= {"opening": 2.0, "report": 31.5}
    (finished / "run.json").write_text(json.dumps(about))
    told = studies.forecast(toy_plan(data, methods=ALL), finished)
    assert told.seconds == told.report_seconds == 33.5
    for damaged in ({}, {"report": "x"}, {"report": -1}, 3):
        (finished / "run.json").write_text(json.dumps({"seconds": damaged}))
        assert studies.forecast(toy_plan(data, methods=ALL), finished).report_seconds == 10


def test_less_than_a_megabyte_is_said_to_be():
    told = Estimate(images=10, rate=5.0, evaluations=0, evaluation_seconds=0, bytes=999_999)
    assert "less than 1 MB on disk" in str(told)


def test_one_image_that_looks_like_probabilities_is_not_warned_of(data):
    spec = "python:toy_study:chances?key=a&raw=true"
    sources = open_sources(toy_plan(data, model__spec=(spec,)))
    assert one_output(sources.model, sources.images).logits.shape == (1, 3)  # warnings are errors

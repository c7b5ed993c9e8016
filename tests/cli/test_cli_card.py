"""``shiftcal card``."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal.cards import Judging, Provenance, make_card, read_card
from shiftcal.cli.main import run

# Few draws and folds, and estimators that need no rehearsals: the numbers are tested elsewhere.
QUICK = "--resamples 40 --folds 2 --method sac --estimator doc"


@pytest.fixture
def ladder(files, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1717113600")
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("ladder")
    return sc.SurrogateBank.load("ladder")


def content(*names):
    return [Path(name).read_bytes() for name in names]


def test_the_files_are_those_of_the_python_interface(ladder, shiftcal):
    done = shiftcal("card ladder --target target.npz -o card.md", QUICK)
    assert (done.status, done.err) == (0, "")
    card = read_card("card.json")
    expected = make_card(
        "sac",
        ladder,
        sc.read_scores("target.npz"),
        estimator="doc",
        judging=Judging(n_resamples=40, folds=2),
        provenance=Provenance(
            date="2024-05-31", command=card.provenance.command, files=card.provenance.files
        ),
    )
    assert card == expected
    assert Path("card.md").read_text("utf-8") == expected.to_markdown()
    assert "written to card.md and card.json, with " in done.out
    assert "ECE on the target: 0." in done.out


def test_json_prints_the_card_and_where_it_is(ladder, shiftcal_json):
    document = shiftcal_json("card ladder -o card.md", QUICK)
    assert set(document) == {
        "shiftcal", "command", "output", "json_output", "card", "warnings",
    }  # fmt: skip
    assert document["card"] == json.loads(Path("card.json").read_text())
    assert (document["output"], document["json_output"]) == ("card.md", "card.json")


def test_the_command_on_the_card_makes_the_card_again(ladder, shiftcal):
    words = ["--title", "Digits | 'two'", "--notes", "one\n\ntwo", "--set", "distance=ks"]
    arguments = ["card", "ladder", "--target", "target.npz", "-o", "card.md", *QUICK.split()]
    assert run([*arguments, *words]) == 0
    first = content("card.md", "card.json")
    told = shlex.split(read_card("card.json").provenance.command)
    assert told[0] == "shiftcal"
    for name in ("card.md", "card.json"):
        Path(name).unlink()
    assert run(told[1:]) == 0
    assert content("card.md", "card.json") == first
    assert read_card("card.json").method.settings["distance"] == "ks"


def test_rehearsal_and_its_estimate_are_what_is_made_unless_told(files, shiftcal, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    words = "--target unlabelled.npz --resamples 0 --folds 2 -o card.md"
    assert shiftcal("card clean.npz", words).status == 0
    card = read_card("card.json")
    assert (card.method.name, card.estimate.estimator) == ("rehearsal", "rehearsed")
    assert card.on_target is None
    assert len(card.bank) == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", card.provenance.date)


def test_files_are_known_by_their_digests(ladder, shiftcal):
    import hashlib

    words = "--target unlabelled.npz --labels target.npz -o card.md"
    assert shiftcal("card ladder", words, QUICK).status == 0
    card = read_card("card.json")
    assert card.provenance.files == {
        name: hashlib.sha256(Path(name).read_bytes()).hexdigest()
        for name in ("ladder/bank.json", "unlabelled.npz", "target.npz")
    }
    assert card.on_target is not None


def test_a_fitted_method_is_taken_as_it_is(ladder, shiftcal):
    assert shiftcal("fit --bank ladder --method sac --distance ks -o sac.json").status == 0
    words = "--fitted sac.json --estimator none --resamples 0 -o card.md"
    assert shiftcal("card ladder", words).status == 0
    card = read_card("card.json")
    assert card.method.fitted == "same-ladder"
    assert card.method.settings["distance"] == "ks"
    assert card.estimate is None


def test_a_method_of_other_sets_is_refused(ladder, shiftcal, refused):
    fit = "fit --surrogate clean.npz --surrogate s2.npz --method"
    assert shiftcal(fit, "sac -o sac.json").status == 0
    told = refused("card ladder --fitted sac.json -o card.md")
    assert "this sac was not fitted on the bank of the card" in told
    assert not Path("card.md").exists()


def test_a_card_is_rendered_again_from_its_json(ladder, shiftcal, refused):
    assert shiftcal("card ladder -o card.md", QUICK).status == 0
    done = shiftcal("card card.json -o again.md")
    assert (done.status, done.err) == (0, "")
    assert content("again.md") == content("card.md")
    assert not Path("again.json").exists()
    told = refused("card card.json -o again.md --method sac")
    assert "card.json is a card" in told
    assert "--method changes nothing" in told


def test_features_are_asked_for_and_used(ladder, shiftcal, refused):
    words = "card ladder --method cpcs --estimator none --resamples 0 -o card.md"
    assert "needs features of the training samples" in refused(words)
    told = refused(words, "--source-train train.npz --target unlabelled.npz")
    assert "features of the target" in told
    assert shiftcal(words, "--source-train train.npz --target target.npz").status == 0
    card = read_card("card.json")
    assert [one.after is None for one in card.on_bank] == [False, True, True]


def test_a_target_of_another_model_is_warned_of(ladder, shiftcal):
    from shiftcal.scores.npz import read_member

    def origin(fingerprint):
        return {"model": {"fingerprint": fingerprint, "preprocessing": {}}}

    sc.SurrogateBank(ladder.sets, classes=ladder.classes, origin=origin("one")).save("known")
    with np.load("target.npz") as target:
        np.savez("other.npz", **dict(target), origin=np.array(json.dumps(origin("two"))))
    assert read_member(Path("other.npz"), "origin") is not None
    done = shiftcal("card known --target other.npz -o card.md", QUICK)
    assert done.status == 0
    assert done.err.startswith("warning: other.npz: The target was scored by another model")
    assert any(limit.code == "another-model" for limit in read_card("card.json").limits)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("ladder -o card.txt", "must end in .md"),
        ("ladder -o nowhere/card.md", "there is no folder nowhere"),
        ("ladder -o target.md --target target.npz --method sacc", "no method is called 'sacc'"),
        ("ladder -o card.md --estimator dock", "no accuracy estimator is called 'dock'"),
        ("ladder -o card.md --method pseudocal", "needs the model run over mixed"),
        ("ladder -o card.md --level 95", "level must lie strictly between 0 and 1"),
        ("ladder -o card.md --resamples 1", "0 for no intervals"),
        ("ladder -o card.md --folds 1", "folds"),
        ("ladder -o card.md --labels target.npz", "--labels are those of the target"),
        ("ladder -o card.md --set distance=mean", "has no setting"),
        ("ladder -o card.md --source-train train.npz", "uses no features"),
        ("ladder -o card.md --target wide.npz", "must have the classes of the surrogate sets"),
        ("ladder -o card.md --target broken.npz", "broken.npz"),
        ("ladder -o card.md --target nan.npz", "nan.npz"),
        ("ladder -o card.md --target none.npz", "none.npz"),
        ("ladder -o card.md --fitted target.npz", "target.npz is not a saved shiftcal method"),
        ("ladder -o card.md --fitted map.json", "not a method"),
        ("ladder -o card.md --fitted sac.json --method sac", "excludes --method"),
        ("ladder -o card.md --fitted sac.json --set peek=3", "excludes --set"),
        ("ladder -o sac.md --fitted sac.json", "must not be replaced"),
        ("ladder -o sac.md", "is no calibration card, so that it is not replaced"),
        ("nowhere -o card.md", "nowhere"),
        ("nothing.json -o card.md", "nothing.json could not be read"),
        ("sac.json -o card.md", "sac.json cannot be used: a calibration card must"),
        ("broken.json -o card.md", "broken.json is not a calibration card, or it is damaged"),
        ("unlabelled.npz -o card.md", "has no labels"),
    ],
)
def test_what_cannot_be_used_is_refused(ladder, shiftcal, refused, words, reason):
    rng = np.random.default_rng(0)
    np.savez("wide.npz", logits=rng.standard_normal((20, 7)))
    np.savez("nan.npz", logits=np.full((20, 6), np.nan))
    np.savez("none.npz", logits=np.empty((0, 6)))
    Path("broken.npz").write_bytes(Path("target.npz").read_bytes()[:500])
    Path("broken.json").write_text('{"format": "shiftcal-card"')
    fitted = sc.SAC().fit(ladder)
    fitted.save("sac.json")
    fitted.maps_[0].save("map.json")
    before = content("sac.json")
    assert reason in refused("card", words)
    assert content("sac.json") == before
    assert not Path("card.md").exists()
    assert not Path("card.json").exists()


@pytest.mark.parametrize("epoch", ["yesterday", "1e9", "9" * 30, ""])
def test_a_time_that_is_none_is_refused(ladder, refused, monkeypatch, epoch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    assert "SOURCE_DATE_EPOCH must hold whole seconds since 1970" in refused(
        "card ladder -o card.md"
    )


def test_an_interrupted_card_leaves_what_was_there(ladder, shiftcal, monkeypatch):
    assert shiftcal("card ladder -o card.md", QUICK).status == 0
    before = content("card.md", "card.json")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shiftcal.cards.make.measured", interrupt)
    done = shiftcal("card ladder -o card.md --title other", QUICK)
    assert done.status == 130
    assert done.err.count("\n") == 1
    assert content("card.md", "card.json") == before

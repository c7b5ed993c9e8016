"""ACE, PseudoCal, TS and STS; and what every method takes: scores, folders of banks, weights."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import shiftcal as sc
from shiftcal import CPCS, SAC, STS, TS, Scores, SurrogateBank, load
from shiftcal.errors import FileError, FitWarning, InputError, NotFittedError
from shiftcal.methods.simple import ACE, PseudoCal
from shiftcal.models import as_model
from shiftcal.scoring import score_mixed

BANK = make_bank(500)
Z, _ = draw(200, 0.5, seed=8)


def test_scores_are_taken_as_their_logits_are():
    one, other = SAC().fit(BANK), SAC().fit(BANK)
    scores = Scores(Z)
    assert one.adapt(scores).to_dict() == other.adapt(Z).to_dict()
    np.testing.assert_array_equal(one.predict_proba(scores), other.predict_proba(Z))
    np.testing.assert_array_equal(one.confidence(scores), other.confidence(Z))


def test_scores_of_the_other_kind_are_turned_into_what_the_method_takes():
    one, other = SAC().fit(BANK), SAC().fit(BANK)
    probabilities = Scores(Z).as_kind("probabilities")
    assert one.adapt(probabilities).index == other.adapt(Z).index
    # The logarithm of a softmax is the logits but for a constant a row, up to rounding.
    np.testing.assert_allclose(one.confidence(probabilities), other.confidence(Z), rtol=1e-9)
    p = probabilities.values
    _, labels = draw(200, 0.5, seed=8)
    method = TS(input="probabilities").fit(p, labels)
    np.testing.assert_allclose(method.confidence(Scores(Z)), method.confidence(p), rtol=1e-9)


def test_scores_bring_their_features():
    rng = np.random.default_rng(5)
    z, y = draw(200, 1.0, seed=1)
    bank = SurrogateBank.from_arrays([z], y, features=rng.standard_normal((200, 3)))
    target = rng.standard_normal((200, 3)) + 0.3
    source = rng.standard_normal((100, 3))
    one, other = (CPCS().fit(bank, source_features=source) for _ in range(2))
    assert one.adapt(Scores(Z, features=target)).to_dict() == other.adapt(Z, target).to_dict()
    with pytest.raises(InputError, match="features= of the target"):
        one.adapt(Scores(Z))


def test_classes_in_another_order_are_refused():
    k = Z.shape[1]
    names = [f"c{j}" for j in range(k)]
    bank = SurrogateBank.from_arrays([s.logits for s in BANK], BANK.clean.labels, classes=names)
    sac = SAC().fit(bank)
    sac.adapt(Scores(Z, classes=names))
    with pytest.raises(InputError, match=f"column 0 is 'c{k - 1}' here and 'c0' there"):
        sac.predict_proba(Scores(Z, classes=names[::-1]))
    with pytest.raises(InputError, match=f"must have {k} columns"):
        sac.adapt(Scores(Z[:, 1:], classes=names[1:]))


def test_the_folder_of_a_bank_is_fitted_on_as_the_bank_is(tmp_path):
    BANK.save(tmp_path / "bank")
    wanted = SAC().fit(BANK).adapt(Z).to_dict()
    for folder in (tmp_path / "bank", str(tmp_path / "bank")):
        assert SAC().fit(folder).adapt(Z).to_dict() == wanted
    with pytest.raises(FileError, match="is not a bank folder"):
        SAC().fit(tmp_path / "nothing")
    with pytest.raises(InputError, match="labels go with logits"):
        SAC().fit(tmp_path / "bank", BANK.clean.labels)


def test_labelled_scores_are_fitted_on_as_logits_and_labels_are():
    z, y = draw(300, 1.0, seed=2)
    expected = TS().fit(z, y).temperature_
    names = [f"c{j}" for j in range(z.shape[1])]
    scores = Scores(z, labels=y, classes=names)
    fitted = TS().fit(scores)
    assert fitted.temperature_ == expected
    assert fitted.class_names_ == tuple(names)
    assert TS().fit(Scores(z), y).temperature_ == expected
    probabilities = scores.as_kind("probabilities")
    assert TS().fit(probabilities).temperature_ == pytest.approx(expected, rel=1e-9)
    kept = TS(input="probabilities").fit(scores)
    assert kept.temperature_ == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InputError, match=r"Scores, or logits and labels; got .* no labels"):
        TS().fit(Scores(z))
    features = np.random.default_rng(0).standard_normal((300, 3))
    method = CPCS().fit(Scores(z, labels=y, features=features), source_features=features)
    np.testing.assert_array_equal(method.features_, features)


def test_ts_and_sts_tell_their_temperature():
    for method in (TS(), STS()):
        with pytest.raises(NotFittedError):
            _ = method.temperature_
        assert method.fit(BANK).temperature_ == method.map_.temperature_
        assert method.temperature_ == method.adapt(Z).temperature
    assert not hasattr(STS(map="isotonic").fit(BANK), "temperature_")


LOGITS, LABELS = draw(6000, 0.9, seed=1)
RIGHT = LOGITS.argmax(axis=1) == LABELS
HARDER, _ = draw(3000, STEPS[4], seed=2)


def temperature_by_search(logits, labels, weights=None):
    def loss(log_t):
        of_label = log_softmax(logits / np.exp(log_t), axis=1)[np.arange(len(labels)), labels]
        return -np.average(of_label, weights=weights)

    found = minimize_scalar(loss, bounds=(-3, 4), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


def fitted_ace(**options):
    return ACE(**options).fit(LOGITS, LABELS)


def test_the_output_is_the_papers_formula():
    ace = fitted_ace()
    selection = ace.adapt(HARDER)
    easy = temperature_by_search(LOGITS, LABELS)
    wrong = np.flatnonzero(~RIGHT)
    drawn = np.random.default_rng(0).choice(np.flatnonzero(RIGHT), len(wrong) // 10)
    rows = np.concatenate([wrong, drawn])
    hard = temperature_by_search(LOGITS[rows], LABELS[rows])
    alpha = softmax(HARDER, axis=1).max(axis=1).mean() / softmax(LOGITS, axis=1).max(axis=1).mean()
    assert 0.5 < alpha < 0.95
    expected = softmax(alpha * HARDER / easy + (1 - alpha) * HARDER / hard, axis=1)
    # what the bounded search leaves open
    np.testing.assert_allclose(ace.predict_proba(HARDER), expected, atol=1e-6)
    assert selection.details == pytest.approx(
        {"alpha": alpha, "t_easy": easy, "t_hard": hard}, rel=1e-5
    )


def test_the_calibration_set_as_target_is_ts():
    ace, ts = fitted_ace(), TS().fit(LOGITS, LABELS)
    selection = ace.adapt(LOGITS)
    assert selection.details["alpha"] == 1.0
    assert not selection.has("alpha-clipped")
    np.testing.assert_allclose(
        ace.predict_proba(LOGITS), ts.predict_proba(LOGITS), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_draw_agrees_with_weights_on_all_rows(ratio):
    weights = np.where(RIGHT, ratio * (~RIGHT).sum() / RIGHT.sum(), 1.0)
    expected = temperature_by_search(LOGITS, LABELS, weights)
    found = [fitted_ace(ratio=ratio, seed=s).hard_.temperature_ for s in range(20)]
    # twenty draws of a thousand rows and more: the mean is good to about 1 %
    assert np.mean(found) == pytest.approx(expected, rel=0.04)


def test_a_more_confident_target_gets_the_clean_sets_temperature_and_a_flag():
    ace = fitted_ace()
    selection = ace.adapt(LOGITS * 1.5)
    assert selection.has("alpha-clipped")
    assert "times that of the clean set" in str(selection.flags[0])
    assert selection.details["alpha"] == 1.0
    assert selection.temperature == pytest.approx(ace.easy_.temperature_, rel=1e-14)


@pytest.mark.parametrize(("wrong", "word"), [(False, "correctly"), (True, "wrongly")])
def test_without_right_or_wrong_rows_there_is_one_temperature_and_a_flag(wrong, word, tmp_path):
    labels = LOGITS.argmin(axis=1) if wrong else LOGITS.argmax(axis=1)
    with pytest.warns(FitWarning) as caught:
        ace = ACE().fit(LOGITS, labels)
    said = [str(w.message) for w in caught]
    assert any(f"predicted {word}, so no harder set can be drawn" in text for text in said)
    assert [w.filename for w in caught] == [__file__] * len(caught)
    selection = ace.adapt(HARDER)
    assert selection.has("no-hard-set")
    assert selection.temperature == pytest.approx(ace.easy_.temperature_)
    ace.save(tmp_path / "ace.json")
    assert load(tmp_path / "ace.json").adapt(HARDER) == selection


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_binary_problem_brings_no_warning_and_no_flag(seed):
    # With two classes most rows of the hard resample are wrong: worse than chance, as intended.
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal(2000)
    labels = (rng.random(2000) < 1 / (1 + np.exp(-3.5 * z))).astype(int)
    logits = np.column_stack([np.zeros(2000), 4 * z])
    assert 0.9 < (logits.argmax(axis=1) == labels).mean() < 0.96
    ace = ACE().fit(logits, labels)  # a warning is an error here
    selection = ace.adapt(0.5 * logits)
    assert not selection.flags
    assert selection.details["t_hard"] == 100.0


TARGET, _ = draw(300, STEPS[2], seed=5)


def mixed(n=400, strength=STEPS[4], *, seed=9):
    logits, labels = draw(n, strength, seed=seed)
    return sc.Scores(logits, labels=labels)


def test_the_temperature_is_that_of_least_nll_on_the_mixed_rows():
    given = mixed()
    method = PseudoCal().fit(BANK)
    chosen = method.adapt(TARGET, mixed=given)
    # scipy brackets a flat minimum to about the square root of the precision
    assert chosen.temperature == pytest.approx(
        temperature_by_search(given.values, given.labels), rel=1e-6
    )
    np.testing.assert_allclose(
        method.predict_proba(TARGET), softmax(TARGET / chosen.temperature, axis=1), rtol=1e-9
    )
    assert chosen.flags == ()
    right = np.mean(given.values.argmax(axis=1) == given.labels)
    assert chosen.details == {
        "mixed_rows": 400.0,
        "mixed_accuracy": right,
        "clean_temperature": sc.TS().fit(BANK).map_.temperature_,
    }
    assert chosen.n_target == 300


@pytest.mark.parametrize("always", ["right", "wrong"])
def test_mixtures_that_tell_no_temperature_leave_that_of_the_clean_set(always):
    given = mixed()
    column = given.values.argmax if always == "right" else given.values.argmin
    method = PseudoCal().fit(BANK)
    chosen = method.adapt(TARGET, mixed=sc.Scores(given.values, labels=column(axis=1)))
    assert chosen.has("clean-fallback")
    assert "that of the clean calibration set is used" in chosen.flags[0].message
    assert chosen.details["mixed_accuracy"] == (always == "right")
    np.testing.assert_array_equal(
        method.predict_proba(TARGET), sc.TS().fit(BANK).predict_proba(TARGET)
    )


def test_digits_from_images_to_confidences():
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8) * 15.9).astype(np.uint8)
    noise = np.random.default_rng(1).normal(0, 55, images[1000:].shape)
    target = np.clip(images[1000:] + noise, 0, 255).astype(np.uint8)
    # hardly regularised, so over-confident
    fitted = LogisticRegression(C=100.0, max_iter=400).fit(
        images[:600].reshape(600, -1), labels[:600]
    )

    def rows(batch):
        return batch[..., 0].reshape(len(batch), -1)

    model = as_model(
        fitted,
        features=rows,
        preprocessing=sc.models.Preprocessing(layout="nhwc", dtype="uint8"),
    )
    bank = sc.SurrogateBank.synthesize(model, images[600:1000], labels[600:1000], severities=1)
    scores = sc.score(model, target)
    method = PseudoCal().fit(bank)
    chosen = method.adapt(scores, mixed=score_mixed(model, target, scores))
    assert chosen.flags == ()
    assert chosen.details["mixed_rows"] > 500
    assert 0.3 < chosen.details["mixed_accuracy"] < 0.98
    raw = softmax(scores.values, axis=1)
    right = scores.values.argmax(axis=1) == labels[1000:]
    before = sc.ece(raw.max(axis=1), right)
    after = sc.ece(method.confidence(scores), right)
    assert chosen.temperature > 1.5
    assert after < before / 2

"""Methods take scores and folders of banks as they take arrays and banks."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import draw, make_bank

from shiftcal import CPCS, SAC, STS, TS, Scores, SurrogateBank
from shiftcal.errors import FileError, InputError, NotFittedError
from shiftcal.maps import Temperature

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
    with pytest.raises(InputError, match="need labels once; these have none"):
        TS().fit(Scores(z))
    with pytest.raises(InputError, match="these have them already"):
        TS().fit(scores, y)
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


def test_sample_weight_reaches_the_map():
    z, y = BANK.clean.logits, BANK.clean.labels
    w = np.random.default_rng(1).integers(0, 4, len(y))
    expected = Temperature().fit(np.repeat(z, w, axis=0), np.repeat(y, w)).temperature_
    assert TS().fit(z, y, sample_weight=w).temperature_ == pytest.approx(expected, rel=1e-9)
    assert TS().fit(BANK, sample_weight=w).temperature_ == pytest.approx(expected, rel=1e-9)
    logits, labels = BANK.union()
    everywhere = np.tile(w, len(BANK))
    union = Temperature().fit(logits, labels, everywhere).temperature_
    assert union != STS().fit(BANK).temperature_
    assert STS().fit(BANK, sample_weight=w).temperature_ == union
    assert STS().fit(BANK, sample_weight=everywhere).temperature_ == union
    with pytest.raises(InputError, match=r"sample_weight must have shape \(500,\)"):
        TS().fit(BANK, sample_weight=w[:-1])
    with pytest.raises(InputError, match=r"sample_weight must have shape \(3000,\)"):
        STS().fit(BANK, sample_weight=w[:-1])
    with pytest.raises(InputError, match="sac does not use sample_weight; only ts and sts do"):
        SAC().fit(BANK, sample_weight=w)

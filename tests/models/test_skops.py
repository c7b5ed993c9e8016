"""scikit-learn classifiers in .skops files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hostile_files import rewritten_records, trap
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from shiftcal.errors import FileError
from shiftcal.models import SklearnModel, as_model
from shiftcal.models.sklearn import read_skops

skops = pytest.importorskip("skops.io")
RNG = np.random.default_rng(3)
IMAGES = RNG.integers(0, 256, (40, 8, 8, 3), np.uint8)
LABELS = np.arange(40) % 3
ROWS = IMAGES.reshape(40, -1) / np.float32(255)


def doubled(rows):
    return rows * 2


@pytest.fixture
def fitted():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(ROWS, LABELS)


def test_logits_are_those_of_the_classifier_that_was_dumped(fitted, tmp_path):
    skops.dump(fitted, tmp_path / "a.skops")
    for text in (tmp_path / "a.skops", f"sklearn:{tmp_path}/a.skops", str(tmp_path / "a.skops")):
        model = as_model(text)
        assert isinstance(model, SklearnModel)
        np.testing.assert_allclose(model.logits(IMAGES), fitted.decision_function(ROWS), rtol=1e-5)
        assert model.classes == ("0", "1", "2")


def test_trees_must_be_trusted_because_their_arrays_are_not_checked(tmp_path):
    forest = RandomForestClassifier(5, random_state=0).fit(ROWS, LABELS)
    skops.dump(forest, tmp_path / "f.skops")
    with pytest.raises(FileError, match=r"harmless: sklearn.tree._tree.Tree"):
        as_model(tmp_path / "f.skops")
    model = as_model(f"sklearn:{tmp_path}/f.skops?trusted=sklearn.tree._tree.Tree")
    np.testing.assert_allclose(
        np.exp(model.logits(IMAGES)),
        forest.predict_proba(ROWS),
        atol=1e-6,  # probabilities of nought become the smallest number
    )


def test_types_that_are_not_known_are_named_and_loaded_when_trusted(tmp_path):
    own = make_pipeline(FunctionTransformer(doubled), LogisticRegression(max_iter=500))
    skops.dump(own.fit(ROWS, LABELS), tmp_path / "own.skops")
    name = f"{__name__}.doubled"
    with pytest.raises(
        FileError, match=rf"not known to be harmless: {name}.*not loaded.*\?trusted={name}"
    ):
        as_model(tmp_path / "own.skops")
    model = as_model(f"sklearn:{tmp_path}/own.skops?trusted={name}")
    np.testing.assert_allclose(model.logits(IMAGES), own.decision_function(ROWS), rtol=1e-5)
    with pytest.raises(FileError, match="not known to be harmless"):
        read_skops(tmp_path / "own.skops", trusted=["another.thing"])


def test_nothing_in_a_file_that_is_no_skops_runs(fitted, tmp_path):
    mark, file = tmp_path / "mark", tmp_path / "bad.skops"
    file.write_bytes(trap(mark))
    with pytest.raises(FileError, match=r"bad.skops must be made by skops.io.dump.*not opened"):
        as_model(file)
    file.write_bytes(pickle.dumps(fitted))
    with pytest.raises(FileError, match="something else, such as a pickle"):
        as_model(file)
    assert not mark.exists()


def test_a_function_of_the_system_in_a_skops_file_is_not_called(tmp_path):
    mark = tmp_path / "mark"
    pipeline = make_pipeline(FunctionTransformer(doubled), LogisticRegression(max_iter=500))
    skops.dump(pipeline.fit(ROWS, LABELS), tmp_path / "a.skops")
    rewritten_records(
        tmp_path / "a.skops",
        "schema.json",
        [(b'"doubled"', b'"system"'), (__name__.encode(), b"os")],
    )
    with pytest.raises(FileError, match=r"not known to be harmless: .*os.system"):
        as_model(tmp_path / "a.skops")
    assert not mark.exists()

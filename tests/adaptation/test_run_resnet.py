"""The network of the paper, from its name to what calibration needs; two steps of it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from two_domains import domains

import shiftcal as sc
from shiftcal.adaptation import Adapted, adapt, modes
from shiftcal.adaptation.backbones.make import make_backbone


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "width"), [("office-home", 256), ("visda", 256)])
def test_a_resnet_is_trained_and_made_again_by_its_name(tmp_path, monkeypatch, recipe, width):
    pytest.importorskip("torchvision")
    # The published weights would have to be fetched.
    bare = partial(make_backbone, pretrained=False)
    monkeypatch.setattr(modes, "make_backbone", bare)
    source, target = domains(15)
    adapt(
        source,
        target,
        tmp_path / "run",
        trainer="cdan",
        backbone="resnet50",
        recipe=recipe,
        changes={"iterations": 2, "batch_size": 2},
        severities=(5,),
    )
    made = Adapted.open(tmp_path / "run")
    assert made.document["backbone"]["spec"] == "resnet50"
    assert made.document["backbone"]["n_features"] == 2048
    assert made.target.features.shape == (len(made.split.held_out), width)
    assert made.history[-1].step == 2
    assert np.isfinite(made.target.values).all()
    scored = sc.score(made.model(), target.subset(made.split.held_out))
    # Sums in float32 go by the number of rows.
    np.testing.assert_allclose(scored.values, made.target.values, rtol=1e-3, atol=1e-4)

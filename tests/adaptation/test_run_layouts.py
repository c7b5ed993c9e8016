"""Office-Home and VisDA-2017 as they are laid out on disk, small, from images to a table."""

from __future__ import annotations

import numpy as np
import pytest
from one_layer import one_layer
from stored_images import draw_images, write_images
from two_domains import colour_model

from shiftcal import datasets, methods
from shiftcal.adaptation import adapt
from shiftcal.adaptation.devices import cpu_threads

# By data set: domains, source and target, recipe, images of each class.
SETS = {
    "office-home": (("Art", "Clipart", "Product", "Real World"), ("Art", "Real World"), 3),
    "visda2017": (("train", "validation"), ("train", "validation"), 8),
}
RECIPES = {"office-home": "office-home", "visda2017": "visda"}
QUICK = {"iterations": 6, "batch_size": 4, "bottleneck": 6}


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


def class_names(name, root):
    """The names of the classes, of a copy of one image."""
    write_images(root / "Art" / "Mug", draw_images(1), ["a.png"])
    write_images(root / "train" / "bus", draw_images(1), ["a.png"])
    domain = "Art" if name == "office-home" else "train"
    return datasets.load(name, root, domain=domain).classes


@pytest.fixture(scope="module", params=SETS)
def tree(request, tmp_path_factory):
    """The name of a data set, and a folder of the same layout."""
    root = tmp_path_factory.mktemp(request.param)
    classes = class_names(request.param, tmp_path_factory.mktemp("names"))
    domains, _, each = SETS[request.param]
    for number, domain in enumerate(domains):
        names = [f"{name}/{i:05d}.png" for name in classes for i in range(each)]
        images = draw_images(len(names), 20, 24, seed=number) // 2
        images += (40 * np.arange(len(names)) // each % 3).astype(np.uint8)[:, None, None, None]
        write_images(root / domain, images, names)
    if request.param == "visda2017":  # as it is published: a list beside the folders
        for domain in domains:
            lines = [f"{name} {i // each}" for i, name in enumerate(names)]
            (root / domain / "image_list.txt").write_text("\n".join(lines))
    return request.param, root


# Six iterations teach next to nothing, which the methods tell.
@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
@pytest.mark.parametrize("frozen", [False, True], ids=["network", "frozen"])
def test_a_task_runs_end_to_end(tree, tmp_path, frozen):
    name, root = tree
    _, (source, target), each = SETS[name]
    made = adapt(
        f"{name}:{root}?domain={source}",
        f"{name}:{root}?domain={target}",
        tmp_path / "run",
        trainer="cdan",
        backbone=colour_model() if frozen else one_layer(),
        frozen=frozen,
        recipe=RECIPES[name],
        changes=QUICK,
        severities=(1, 3, 5),
    )
    n = each * made.bank.n_classes
    assert made.bank.n_classes == (65 if name == "office-home" else 12)
    assert len(made.source_features) == round(0.8 * n)
    assert [len(each) for each in made.bank] == [n - round(0.8 * n)] * 4
    assert made.target.n == n // 2
    assert 0 <= made.accuracy <= 1
    assert made.document["recipe"] == RECIPES[name]
    told = made.document["identity"]["training"]["inputs"]
    if not frozen:
        assert told["transform"] == {"office-home": "default", "visda2017": "center-crop"}[name]
    for method in ("cpcs", "transcal", "sts", "sac"):
        fitted = methods.get(method)().fit(made.bank, source_features=made.source_features)
        fitted.adapt(made.target.logits(), features=made.target.features)
        assert fitted.predict_proba(made.target.logits()).shape == (n // 2, made.bank.n_classes)

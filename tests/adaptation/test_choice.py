"""Which settings and transforms a name and a recipe stand for."""

from __future__ import annotations

import pytest

from shiftcal import adaptation
from shiftcal.adaptation.choice import choose
from shiftcal.errors import InputError, UnknownName


@pytest.mark.parametrize("name", adaptation.names())
def test_a_recipe_is_what_the_trainer_says(name):
    kind = adaptation.get(name)
    assert choose(name).settings == kind.settings
    assert choose(name).recipe == choose(name, recipe="default", frozen=True).recipe == "default"
    assert choose(name, frozen=True).recipe == "frozen"
    for recipe in kind.recipes:
        chosen = choose(name, recipe=recipe)
        assert (chosen.trainer, chosen.settings) == kind.prepared(recipe)
        assert chosen.name == name


def test_changes_come_last():
    chosen = choose("cdan", recipe="visda", changes={"lr": 0.5, "entropy": True})
    assert chosen.settings.lr == 0.5
    assert chosen.trainer.entropy is True
    assert chosen.settings.iterations == choose("cdan", recipe="visda").settings.iterations


@pytest.mark.parametrize(
    ("name", "recipe", "transform"),
    [
        ("cdan", None, "default"),
        ("cdan", "office-home", "default"),
        ("cdan", "visda", "center-crop"),
        ("cdan", "digits", "none"),
        ("safn", "office-home", "random-crop"),
    ],
)
def test_transforms_are_the_reference_librarys(name, recipe, transform):
    assert choose(name, recipe=recipe).transform == transform
    assert choose(name, recipe=recipe, transform="none").transform == "none"


@pytest.mark.parametrize("name", adaptation.names())
def test_a_backbone_may_have_a_recipe_of_its_own(name):
    kind = adaptation.get(name)
    chosen = choose(name, backbone="digits-cnn")
    assert (chosen.recipe, chosen.transform) == ("digits", "none")
    assert chosen.settings == kind.prepared("digits")[1]
    assert choose(name, backbone="digits-cnn", recipe="default").recipe == "default"
    assert choose(name, backbone="digits-cnn", frozen=True).recipe == "frozen"
    assert choose(name, backbone="resnet50").recipe == "default"


def test_names_may_be_spelled_with_capitals():
    assert choose("Source_Only").name == "source-only"


def test_what_there_is_not_is_told():
    with pytest.raises(UnknownName, match="no trainer is called 'dann'"):
        choose("dann")
    with pytest.raises(UnknownName, match="DAN has no recipe 'pacs'"):
        choose("dan", recipe="pacs")
    with pytest.raises(InputError, match="DAN has no option 'entropy'"):
        choose("dan", changes={"entropy": True})
    with pytest.raises(UnknownName, match="transform must be"):
        choose("dan", transform="mirror")


def test_a_frozen_backbone_takes_no_transform():
    with pytest.raises(InputError, match=r"transform 'none' .* Leave it out, or leave out frozen"):
        choose("dan", transform="none", frozen=True)

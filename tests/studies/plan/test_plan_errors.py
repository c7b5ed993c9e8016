"""What is wrong with a plan, in words that name the entry."""

from __future__ import annotations

import pytest

from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.studies.plan.reading import read_plan

HEAD = 'study = "synthetic"\n'
TABLES = '[model]\nspec = "onnx:a"\n[data]\nimages = "b"\n'


def refused(text, words, kind=InputError, **options):
    with pytest.raises(kind, match=words):
        read_plan(text, where="mine.toml", **options)


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ("seedz = [1]", r"mine.toml has no entry 'seedz'\. .*seeds"),
        ("seeds = 3", r"seeds must be a list of different whole numbers of at least 0; got 3"),
        ("seeds = [1, 1]", "different whole numbers"),
        ("seeds = [-1]", "at least 0"),
        ("seeds = [true]", "whole numbers"),
        ("seeds = [1.0]", "whole numbers"),
        ("seeds = []", "seeds must name one at least"),
        ("bins = 0", "bins must be a whole number of at least 1; got 0"),
        ('bins = "15"', "bins must be a whole number"),
        ("bins = true", "bins must be a whole number"),
        ("about = 3", "about must be a text in quotes; got 3"),
        ("options = 3", "options must be a table; got 3"),
        ("ladders = 3", "ladders must be a list of tables; got 3"),
        ("ladders = [3]", "ladders 1 must be a table; got 3"),
        ("methods = 3", "methods must be a list of names or tables; got 3"),
        ("methods = [3]", "methods 1 must be a table; got 3"),
        ("methods = [{label = 'x'}]", "methods 1 needs name"),
        ("methods = ['ts', {name = 'oracle', seed = 1}]", "methods 2: the oracle has no settings"),
        (
            "methods = ['ts', 'pseudocal']",
            "methods 2: PseudoCal needs scores of mixed.*Leave it out",
        ),
        ("methods = [{name = 'sac', distence = 'ks'}]", "SAC has no setting 'distence'.*distance"),
        ("methods = ['ts', {name = 'sac', label = 'TS'}]", "two methods have the label 'TS'"),
        ("calibration = 3", r"\[calibration\] must be a table; got 3"),
    ],
)
def test_the_first_table(top, words):
    refused(HEAD + top + "\n" + TABLES, words)


def test_unknown_methods_and_corruptions_get_the_nearest_name():
    unknown = HEAD + "methods = ['ts', 'tss']\n" + TABLES
    refused(unknown, "^mine.toml methods 2: .*'tss'.*ts", UnknownName)
    place = r"^mine.toml \[calibration\] corruption: .*pixelate"
    refused(HEAD + TABLES + '[calibration]\ncorruption = "pixelat"', place, UnknownName)
    place = r"^mine.toml \[shifts\] corruptions: .*'fogg'.*fog"
    refused(HEAD + TABLES + '[shifts]\ncorruptions = ["fogg"]', place, UnknownName)
    ladder = '[[ladders]]\nname = "a"\ncorruption = "pixelat"\nstrengths = [1]'
    refused(HEAD + TABLES + ladder, "ladders 1: .*pixelate", UnknownName)


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("[calibration]\nimage = 3", r"\[calibration\] has no entry 'image'.*images"),
        ("[calibration]\nimages = 0", r"\[calibration\] images must be a whole number"),
        ("[calibration]\nseverities = [0, 1]", "severities must be .* at least 1"),
        ("[shifts]\ncorruptionz = []", r"\[shifts\] has no entry 'corruptionz'.*corruptions"),
        ("[shifts]\ncorruptions = [3]", "corruptions must be a text, or a list of texts"),
        ("[shifts]\ncorruptions = ['fog', 'Fog']", "corruptions name fog twice"),
        ("[shifts]\nseed = -1", "seed must be a whole number of at least 0"),
        ("[shifts]\ntable = 'x'", r"\[shifts\] table must be .*auto.*'x'"),
        (
            "[shifts]\nmade = 'x?severity={severity}'",
            r"made must have .*Write \{corruption\} where",
        ),
        ("[shifts]\nmade = 'x/{corruption}'", r"\[shifts\] made must .*Write \{severity\} where"),
        ("[shifts]\nsets = 3", "sets must be a list of tables"),
        ("[[shifts.sets]]\nname = 'a'", "sets 1 needs images"),
        ("[[shifts.sets]]\nimages = 'a'", "sets 1 needs name"),
        ("[[shifts.sets]]\nname = '../a'\nimages = 'a'", "name must be letters, digits"),
        ("[[shifts.sets]]\nname = 'a'\nimages = 'a'\ntitel = 'x'", "'titel'.*title"),
        ("[[ladders]]\nname = 'a'\ncorruption = 'pixelate'", "strengths must be a list"),
        ("[[ladders]]\nname = 'a'\ncorruption = 'fog'\nstrengths = [1]", "ladders 1: .*3 numbers"),
    ],
)
def test_the_other_tables(rest, words):
    refused(HEAD + TABLES + rest, words)


LADDER = "[[ladders]]\nname = 'a'\ncorruption = 'pixelate'\nstrengths = [0.5]\n"


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("[calibration]\nseverities = [1, 6]", r"\[calibration\] .*pixelate, .* severities 1 to 5"),
        (
            "[calibration]\ncorruption = 'a'",
            "severities must be those of a, which has one severity",
        ),
        ("[shifts]\ncorruptions = ['a']\nseverities = [2]", r"\[shifts\] severities.*one severity"),
        ("[shifts]\ncorruptions = ['fog']\nseverities = [9]", r"fog, .* 1 to 5; got \[9\]"),
    ],
)
def test_severities_are_those_that_a_corruption_has(rest, words):
    refused(HEAD + TABLES + LADDER + rest, words)


def test_the_severities_of_what_is_left_out_of_the_targets_are_not_asked_for():
    rest = "[calibration]\ncorruption = 'a'\nseverities = [1]\n[shifts]\ncorruptions = ['a', 'fog']"
    read_plan(HEAD + TABLES + LADDER + rest)


@pytest.mark.parametrize(
    "strengths", ["[]", "3", "[true]", "['x']", "[[]]", "[[0.5], []]", "[[[0.5]]]", "[nan]", "[2]"]
)
def test_strengths_must_be_numbers_that_the_corruption_takes(strengths):
    ladder = f"[[ladders]]\nname = 'a'\ncorruption = 'pixelate'\nstrengths = {strengths}"
    refused(HEAD + TABLES + ladder, "ladders 1.*strengths")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fog", "no published corruption"),
        ("Gaussian-Noise", "no published corruption"),
        ("a..b", r"not have '\.\.' in it"),
        ("a/b", "ladders 1: name must be made of"),
    ],
)
def test_a_ladder_has_a_name_of_its_own(name, words):
    ladder = f"[[ladders]]\nname = '{name}'\ncorruption = 'pixelate'\nstrengths = [0.5]"
    refused(HEAD + TABLES + ladder, words)


def test_two_ladders_have_two_names():
    ladder = "[[ladders]]\nname = 'a'\ncorruption = 'pixelate'\nstrengths = [0.5]\n"
    refused(HEAD + TABLES + ladder * 2, "two ladders are called 'a'")


@pytest.mark.parametrize("name", ["clean", "train", "fog-1", "snow-3", "fine-2"])
def test_names_of_files_are_taken(name):
    text = (
        HEAD + TABLES + "[[ladders]]\nname = 'fine'\ncorruption = 'pixelate'\nstrengths = [0.5]\n"
    )
    refused(text + f"[[shifts.sets]]\nname = '{name}'\nimages = 'x'", f"{name!r} is taken")


def test_two_sets_have_two_names():
    refused(HEAD + TABLES + "[[shifts.sets]]\nname = 'a'\nimages = 'x'\n" * 2, "'a' is taken")


@pytest.mark.parametrize("missing", ["study", "spec", "images"])
def test_what_must_be_there(missing):
    lines = (HEAD + TABLES).splitlines()
    refused("\n".join(line for line in lines if not line.startswith(missing)), f"needs {missing}")


def test_an_empty_alternative_is_none():
    refused(HEAD + '[model]\nspec = ["a", ""]\n[data]\nimages = "b"', "needs spec")


def test_the_model_and_the_data():
    refused(
        HEAD + TABLES.replace("[data]", "dtype = 'float64'\n[data]"), r"dtype must be .*float64"
    )
    refused(HEAD + TABLES.replace("[data]", "sped = 1\n[data]"), r"\[model\] has no entry.*spec")
    refused(HEAD + TABLES + "limit = 0", r"\[data\] limit must be a whole number")
    refused(HEAD + TABLES + "labls = 'x'", r"\[data\] has no entry 'labls'.*labels")


def test_data_that_nobody_named():
    refused(HEAD + '[model]\nspec = "{data}/x"\n[data]\nimages = "b"', "--data FOLDER")


def test_what_is_not_toml():
    refused("study = ", "mine.toml is not TOML", FileError)

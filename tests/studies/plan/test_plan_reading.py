"""Plans from their text."""

from __future__ import annotations

import pytest

from shiftcal.errors import FileError, UnknownName
from shiftcal.studies.plan.plan import (
    CalibrationPlan,
    DataPlan,
    LadderPlan,
    MethodPlan,
    ModelPlan,
    NaturalSet,
    Plan,
    ShiftPlan,
)
from shiftcal.studies.plan.reading import built_in, plan_text, read_plan

LEAST = """
study = "synthetic"
[model]
spec = "onnx:net.onnx"
[data]
images = "images"
"""
WHOLE = """
study = "natural"
about = "A try."
seeds = [7, 3]
bins = 10
methods = ["vanilla", {name = "SAC", distance = "ks"}, {name = "sac", label = "SAC few", peek = 9},
           {name = "oracle"}]
[model]
spec = ["onnx:{data}/a.onnx", "onnx:{data}/b.onnx"]
groups = "imagenet16"
batch_size = 8
dtype = "float16"
[data]
images = ["{data}/one", "{data}/two"]
labels = "{data}/labels.npy"
limit = 500
train = "{data}/train"
train_labels = "t.npy"
train_limit = 70
fetch = "get it, put it into {data}"
[calibration]
corruption = "fine"
severities = [2, 1]
images = 100
[shifts]
corruptions = ["fog", "Defocus-Blur"]
severities = [5, 0, 1]
made = "cifar10-c:{data}/C?corruption={corruption}&severity={severity}"
seed = 4
table = "cifar"
[[shifts.sets]]
name = "sketch"
images = "{data}/sketch"
[[shifts.sets]]
name = "v2"
title = "Version 2"
images = ["{data}/v2"]
labels = "v2.csv"
column = "imagenet-v2-mf"
fetch = "v2"
[[ladders]]
name = "fine"
corruption = "pixelate"
strengths = [0.9, [0.8]]
[options]
anything = {a = [1, {b = 2}]}
"""


def test_what_is_not_said_is_the_default():
    plan = read_plan(LEAST)
    assert plan == Plan("synthetic", ModelPlan(("onnx:net.onnx",)), DataPlan(("images",)))
    assert plan.seeds == (0, 1, 2, 3, 4)
    assert plan.bins == 15
    assert plan.calibration == CalibrationPlan("pixelate", (1, 2, 3, 4, 5), 5000)


def test_every_entry_is_read():
    assert read_plan(WHOLE, data="/d") == Plan(
        study="natural",
        about="A try.",
        seeds=(7, 3),
        bins=10,
        methods=(
            MethodPlan("vanilla", "Vanilla"),
            MethodPlan("sac", "SAC", {"distance": "ks"}),
            MethodPlan("sac", "SAC few", {"peek": 9}),
            MethodPlan("oracle", "Oracle"),
        ),
        model=ModelPlan(("onnx:/d/a.onnx", "onnx:/d/b.onnx"), "imagenet16", 8, "float16"),
        data=DataPlan(
            ("/d/one", "/d/two"),
            "/d/labels.npy",
            500,
            ("/d/train",),
            "t.npy",
            70,
            "get it, put it into /d",
        ),
        calibration=CalibrationPlan("fine", (1, 2), 100),
        shifts=ShiftPlan(
            ("fog", "defocus_blur"),
            (0, 1, 5),
            "cifar10-c:/d/C?corruption={corruption}&severity={severity}",
            4,
            "cifar",
            (
                NaturalSet("sketch", "sketch", ("/d/sketch",)),
                NaturalSet("v2", "Version 2", ("/d/v2",), "v2.csv", "imagenet-v2-mf", "v2"),
            ),
        ),
        ladders=(LadderPlan("fine", "pixelate", ((0.9,), (0.8,))),),
        options={"anything": {"a": [1, {"b": 2}]}},
    )


def test_a_data_folder_may_be_called_anything():
    plan = read_plan('study = "s"\n[model]\nspec = "{data}"\n[data]\nimages = "{data}/{data}"',
                     data='C:\\a "b" é')  # fmt: skip
    assert plan.data.images == ('C:\\a "b" é/C:\\a "b" é',)


def test_plans_are_found_by_name_or_file(tmp_path):
    assert "synthetic" in built_in()
    text, where = plan_text("synthetic")
    assert text.startswith("# Synthetic shift")
    assert "'synthetic'" in where
    file = tmp_path / "mine.toml"
    file.write_text(LEAST, "utf-8")
    assert plan_text(file) == (LEAST, str(file))


def test_an_unknown_plan_is_named_with_the_nearest():
    with pytest.raises(UnknownName, match=r"no study is called 'synthetik'.*synthetic.*\.toml"):
        plan_text("synthetik")


def test_files_that_cannot_be_read_say_why(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        plan_text(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes('about = "é"'.encode("latin-1"))
    with pytest.raises(FileError, match="not UTF-8"):
        plan_text(tmp_path / "latin.toml")
    with pytest.raises(FileError, match="could not be read"):
        plan_text(tmp_path)

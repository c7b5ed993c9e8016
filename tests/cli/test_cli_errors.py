"""Invocations that cannot be meant: status 2, one line that names the problem, nothing written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ladder_data import make_bank
from onnx_resnet import mean_colour_onnx
from photos import photos
from PIL import Image

import shiftcal as sc

BANK = "--surrogate clean.npz --surrogate s1.npz --surrogate s2.npz"
MODEL = "--model net.onnx --images images.npy"

WRONG = {
    # Words of the line.
    "nonsense": "no such command 'nonsense'",
    "fit --mehtod sac": "no such option: --mehtod",
    "evaluate target.npz --bins ten": "invalid value for '--bins'",
    "evaluate": "missing argument 'SCORES'",
    "fit --method ts": "missing option '--output'",
    "--import nowhere list": "'nowhere' cannot be imported",
    # fit
    "fit --method temprature -o x.json clean.npz": "temprature",
    "fit --method pseudocal -o x.json clean.npz": "needs the model run over mixed target images",
    "fit --method ts -o x.json": "surrogate sets are missing",
    "fit --method ts -o x.json --bank ladder --surrogate s1.npz": "exclude one another",
    "fit --method ts -o x.json cleen.npz": "cleen.npz does not exist. Did you mean 'clean.npz'?",
    "fit --method ts -o x.npz clean.npz": "x.npz must end in .json",
    "fit --method ts -o nowhere/x.json clean.npz": "there is no folder nowhere",
    "fit --method ts -o folder clean.npz": "folder is a folder",
    "fit --method ts -o ladder/bank.json --bank ladder": "must not be replaced",
    "fit --method cpcs -o x.json clean.npz": "needs features of the training samples",
    "fit --method ts -o x.json clean.npz --source-train train.npz": "ts uses no features",
    "fit --method ts -o x.json clean.npz --distance ks": "ts has no setting 'distance'",
    "fit --method sac -o x.json clean.npz --set nonsense=1": "sac has no setting 'nonsense'",
    "fit --method sac -o x.json clean.npz --set nonsense": "--set must be of the form NAME=VALUE",
    "fit --method sac -o x.json clean.npz --seed 1 --set seed=2": "'seed' is given twice",
    "fit --method sac -o x.json clean.npz --set map.bins=7": "has no setting 'bins'",
    "fit --method ts -o x.json clean.npz --set map.n_bins=7": "ts has no setting 'map'",
    f"fit --method transcal -o x.json {BANK} --source-train train.npz --set standardize=perhaps": (
        "'standardize' must be true or false; got 'perhaps'"
    ),
    "fit --method ts -o x.json unlabelled.npz": "unlabelled.npz",
    # apply and export
    "apply sac.json": "the target is missing",
    "apply sac.json target.npz --target target.npz -o x.npz": "two targets were given",
    "apply sac.json target.npz": "-o must name a file",
    "apply ladder target.npz -o x.npz": "ladder is a folder. METHOD must be",
    "apply map.json target.npz -o x.npz": "map.json holds the map 'temperature'. METHOD must be",
    "apply sac.json target.npz -o target.npz": "must not be replaced",
    "apply sac.json target.npz -o x.txt": "x.txt must end in",
    "apply sac.json other.npz -o x.npz": "they have 6, and this one has 3",
    "apply sac.json reordered.npz -o x.npz": "in their order: column 0 is 'fox' here",
    "apply cpcs.json unlabelled.npz -o x.npz": "cpcs needs features of the target",
    "apply sac.json statistics.json -o x.npz": "holds statistics, and calibrated scores need rows",
    "apply ts.json statistics.json": "enough for sac alone, not for ts",
    "apply sac.json target.npz -o x.npz --groups groups.txt --save-adapted y.json": (
        "--save-adapted writes one method"
    ),
    "apply ts.json plain.npz -o x.npz --groups groups.txt": "ts cannot be adapted to groups",
    "apply sac.json target.npz -o x.npz --groups groups.pdf": "groups.pdf does not exist",
    "apply sac.json target.npz -o x.npz --groups net.onnx": "net.onnx must be a file of groups",
    "apply sac.json target.npz -o x.npz --groups groups.txt:a": "it has no columns, so 'a' names",
    "apply sac.json target.npz -o x.npz --groups groups.csv:cam": "there is no column 'cam'",
    "apply sac.json target.npz -o x.npz --groups groups.csv": "no column 'group'",
    "apply sac.json target.npz -o x.npz --groups ragged.csv": "500 of 500 have no group here",
    "apply sac.json target.npz -o x.npz --groups few.csv": "499 of 500 have no group here",
    "apply sac.json target.npz -o x.npz --groups twice.csv": "it has 'row 0' twice",
    "apply sac.json plain.npz -o x.npz --groups short.txt": "short.txt",
    "export sac.json --onnx net.onnx -o x.json": "x.json must end in .onnx",
    "export sac.json --onnx net.onnx -o x.onnx": "must be adapted to a target",
    "export ts.json --onnx nothing.onnx -o x.onnx": "nothing.onnx",
    "export ts.json --onnx net.onnx -o x.onnx": "net.onnx",
    "export ts.json --onnx net.onnx -o x.onnx --input scores": "'logits', 'probabilities'",
    # evaluate, compare, estimate and report
    "evaluate unlabelled.npz": "unlabelled.npz has no labels",
    "evaluate target.npz --labelled-only": "--labelled-only goes with --labels",
    "evaluate target.npz --max-ece 5": "--max-ece must be a fraction from 0 to 1",
    "evaluate target.npz --level 1": "--level must lie",
    "evaluate target.npz --resamples 1": "--resamples must be 0 (no intervals) or at least 2",
    "evaluate target.npz --binning nonsense": "--binning must be",
    "evaluate target.npz --metric nonsense": "nonsense",
    "evaluate nothing.npz": "nothing.npz does not exist",
    "evaluate groups.csv": "groups.csv",
    "compare nothing.npz": "nothing.npz does not exist",
    "compare ladder": "the target is missing",
    "compare ladder unlabelled.npz --metric aurc": "--metric needs labels",
    "compare ladder target.npz --format pdf": "is not one of",
    "compare ladder target.npz --bank ladder": "exclude one another",
    "compare ladder infinite.npz": "infinite.npz",
    "estimate ladder other.npz": "Both must come from one model",
    "estimate ladder target.npz --estimator nonsense": "nonsense",
    "estimate ladder target.npz --estimator atc:sac": "atc takes no method; got 'atc:sac'",
    "estimate ladder target.npz --estimator mean-confidence:nonsense": "nonsense",
    "report ladder target.npz -o x.pdf": "x.pdf must end in .html",
    "report ladder target.npz -o x.html --resamples 1": "n_resamples must be",
    "report ladder target.npz -o x.html --bins 101": "n_bins must be",
    # images
    "corrupt images.npy --corruption contrast": "missing argument 'OUTPUT'",
    "corrupt images.npy x --corruption contrast --severity 6": "severity",
    "corrupt images.npy x --corruption contrast --severity 3-2": "--severity must be a number",
    "corrupt images.npy x --corruption contrast --format gif": "'gif' is not one of 'png', 'jpeg'",
    "corrupt images.npy x --corruption contrast --frost-photos folder": "goes with",
    "corrupt nothing x --corruption contrast": "nothing",
    "corrupt images.npy x --corruption nowhere:function": "nowhere",
    "gallery picture.png -o x.gif": "x.gif must end in .png",
    "gallery picture.png -o x.png --corruption all": "Leave one or the other out",
    "gallery picture.png -o x.png --corruption fog --severity 2": "Leave one or the other out",
    "gallery picture.png -o x.png --severity 6": "invalid value for '--severity'",
    "gallery groups.txt -o x.png": "groups.txt",
    # bank, score and merge
    "bank --model nothing.onnx --images images.npy -o x": "nothing.onnx",
    f"bank {MODEL} -o x": "labels",
    f"bank {MODEL} --labels truth.npy --classes a,b,a -o x": "all different and none empty",
    f"bank {MODEL} --labels truth.npy --classes nowhere -o x": "nowhere does not exist",
    f"bank {MODEL} --labels truth.npy --dtype int8 -o x": "dtype",
    f"bank {MODEL} --labels truth.npy --features some -o x": "'some' is not one of 'clean'",
    f"bank {MODEL} --labels truth.npy --engine nonsense -o x": "nonsense",
    f"bank {MODEL} --labels truth.npy --gpus-per-worker 1 -o x": "ray",
    "bank --model net.onnx --images folder -o folder/x": "the folder that is read",
    "score --images images.npy -o x.npz": "Give --model, or --bank",
    "score --model net.onnx --images images.npy": "-o must name a file for the scores",
    f"score {MODEL} -o x.npz --shard 1-2": "--shard must be i/n",
    f"score {MODEL} -o x.npz --shard 3/2": "3",
    f"score {MODEL} -o x.npz --labels truth.npy --no-labels": "exclude one another",
    "score --bank ladder --images images.npy -o x.npz": "does not say which model",
    "merge clean.npz -o x.npz": "clean.npz",
    "merge clean.npz -o x.csv": "x.csv must end in .npz or .json",
    # train, data and demo
    "train --source a --target b --backbone resnet50": "--output",
    "train --source a --target b --backbone resnet50 -o x --features y": "a frozen backbone",
    "train --source a --target b --backbone resnet50 -o x --frozen --transform none": "transform",
    "train --source a --target b --backbone resnet50 -o x --corruption fog,frost": "must be one",
    "train --source a --target b --backbone resnet50 -o x --set nonsense": "of the form NAME=VALUE",
    "train --source a --target b --backbone resnet50 -o x --method nonsense": "nonsense",
    "data check nonsense x": "nonsense",
    "data nonsense": "no such command 'nonsense'",
    "demo -o folder": "folder is not empty and has no such demo",
    "demo -o groups.txt": "groups.txt",
}


@pytest.fixture(scope="module")
def folder(written, tmp_path_factory):
    """All files that the lines name."""
    place = tmp_path_factory.mktemp("errors")
    for file in written.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        bank = make_bank(200)
        bank.save("ladder")
        clean = sc.read_scores("clean.npz")
        sets = sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"])
        sc.SAC().fit(sets).save("sac.json")
        sc.TS().fit(sets).save("ts.json")
        train = sc.read_scores("train.npz").features
        sc.methods.get("cpcs")().fit(sets, source_features=train).save("cpcs.json")
        sc.maps.get("temperature")().fit(clean.values, clean.labels).save("map.json")
        sc.scoring.ScoreStatistics.of_rows(clean.values, clean.labels).write("statistics.json")
        target = sc.read_scores("target.npz")
        np.savez("plain.npz", logits=target.values)
        np.savez("other.npz", logits=target.values[:, :3])
        np.savez("reordered.npz", logits=target.values, classes=target.classes[::-1])
        np.savez("infinite.npz", logits=np.full((5, 6), np.inf))
        Path("groups.txt").write_text("a\nb\n" * 250)
        Path("short.txt").write_text("a\nb\n")
        Path("groups.csv").write_text("camera,site\n" + "1,2\n" * 500)
        Path("ragged.csv").write_text("id,group\na,b\nc\n")
        Path("few.csv").write_text("id,group\nrow 0,b\n")
        twice = "".join(f"row {i},b\n" for i in range(500))
        Path("twice.csv").write_text(f"id,group\n{twice}row 0,c\n")
        Path("folder").mkdir()
        Path("folder", "a.txt").touch()
        Path("net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
        np.save("images.npy", photos(16, 16)[:3])
        np.save("truth.npy", np.arange(3))
        Image.fromarray(photos(16, 16)[0]).save("picture.png")
    return place


@pytest.mark.parametrize("line", WRONG)
def test_it_is_rejected_in_one_line_and_nothing_is_written(folder, monkeypatch, refused, line):
    monkeypatch.chdir(folder)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    assert WRONG[line] in refused(line)
    after = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    assert after == before

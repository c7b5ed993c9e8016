"""A reduced study on real images, from a network to figures."""

from __future__ import annotations

import shutil
from statistics import fmean

import pytest

from shiftcal import studies

PLAN = r'''
study = "synthetic"
seeds = [0, 1]
methods = [
  {name = "vanilla", label = "Vanilla"}, {name = "ts", label = "TS"},
  {name = "cpcs", label = "CPCS"}, {name = "transcal", label = "TransCal"},
  {name = "sts", label = "STS"}, {name = "sac", label = "SAC"},
  {name = "oracle", label = "Oracle"},
]
[model]
spec = """onnx:NET?mean=0.485,0.456,0.406&std=0.229,0.224,0.225&batch_size=100\
&features_from=Flatten71"""
[data]
images = "mosaic:{data}/cifar10/test.webp?tile=32&labels={data}/cifar10/labels.npz:test"
train = """mosaic:{data}/cifar10/train_batch_1.webp?tile=32\
&labels={data}/cifar10/labels.npz:train_batch_1"""
train_limit = 1000
limit = 500
[calibration]
images = 250
[shifts]
corruptions = ["fog", "gaussian_noise", "zoom_blur"]
'''


@pytest.fixture(scope="module")
def reduced(shared_data, tmp_path_factory):
    """A run of 500 images, three corruptions and two splits."""
    torch = pytest.importorskip("torch")
    from onnx_resnet import resnet20_onnx

    folder = tmp_path_factory.mktemp("reduced")
    file = shared_data / "cifar10-resnet-weights" / "resnet20-12fca82f.th"
    state = torch.load(file, map_location="cpu", weights_only=True)["state_dict"]
    weights = {name.removeprefix("module."): value.numpy() for name, value in state.items()}
    net = folder / "resnet20.onnx"
    net.write_bytes(resnet20_onnx(weights))
    plan = studies.read_plan(PLAN.replace("NET", str(net)), data=shared_data)
    done = studies.reproduce(plan, folder / "run", workers=2)
    net.unlink()
    return done


@pytest.mark.slow
def test_a_reduced_study_has_the_order_of_the_paper(reduced):
    assert reduced.scored == 500 * (1 + 5 + 15) + 1000
    assert reduced.evaluated == reduced.records == 2 * 7 * 16
    records = studies.Run(reduced.folder).records
    mean = {
        name: fmean(r.ece for r in records if r.variant == name and r.severity in (3, 4, 5))
        for name in ("sac", "ts", "vanilla")
    }
    # Of 250 test images the ECE is known to a percent or two; the methods are further apart.
    assert mean["sac"] < mean["ts"] - 0.01
    assert mean["ts"] < mean["vanilla"] - 0.02
    ts = {(r.split, r.target): r for r in records if r.method == "ts"}
    same = [r for r in records if r.method == "sac" and r.chosen == "clean"]
    assert any(record.target == "clean" for record in same)
    for record in same:
        other = ts[record.split, record.target]
        assert (record.ece, record.temperature) == (other.ece, other.temperature)
    floor = {(r.split, r.target): r.nll for r in records if r.method == "oracle"}
    # The solver ends within 1e-8 or so of the minimum.
    assert all(r.nll >= floor[r.split, r.target] - 1e-7 for r in records)


@pytest.mark.slow
def test_everything_is_rebuilt_from_the_stored_scores(reduced, tmp_path):
    folder = shutil.copytree(reduced.folder, tmp_path / "run")
    for name in ("figures", "tables"):
        shutil.rmtree(folder / name)
    assert studies.rebuild(folder).scored == 0
    for file in [*reduced.folder.glob("figures/*.json"), *reduced.folder.glob("tables/*")]:
        assert (folder / file.relative_to(reduced.folder)).read_bytes() == file.read_bytes()
    opened = studies.Run(reduced.folder)
    again = [opened.recompute(record) for record in opened.records[::5]]
    assert again == opened.records[::5]

"""Files: what is read stays, what is written is whole, and weights beside a network go along."""

from __future__ import annotations

import export_disk
import numpy as np
import onnx
import pytest
import small_disk
from onnx import numpy_helper
from small_networks import INPUTS, network, run, saved

from shiftcal.errors import FileError, MissingData
from shiftcal.export import onnx as export_onnx
from shiftcal.export import to_onnx


@pytest.fixture
def temperature(fit_map):
    return fit_map("temperature")


@pytest.fixture
def net(tmp_path):
    return saved(tmp_path / "net.onnx", network())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def external(path, location="net.weights"):
    """A network whose weights are in a file beside it."""
    model = network()
    values = numpy_helper.to_array(model.graph.initializer[0])
    path.parent.joinpath(location).parent.mkdir(parents=True, exist_ok=True)
    path.parent.joinpath(location).write_bytes(values.tobytes())
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(values.nbytes))):
        weight.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


def assert_same_logits(path):
    wanted = INPUTS.astype(np.float32) @ numpy_helper.to_array(network().graph.initializer[0])
    np.testing.assert_allclose(run(path)["logits"], wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["net.onnx", "./net.onnx", "link.onnx"])
def test_the_network_itself_is_not_replaced(temperature, net, tmp_path, name):
    (tmp_path / "link.onnx").symlink_to(net)
    before = net.read_bytes()
    with pytest.raises(FileError, match="is read by the export and must not be replaced"):
        to_onnx(temperature, net, f"{tmp_path}/{name}")
    assert net.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\x80\x04 this is no network" * 9, "damaged or something else"),
        (b"not a network", "damaged or something else"),
        (network().SerializeToString()[:-30], "damaged or something else"),
        (network().SerializeToString()[:40], "damaged or something else"),
    ],
    ids=["empty", "pickle", "text", "cut at the end", "cut in the middle"],
)
def test_files_that_are_no_networks_are_refused(temperature, tmp_path, content, said):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    with pytest.raises(FileError, match=rf"bad\.onnx must be an ONNX file; it is {said}\b"):
        to_onnx(temperature, bad, tmp_path / "out.onnx")
    assert sorted(contents(tmp_path)) == ["bad.onnx"]


def test_places_that_cannot_be_written_are_refused(temperature, net, tmp_path):
    with pytest.raises(FileError, match="it is a folder"):
        to_onnx(temperature, net, tmp_path)
    with pytest.raises(FileError, match=r"could not be written.*check that the folder exists"):
        to_onnx(temperature, net, tmp_path / "none" / "out.onnx")


@pytest.mark.parametrize("location", ["net.weights", "weights/first.bin"])
def test_into_another_folder_weights_are_copied(temperature, tmp_path, location):
    net = external(tmp_path / "net.onnx", location)
    other = tmp_path / "other"
    other.mkdir()
    made = to_onnx(temperature, net, other / "out.onnx")
    assert made.data_files == (location,)
    assert (other / location).read_bytes() == (tmp_path / location).read_bytes()
    (tmp_path / location).unlink()
    assert_same_logits(made.path)


def test_another_file_in_the_place_of_the_copy_is_not_replaced(temperature, tmp_path):
    net, other = external(tmp_path / "net.onnx"), tmp_path / "other"
    other.mkdir()
    (other / "net.weights").write_bytes(b"somebody's")
    with pytest.raises(FileError, match=r"must be the copy of .*another file of that name"):
        to_onnx(temperature, net, other / "out.onnx")
    assert contents(other) == {"net.weights": b"somebody's"}


def test_the_weights_are_not_replaced_by_the_network(temperature, tmp_path):
    net = external(tmp_path / "net.onnx")
    with pytest.raises(FileError, match="is read by the export"):
        to_onnx(temperature, net, tmp_path / "net.weights")


def test_weights_that_are_missing_are_named(temperature, tmp_path):
    net = external(tmp_path / "net.onnx")
    (tmp_path / "net.weights").unlink()
    with pytest.raises(
        MissingData, match=r"net\.weights must be a file with weights of .*there is no"
    ):
        to_onnx(temperature, net, tmp_path / "out.onnx")


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "link"])
def test_weights_outside_of_the_folder_are_not_read(temperature, tmp_path, location):
    (tmp_path / "secret").write_bytes(b"s" * 1000)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    model = network()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    net = saved(folder / "net.onnx", model, valid=False)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(FileError, match="must have its weights in files in its own folder"):
        to_onnx(temperature, net, out / "out.onnx")
    assert contents(out) == {}


def fails(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_leaves_nothing_behind(temperature, tmp_path, monkeypatch):
    net, other = external(tmp_path / "net.onnx"), tmp_path / "other"
    other.mkdir()
    (other / "out.onnx").write_bytes(b"an older one")
    monkeypatch.setattr(export_onnx, "_checked", fails)
    with pytest.raises(KeyboardInterrupt):
        to_onnx(temperature, net, other / "out.onnx")
    assert contents(other) == {"out.onnx": b"an older one"}


def test_a_network_changed_meanwhile_is_not_written(temperature, net, tmp_path, monkeypatch):
    def changes(*_, **__):
        net.write_bytes(net.read_bytes() + b"\0")
        return None, None

    monkeypatch.setattr(export_onnx, "_checked", changes)
    with pytest.raises(FileError, match="has been changed or removed"):
        to_onnx(temperature, net, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.skipif(small_disk.way() is None, reason="no disk of one's own can be had here")
def test_a_full_disk_is_told_and_leaves_nothing(fit_map, tmp_path):
    external(tmp_path / "net.onnx")
    more = (tmp_path / "net.weights").read_bytes() + bytes(2 * small_disk.PAGE)
    (tmp_path / "net.weights").write_bytes(more)
    fit_map("temperature").save(tmp_path / "map.json")
    told = export_disk.play(tmp_path)
    # Too small for the weights at first, and then for the network after them.
    assert any("net.weights could not be written: No space left" in one for one in told["errors"])
    assert any("out.onnx could not be written: No space left" in one for one in told["errors"])
    assert told["left"] == [[]] * len(told["errors"])
    assert told["made"] == ["net.weights", "out.onnx"]

"""Files: what is read stays, what is written is whole, and weights beside a network go along."""

from __future__ import annotations

import export_disk
import numpy as np
import onnx
import pytest
import small_disk
from onnx import helper, numpy_helper
from small_networks import INPUTS, network, run, saved

from shiftcal.errors import FileError, MissingData
from shiftcal.export import _onnx_graph, to_onnx
from shiftcal.export import onnx as export_onnx


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


def test_the_network_that_is_read_is_not_touched(temperature, net, tmp_path):
    before, stamp = net.read_bytes(), net.stat().st_mtime_ns
    to_onnx(temperature, net, tmp_path / "out.onnx")
    assert (net.read_bytes(), net.stat().st_mtime_ns) == (before, stamp)
    assert sorted(contents(tmp_path)) == ["net.onnx", "out.onnx"]


def test_paths_may_be_texts(temperature, net, tmp_path):
    made = to_onnx(temperature, str(net), str(tmp_path / "out.onnx"))
    assert made.path == tmp_path / "out.onnx"


@pytest.mark.parametrize("name", ["net.onnx", "./net.onnx", "link.onnx"])
def test_the_network_itself_is_not_replaced(temperature, net, tmp_path, name):
    (tmp_path / "link.onnx").symlink_to(net)
    before = net.read_bytes()
    with pytest.raises(FileError, match="is read by the export and must not be replaced"):
        to_onnx(temperature, net, f"{tmp_path}/{name}")
    assert net.read_bytes() == before


def test_a_file_that_is_there_is_replaced_by_a_whole_one(temperature, net, tmp_path):
    out = tmp_path / "out.onnx"
    out.write_bytes(b"an older one")
    to_onnx(temperature, net, out)
    assert_same_logits(out)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "damaged or something else"),
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
    with pytest.raises(FileError, match=rf"bad\.onnx must be an ONNX file; it is {said}: \S"):
        to_onnx(temperature, bad, tmp_path / "out.onnx")
    assert sorted(contents(tmp_path)) == ["bad.onnx"]


def test_a_network_of_unknown_operators_that_is_not_valid_is_refused(temperature, tmp_path):
    model = network()
    model.graph.node.append(helper.make_node("Nonsense", ["logits"], ["z"]))
    bad = saved(tmp_path / "bad.onnx", model, valid=False)
    with pytest.raises(FileError, match=r"bad.onnx must be an ONNX file.*Nonsense"):
        to_onnx(temperature, bad, tmp_path / "out.onnx")


def test_a_file_that_is_not_there_is_refused(temperature, tmp_path):
    with pytest.raises(MissingData, match=r"none\.onnx must be an ONNX file; there is no file"):
        to_onnx(temperature, tmp_path / "none.onnx", tmp_path / "out.onnx")


def test_places_that_cannot_be_written_are_refused(temperature, net, tmp_path):
    with pytest.raises(FileError, match="it is a folder"):
        to_onnx(temperature, net, tmp_path)
    with pytest.raises(FileError, match=r"could not be written.*check that the folder exists"):
        to_onnx(temperature, net, tmp_path / "none" / "out.onnx")


def test_in_the_same_folder_weights_are_shared(temperature, tmp_path):
    net = external(tmp_path / "net.onnx")
    before = contents(tmp_path)
    made = to_onnx(temperature, net, tmp_path / "out.onnx")
    assert made.data_files == ("net.weights",)
    assert made.checked == "network"
    after = contents(tmp_path)
    assert after.pop("out.onnx")
    assert after == before
    assert_same_logits(tmp_path / "out.onnx")


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


def test_a_copy_that_is_there_already_will_do(temperature, tmp_path):
    net, other = external(tmp_path / "net.onnx"), tmp_path / "other"
    other.mkdir()
    to_onnx(temperature, net, other / "out.onnx")
    to_onnx(temperature, net, other / "again.onnx")
    assert sorted(contents(other)) == ["again.onnx", "net.weights", "out.onnx"]


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
    with pytest.raises(MissingData, match=r"refers to weights in .*net\.weights, which is not th"):
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
    with pytest.raises(FileError, match="must refer to weights in its own folder"):
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


def test_a_file_that_would_be_too_large_is_refused(temperature, net, tmp_path, monkeypatch):
    monkeypatch.setattr(_onnx_graph, "_LARGEST_FILE", net.stat().st_size + 10)
    with pytest.raises(FileError, match=r"must not be larger than .*external data first"):
        to_onnx(temperature, net, tmp_path / "out.onnx")


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

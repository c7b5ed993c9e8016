"""Files of torch.export: what they give, and that nothing in them runs."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
import torch
from hostile_files import rewritten, trap
from torch import nn

from shiftcal.errors import FileError, InputError
from shiftcal.models import ExportedModel, as_model

IMAGES = np.random.default_rng(5).integers(0, 256, (7, 16, 16, 3), np.uint8)
GRAPH = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")


class Net(nn.Module):
    """Parameters, buffers, a buffer that is not saved, a constant, and a shape in arithmetic."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 4, 4, 4), nn.BatchNorm2d(4), nn.Linear(16, 5)
        self.register_buffer("scale", torch.full((1,), 2.0), persistent=False)
        self.shift = torch.ones(5)

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.conv(x)), approximate="tanh")
        return self.last(x.reshape(x.shape[0], 4, 16).mean(1)) * self.scale + self.shift


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    net = Net().eval()
    example = (torch.zeros(3, 3, 16, 16),)
    open_batch = {0: torch.export.Dim("n", min=1, max=1024)}
    torch.export.save(
        torch.export.export(net, example, dynamic_shapes=(open_batch,)), folder / "open.pt2"
    )
    torch.export.save(torch.export.export(net, example), folder / "fixed.pt2")
    with torch.no_grad():
        wanted = net(torch.from_numpy(IMAGES).permute(0, 3, 1, 2) / 255).numpy()
    return folder, wanted


@pytest.mark.parametrize("name", ["open.pt2", "fixed.pt2"])
@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_logits_are_those_of_the_module_with_an_open_or_a_fixed_batch(files, name, batch_size):
    folder, wanted = files
    model = as_model(folder / name, batch_size=batch_size)
    assert isinstance(model, ExportedModel)
    np.testing.assert_allclose(model.logits(IMAGES), wanted, atol=1e-5)  # other orders of summing


def test_a_model_goes_through_pickle_and_its_fingerprint_is_that_of_the_content(files, tmp_path):
    folder, _ = files
    model = as_model(f"export:{folder / 'open.pt2'}?batch_size=4")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.logits(IMAGES), model.logits(IMAGES))
    copy = rewritten(folder / "open.pt2", tmp_path / "copy.pt2", {})
    assert again.fingerprint == model.fingerprint == as_model(copy).fingerprint
    changed = rewritten(
        folder / "open.pt2", tmp_path / "changed.pt2", {"data/weights/weight_1": bytes(16)}
    )
    assert as_model(changed).fingerprint != model.fingerprint
    assert model.engine.startswith("torch 2")


def test_images_of_another_size_are_refused_with_the_size_wanted(files):
    folder, _ = files
    with pytest.raises(InputError, match=r"takes inputs of shape \(3, 16, 16\).*resize and crop"):
        as_model(folder / "open.pt2", batch_size=4).logits(np.zeros((4, 20, 16, 3), np.uint8))


def test_a_network_must_take_one_batch_of_images_and_return_logits(tmp_path):
    torch.export.save(
        torch.export.export(nn.Linear(4, 2).eval(), (torch.zeros(2, 4),)), tmp_path / "rows.pt2"
    )
    with pytest.raises(InputError, match=r"one input, a batch of images; got shapes \(2, 4\)"):
        as_model(tmp_path / "rows.pt2")

    class Pair(nn.Module):
        def forward(self, x):
            return x.mean((2, 3)), x

    torch.export.save(
        torch.export.export(Pair(), (torch.zeros(2, 3, 8, 8),)), tmp_path / "pair.pt2"
    )
    with pytest.raises(InputError, match=r"must return a tensor of logits.*got tuple"):
        as_model(tmp_path / "pair.pt2", batch_size=2).logits(np.zeros((2, 8, 8, 3), np.uint8))


@pytest.mark.parametrize("name", ["1", "maps"])
@pytest.mark.parametrize("fixed", [True, False])
def test_features_are_a_place_in_the_tuple_or_a_key_of_the_dict(tmp_path, name, fixed):
    class Both(nn.Module):
        def forward(self, x):
            logits, maps = x.mean((2, 3)), x * 2
            return (logits, maps) if name == "1" else {"logits": logits, "maps": maps}

    shapes = None if fixed else ({0: torch.export.Dim("n", min=1, max=1024)},)
    program = torch.export.export(Both(), (torch.zeros(3, 3, 16, 16),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "both.pt2")
    model = as_model(f"export:{tmp_path / 'both.pt2'}?features_from={name}&batch_size=4")
    made = model.outputs(IMAGES)
    wanted = IMAGES.mean(axis=(1, 2)) / 255
    np.testing.assert_allclose(made.logits, wanted, rtol=1e-5)
    np.testing.assert_allclose(made.features, 2 * wanted, rtol=1e-5)  # maps: their mean
    other = ExportedModel(tmp_path / "both.pt2", features_from="5", batch_size=4)
    assert other.fingerprint != model.fingerprint
    with pytest.raises(InputError, match=r"a second output of the network; got '5'"):
        other.outputs(IMAGES)


def test_a_file_that_was_changed_is_not_unpickled(files, tmp_path):
    folder, _ = files
    path = rewritten(folder / "open.pt2", tmp_path / "net.pt2", {})
    data = pickle.dumps(ExportedModel(path))
    rewritten(folder / "open.pt2", path, {"data/weights/weight_1": bytes(16)})
    with pytest.raises(FileError, match=r"net.pt2 must stay as it was"):
        pickle.loads(data)


def pickled(content):
    for tensor in content["config"].values():
        tensor["use_pickle"] = True


def opaque(content):
    for tensor in content["config"].values():
        tensor["path_name"] = "opaque_obj_0"


def operator(name):
    def change(content):
        content["graph_module"]["graph"]["nodes"][0]["target"] = name

    return change


def shape(text):
    def change(content):
        sizes = content["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
        sizes[0] = {"as_expr": {"expr_str": text, "hint": {"as_int": 3}}}

    return change


def renamed(text):
    def change(content):
        content["graph_module"]["graph"]["nodes"][0]["name"] = text

    return change


def container(content):
    content["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = (
        '[1, {"type": "os.system", "context": "null", "children_spec": []}]'
    )


def hostile(mark):
    """What of an archive is changed -> what the message says."""
    bomb, run = trap(mark), f"__import__('os').system('touch {mark}')"
    return {
        "holds 'weight_0' as a pickle": {WEIGHTS: pickled, "data/weights/weight_0": bomb},
        "holds 'tensor_0' as a pickle": {CONSTANTS: pickled, "data/constants/tensor_0": bomb},
        "holds 'opaque_obj_0', which": {CONSTANTS: opaque, "data/constants/opaque_obj_0": bomb},
        "the operator 'torch.os.system'": {GRAPH: operator("torch.os.system")},
        "the operator 'torch.ops.aten.from_file": {GRAPH: operator("torch.ops.aten.from_file.out")},
        "the operator '#my.op'": {GRAPH: operator("#my.op")},
        "the shape ": {GRAPH: shape(run)},
        "the shape 'exec": {GRAPH: shape("exec(1)")},
        "the shape 'x.y'": {GRAPH: shape("x.y")},
        "the text ": {GRAPH: renamed(f"x = {run}\ny")},
        "the container 'os.system'": {GRAPH: container},
        "holds no network of torch.export": {GRAPH: None, "data.pkl": bomb},
        "holds compiled code": {GRAPH: None, "data/aotinductor/model/a.so": b"\x7fELF"},
    }


@pytest.mark.parametrize("number", range(13))
def test_what_torch_would_run_is_refused_and_does_not_run(files, tmp_path, number):
    mark = tmp_path / "mark"
    words, changes = list(hostile(mark).items())[number]
    file = rewritten(files[0] / "open.pt2", tmp_path / "hostile.pt2", changes)
    with pytest.raises(FileError, match=rf"hostile.pt2 .*{words}.*was not loaded"):
        as_model(file)
    assert not mark.exists()


def guarded(mark):
    def change(content):
        content["guards_code"] = [f"__import__('os').system('touch {mark}') == 0"]
        for node in content["graph_module"]["graph"]["nodes"]:
            node["metadata"]["stack_trace"] = f"a\n__import__('os').system('touch {mark}')"

    return change


def test_pickled_sample_inputs_guards_and_traces_are_left_out(files, tmp_path):
    mark = tmp_path / "mark"
    changes = {"data/sample_inputs/model.pt": trap(mark), GRAPH: guarded(mark)}
    file = rewritten(files[0] / "open.pt2", tmp_path / "hostile.pt2", changes)
    np.testing.assert_allclose(as_model(file, batch_size=4).logits(IMAGES), files[1], atol=1e-5)
    assert not mark.exists()


def test_the_traps_work_where_torch_reads_the_file_itself(files, tmp_path):
    # Otherwise the tests above would show nothing.
    mark = tmp_path / "mark"
    changes = {"data/sample_inputs/model.pt": trap(mark)}
    file = rewritten(files[0] / "open.pt2", tmp_path / "hostile.pt2", changes)
    with contextlib.suppress(Exception):  # what comes of it does not matter
        torch.export.load(file)
    assert mark.exists()


def test_a_record_that_is_there_twice_is_refused(files, tmp_path):
    file = rewritten(files[0] / "open.pt2", tmp_path / "two.pt2", {GRAPH: b"{}"}, twice=[GRAPH])
    with pytest.raises(FileError, match=r"holds 'models/model.json' twice"):
        as_model(file)


def test_other_files_are_refused_with_their_name(files, tmp_path):
    mark, bare = tmp_path / "mark", tmp_path / "bare.pt2"
    bare.write_bytes(trap(mark))
    with pytest.raises(FileError, match=r"bare.pt2 is not a file of torch.export.save"):
        as_model(bare)
    assert not mark.exists()
    torch.save({"a": torch.zeros(2)}, tmp_path / "weights.pt2")
    with pytest.raises(FileError, match=r"weights.pt2 holds no network of torch.export"):
        as_model(tmp_path / "weights.pt2")
    cut = tmp_path / "cut.pt2"
    cut.write_bytes((files[0] / "open.pt2").read_bytes()[:5000])
    with pytest.raises(FileError, match=r"cut.pt2 is not a file"):
        as_model(cut)
    with pytest.raises(FileError, match=r"none.pt2 must be a file of torch.export; there is no"):
        as_model(tmp_path / "none.pt2")
    odd = rewritten(files[0] / "open.pt2", tmp_path / "odd.pt2", {GRAPH: b"[]"})
    with pytest.raises(FileError, match=r"odd.pt2 could not be loaded by torch.export"):
        as_model(odd)

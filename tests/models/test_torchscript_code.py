"""TorchScript files that would do more than compute are refused before anything in them runs."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from shiftcal.errors import FileError
from shiftcal.models import TorchScriptModel, _torchscript_code, as_model

IMAGES = np.random.default_rng(2).integers(0, 256, (4, 16, 16, 3), np.uint8)
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:FutureWarning"),
]


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=[2, 3])


def written(folder, body, *, extra=""):
    """A file of torch.jit.save whose forward has another body, and whose class has more."""
    torch.jit.script(Mean()).save(folder / "mean.pt")
    target = folder / "changed.pt"
    with zipfile.ZipFile(folder / "mean.pt") as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith(".py") and b"def forward" in data:
                head, _, _ = data.decode().partition("    return ")
                data = f"{head}    {body}\n    return torch.mean(x, [2, 3])\n{extra}".encode()
            new.writestr(info.filename, data)
    return target


def test_a_file_written_so_runs_if_it_only_computes(tmp_path):
    file = written(tmp_path, "y = torch.add(x, x)")
    wanted = IMAGES.mean(axis=(1, 2)) / 255
    np.testing.assert_allclose(as_model(file).logits(IMAGES), wanted, rtol=1e-5)


BODIES = {
    "save": 'torch.save(x, "{out}")',
    "save of a method": 'x.save("{out}")',
    "save by its library": 'ops.aten.save(x, "{out}")',
    "from_file": 'y = torch.from_file("{out}", True, 4)',
    "save in text": 'getattr(torch, "save")(x, "{out}")',
    "save in octal": 'getattr(torch, "sa\\166e")(x, "{out}")',
    "save in two pieces": 'getattr(torch, "sa" "ve")(x, "{out}")',
    "IgnoredPythonOp": "ops.prim.IgnoredPythonOp(x)",
    "rpc_async": "y = ops.prim.rpc_async(x)",
    "c10d": "y = ops.c10d.barrier(x)",
    "torch.classes.dist_rpc": "y = __torch__.torch.classes.dist_rpc.WorkerInfo(x, 1)",
}


@pytest.mark.parametrize("kind", BODIES)
def test_code_that_does_more_is_refused_by_its_text(kind, tmp_path, monkeypatch):
    out = tmp_path / "written"
    file = written(tmp_path, BODIES[kind].replace("{out}", str(out)))

    def load(*_args, **_options):
        raise AssertionError("must not be loaded")

    monkeypatch.setattr(torch.jit, "load", load)
    with pytest.raises(FileError, match=r"changed.pt holds .*, and was not run"):
        as_model(file)
    assert not out.exists()


def test_code_that_runs_while_a_file_is_loaded_is_refused(tmp_path):
    out = tmp_path / "written"
    extra = (
        "  def __setstate__(self: __torch__.Mean, x: Tensor) -> NoneType:\n"
        f'    torch.save(x, "{out}")\n    return None\n'
    )
    with pytest.raises(FileError, match="the operator save"):
        as_model(written(tmp_path, "y = x", extra=extra))
    assert not out.exists()


class Saving(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(0) > 3:
            torch.save(x, self.out)
        return x.mean(dim=[2, 3])


class Forking(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.jit.wait(torch.jit.fork(self.inner, x))


@pytest.mark.parametrize("outer", [nn.Sequential, Forking])
def test_operators_are_found_in_the_graphs_too_wherever_they_are(outer, tmp_path, monkeypatch):
    out = tmp_path / "written"
    torch.jit.script(outer(Saving(str(out)))).save(tmp_path / "saving.pt")
    with pytest.raises(FileError, match="the operator save"):
        TorchScriptModel(tmp_path / "saving.pt")
    # As if the text had been written in a way that is not seen through.
    monkeypatch.setattr(_torchscript_code, "_check_record", lambda *_: None)
    with pytest.raises(FileError, match="the operator aten::save"):
        TorchScriptModel(tmp_path / "saving.pt")
    assert not out.exists()


def test_a_record_that_is_there_twice_is_refused(tmp_path):
    file = written(tmp_path, "y = x")
    with zipfile.ZipFile(file, "a") as archive:
        name = archive.namelist()[0]
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(name, b"")
    with pytest.raises(FileError, match="twice"):
        as_model(file)

"""TorchScript files."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import FileError
from shiftcal.models._torch_forward import forward
from shiftcal.models.base import Model


class TorchScriptModel(Model):
    """A network saved with ``torch.jit.save``, which brings its own code.

    Nothing in the file is unpickled by Python. Its code is TorchScript, which can compute whatever
    torch can: take files from people you trust.

    Args:
        path: The file, usually ``.pt``.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``.
        channels_last: As for a PyTorch module.
        **options: ``preprocessing``, ``classes``, ``output`` and ``batch_size``, as for every
            model.
    """

    def __init__(
        self, path: str | Path, *, device: str = "cpu", channels_last: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.path = Path(path)
        self.channels_last = channels_last
        _check_archive(self.path)
        jit = require("torch.jit", extra="torch", needed_by="a TorchScript model")
        try:
            with warnings.catch_warnings():
                # Whoever names such a file knows its kind; that torch advises another is no news.
                warnings.filterwarnings("ignore", r".*torch\.jit\.load", DeprecationWarning)
                self.module = jit.load(str(self.path), map_location=device)
        except RuntimeError as error:
            first = str(error).strip().partition("\n")[0]
            raise FileError(f"{self.path} could not be loaded as TorchScript: {first}") from error

    def _forward(self, batch: NDArray[Any]) -> Any:
        return forward(self.module, batch, channels_last=self.channels_last)


def _check_archive(path: Path) -> None:
    """Refuse what is no TorchScript archive before torch reads it."""
    if not path.is_file():
        raise FileError(f"{path} must be a TorchScript file; there is no file of that name.")
    names: list[str] = []
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except zipfile.BadZipFile:
            names = []
    inside = {name.partition("/")[2] for name in names}
    if "constants.pkl" not in inside or not any(name.startswith("code/") for name in inside):
        kind = "weights without code (torch.save)" if "data.pkl" in inside else "something else"
        raise FileError(
            f"{path} must be a TorchScript file, from torch.jit.save; it holds {kind} and was not "
            "opened further. Weights go into an architecture: cifar_resnet(20, weights=...)."
        )

"""TorchScript files."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import FileError
from shiftcal.models._features import as_features, unknown_layer
from shiftcal.models._model_file import ModelFile
from shiftcal.models._torch_forward import (
    memory_of,
    run,
    to_numpy,
    torch_engine,
    use_torch_threads,
)
from shiftcal.models.base import Model

# What is made anew from the file.
_REOPENED = ("module", "_file")


class TorchScriptModel(Model):
    """A network saved with ``torch.jit.save``, which brings its own code.

    Nothing in the file is unpickled by Python. Its code is TorchScript, which can compute whatever
    torch can: take files from people you trust.

    Args:
        path: The file, usually ``.pt``.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``.
        channels_last: As for a PyTorch module.
        features_from: Which of the things the network returns are features: the place in a tuple,
            such as ``"1"``, whose first is the logits, or the key in a dict, whose ``"logits"``
            are. Layers inside TorchScript cannot be listened to.
        **options: ``preprocessing``, ``classes``, ``output``, ``batch_size``, ``memory_budget`` and
            ``key``, as for every model; the batch size is found by default.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "cpu",
        channels_last: bool = False,
        features_from: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**{"batch_size": None, **options})
        self.path = Path(path)
        self.device = device
        self.channels_last = channels_last
        self.features_from = None if features_from is None else str(features_from)
        self._open()

    def _open(self) -> None:
        self._file = ModelFile(self.path, "a TorchScript file")
        self.path = self._file.path
        _check_archive(self.path)
        jit = require("torch.jit", extra="torch", needed_by="a TorchScript model")
        try:
            with warnings.catch_warnings():
                # Whoever names such a file knows its kind; that torch advises another is no news.
                warnings.filterwarnings("ignore", r".*torch\.jit\.load", DeprecationWarning)
                self.module = jit.load(str(self.path), map_location=self.device)
        except RuntimeError as error:
            first = str(error).strip().partition("\n")[0]
            raise FileError(f"{self.path} could not be loaded as TorchScript: {first}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the network, which is read from the file again."""
        return {name: value for name, value in vars(self).items() if name not in _REOPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def engine(self) -> str:
        """``torch`` and its version, and the device if it is not the processor."""
        return torch_engine(self.module)

    @property
    def measured_memory(self) -> str | None:
        """As for a PyTorch module."""
        return memory_of(self.module)

    def use_threads(self, threads: int) -> None:
        """Set torch's number of threads, which is that of the whole process."""
        use_torch_threads(threads)

    def _identity(self) -> Iterable[str]:
        return ("torchscript", self._file.digest(), str(self.features_from))

    def _forward(self, batch: NDArray[Any]) -> Any:
        output = run(self.module, batch, channels_last=self.channels_last)
        if self.features_from is None:
            return to_numpy(output)
        logits, features = _picked(output, self.features_from)
        return to_numpy(logits), as_features(to_numpy(features), name=self.features_from)


def _picked(output: Any, name: str) -> tuple[Any, Any]:
    if isinstance(output, dict):
        known, found = list(map(str, output)), output
    else:
        several = list(output) if isinstance(output, tuple | list) else [output]
        known = [str(place) for place in range(len(several))]
        found = dict(zip(known, several, strict=True))
    logits = "logits" if isinstance(output, dict) else "0"
    if name not in known or name == logits or logits not in known:
        raise unknown_layer(
            name, [one for one in known if one != logits], what="a second output of the network"
        )
    return found[logits], found[name]


def _check_archive(path: Path) -> None:
    """Refuse what is no TorchScript archive before torch reads it."""
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

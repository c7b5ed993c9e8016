"""TorchScript files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import FileError
from shiftcal.models._features import as_features, picked
from shiftcal.models._model_file import ModelFile, check_same
from shiftcal.models._torch_forward import (
    run,
    to_numpy,
    torch_threads,
)
from shiftcal.models._torch_model import TorchNetwork
from shiftcal.models._torchscript_code import check_archive, check_graphs

# What is made anew from the file.
_REOPENED = ("module",)


class TorchScriptModel(TorchNetwork):
    """A network saved with ``torch.jit.save``, which brings its own code.

    Nothing in the file is unpickled by Python. Its code is TorchScript; a file with operators that
    touch the disk, the network or Python is refused before anything in it runs.

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
        self.threads = None
        self._digest: str | None = None
        self._open()

    def _open(self) -> None:
        file = ModelFile(self.path, "a TorchScript file")
        check_same(file.path, file.digest, self._digest)
        self.path, self._digest = file.path, file.digest
        check_archive(file.data, file.path)
        jit = require("torch.jit", extra="torch", needed_by="a TorchScript model")
        try:
            with warnings.catch_warnings():
                # Whoever names such a file knows its kind; that torch advises another is no news.
                warnings.filterwarnings("ignore", r".*torch\.jit\.load", DeprecationWarning)
                # The bytes that were judged, and not the file, which may be another by now.
                self.module = jit.load(io.BytesIO(file.data), map_location=self.device)
        except RuntimeError as error:
            first = str(error).strip().partition("\n")[0]
            raise FileError(f"{self.path} could not be loaded as TorchScript: {first}") from error
        check_graphs(self.module, self.path)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the network, which is read from the file again."""
        return {name: value for name, value in vars(self).items() if name not in _REOPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def _identity(self) -> Iterable[str]:
        return ("torchscript", str(self._digest))

    def _choices(self) -> Mapping[str, str | None]:
        return {"features_from": self.features_from}

    def _forward(self, batch: NDArray[Any]) -> Any:
        with torch_threads(self.threads):
            output = run(self.module, batch, channels_last=self.channels_last)
        if self.features_from is None:
            return to_numpy(output)
        logits, features = picked(output, self.features_from)
        return to_numpy(logits), as_features(to_numpy(features), name=self.features_from)

"""Files of ``torch.export``."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._optional import require
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.models._features import as_features, picked
from shiftcal.models._model_file import check_same
from shiftcal.models._pt2_archive import checked_archive
from shiftcal.models._torch_forward import leaving_room, torch_engine, torch_threads
from shiftcal.models.base import Model

# What is made anew from the file.
_REOPENED = ("_module", "_shape", "_dtype")


class ExportedModel(Model):
    """A network saved with ``torch.export.save``, a graph of torch's operators and its tensors.

    torch's own reader unpickles and evaluates parts of such a file. It is given a copy that holds
    tensors and checked operators only; a file that needs more is refused. See the documentation on
    safe loading. A batch size fixed in the file is kept: images go in so many at a time.

    Args:
        path: The file, ``.pt2``.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``.
        features_from: Which of the things the network returns are features: the place in a tuple,
            such as ``"1"``, whose first is the logits, or the key in a dict, whose ``"logits"``
            are.
        **options: ``preprocessing``, ``classes``, ``output``, ``batch_size``, ``memory_budget`` and
            ``key``, as for every model; the batch size is found by default.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "cpu",
        features_from: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**{"batch_size": None, **options})
        self.path = Path(path).absolute()
        self.device = device
        self.features_from = None if features_from is None else str(features_from)
        self.threads: int | None = None
        self._digest: str | None = None
        self._open()

    def _open(self) -> None:
        if not self.path.is_file():
            raise MissingData(
                f"{self.path} must be a file of torch.export; there is no file of that name."
            )
        export = require("torch.export", extra="torch", needed_by="a torch.export model")
        archive = checked_archive(self.path)
        digest = hashlib.sha256(archive.getbuffer()).hexdigest()
        check_same(self.path, digest, self._digest)
        try:
            with _quiet("torch.export"):
                program = export.load(archive)
            if self.device != "cpu":
                passes = require("torch.export.passes", extra="torch", needed_by="another device")
                program = passes.move_to_device_pass(program, self.device)
            self._module = program.module()
        except Exception as error:  # torch raises what it likes for graphs it does not understand
            first = str(error).strip().partition("\n")[0]
            raise FileError(
                f"{self.path} could not be loaded by torch.export: {type(error).__name__}: {first}"
            ) from error
        self._shape, self._dtype = _only_input(program)
        self._digest = digest

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the network, which is read from the file again."""
        return {name: value for name, value in vars(self).items() if name not in _REOPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def engine(self) -> str:
        """``torch``, its version, and the kind of device if it is not the processor."""
        return torch_engine(self.device)

    @property
    def measured_memory(self) -> str | None:
        """The device, where torch or the system can say what it holds."""
        return "process" if self.device == "cpu" else self.device

    def use_threads(self, threads: int) -> None:
        """Let torch use so many threads while the network runs."""
        self.threads = check_count(threads, name="threads")

    @contextmanager
    def sharing(self, processors: int) -> Iterator[None]:
        """Leave a processor to the others, unless a number of threads was said."""
        with leaving_room(self, processors, device=self.device):
            yield

    def _identity(self) -> Iterable[str]:
        return ("torch.export", str(self._digest))

    def _choices(self) -> Mapping[str, str | None]:
        return {"features_from": self.features_from}

    def _forward(self, batch: NDArray[Any]) -> Any:
        for wanted, came in zip(self._shape[1:], batch.shape[1:], strict=True):
            if wanted is not None and wanted != came:
                raise InputError(
                    f"the network takes inputs of shape {self._shape[1:]}; these images give "
                    f"{batch.shape[1:]}. Say resize and crop, or channels, in the "
                    "preprocessing, on the command line ?resize=256&crop=224 or ?channels=1."
                )
        fixed = self._shape[0] or len(batch)
        parts = []
        for start in range(0, len(batch), fixed):
            piece = batch[start : start + fixed]
            missing = np.repeat(piece[-1:], fixed - len(piece), axis=0)
            made = self._run(np.concatenate([piece, missing]))
            parts.append([output[: len(piece)] for output in made])
        outputs = tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        return outputs if self.features_from is not None else outputs[0]

    def _run(self, batch: NDArray[Any]) -> list[NDArray[Any]]:
        torch = require("torch", extra="torch", needed_by="a torch.export model")
        with torch.inference_mode(), torch_threads(self.threads):
            output = self._module(torch.from_numpy(batch).to(self.device, self._dtype))
        if self.features_from is not None:
            logits, features = picked(output, self.features_from)
            rows = as_features(_to_numpy(features), name=self.features_from)
            return [_to_numpy(logits), rows]
        return [_to_numpy(output.get("logits") if isinstance(output, dict) else output)]


def _to_numpy(output: Any) -> NDArray[Any]:
    torch = require("torch", extra="torch", needed_by="a torch.export model")
    if not isinstance(output, torch.Tensor):
        raise InputError(
            "the network must return a tensor of logits, or a dict with the key 'logits'; got "
            f"{type(output).__name__}. Export a module that picks them out, or say features_from."
        )
    wide = output.dtype == torch.float64
    return np.asarray(output.to("cpu", torch.float64 if wide else torch.float32).numpy())


def _only_input(program: Any) -> tuple[tuple[int | None, ...], Any]:
    """Shape, with ``None`` for what is open, and dtype of the one input."""
    wanted = program.graph_signature.user_inputs
    values = [
        node.meta.get("val")
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in wanted
    ]
    if len(values) != 1 or getattr(values[0], "ndim", 0) != 4:
        came = ", ".join(str(tuple(getattr(value, "shape", ()))) for value in values) or "none"
        raise InputError(
            f"a torch.export model must have one input, a batch of images; got shapes {came}."
        )
    sides = tuple(side if isinstance(side, int) else None for side in values[0].shape)
    return sides, values[0].dtype


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Without what a library logs on its way to an error that is raised anyway."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)

"""Files of ``torch.export``."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import FileError, InputError
from shiftcal.models._pt2_archive import checked_archive
from shiftcal.models.base import Model

# What is made anew from the file.
_REOPENED = ("_module", "_shape", "_dtype", "_digest")


class ExportedModel(Model):
    """A network saved with ``torch.export.save``, a graph of torch's operators and its tensors.

    torch's own reader unpickles and evaluates parts of such a file. It is given a copy that holds
    tensors and checked operators only; a file that needs more is refused. See the documentation on
    safe loading. A batch size fixed in the file is kept: images go in so many at a time.

    Args:
        path: The file, ``.pt2``.
        device: Where it runs, such as ``"cpu"`` or ``"cuda:0"``.
        **options: ``preprocessing``, ``classes``, ``output``, ``batch_size``, ``memory_budget`` and
            ``key``, as for every model; the batch size is found by default.
    """

    def __init__(self, path: str | Path, *, device: str = "cpu", **options: Any) -> None:
        super().__init__(**{"batch_size": None, **options})
        self.path = Path(path).absolute()
        self.device = device
        self._open()

    def _open(self) -> None:
        if not self.path.is_file():
            raise FileError(
                f"{self.path} must be a file of torch.export; there is no file of that name."
            )
        export = require("torch.export", extra="torch", needed_by="a torch.export model")
        archive = checked_archive(self.path)
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
        self._digest = hashlib.sha256(archive.getbuffer()).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the network, which is read from the file again."""
        return {name: value for name, value in vars(self).items() if name not in _REOPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def engine(self) -> str:
        """``torch`` and its version, and the device if it is not the processor."""
        torch = require("torch", extra="torch", needed_by="a torch.export model")
        return f"torch {torch.__version__}" + ("" if self.device == "cpu" else f" {self.device}")

    @property
    def measured_memory(self) -> str | None:
        """The device, where torch or the system can say what it holds."""
        return "process" if self.device == "cpu" else self.device

    def use_threads(self, threads: int) -> None:
        """Set torch's number of threads, which is that of the whole process."""
        require("torch", extra="torch", needed_by="a torch.export model").set_num_threads(threads)

    def _identity(self) -> Iterable[str]:
        return ("torch.export", self._digest)

    def _forward(self, batch: NDArray[Any]) -> Any:
        for wanted, came in zip(self._shape[1:], batch.shape[1:], strict=True):
            if wanted is not None and wanted != came:
                raise InputError(
                    f"the network takes inputs of shape {self._shape[1:]}; these images give "
                    f"{batch.shape[1:]}. Say resize and crop in the preprocessing."
                )
        fixed = self._shape[0] or len(batch)
        parts = []
        for start in range(0, len(batch), fixed):
            piece = batch[start : start + fixed]
            missing = np.repeat(piece[-1:], fixed - len(piece), axis=0)
            parts.append(self._run(np.concatenate([piece, missing]))[: len(piece)])
        return np.concatenate(parts)

    def _run(self, batch: NDArray[Any]) -> NDArray[Any]:
        torch = require("torch", extra="torch", needed_by="a torch.export model")
        with torch.inference_mode():
            output = self._module(torch.from_numpy(batch).to(self.device, self._dtype))
        output = output.get("logits") if isinstance(output, dict) else output
        if not isinstance(output, torch.Tensor):
            raise InputError(
                "the network must return a tensor of logits, or a dict with the key 'logits'; got "
                f"{type(output).__name__}. Export a module that picks them out."
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

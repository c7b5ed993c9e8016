"""Checkpoints: where a training that was stopped goes on.

``checkpoint.json`` says how far it is and names ``checkpoint-STEP.safetensors``, whose digest it
holds. The weights are written first, then the JSON takes the place of the one before, and only then
old weights are removed: whenever a process is killed, the JSON names weights that are whole.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from shiftcal._files import atomic_write
from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.training.history import Row
from shiftcal.adaptation.training.identity import differences, plain_json
from shiftcal.adaptation.training.weights import fill, to_bytes
from shiftcal.errors import FileError, FitWarning

FILE = "checkpoint.json"
_WEIGHTS = "checkpoint-*.safetensors"
_FORMAT = "shiftcal-checkpoint"
_VERSION = 1


class Best(NamedTuple):
    """The checkpoint with the best accuracy on the source's validation images.

    Attributes:
        step: Iterations done.
        accuracy: On those images.
    """

    step: int
    accuracy: float


@dataclass(frozen=True)
class State:
    """What a training knows besides its tensors.

    Attributes:
        step: Iterations done.
        stopped_at: The last of them after which whatever was due, such as a row, was done.
        since: Iterations since the last row of the history.
        sums: Of their losses.
        rows: The history.
        best: The best checkpoint, if one is looked for.
        scaler: Of the gradients, in half precision.
    """

    step: int
    stopped_at: int
    since: int
    sums: list[float]
    rows: list[Row]
    best: Best | None = None
    scaler: dict[str, Any] | None = None


class Checkpoints:
    """Those of one training, in a folder.

    Args:
        folder: Where they are.
        identity: Everything that decides the result, as JSON can hold it.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._folder = folder
        self._path = folder / FILE
        self._identity = plain_json(identity)
        self._digests: dict[str, str] = {}

    def read(self, tensors: Mapping[str, Any]) -> State | None:
        """The newest, with the tensors overwritten; ``None`` if there is none.

        Warns if another release of torch has written it.

        Raises:
            FileError: If it is damaged, or of another training.
        """
        if not self._path.exists():
            return None
        document = self._document()
        differ = differences(document["identity"], self._identity)
        if differ:
            raise FileError(
                f"{self._folder} holds a checkpoint of another training: {differ}. "
                "Train into another folder, or remove this one to begin anew."
            )
        try:
            self._digests = dict(document["weights"])
            state = _state(document["state"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(self._path, f"{type(error).__name__}: {error}") from error
        self.fill(tensors, state.step)
        self._warn_of_other_torch(document.get("torch"))
        return state

    def write(self, state: State, tensors: Mapping[str, Any]) -> None:
        """Keep this one; of those before only the best.

        Raises:
            FileError: If it cannot be written; the one before is whole.
        """
        content = to_bytes(tensors)
        name = _name(state.step)
        with atomic_write(self._folder / name) as temporary:
            temporary.write_bytes(content)
        kept = {name} if state.best is None else {name, _name(state.best.step)}
        digests = {**self._digests, name: hashlib.sha256(content).hexdigest()}
        digests = {file: digest for file, digest in digests.items() if file in kept}
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
            "torch": str(torch.__version__),
            "identity": self._identity,
            "state": asdict(state),
            "weights": digests,
        }
        document["checksum"] = _checksum(document)
        with atomic_write(self._path) as temporary:
            temporary.write_text(json.dumps(document, allow_nan=False) + "\n", "utf-8")
        self._digests = digests
        _remove_weights(self._folder, kept)

    def fill(self, tensors: Mapping[str, Any], step: int) -> None:
        """Overwrite tensors with those of one of the kept checkpoints.

        Raises:
            FileError: If it is damaged, or of another network.
        """
        path = self._folder / _name(step)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self._damaged(path, error.strerror or str(error)) from error
        if hashlib.sha256(content).hexdigest() != self._digests.get(path.name):
            raise self._damaged(path, f"its digest is not the one in {FILE}")
        wrong = fill(tensors, content)
        if wrong is not None:
            raise FileError(
                f"{path} holds the weights of another network: {wrong}. "
                "Train into another folder, or remove this one to begin anew."
            )

    def _document(self) -> dict[str, Any]:
        try:
            document = json.loads(self._path.read_text("utf-8"))
        except OSError as error:
            raise self._damaged(self._path, error.strerror or str(error)) from error
        except (ValueError, RecursionError) as error:
            raise self._damaged(self._path, f"not JSON ({error})") from error
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise FileError(
                f"{self._path} is not a checkpoint: it has no format {_FORMAT!r}. "
                "Train into another folder."
            )
        if document.get("version") != _VERSION:
            raise FileError(
                f"{self._path} has version {document.get('version')!r}, written by "
                f"{document.get('written_by')}; this shiftcal reads version {_VERSION}. "
                "Train into another folder."
            )
        if document.pop("checksum", None) != _checksum(document):
            raise self._damaged(self._path, "its checksum does not fit its content")
        return document

    def _warn_of_other_torch(self, before: str | None) -> None:
        if before not in (None, str(torch.__version__)):
            warnings.warn(
                f"the training in {self._folder} was begun with torch {before} and goes on with "
                f"{torch.__version__}: its weights may differ from those of one that was never "
                f"stopped. Go on with torch {before} to have the same.",
                FitWarning,
                stacklevel=2,
            )

    def _damaged(self, path: Path, why: str) -> FileError:
        return FileError(
            f"the checkpoint {path} cannot be read: {why}. "
            f"Remove {self._folder} to begin the training anew."
        )


def _name(step: int) -> str:
    return _WEIGHTS.replace("*", str(step))


def _remove_weights(folder: Path, kept: set[str]) -> None:
    for path in folder.glob(_WEIGHTS):
        if path.name not in kept:
            with suppress(OSError):  # what is left over takes room, and does no other harm
                path.unlink()


def _state(stored: dict[str, Any]) -> State:
    best = stored["best"]
    return State(
        step=int(stored["step"]),
        stopped_at=int(stored["stopped_at"]),
        since=int(stored["since"]),
        sums=[float(one) for one in stored["sums"]],
        rows=[Row(*row) for row in stored["rows"]],
        best=None if best is None else Best(*best),
        scaler=stored["scaler"],
    )


def _checksum(document: dict[str, Any]) -> str:
    content = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()

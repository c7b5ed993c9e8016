"""scikit-learn classifiers, in memory or in .skops files."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice
from shiftcal.errors import FileError, InputError, require
from shiftcal.files import parsing
from shiftcal.models.model import Model, regular_file
from shiftcal.models.preprocessing import Preprocessing

_SCORES = ("decision_function", "predict_proba")


class SklearnModel(Model):
    """A fitted classifier; its logits are its decision function or ``log`` of its probabilities.

    A decision function with one column ``s`` becomes ``[0, s]``. :attr:`scores` is the name of the
    method that is used. A classifier in memory has a fingerprint only with ``key``; one from a
    ``.skops`` file has that of the file.

    Args:
        estimator: The fitted classifier, or a pipeline that ends in one.
        features: Function from a preprocessed batch to ``(n, d)``; by default pixels in one row.
        return_features: Return the input of the classifier as features too.
        scores: ``"decision_function"`` or ``"predict_proba"``; ``None`` uses the first that the
            classifier has.
        preprocessing: As for every model, but channels last by default.
        **options: ``classes`` (by default the classifier's own), ``batch_size`` and ``key``, as for
            every model.
    """

    _file_digest: str | None = None

    def __init__(
        self,
        estimator: Any,
        *,
        features: Callable[[NDArray[Any]], Any] | None = None,
        return_features: bool = False,
        scores: Literal["decision_function", "predict_proba"] | None = None,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            raise InputError(
                f"estimator must be a fitted classifier; {type(estimator).__name__} has no "
                "classes_. Fit it first."
            )
        options.setdefault("classes", [str(name) for name in classes])
        self.estimator = estimator
        self.features = features
        self.return_features = return_features
        self.scores = which_scores(estimator, scores)
        super().__init__(
            preprocessing=preprocessing or Preprocessing(layout="nhwc"),
            output="probabilities" if self.scores == "predict_proba" else "logits",
            **options,
        )

    @property
    def engine(self) -> str:
        """``scikit-learn`` and its version."""
        return f"scikit-learn {version('scikit-learn')}"

    def _identity(self) -> Iterable[str] | None:
        known = self._file_digest is not None and self.features is None
        return ("scikit-learn", str(self._file_digest)) if known else None

    def _choices(self) -> Mapping[str, str | bool]:
        return {"scores": self.scores, "return_features": self.return_features}

    def _forward(self, batch: NDArray[Any]) -> Any:
        rows = batch.reshape(len(batch), -1) if self.features is None else self.features(batch)
        z = np.asarray(getattr(self.estimator, self.scores)(rows))
        if z.ndim == 1:
            z = np.column_stack([np.zeros_like(z), z])
        return (z, rows) if self.return_features else z


def which_scores(estimator: Any, scores: str | None) -> str:
    """``scores`` if the classifier has it; for ``None`` the first it has."""
    if scores is not None:
        check_choice(scores, _SCORES, name="scores")
    for name in _SCORES if scores is None else (scores,):
        if hasattr(estimator, name):
            if name == "decision_function":
                refuse_pairs(estimator)
            return name
    raise InputError(
        f"estimator must have {scores or ' or '.join(_SCORES)}; {type(estimator).__name__} has "
        "not. CalibratedClassifierCV around it gives probabilities."
    )


def refuse_pairs(estimator: Any) -> None:
    """Raise InputError if the decision function has a column for each pair of classes.

    Of three classes there are three pairs, so the number of columns does not show it.
    """
    settings = estimator.get_params() if hasattr(estimator, "get_params") else {}
    pairs = {key for key, x in settings.items() if key.endswith("function_shape") and x == "ovo"}
    if pairs and len(getattr(estimator, "classes_", ())) > 2:
        raise InputError(
            "decision_function must have a column for each class; with "
            'decision_function_shape="ovo" it has one for each pair. '
            'set_params(decision_function_shape="ovr") changes that without a new fit.'
        )


def read_skops(path: str | Path, *, trusted: Sequence[str] = ()) -> tuple[Any, str | None]:
    """What a ``.skops`` file holds, if all its types are known to be harmless, and its digest.

    These are the types skops itself trusts, of scikit-learn, numpy, scipy and Python; others must
    be named, and then there is no digest, because the code of those types is unknown.

    Args:
        path: The file, made by ``skops.io.dump``.
        trusted: Further types that may be made, such as ``"my_package.MyTransformer"``.

    Raises:
        FileError: If the file is missing or damaged, or holds other types; the message names them.
    """
    path = regular_file(path, "a .skops file")
    skops = require("skops.io", extra="skops", needed_by="a .skops file")
    data = path.read_bytes()  # checked and loaded from the same bytes
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise FileError(
            f"{path} must be made by skops.io.dump; it is something else, such as a pickle, and "
            "was not opened. Load it yourself if you trust it, and pass the classifier."
        )
    with parsing(path, "a .skops file"):
        untrusted = set(skops.get_untrusted_types(data=data))
        if unknown := sorted(untrusted - set(trusted)):
            raise FileError(
                f"{path} holds types that are not known to be harmless: {', '.join(unknown)}. It "
                "was not loaded. If you trust them, name them: "
                f"sklearn:{path}?trusted={','.join(unknown)}"
            )
        estimator = skops.loads(data, trusted=list(trusted))
        return estimator, None if untrusted else hashlib.sha256(data).hexdigest()

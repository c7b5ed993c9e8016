"""scikit-learn classifiers, on pixels or on features made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice
from shiftcal.errors import InputError
from shiftcal.models._fingerprint import of_object
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing

_SCORES = ("decision_function", "predict_proba")


class SklearnModel(Model):
    """A fitted classifier; its logits are its decision function or ``log`` of its probabilities.

    A decision function with one column ``s`` becomes ``[0, s]``. :attr:`scores` says which of the
    two is used.

    Its fingerprint is made of the classifier and of ``features``: source, closure, defaults and
    the globals it names.

    Args:
        estimator: The fitted classifier, or a pipeline that ends in one.
        features: Function from a preprocessed batch to ``(n, d)``; by default pixels in one row.
        return_features: Give what the classifier is given, the rows of ``features`` or the pixels,
            as features too.
        scores: ``"decision_function"`` or ``"predict_proba"``; ``None`` takes the first the
            classifier has.
        preprocessing: As for every model, but channels last by default.
        **options: ``classes`` (by default the classifier's own), ``batch_size`` and ``key``, as for
            every model.
    """

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
        known = getattr(estimator, "classes_", None)
        if known is None:
            raise InputError(
                f"estimator must be a fitted classifier; {type(estimator).__name__} has no "
                "classes_. Fit it first."
            )
        options.setdefault("classes", [str(name) for name in known])
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
        own, made = of_object(self.estimator), of_object(self.features)
        return None if own is None or made is None else ("scikit-learn", own, made)

    def _choices(self) -> Mapping[str, str | bool]:
        return {"scores": self.scores, "return_features": self.return_features}

    def _forward(self, batch: NDArray[Any]) -> Any:
        rows = batch.reshape(len(batch), -1) if self.features is None else self.features(batch)
        given = np.asarray(getattr(self.estimator, self.scores)(rows))
        z = np.column_stack([np.zeros_like(given), given]) if given.ndim == 1 else given
        return (z, rows) if self.return_features else z


def which_scores(estimator: Any, scores: str | None) -> str:
    """``scores`` if the classifier has it; of ``None`` the first it has."""
    if scores is not None:
        check_choice(scores, _SCORES, name="scores")
    for name in _SCORES if scores is None else (scores,):
        if hasattr(estimator, name):
            if name == "decision_function":
                refuse_pairs(estimator)
            return name
    wanted = " or ".join(_SCORES) if scores is None else scores
    raise InputError(
        f"estimator must have {wanted}; {type(estimator).__name__} has not. "
        "CalibratedClassifierCV around it gives probabilities."
    )


def refuse_pairs(estimator: Any) -> None:
    """Raise InputError if the decision function has a column for each pair of classes.

    Of three classes there are three pairs, so that the number of columns does not tell.
    """
    last = estimator
    while hasattr(last, "steps") or hasattr(last, "best_estimator_"):
        last = last.steps[-1][1] if hasattr(last, "steps") else last.best_estimator_
    pairs = getattr(last, "decision_function_shape", None) == "ovo"
    if pairs and len(getattr(estimator, "classes_", ())) > 2:
        raise InputError(
            "decision_function must have a column for each class; that of "
            f"{type(last).__name__} has one for each pair of them, as it was made with "
            'decision_function_shape="ovo". set_params(decision_function_shape="ovr") changes '
            "that without a new fit."
        )

"""A model run over inputs of any kind, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shiftcal._checks import GUARD_FROM, check_choice, check_logits, check_probs
from shiftcal._types import Floats, InputKind
from shiftcal.corruptions._count_inputs import count_inputs
from shiftcal.errors import InputError
from shiftcal.models import Model
from shiftcal.models.sklearn import refuse_pairs
from shiftcal.scores import Scores

# What a classifier gives as which kind; what its users look at comes first.
_GIVES = {"probabilities": "predict_proba", "logits": "decision_function"}


def score_inputs(
    model: Any,
    inputs: Any,
    *,
    input: str | None = None,
    classes: Sequence[str] | None = None,
) -> Scores:
    """What a model gives for rows, texts or whatever it takes.

    Args:
        model: A fitted scikit-learn classifier or pipeline, or a function from inputs to logits or
            probabilities ``(n, k)``.
        inputs: An array, a DataFrame, a list of texts, or whatever the model takes. It is called
            once with all of them.
        input: What the model gives: ``"logits"`` or ``"probabilities"``. By default a function
            gives logits; a classifier its ``predict_proba``, or ``decision_function`` if it has no
            other. ``"logits"`` is a classifier's ``decision_function``, of which one column ``s``
            becomes ``[0, s]``.
        classes: Names of the classes in the order of the columns; by default the classifier's own.

    Returns:
        Scores of that kind, checked: finite, a row for every input.

    Raises:
        InputError: If the model fails, or gives something else.
    """
    return ModelOfInputs(model, input=input, classes=classes).scores(inputs, where="the inputs")


class ModelOfInputs:
    """Whatever turns inputs into scores.

    Args:
        model: As for :func:`score_inputs`.
        input: As for :func:`score_inputs`.
        classes: As for :func:`score_inputs`.

    Attributes:
        input: What it gives.
        classes: Names of the classes, if they are known.
        labels: What the classifier calls its classes; ``None`` for a function.
    """

    def __init__(self, model: Any, *, input: str | None, classes: Sequence[str] | None) -> None:
        if input is not None:
            check_choice(input, tuple(_GIVES), name="input")
        self.labels = _labels_of(model)
        if self.labels is None:
            self._call, kind = model, input or "logits"
        else:
            self._call, kind = _method_of(model, input)
            classes = [str(each) for each in self.labels] if classes is None else classes
        self.input: InputKind = "logits" if kind == "logits" else "probabilities"
        self.classes = classes

    def scores(self, inputs: Any, *, where: str, hint: str = "") -> Scores:
        """Checked scores.

        Args:
            inputs: As for :func:`score_inputs`.
            where: What the inputs are, for messages.
            hint: What to do if the model fails on them.
        """
        n = count_inputs(inputs)
        try:
            given = self._call(inputs)
        except Exception as error:  # a model of the user's own raises what it likes
            raise InputError(
                f"the model failed on {where}: {type(error).__name__}: {error}{hint}"
            ) from error
        try:
            values = self._checked(given)
        except InputError as error:
            raise InputError(f"the model's output for {where} cannot be used: {error}") from error
        if len(values) != n:
            raise InputError(
                f"the model's output for {where} must have a row for each of {n} inputs; got "
                f"{len(values)} rows."
            )
        names = None if self.classes is None else tuple(self.classes)
        return Scores(values, self.input, classes=names)

    def _checked(self, given: Any) -> Floats:
        if self.input == "probabilities":
            return check_probs(given)
        if self.labels is not None and np.ndim(given) == 1:
            given = np.column_stack([np.zeros_like(given), given])
        return np.array(check_logits(given, guard_from=GUARD_FROM))  # a buffer may be used again


def _labels_of(model: Any) -> Any:
    """The classes of a fitted classifier; ``None`` of a function."""
    if isinstance(model, Model):
        raise InputError(
            f"model must be a classifier or a function of inputs; {type(model).__name__} is a model"
            " of images. SurrogateBank.synthesize and shiftcal.score take it."
        )
    if any(hasattr(model, name) for name in ("fit", "predict")):
        found = getattr(model, "classes_", None)
        if found is None:
            raise InputError(
                f"model must be a fitted classifier; {type(model).__name__} has no classes_. Fit "
                "it first, or pass a function."
            )
        if isinstance(found, list):
            raise InputError(
                f"model must have one output; {type(model).__name__} has {len(found)}. Pass a "
                "function that gives the probabilities of one of them."
            )
        return np.asarray(found)
    if isinstance(model, type) or not callable(model):
        raise InputError(
            "model must be a fitted scikit-learn classifier, or a function from inputs to logits; "
            f"got {model!r}."
        )
    return None


def _method_of(model: Any, input: str | None) -> tuple[Any, str]:
    for kind, name in _GIVES.items():
        if input in (None, kind) and hasattr(model, name):
            if name == "decision_function":
                refuse_pairs(model)
            return getattr(model, name), kind
    wanted = " or ".join(_GIVES.values()) if input is None else _GIVES[input]
    raise InputError(
        f"model must have {wanted}; {type(model).__name__} has not. CalibratedClassifierCV around "
        "it gives probabilities."
    )

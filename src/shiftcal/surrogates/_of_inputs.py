"""From a model and labelled inputs of any kind to a bank in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, to_array
from shiftcal.corruptions import InputCorruption, as_input_corruption, corrupt_inputs
from shiftcal.corruptions._count_inputs import count_inputs
from shiftcal.errors import InputError
from shiftcal.scoring._score_inputs import ModelOfInputs
from shiftcal.surrogates._per_set import labels_per_set
from shiftcal.surrogates.bank import SurrogateBank, set_name
from shiftcal.surrogates.conditions import levels_of
from shiftcal.surrogates.surrogate_set import SurrogateSet

_NO_MISSING = (
    " The corruption leaves missing values, and the model may be unable to take them: put an "
    'imputer in front of it, or pass MissingValues(fill="median").'
)


@dataclass(frozen=True)
class OfInputs:
    """What a bank is made of; see :meth:`SurrogateBank.from_inputs`.

    Attributes:
        model: The classifier or function.
        inputs: The inputs as they are.
        labels: Theirs.
        features: Theirs, for methods that need them.
        classes: Names of the classes.
        input: What the model gives.
    """

    model: object
    inputs: Any
    labels: object
    features: object
    classes: Sequence[str] | None
    input: str | None


def bank_of_inputs(
    given: OfInputs, corruption: object, severities: object, *, seed: int
) -> SurrogateBank:
    """A bank of the inputs as they are, then of each corruption at each severity.

    Args:
        given: The model, the inputs and what is known of them.
        corruption: One or several; see :meth:`SurrogateBank.from_inputs`.
        severities: Which ones; ``None`` is all that a corruption has.
        seed: Fixes the random numbers.
    """
    count_inputs(given.inputs)
    key = check_count(seed, name="seed", least=0, most=2**128)
    ladders = [each.fitted_to(given.inputs) for each in _several(corruption)]
    steps = [(each, level) for each in ladders for level in levels_of(each, severities)]
    model = ModelOfInputs(given.model, input=given.input, classes=given.classes)
    # A function may change what it is given, and all other sets are made of these inputs.
    unchanged = corrupt_inputs(given.inputs, ladders[0], severity=0)
    clean = model.scores(unchanged, where="the inputs as they are")
    labels = _class_indices(given.labels, model)
    (checked,) = labels_per_set(labels, [clean.values.shape], clean.classes)
    sets = [
        SurrogateSet(
            clean.logits(), checked, "clean", severity=0, features=_copy_of(given.features)
        )
    ]
    for each, level in steps:
        name = set_name(len(sets), each.name, level)
        made = corrupt_inputs(given.inputs, each, severity=level, seed=key)
        hint = _NO_MISSING if each.may_lose_values else ""
        logits = model.scores(made, where=f"the set {name!r}", hint=hint).logits()
        sets.append(SurrogateSet(logits, checked, name, corruption=each.name, severity=level))
    origin = {"corruptions": [each.description for each in ladders], "seed": key}
    return SurrogateBank(sets, classes=clean.classes, input=model.input, origin=origin)


def _several(corruption: object) -> list[InputCorruption]:
    """One corruption, or those of a list; a list of functions is one, a function a severity."""
    known = [_is_known(x) for x in corruption] if isinstance(corruption, (list, tuple)) else []
    if any(known) and not all(known):
        raise InputError(
            "corruption must be a list of names and corruptions, or one of functions, which are "
            "the severities of one ladder; got both. Wrap a function that is a ladder of its own: "
            "corruptions.CustomInputs(function)."
        )
    several = isinstance(corruption, (list, tuple)) and all(known)
    made = [as_input_corruption(x) for x in (corruption if several else [corruption])]  # type: ignore[attr-defined]
    names = [each.name for each in made]
    if not names or len(set(names)) < len(names):
        raise InputError(f"corruption must be given, each once; got {names}.")
    return made


def _is_known(each: object) -> bool:
    """Whether it is a name, a corruption or the class of one, and no function."""
    is_class = isinstance(each, type) and issubclass(each, InputCorruption)
    return is_class or isinstance(each, (str, InputCorruption))


def _class_indices(labels: object, model: ModelOfInputs) -> NDArray[Any] | object:
    """Labels of a classifier as positions among its classes; those of a function as they are."""
    if model.labels is None:
        return labels
    given = to_array(labels, name="labels")
    if given.ndim != 1:
        raise InputError(
            f"labels must have shape (n,); got shape {given.shape}. Pass labels.ravel() if it is a "
            "column."
        )
    position = {name: i for i, name in enumerate(model.labels.tolist())}
    for row, label in enumerate(given.tolist()):
        if label not in position:
            shown = ", ".join(map(repr, list(position)[:10]))
            raise InputError(
                f"labels must be what the classifier calls its classes ({shown}); that of row {row}"
                f" is {label!r}. Pass them as they were passed to fit."
            )
    return np.array([position[label] for label in given.tolist()], dtype=np.intp)


def _copy_of(features: object) -> Any:
    return None if features is None else np.array(to_array(features, name="features"))

"""Banks of rows, texts or whatever else a model takes, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shiftcal.checks import check_count, to_array
from shiftcal.corruptions import InputCorruption, as_input_corruption, corrupt_inputs
from shiftcal.corruptions.inputs import count_inputs
from shiftcal.errors import InputError
from shiftcal.scoring.api import ModelOfInputs
from shiftcal.surrogates.bank import SurrogateBank, SurrogateSet, labels_per_set, set_name
from shiftcal.surrogates.build import steps_of
from shiftcal.types import Labels

_NO_MISSING = (
    " The corruption leaves missing values, and the model may be unable to take them: put an "
    'imputer in front of it, or pass MissingValues(fill="median").'
)


def bank_of_inputs(
    model: object,
    inputs: Any,
    labels: object,
    *,
    corruption: object,
    severities: object,
    seed: int,
    features: object,
    classes: Sequence[str] | None,
    input: str | None,
) -> SurrogateBank:
    """A bank of inputs as they are and corrupted; see :meth:`SurrogateBank.from_inputs`."""
    count_inputs(inputs)
    key = check_count(seed, name="seed", least=0, most=2**128)
    ladders = [each.fitted_to(inputs) for each in _input_corruptions(corruption)]
    steps = steps_of(ladders, severities)
    scorer = ModelOfInputs(model, input=input, classes=classes)
    # A function may change what it is given, and all other sets are made of these inputs.
    unchanged = corrupt_inputs(inputs, ladders[0], severity=0)
    clean = scorer.scores(unchanged, where="the inputs as they are")
    indices = labels if scorer.labels is None else _class_indices(labels, scorer.labels)
    (checked,) = labels_per_set(indices, [clean.values.shape], clean.classes)
    copied = None if features is None else np.array(to_array(features, name="features"))
    sets = [SurrogateSet(clean.logits(), checked, "clean", severity=0, features=copied)]
    for each, level in steps:
        name = set_name(len(sets), each.name, level)
        made = corrupt_inputs(inputs, each, severity=level, seed=key)
        hint = _NO_MISSING if each.may_lose_values else ""
        logits = scorer.scores(made, where=f"the set {name!r}", hint=hint).logits()
        sets.append(SurrogateSet(logits, checked, name, corruption=each.name, severity=level))
    origin = {"corruptions": [each.description for each in ladders], "seed": key}
    return SurrogateBank(sets, classes=clean.classes, input=scorer.input, origin=origin)


def _input_corruptions(corruption: object) -> list[InputCorruption]:
    """One corruption, or those of a list; a list of functions is one, a function a severity."""
    if not isinstance(corruption, (list, tuple)):
        return [as_input_corruption(corruption)]
    known = [
        isinstance(each, (str, InputCorruption))
        or (isinstance(each, type) and issubclass(each, InputCorruption))
        for each in corruption
    ]
    if any(known) and not all(known):
        raise InputError(
            "corruption must be a list of names and corruptions, or one of functions, which are "
            "the severities of one ladder; got both. Wrap a function that is a ladder of its own: "
            "corruptions.CustomInputs(function)."
        )
    return [as_input_corruption(each) for each in (corruption if all(known) else [corruption])]


def _class_indices(labels: object, classes: Any) -> Labels:
    """Labels of a classifier as positions among its classes."""
    given = to_array(labels, name="labels")
    if given.ndim != 1:
        raise InputError(
            f"labels must have shape (n,); got shape {given.shape}. Pass labels.ravel() if it is a "
            "column."
        )
    position = {name: i for i, name in enumerate(classes.tolist())}
    for row, label in enumerate(given.tolist()):
        if label not in position:
            shown = ", ".join(map(repr, list(position)[:10]))
            raise InputError(
                f"labels must be what the classifier calls its classes ({shown}); that of row {row}"
                f" is {label!r}. Pass them as they were passed to fit."
            )
    return np.array([position[label] for label in given.tolist()], dtype=np.intp)

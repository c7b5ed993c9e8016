"""A model of many classes, judged on fewer and coarser ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import GUARD_FROM, check_groups, check_scores
from shiftcal._types import Logits
from shiftcal.errors import InputError
from shiftcal.models._wrapped import WrappedModel
from shiftcal.models.base import Model


class GroupedModel(WrappedModel):
    """Groups of a model's classes as the classes.

    The logit of a group is ``log(sum(exp(z)))`` over the logits ``z`` of its members, which is the
    logarithm of the sum of their probabilities but for a constant of the row. So ``softmax`` of
    these logits is what the model gives each group, on the condition that the image is of one of
    them; classes that are in no group do not count. A group of one has its member's logit.

    Features, preprocessing, batch size and engine are those of the model, and the fingerprint is
    made of the model's and the groups.

    Args:
        model: A model, such as :func:`as_model` makes.
        groups: Name -> columns of the model's logits; two groups or more, none empty, and no
            column in two of them. Their order is that of the classes.

    Attributes:
        model: The model.
        groups: Name -> columns, sorted.

    Raises:
        InputError: If the groups are something else, or name columns the model has not.
    """

    def __init__(self, model: Model, groups: Mapping[str, Sequence[int]]) -> None:
        if not isinstance(model, Model):
            raise InputError(
                f"model must be a Model; got {type(model).__name__}. Make one with as_model."
            )
        self.groups = check_groups(groups, k=len(model.classes) if model.classes else None)
        super().__init__(model, classes=list(self.groups))

    def _identity(self) -> Iterable[str] | None:
        inner = self.model.fingerprint
        if inner is None:
            return None
        told = [part for name, members in self.groups.items() for part in (name, str(members))]
        return ("grouped", inner, *told)

    def _forward(self, batch: NDArray[Any]) -> Any:
        made = self.model._forward(batch)
        logits, *features = made if isinstance(made, tuple) else (made,)
        grouped = self._joined_columns(self._as_own_logits(np.asarray(logits)))
        return (grouped, *features) if features else grouped

    def _as_own_logits(self, z: NDArray[Any]) -> Logits:
        k = len(self.model.classes) if self.model.classes else None
        highest = max(members[-1] for members in self.groups.values())
        if z.ndim != 2 or z.shape[1] <= highest or k not in (None, z.shape[1]):
            wanted = f"{highest + 1} columns or more" if k is None else f"{k} columns"
            raise InputError(
                f"the model must give a row an image and {wanted} for these groups; got shape "
                f"{z.shape}."
            )
        # So few rows can look like probabilities by chance.
        if self.model.output == "logits" and len(z) < GUARD_FROM:
            return z.astype(np.promote_types(z.dtype, np.float32), copy=False)
        return check_scores(z, input=self.model.output, guard_from=GUARD_FROM)

    def _joined_columns(self, z: Logits) -> Logits:
        with np.errstate(invalid="ignore"):  # what is not finite is told of with its images
            columns = [
                np.logaddexp.reduce(z[:, members].astype(np.float64), axis=1)
                for members in self.groups.values()
            ]
        return np.column_stack(columns).astype(z.dtype)

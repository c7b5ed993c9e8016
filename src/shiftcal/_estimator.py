"""What maps and methods share: scikit-learn's contract, declared fitted attributes, saving."""

from __future__ import annotations

import typing
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from shiftcal.errors import NotFittedError


class Estimator(BaseEstimator):
    """A scikit-learn estimator whose fitted attributes are declared in the class body.

    Settings are keyword arguments of ``__init__`` and nothing else happens there. What is learnt
    ends in ``_`` and is annotated in the class, ``temperature_: float``; those annotations are the
    schema of a saved file (:mod:`shiftcal._persistence`), so nothing has to be said twice.
    """

    kind: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        """The name it is found by: its file's, with ``-`` for ``_``."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def fitted_attributes(cls) -> dict[str, Any]:
        """Name and type of every attribute that ``fit`` and ``adapt`` set."""
        hints = typing.get_type_hints(cls)
        return {name: hint for name, hint in hints.items() if name.endswith("_")}

    def after_load(self) -> None:
        """Refuse what a file gave, each part of its type, if the parts do not fit together."""

    def _require_fitted(self) -> None:
        if not hasattr(self, "n_classes_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it."
            )

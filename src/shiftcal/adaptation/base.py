"""The contract of a trainer: its loss and its heads, and nothing of the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self

from shiftcal._checks import check_not_negative
from shiftcal._registry import suggest
from shiftcal.adaptation.passes import Domain
from shiftcal.adaptation.settings import Settings, plain_fields
from shiftcal.errors import InputError, UnknownName


@dataclass(frozen=True, kw_only=True)
class Trainer(ABC):
    """A way to train on labelled source images and unlabelled target images.

    What is minimised is the cross-entropy on the source plus ``trade_off`` times :meth:`transfer`.
    A new trainer is one file in ``adaptation/trainers``: a final frozen dataclass whose fields are
    its options. It is the same for a whole network and for frozen features.

    Attributes:
        label: What it is called in tables.
        joint: Whether source and target have common batch statistics. Else they go through the
            backbone one after the other, and a bottleneck that normalises, which always gets both,
            the source first, must do so apart.
        adapts: Whether it looks at the target at all.
        settings: The reference library's own, unless a recipe says otherwise.
        recipes: Settings and options for a data set or a mode, by name: what differs.
        transform: What is done to training images, by name, as for :func:`training_transform`.
        trade_off: What the transfer loss is multiplied with.
    """

    label: ClassVar[str]
    joint: ClassVar[bool] = True
    adapts: ClassVar[bool] = True
    settings: ClassVar[Settings] = Settings()
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    transform: ClassVar[str] = "default"

    trade_off: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative(self.trade_off, name="trade_off")

    @classmethod
    def prepared(
        cls, recipe: str | None = None, changes: Mapping[str, Any] | None = None
    ) -> tuple[Self, Settings]:
        """The trainer and its settings by a recipe, with what the user wants otherwise.

        Args:
            recipe: One of :attr:`recipes`; ``None`` is the library's defaults.
            changes: Options of the trainer and settings of the training, by name.

        Raises:
            UnknownName: If there is no such recipe.
            InputError: If a name is neither an option nor a setting, or a value cannot be used.
        """
        if recipe is not None and recipe not in cls.recipes:
            raise UnknownName(
                f"{cls.label} has no recipe {recipe!r}. {suggest(recipe, sorted(cls.recipes))}"
            )
        wanted = {**(cls.recipes[recipe] if recipe is not None else {}), **(changes or {})}
        own = {field.name for field in fields(cls)}
        common = set(cls.settings.to_dict())
        for name in wanted:
            if name not in own | common:
                raise InputError(
                    f"{cls.label} has no option {name!r}, and training no such setting. "
                    f"{suggest(name, sorted(own | common))}"
                )
        made = cls(**{name: value for name, value in wanted.items() if name in own})
        changed = {name: value for name, value in wanted.items() if name in common}
        return made, cls.settings.changed(changed)

    def bottleneck(self, n_in: int, width: int) -> Any:
        """From the backbone's features ``(b, n_in)`` to ``(b, width)``, a module."""
        from shiftcal.adaptation.heads import linear_bottleneck

        return linear_bottleneck(n_in, width, apart=not self.joint)

    def head(self, width: int, n_classes: int) -> Any:
        """From features ``(b, width)`` to logits ``(b, n_classes)``, a module."""
        from shiftcal.adaptation.heads import linear_head

        return linear_head(width, n_classes)

    def extra(self, width: int, n_classes: int) -> Any:
        """A module that is trained along and is no part of the classifier, or ``None``."""
        del width, n_classes

    @abstractmethod
    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """The transfer loss of a batch, a scalar; not yet multiplied with ``trade_off``.

        Args:
            source: What the network gives for the source images: ``source.features``, ``(b, d)``,
                and ``source.logits``, ``(b, k)``.
            target: The same of as many target images. Both in one, the source first, without a
                copy: :func:`~shiftcal.adaptation.passes.together`.
            extra: What :meth:`extra` made.
            step: Which iteration this is, from 0, for schedules.
        """

    def to_dict(self) -> dict[str, Any]:
        """Its options as plain values, for JSON."""
        return plain_fields(self)

"""A published corruption with strengths of the user's own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, final

import numpy as np

from shiftcal import corruptions
from shiftcal._types import Images
from shiftcal.corruptions._given_name import check_name
from shiftcal.corruptions._resolve import as_corruption
from shiftcal.corruptions._strength_limits import LIMITS, rule_broken
from shiftcal.corruptions.base import Corruption, Keys, Setting, Settings
from shiftcal.errors import InputError


@final
class Strengths(Corruption):
    """One of the published corruptions with a ladder of your own in place of its five severities.

    ``Strengths("pixelate", [0.97, 0.94, 0.9, 0.85], name="pixelate_fine")`` has four severities:
    severity ``s`` has the setting ``strengths[s - 1]``, whatever the size of the images and the
    table. A setting that is also a published one gives the same pixels if the corruption is not
    random; a random one draws other numbers, since the name is part of the random key, but from
    the same distribution. Group, threads and all else are as for the corruption itself.

    Args:
        corruption: Its name, or the object: ``Frost(photos="folder")``.
        strengths: For every severity from 1 on, a number, or as many as a published setting has.
            What they mean is said in the documentation of the corruption; they need not rise.
        name: What it is called in files and tables; no published name.

    Raises:
        InputError: If the corruption has no published settings, a setting has too few numbers or
            too many, or one that the corruption is not made for; the message says what it takes.
    """

    def __init__(
        self,
        corruption: object,
        strengths: Sequence[float | Sequence[float]],
        *,
        name: str,
    ) -> None:
        self.corruption = _published(corruption)
        self.strengths = _checked(self.corruption, strengths)
        self._name = check_name(name)
        if name in corruptions.names():
            raise InputError(
                f"name must not be that of a published corruption; got {name!r}. Such as "
                f"'{self.corruption.name}_fine' tells its results from the published ones."
            )
        self.group = self.corruption.group
        self.random = self.corruption.random
        self.monotone = self.corruption.monotone
        self.parallel = self.corruption.parallel

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def severities(self) -> int:
        """The number of its strengths."""
        return len(self.strengths)

    @property
    def description(self) -> str:
        """The name, and of which corruption these are strengths."""
        return f"{self._name} ({self.corruption.description})"

    @property
    def identity(self) -> str | None:
        """The name with all strengths and what the corruption itself is known by."""
        inner = self.corruption.identity
        return None if inner is None else f"{self._name} ({inner}, strengths {self.strengths})"

    @property
    def keeps_plan(self) -> bool:
        """As the corruption itself."""
        return self.corruption.keeps_plan

    def setting(self, severity: int, *, table: str) -> Any:
        """The strength of a severity, with the class it is meant for; there are no tables."""
        return type(self.corruption), self.strengths[severity - 1]

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return self.corruption._plan(setting[1], height, width)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        self.corruption._apply(images, out, plan, keys)


def _published(given: object) -> Corruption:
    """A corruption that has settings."""
    found = as_corruption(given)
    if isinstance(getattr(found, "settings", None), Settings):
        return found
    raise InputError(
        f"strengths can be given to a corruption with published settings, such as 'pixelate'; "
        f"{found.description} has none. Pass Custom a list of functions, one for each severity."
    )


def _checked(corruption: Corruption, strengths: object) -> tuple[Setting, ...]:
    """Settings of numbers as the corruption takes them."""
    if isinstance(strengths, (str, bytes)) or not isinstance(strengths, Iterable):
        raise InputError(f"strengths must be a list; got {strengths!r}. {_meaning(corruption)}")
    made = tuple(_setting(corruption, each) for each in strengths)
    if not made:
        raise InputError(f"strengths must be one or more; got none. {_meaning(corruption)}")
    return made


def _setting(corruption: Corruption, given: object) -> Setting:
    several = isinstance(given, (list, tuple, np.ndarray)) and np.ndim(given) > 0
    numbers: list[Any] = list(given) if several else [given]  # type: ignore[call-overload]
    arity = len(corruption.settings.cifar[0])
    if len(numbers) != arity or not all(_is_number(number) for number in numbers):
        want = "a number" if arity == 1 else f"{arity} numbers"
        raise InputError(
            f"each of the strengths of {corruption.name} must be {want}, finite; got {given!r}. "
            f"{_meaning(corruption)}"
        )
    return _fitting(corruption, tuple(float(number) for number in numbers))


def _fitting(corruption: Corruption, setting: Setting) -> Setting:
    """The setting, if the corruption's kernels are made for it; whole numbers as whole numbers."""
    if type(corruption).__module__ != f"shiftcal.corruptions.{corruption.name}":
        return setting  # of a class of the user's own nothing is known
    published = _all_settings(corruption)
    if setting in published:
        return published[published.index(setting)]
    broken = rule_broken(corruption.name, setting)
    if broken is not None:
        raise InputError(f"strengths of {corruption.name}: {broken}. {_meaning(corruption)}")
    limits = LIMITS[corruption.name]
    return tuple(int(x) if each.whole else x for x, each in zip(setting, limits, strict=True))


def _all_settings(corruption: Corruption) -> tuple[Setting, ...]:
    known = corruption.settings
    return (*known.cifar, *known.tiny_imagenet, *known.imagenet)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _meaning(corruption: Corruption) -> str:
    """What a setting is, as far as the class says it, and the published ones."""
    text = " ".join((type(corruption).__doc__ or "").split())
    said = re.search(r"A setting is .+?\.(?= |$)", text)
    some = ", ".join(str(each[0] if len(each) == 1 else each) for each in corruption.settings.cifar)
    meaning = f"{said.group().replace('``', '')} " if said else ""
    return f"{meaning}Published for 32 pixels: {some}."

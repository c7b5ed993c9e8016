"""A user's own function or transform in the place of a corruption."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal._types import Images
from shiftcal.corruptions._digest import digest_of
from shiftcal.corruptions._given_name import check_name
from shiftcal.corruptions._steps import ladder_of, name_of, parameters_of
from shiftcal.corruptions.base import Corruption, Keys
from shiftcal.errors import InputError

# Whoever calls from whatever thread: a transform is seeded and then called, and torch's generator
# is one for all. A function may itself corrupt images, hence a lock that its holder passes.
_ONE_AT_A_TIME = threading.RLock()


@final
class Custom(Corruption):
    """A function of your own as a corruption, with its own severities.

    A function is called as ``function(image)`` with a uint8 array ``(height, width, 3)`` of its
    own to work on, and returns an array of that shape and type, or a Pillow image. If it has a
    parameter ``severity`` it gets the severity, and if it has a parameter ``rng`` a
    :class:`numpy.random.Generator` seeded by seed, name, severity and image index; a function
    that draws from it alone gives the same pixels whatever the batch. Albumentations transforms
    are called with ``image=`` and seeded per image; torchvision transforms get a Pillow image,
    with torch's generator seeded and put back afterwards.

    Images are taken one after the other, in no two threads at once, since nothing is known of the
    function.

    Args:
        steps: One function for all severities, or a list with one for each severity from 1 on.
        name: What it is called in files and tables; also part of the random key. By default the
            name of the function.
        severities: How many severities there are, if ``steps`` is one function: by default 5 if
            it has a parameter ``severity``, else 1.
        key: Any text that changes whenever the pixels do, such as ``"darker-v2"``: results in files
            are then known by it. By default they are known by the code of the functions and all
            it refers to, as far as that can be compared with another run's.

    Raises:
        InputError: If a step cannot be called, the name cannot be that of a file, or the key is
            no text.
    """

    group = "custom"
    monotone = False
    parallel = False

    def __init__(
        self,
        steps: Callable[..., Any] | Sequence[Callable[..., Any]],
        *,
        name: str | None = None,
        severities: int | None = None,
        key: str | None = None,
    ) -> None:
        self._steps = ladder_of(steps, severities)
        self._name = check_name(name if name is not None else name_of(self._steps[0]))
        self.key = _checked_key(key)

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def severities(self) -> int:
        """The number of its severities."""
        return len(self._steps)

    @property
    def description(self) -> str:
        """The name, and that it is not one of this package's."""
        return f"{self._name} (custom)"

    @property
    def identity(self) -> str | None:
        """The name with the key, or else with a digest of the functions.

        The digest is of the functions' code, defaults and closures, the globals they name, and the
        attributes of objects; ``None`` if something among them cannot be compared with another
        run's, such as an open file. What a function reads from files is not looked at.
        """
        if self.key is not None:
            return f"{self._name} (custom, key {self.key})"
        digest = digest_of(self._steps)
        return None if digest is None else f"{self._name} (custom, sha256 {digest[:16]})"

    @property
    def keeps_plan(self) -> bool:
        """There is nothing to keep, and a function should not be held for longer than its use."""
        return False

    def setting(self, severity: int, *, table: str) -> Any:
        """Which step, and the severity; there are no tables."""
        return severity

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        with _ONE_AT_A_TIME:
            self._apply_alone(images, out, plan, keys)

    def _apply_alone(self, images: Images, out: Images, plan: int, keys: Keys) -> None:
        step = self._steps[plan - 1]
        call = _caller(step, plan)
        for image, key, into in zip(images, keys, out, strict=True):
            try:
                made = call(image.copy(), int(key[0]) | int(key[1]) << 32)
            except Exception as error:
                error.add_note(f"raised by the corruption {self._name!r}, severity {plan}")
                raise
            except SystemExit as error:
                raise InputError(
                    f"the corruption {self._name!r} must return an image; it called exit."
                ) from error
            into[...] = self._checked(np.asarray(made), image.shape)

    def _checked(self, made: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        if made.shape == shape and made.dtype == np.uint8:
            return made
        raise InputError(
            f"the corruption {self._name!r} must return uint8 of shape {shape}, as it was given; "
            f"it returned {made.dtype} of shape {made.shape}."
        )


def _caller(step: Callable[..., Any], severity: int) -> Callable[[Images, int], Any]:
    """How this kind of step is called with an image and 64 random bits."""
    if hasattr(step, "set_random_seed"):  # Albumentations

        def call(image: Images, bits: int) -> Any:
            step.set_random_seed(bits & 0xFFFFFFFF)
            return step(image=image)["image"]
    elif type(step).__module__.partition(".")[0] == "torchvision":
        pillow = require("PIL.Image", extra="images", needed_by="a torchvision transform")
        torch = require("torch", extra="torch", needed_by="a torchvision transform")

        def call(image: Images, bits: int) -> Any:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(bits >> 1)
                return step(pillow.fromarray(image))
    else:
        names = parameters_of(step)

        def call(image: Images, bits: int) -> Any:
            given: dict[str, Any] = {"severity": severity, "rng": np.random.default_rng(bits)}
            return step(image, **{name: given[name] for name in names & given.keys()})

    return call


def _checked_key(key: object) -> str | None:
    if key is None or (isinstance(key, str) and key.strip()):
        return key
    raise InputError(
        f"key must be text that changes whenever the pixels do, such as 'darker-v1'; got {key!r}."
    )

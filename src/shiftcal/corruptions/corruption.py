"""The contract of a corruption, its random stream, and the loop that runs it over a batch."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count
from shiftcal.errors import InputError
from shiftcal.numerics.blocks import kernels, share
from shiftcal.registry import CORRUPTIONS, default_name
from shiftcal.types import Images

Setting: TypeAlias = tuple[float, ...]
Keys: TypeAlias = NDArray[np.uint32]
Group: TypeAlias = Literal["noise", "blur", "weather", "digital", "custom"]

# Changes whenever pixels of a corruption change, so that old and new ones are not mixed.
GENERATOR = 1
# Published tables of settings, and the size of their images.
TABLES = {"cifar": 32, "tiny-imagenet": 64, "imagenet": 224}

# Most bytes of images a thread takes at a time. Taking them costs some 20 microseconds, and Ctrl-C
# waits for them to be done.
BLOCK_BYTES = 1 << 20
# Parts a batch is cut into for every thread at least, so that none waits long for another.
_PARTS = 4


@dataclass(frozen=True)
class SeverityTable:
    """The published parameters: for each table five tuples, of severity 1 to 5.

    Attributes:
        cifar: For images of 32 pixels, from CIFAR-10-C.
        tiny_imagenet: For 64 pixels, from Tiny-ImageNet-C.
        imagenet: For 224 pixels, from ImageNet-C.
    """

    cifar: tuple[Setting, ...]
    tiny_imagenet: tuple[Setting, ...]
    imagenet: tuple[Setting, ...]

    def __getitem__(self, table: str) -> tuple[Setting, ...]:
        settings: tuple[Setting, ...] = getattr(self, table.replace("-", "_"))
        return settings


class Corruption(ABC):
    """Images made harder to recognise, at severity 1 to 5; severity 0 leaves them as they are.

    A new corruption is a final subclass with a ``name``, its published ``settings`` and
    ``_apply``. Guarantees, checked by the contract tests: uint8 in and out, the same shape, the
    input unchanged; the result depends on the image, the setting and the image's key, never on
    other images, their order, or the number of threads.

    Attributes:
        name: What it is called in files, tables and messages, and a part of the random key: small
            letters, digits and ``_``. Default: from the class, ``dead_pixels`` for
            ``DeadPixels``.
        group: Its family in the literature.
        random: Whether two images with different keys can differ in what was done to them.
        monotone: Whether the mean distortion grows with the published severity.
        parallel: Whether ``_apply`` may run in several threads at once.
        settings: The published parameters by table and severity.
        key: For a class of your own: text that changes whenever the pixels do. Without it, results
            are not reused by later runs.
    """

    name: str
    group: Group
    random: bool = True
    monotone: bool = True
    parallel: bool = True
    settings: ClassVar[SeverityTable]
    key: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = default_name(cls.__name__, "_")

    @property
    def description(self) -> str:
        """The name, with options that change its results."""
        return self.name

    @property
    def severities(self) -> int:
        """The highest severity; the lowest that changes anything is 1."""
        return len(self.settings.imagenet)

    @final
    def __repr__(self) -> str:
        return f"<corruption {self.description}>"

    @property
    def identity(self) -> str | None:
        """What its results are known by in banks, caches and folders; ``None``: they never match.

        A published corruption is known by its description. A class of your own, and an object
        whose attributes were changed, need a :attr:`key`.
        """
        if self.key is not None:
            return f"{self.description} (key {self.key})"
        published = CORRUPTIONS.is_built_in(type(self)) and not vars(self)
        return self.description if published else None

    def setting(self, severity: int, *, table: str) -> Any:
        """The parameters of a severity of at least 1 in a table."""
        return self.settings[table][severity - 1]

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        """Whatever depends on the setting and the size only; computed once for many images."""
        return setting

    @abstractmethod
    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        """Write the corrupted images to ``out``.

        Called from several threads at once with different images: do not store anything on
        ``self``, and release the interpreter lock if possible.

        Args:
            images: ``(m, height, width, 3)`` uint8, contiguous, read-only.
            out: Contiguous memory of the same shape and type, to be filled completely.
            plan: The result of :meth:`_plan`; shared by the threads.
            keys: ``(m, 2)`` uint32, the key of each image's random stream.
        """


class Published(Corruption):
    """A published corruption, done by a kernel of ``shiftcal._kernels``.

    ``_plan`` returns the kernel's name and its arguments after images and result; the keys come
    last if the corruption is random.
    """

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        name, *arguments = plan
        getattr(kernels, name)(images, out, *arguments, *[keys] * self.random)


def stream_keys(*, seed: int, corruption: str, severity: int, indices: NDArray[np.int64]) -> Keys:
    """Two 32-bit words for every image, ``(n, 2)``; nothing else decides its random numbers.

    Seed, name and severity are digested to 64 bits; the index is added in steps of the golden
    ratio and mixed (Steele, Lea and Flood, 2014). Images of one set never share a key.
    """
    keys = np.empty((len(indices), 2), np.uint32)
    kernels.image_keys(indices, stream_start(corruption, severity, seed), keys)
    return keys


def stream_start(corruption: str, severity: int, seed: int) -> int:
    """What the keys of all images have in common, a whole number of 64 bits."""
    text = f"{corruption}|{severity}|{seed}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)


@functools.lru_cache(maxsize=256)
def table_for(height: int, width: int) -> str:
    """The table whose image size is nearest to the shorter side, in ratio.

    The published sizes are 32, 64 and 224 pixels, so sides up to 45 have the CIFAR table, up to
    119 that of Tiny-ImageNet, and larger ones that of ImageNet.
    """
    side = min(height, width)
    return min(TABLES, key=lambda name: abs(np.log(TABLES[name] / side)))


def run(
    corruption: Corruption,
    images: Images,
    out: Images,
    *,
    severity: int,
    table: str,
    seed: int,
    first_index: int,
    threads: int,
) -> None:
    """Corrupt ``images`` ``(n, height, width, 3)`` into ``out``, contiguous and of that shape."""
    if severity == 0:
        out[...] = images
        return
    n, height, width = images.shape[:3]
    setting = corruption.setting(severity, table=table)
    plan = _plan(corruption, setting, height, width)
    keys = stream_keys(
        seed=seed,
        corruption=corruption.name,
        severity=severity,
        indices=np.arange(first_index, first_index + n, dtype=np.int64),
    )
    images = np.ascontiguousarray(images).view()
    images.flags.writeable = False

    def work(start: int) -> None:
        part = slice(start, start + step)
        corruption._apply(images[part], out[part], plan, keys[part])

    step = max(1, min(BLOCK_BYTES // (height * width * 3), n // (_PARTS * threads)))
    starts = range(0, n, step)
    if not corruption.parallel or threads == 1 or len(starts) < 2:
        for start in starts:
            work(start)
        return
    share(work, starts, threads=min(threads, len(starts)))


@functools.lru_cache(maxsize=64)
def _plan(corruption: Corruption, setting: Any, height: int, width: int) -> Any:
    return corruption._plan(setting, height, width)


def ladder_of(steps: object, severities: int | None) -> tuple[Callable[..., Any], ...]:
    """The function of every severity from 1 on.

    Args:
        steps: One function for all severities, or a list with one for each.
        severities: How many there are, if ``steps`` is one function. Default: 5 if it has a
            parameter ``severity``, else 1.

    Raises:
        InputError: If a step cannot be called, or ``severities`` does not fit.
    """
    ladder: list[Any] = list(steps) if isinstance(steps, (list, tuple)) else [steps]
    if not ladder or not all(callable(step) for step in ladder):
        raise InputError(
            "a corruption of your own must be a function, or a list of one function per "
            f"severity; got {steps!r}."
        )
    if isinstance(steps, (list, tuple)):
        if severities not in (None, len(ladder)):
            raise InputError(f"severities must be {len(ladder)}, as many as functions.")
        return tuple(ladder)
    takes = "severity" in parameters_of(ladder[0])
    count = check_count(severities or (5 if takes else 1), name="severities")
    if count > 1 and not takes:
        raise InputError(
            f"{name_of(ladder[0])} has no parameter 'severity', so it has one severity, not "
            f"{count}. Give it one, or pass a list of functions."
        )
    return tuple(ladder * count)


def parameters_of(step: Callable[..., Any]) -> set[str]:
    """Names of the parameters of a function; none if they are unknown."""
    try:
        return set(inspect.signature(step).parameters)
    except (TypeError, ValueError):  # some functions written in C
        return set()


def name_of(step: Callable[..., Any]) -> str:
    """What a function is called."""
    name = getattr(step, "__name__", None) or type(step).__name__
    return "custom" if name == "<lambda>" else name


def check_name(name: object) -> str:
    """``name`` if files can be called by it."""
    valid = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name)
    if valid and name != "labels":
        return str(name)
    raise InputError(
        "name must consist of letters, digits, '_', '-' and '.', since files are named after it, "
        f"and must not be 'labels'; got {name!r}."
    )

"""``corrupt``: images in, corrupted images out; functions and strengths of your own."""

from __future__ import annotations

import functools
import inspect
import mmap
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count, check_images
from shiftcal.corruptions.corruption import (
    TABLES,
    Corruption,
    Keys,
    Setting,
    SeverityTable,
    check_name,
    ladder_of,
    name_of,
    parameters_of,
    run,
    table_for,
)
from shiftcal.errors import InputError, InputWarning, require
from shiftcal.numerics.blocks import thread_count
from shiftcal.registry import CORRUPTIONS, imported, is_own
from shiftcal.types import Images

# Bytes of images read, corrupted and written at a time.
PIECE_BYTES = 1 << 25
# A mapped file larger than this is not silently turned into an array in memory.
LARGE = 1 << 30

# A transform is seeded and then called, and torch has one generator for all threads. A function may
# itself corrupt images, hence a lock that its holder can pass.
_ONE_AT_A_TIME = threading.RLock()


@final
class Custom(Corruption):
    """A function of your own as a corruption, with its own severities.

    A function is called as ``function(image)`` with a uint8 array ``(height, width, 3)`` that it
    may change, and returns an array of that shape and type, or a Pillow image. If it has a
    parameter ``severity`` it gets the severity, and if it has a parameter ``rng`` a
    :class:`numpy.random.Generator` seeded by seed, name, severity and image index; a function
    that draws from it alone gives the same pixels whatever the batch. Albumentations transforms
    are called with ``image=`` and seeded per image; torchvision transforms get a Pillow image,
    with torch's generator seeded and restored afterwards. Images are processed one by one, never
    in two threads at once.

    Args:
        steps: One function for all severities, or a list with one for each severity from 1 on.
        name: What it is called in files and tables; also part of the random key. Default: the
            name of the function.
        severities: How many severities there are, if ``steps`` is one function. Default: 5 if it
            has a parameter ``severity``, else 1.
        key: Text that changes whenever the pixels do, such as ``"darker-v2"``. Default: the
            attribute ``key`` of the functions. Without one, results are not reused by later runs.

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
        self.name = check_name(name if name is not None else name_of(self._steps[0]))
        if key is None:
            keys = [getattr(step, "key", None) for step in self._steps]
            if all(isinstance(each, str) for each in keys):
                key = "+".join(str(each) for each in dict.fromkeys(keys))
        if key is not None and not (isinstance(key, str) and key.strip()):
            raise InputError(f"key must be text such as 'darker-v1'; got {key!r}.")
        self.key = key

    @property
    def severities(self) -> int:
        """The number of its severities."""
        return len(self._steps)

    @property
    def description(self) -> str:
        """The name, marked as custom."""
        return f"{self.name} (custom)"

    @property
    def identity(self) -> str | None:
        """The name with the key; ``None`` without a key."""
        return None if self.key is None else f"{self.name} (custom, key {self.key})"

    def setting(self, severity: int, *, table: str) -> Any:
        """The severity; there are no tables."""
        return severity

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        call = _caller(self._steps[plan - 1], plan)
        with _ONE_AT_A_TIME:
            for image, key, into in zip(images, keys, out, strict=True):
                try:
                    result = np.asarray(call(image.copy(), int(key[0]) | int(key[1]) << 32))
                except Exception as error:
                    error.add_note(f"raised by the corruption {self.name!r}, severity {plan}")
                    raise
                if result.shape != image.shape or result.dtype != np.uint8:
                    raise InputError(
                        f"the corruption {self.name!r} must return uint8 of shape {image.shape}; "
                        f"it returned {result.dtype} of shape {result.shape}."
                    )
                into[...] = result


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
            options: dict[str, Any] = {"severity": severity, "rng": np.random.default_rng(bits)}
            return step(image, **{name: options[name] for name in names & options.keys()})

    return call


def as_corruption(given: object) -> Corruption:
    """The corruption that a name, a class, an object, a function or a list of them stands for.

    A name of the form ``package.module:attribute`` is imported.

    Raises:
        UnknownName: If no corruption has that name.
        InputError: If it is none of these.
    """
    if isinstance(given, Corruption):
        return given
    if isinstance(given, str):
        return as_corruption(imported(given)) if is_own(given) else _named(given)
    from shiftcal.corruptions.inputs import InputCorruption

    if isinstance(given, InputCorruption) or (
        inspect.isclass(given) and issubclass(given, InputCorruption)
    ):
        raise InputError(
            f"corruption must be one of images; {given!r} is for rows or texts. Use "
            "SurrogateBank.from_inputs or corruptions.corrupt_inputs."
        )
    if inspect.isclass(given) and issubclass(given, Corruption):
        return given()
    if callable(given) or isinstance(given, (list, tuple)):
        return Custom(given)
    raise InputError(
        f"corruption must be a name such as 'pixelate', a corruption, or a function; got {given!r}."
    )


@functools.cache
def _named(name: str) -> Corruption:
    corruption: Corruption = CORRUPTIONS.get(name)()
    return corruption


def corrupt(
    images: object,
    corruption: object,
    *,
    severity: int,
    seed: int = 0,
    table: str = "auto",
    first_index: int = 0,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> NDArray[np.uint8]:
    """Corrupted copies of images: ``corrupt(images, "pixelate", severity=3)``.

    Every image has a random stream of its own, made of seed, corruption, severity and its index,
    so that the batch it is in, the order, the number of threads and the machine never change a
    pixel. Image ``i`` of a batch equals ``corrupt(images[i], ..., first_index=i)``.

    A grey image is given the same red, green and blue, corrupted as a colour image, and its green
    channel is returned: so noise keeps its strength, which a mean of channels would lessen.

    Args:
        images: uint8, ``(height, width, 3)`` or ``(n, height, width, 3)`` with colours last, the
            same without the last axis or with one channel if they are grey; at least 8 pixels
            high and wide. A Pillow image, or the path of an ``.npy`` file, will do as well.
        corruption: A name (``shiftcal.corruptions.names()``), a corruption such as
            ``corruptions.Frost(photos="folder")``, or a function of your own
            (:class:`shiftcal.corruptions.Custom` says what it is given), or a list of functions,
            one for each severity.
        severity: 0 for the images as they are, 1 to 5 for the published strengths.
        seed: Fixes the random numbers.
        table: Whose strengths: ``"cifar"`` (published for 32 pixels), ``"tiny-imagenet"`` (64),
            ``"imagenet"`` (224), or ``"auto"``, the one whose size is nearest to the shorter
            side, in ratio.
        first_index: Index of the first image, for images that come in several batches.
        threads: How many threads; by default one for every processor.
        out: Path of an ``.npy`` file to write the result to, whole or not at all. Memory is then
            bounded: images mapped from a file of any size are read a piece at a time.
        progress: Whether to show a bar while writing to ``out``; by default on a terminal.

    Returns:
        uint8 of the same shape; of the file ``out``, mapped read-only, if that is given.

    Raises:
        InputError: If something given cannot be used; the message says what to do.
        FileError: If a file cannot be read or written.
    """
    if isinstance(images, (str, os.PathLike)):
        images = open_images(images)
    batch, layout = check_images(images)
    made_by = as_corruption(corruption)
    options: dict[str, Any] = {
        "severity": check_count(severity, name="severity", least=0, most=made_by.severities),
        "seed": check_count(seed, name="seed", least=0, most=2**128),
        "table": check_table(table, *batch.shape[1:3]),
        "threads": thread_count() if threads is None else check_count(threads, name="threads"),
    }
    first = check_count(first_index, name="first_index", least=0, most=2**62)

    # Grey images have three channels while they are at work.
    count = max(1, PIECE_BYTES // (3 * batch.shape[1] * batch.shape[2]))

    def piece(start: int, stop: int) -> NDArray[np.uint8]:
        colour = layout.to_colour(batch[start:stop])
        corrupted = np.empty(colour.shape, np.uint8)
        run(made_by, colour, corrupted, first_index=first + start, **options)
        return layout.from_colour(corrupted)

    if out is not None:
        from shiftcal.files import atomic_write
        from shiftcal.progress import bar

        file = Path(out)
        source = getattr(batch, "filename", None)
        if file.suffix != ".npy" or (source and file.exists() and file.samefile(source)):
            raise InputError(f"out must be an .npy file, and not the one that is read; got {file}.")
        header = {"descr": "|u1", "fortran_order": False, "shape": layout.shape}
        with (
            atomic_write(file) as temporary,
            temporary.open("wb") as stream,
            bar(f"{made_by.name} {severity}", shown=progress) as step,
        ):
            np.lib.format.write_array_header_1_0(stream, header)
            for start in range(0, len(batch), count):
                stream.write(np.ascontiguousarray(piece(start, start + count)).data)
                forget_pages(batch)
                step(min(start + count, len(batch)), len(batch))
        return open_images(file)
    if isinstance(batch, np.memmap) and batch.nbytes > LARGE:
        raise InputError(
            f"images is a file of {batch.nbytes / 2**30:.1f} GiB mapped into memory, and the "
            "result would be held in memory. Pass out='corrupted.npy', or np.asarray(images)."
        )
    if batch.ndim == 4:  # colour images need no copy, so all at once
        return piece(0, len(batch)).reshape(layout.shape)
    result = np.empty(batch.shape, np.uint8)
    for start in range(0, len(batch), count):
        result[start : start + count] = piece(start, start + count)
    return result.reshape(layout.shape)


def check_table(table: object, height: int, width: int) -> str:
    """The name of a table; ``"auto"`` is the one for the size."""
    found: str = check_choice(table, ("auto", *TABLES), name="table")
    return table_for(height, width) if found == "auto" else found


def open_images(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an ``.npy`` file, mapped into memory read-only."""
    from shiftcal.files import read_npy

    return read_npy(Path(path), mapped=True)


def forget_pages(images: NDArray[Any]) -> None:
    """Give back the memory of a mapped file's pages that were read; they can be read again."""
    mapped = getattr(images, "_mmap", None)
    # A private mapping may hold changes that exist nowhere else.
    if isinstance(mapped, mmap.mmap) and getattr(images, "mode", None) in ("r", "r+"):
        advice = getattr(mmap, "MADV_DONTNEED", None)
        if advice is not None:
            mapped.madvise(advice)


class SettingRange(NamedTuple):
    """The range of one number of a setting; ``only`` lists all values if they are few."""

    low: float
    high: float
    whole: bool = False
    only: tuple[float, ...] = ()

    def allow(self, value: float) -> bool:
        """Whether a number may be used."""
        fits = value in self.only if self.only else self.low <= value <= self.high
        return fits and (not self.whole or float(value).is_integer())

    def __str__(self) -> str:
        if self.only:
            return f"be one of {', '.join(f'{value:g}' for value in self.only)}"
        kind = "be a whole number" if self.whole else "lie"
        return f"{kind} between {self.low:g} and {self.high:g}"


_UNIT = SettingRange(0, 1)
# Of blurs along a line, in pixels.
_RADIUS, _DEVIATION = SettingRange(1, 20, whole=True), SettingRange(0.1, 30)

LIMITS: dict[str, tuple[SettingRange, ...]] = {
    "brightness": (_UNIT,),
    "contrast": (_UNIT,),
    "defocus_blur": (SettingRange(0, 6.9), SettingRange(0.01, 1)),
    "elastic_transform": (
        SettingRange(0, 500),
        SettingRange(0, 200),
        SettingRange(0, 60),
        SettingRange(32, 224, whole=True, only=(32, 64, 224)),
    ),
    "fog": (
        SettingRange(0, 6),
        SettingRange(1, 6),
        SettingRange(32, 256, whole=True, only=(32, 64, 256)),
    ),
    "frost": (_UNIT, _UNIT, SettingRange(0.1, 1)),
    "gaussian_blur": (SettingRange(0, 12),),
    "gaussian_noise": (SettingRange(0.001, 1),),
    "glass_blur": (
        SettingRange(0, 3),
        SettingRange(1, 8, whole=True),
        SettingRange(1, 8, whole=True),
    ),
    "impulse_noise": (SettingRange(0, 0.99),),
    "jpeg_compression": (SettingRange(1, 100, whole=True),),
    "motion_blur": (_RADIUS, _DEVIATION),
    "pixelate": (_UNIT,),
    "saturate": (SettingRange(0, 60), _UNIT),
    "shot_noise": (SettingRange(1, 2000),),
    "snow": (_UNIT, _UNIT, SettingRange(1, 5), _UNIT, _RADIUS, _DEVIATION, _UNIT),
    "spatter": (
        _UNIT,
        _UNIT,
        SettingRange(0.1, 8),
        _UNIT,
        SettingRange(0.1, 3),
        SettingRange(0, 1, whole=True),
    ),
    "speckle_noise": (_UNIT,),
    "zoom_blur": (SettingRange(2, 50, whole=True), SettingRange(0.001, 0.06)),
}


@final
class Strengths(Corruption):
    """One of the published corruptions with a ladder of your own in place of its five severities.

    ``Strengths("pixelate", [0.97, 0.94, 0.9, 0.85], name="pixelate_fine")`` has four severities:
    severity ``s`` has the setting ``strengths[s - 1]``, whatever the size of the images and the
    table. A published setting gives the published pixels if the corruption is not random; a random
    one draws other numbers, since the name is part of the random key.

    Args:
        corruption: Its name, or the object: ``Frost(photos="folder")``.
        strengths: For every severity from 1 on, a number, or as many as a published setting has.
            The documentation of the corruption says what they mean; they need not rise.
        name: What it is called in files and tables; no published name.

    Raises:
        InputError: If the corruption has no published settings, or does not take a setting.
    """

    def __init__(
        self,
        corruption: object,
        strengths: Sequence[float | Sequence[float]],
        *,
        name: str,
    ) -> None:
        self.corruption = as_corruption(corruption)
        if not isinstance(getattr(self.corruption, "settings", None), SeverityTable):
            raise InputError(
                "strengths need a corruption with published settings, such as 'pixelate'; "
                f"{self.corruption.description} has none. Pass Custom a list of functions."
            )
        if isinstance(strengths, (str, bytes)) or not isinstance(strengths, Iterable):
            raise InputError(f"strengths must be a list; got {strengths!r}.")
        self.strengths = tuple(_setting(self.corruption, each) for each in strengths)
        if not self.strengths:
            raise InputError("strengths must be one or more; got none.")
        self.name = check_name(name)
        if name in CORRUPTIONS.names():
            raise InputError(f"name must not be that of a published corruption; got {name!r}.")
        self.group = self.corruption.group
        self.random = self.corruption.random
        self.monotone = self.corruption.monotone
        self.parallel = self.corruption.parallel

    @property
    def severities(self) -> int:
        """The number of its strengths."""
        return len(self.strengths)

    @property
    def description(self) -> str:
        """The name and the corruption."""
        return f"{self.name} ({self.corruption.description})"

    @property
    def identity(self) -> str | None:
        """The name with all strengths and the identity of the corruption."""
        inner = self.corruption.identity
        return None if inner is None else f"{self.name} ({inner}, strengths {self.strengths})"

    def setting(self, severity: int, *, table: str) -> Any:
        """The class and the strength of a severity; there are no tables."""
        return type(self.corruption), self.strengths[severity - 1]

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return self.corruption._plan(setting[1], height, width)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        self.corruption._apply(images, out, plan, keys)


def _setting(corruption: Corruption, strength: object) -> Setting:
    """The numbers of a strength, if the corruption takes them."""
    settings, name = corruption.settings, corruption.name
    published = (*settings.cifar, *settings.tiny_imagenet, *settings.imagenet)
    limits = LIMITS[name] if CORRUPTIONS.is_built_in(type(corruption)) else ()
    try:
        numbers = tuple(np.atleast_1d(np.asarray(strength, np.float64)).tolist())
    except (TypeError, ValueError):
        numbers = ()
    if numbers in published:
        return published[published.index(numbers)]
    rule = ""
    if len(numbers) != len(published[0]) or not np.isfinite(numbers).all():
        rule = f"each must be {len(published[0])} finite number(s)"
    elif name == "defocus_blur" and 1 <= numbers[0] < 2 and numbers[1] > 0.2:
        # The kernel for small disks takes the softened one to be of three by three pixels.
        rule = "number 2 must be at most 0.2 where number 1 is from 1 to 2"
    else:
        for place, (x, each) in enumerate(zip(numbers, limits, strict=False), 1):
            rule = rule or ("" if each.allow(x) else f"number {place} of each must {each}")
    if rule:
        raise InputError(
            f"strengths of {name}: {rule}; got {strength!r}. Published for 32 pixels: "
            f"{settings.cifar}."
        )
    whole = [each.whole for each in limits] or [False] * len(numbers)
    return tuple(int(x) if w else x for x, w in zip(numbers, whole, strict=True))


def lasting_identity(corruption: Corruption, *, lasting: bool = True) -> str:
    """The identity of a corruption, or a random one that no other run has.

    Args:
        corruption: The corruption.
        lasting: Whether results are kept for later runs; warns if they cannot be reused.
    """
    known = corruption.identity
    if known is not None:
        return known
    if lasting:
        name = corruption.name
        warnings.warn(
            f"the corruption {name!r} has no key, so later runs cannot reuse its results. Pass "
            f"Custom(function, name={name!r}, key='{name}-v1'), or give your function or class an "
            "attribute key, and change it whenever the pixels change.",
            InputWarning,
            stacklevel=4,
        )
    return f"{corruption.description} (unknown {os.urandom(16).hex()})"

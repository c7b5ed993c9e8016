"""The contract of a corruption."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images

Setting: TypeAlias = tuple[float, ...]
Keys: TypeAlias = NDArray[np.uint32]
Group: TypeAlias = Literal["noise", "blur", "weather", "digital", "custom"]


@dataclass(frozen=True)
class Settings:
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
        found: tuple[Setting, ...] = getattr(self, table.replace("-", "_"))
        return found


class Corruption(ABC):
    """Images made harder to recognise, at severity 1 to 5; severity 0 leaves them as they are.

    A new corruption is one file in this package, named as the field names it: a final subclass
    with its published ``settings``, and with ``_apply``. Guarantees every corruption gives,
    checked by the contract tests: uint8 in and out, the same shape, the input unchanged; the
    result depends on the image, the setting and the image's key, never on the images beside it,
    their order, or the number of threads.

    Attributes:
        group: The family it belongs to in the literature.
        random: Whether two images with different keys can differ in what was done to them.
        monotone: Whether the mean distortion grows with the published severity.
        parallel: Whether ``_apply`` may run in several threads at once.
        settings: The published parameters by table and severity.
        key: What a corruption of the user's own is known by beside its name, if it is given: it
            must change whenever the pixels do. By default its code and attributes are looked at.
    """

    group: Group
    random: bool = True
    monotone: bool = True
    parallel: bool = True
    settings: ClassVar[Settings]
    key: str | None = None

    @property
    def name(self) -> str:
        """What it is called in files, tables and messages: its file, or else its class."""
        package, _, file = type(self).__module__.rpartition(".")
        if package == "shiftcal.corruptions":
            return file
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def description(self) -> str:
        """The name, with what must be known to tell its results from others of that name."""
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
        """The description with whatever else decides its pixels, for files that must not mix.

        For a class of the user's own that is :attr:`key`, or else a digest of its code and of the
        attributes of the object; ``None`` if those cannot be compared with another run's.
        """
        if self.key is not None:
            return f"{self.description} (key {self.key})"
        held = self._attributes()
        if not held and type(self).__module__.startswith("shiftcal.corruptions."):
            return self.description
        from shiftcal.corruptions._digest import digest_of

        digest = digest_of((type(self), sorted(held.items())))
        return None if digest is None else f"{self.description} (sha256 {digest[:16]})"

    def _attributes(self) -> dict[str, Any]:
        """What the object holds that may decide pixels."""
        return dict(vars(self))

    @property
    def keeps_plan(self) -> bool:
        """Whether what :meth:`_plan` made once can be used again."""
        return True

    def setting(self, severity: int, *, table: str) -> Any:
        """The parameters of a severity of at least 1 in a table."""
        return self.settings[table][severity - 1]

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        """What depends on the setting and the size alone: made once, used for many images."""
        return setting

    @abstractmethod
    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        """Write the corrupted images to ``out``.

        Called from several threads at once with different images: nothing may be kept on
        ``self``, and the interpreter's lock should be let go of for the whole block.

        Args:
            images: ``(m, height, width, 3)`` uint8, contiguous, read-only.
            out: Contiguous memory of the same shape and type, to be written in full.
            plan: What :meth:`_plan` returned; may be used by several threads at once.
            keys: ``(m, 2)`` uint32, the key of each image's random stream.
        """

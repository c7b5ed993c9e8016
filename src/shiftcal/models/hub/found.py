"""What a package gives for a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from shiftcal.errors import InputError
from shiftcal.models.preprocessing import Preprocessing


class Found(NamedTuple):
    """A network and what is known of it.

    Attributes:
        module: The network, a PyTorch module in evaluation mode.
        preprocessing: What its weights were trained with; ``None`` if that is not known.
        classes: Names in the order of the logits; ``None`` if they are not known.
    """

    module: Any
    preprocessing: Preprocessing | None = None
    classes: Sequence[str] | None = None


def inexpressible(name: str, setting: str, value: object) -> InputError:
    """The error for preprocessing that :class:`Preprocessing` has no words for."""
    return InputError(
        f"the preprocessing of {name} has {setting} = {value!r}, which cannot be expressed here. "
        "Prepare the images yourself and pass the module: as_model(module, preprocessing=...)."
    )

"""The images whose confidence changed most, small enough to stand on the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal._types import Images, Labels
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import InputError
from shiftcal.report.html._judge import Outputs
from shiftcal.report.html._words import shown
from shiftcal.report.html.evidence import Example
from shiftcal.scores import Scores

MOST_EXAMPLES = 12
# Pixels of the longer side, and of images that are kept as they are; bytes of one picture.
_SIDE, _SMALL = 144, 64
_MOST_BYTES = 60_000


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images with the rows of scores they belong to.

    Attributes:
        images: The set.
        places: Image of every row, ``(n,)``.
    """

    images: ImageSet
    places: NDArray[np.intp]

    @classmethod
    def of(cls, images: object, target: Scores) -> Pictures:
        """Matched by ids where every row finds its image, else by their order.

        Args:
            images: What :func:`shiftcal.datasets.as_image_set` opens: the images that were scored.
            target: The scores.

        Raises:
            InputError: If images and rows cannot be matched.
        """
        require("PIL.Image", extra="images", needed_by="pictures on a report")
        opened = as_image_set(images)
        if target.ids is not None:
            where = {name: i for i, name in enumerate(opened.ids(range(len(opened))))}
            found = [where.get(name, -1) for name in target.ids.tolist()]
            if -1 not in found:
                return cls(opened, np.array(found, dtype=np.intp))
        if len(opened) != target.n:
            raise InputError(
                f"images must be those that were scored: the target has {target.n:,} rows, and "
                f"{opened.name} has {len(opened):,} images"
                f"{'' if target.ids is None else ' of other names'}. Name the images that "
                "`shiftcal score` was given."
            )
        return cls(opened, np.arange(target.n))


def examples_of(
    pictures: Pictures,
    target: Scores,
    raw: Outputs,
    made: Outputs,
    *,
    names: Sequence[str] | None,
) -> tuple[Example, ...]:
    """The rows whose confidence changed most, with their images; of equal changes the first rows.

    Args:
        pictures: Of the target.
        target: The scores.
        raw: The model's own outputs.
        made: The same calibrated.
        names: Of the classes.
    """
    found = []
    for row in changed_most(raw.confidence, made.confidence).tolist():
        place = int(pictures.places[row])
        batch = pictures.images.read([place])
        if not len(batch.images):
            continue  # an image that cannot be read today is no reason to have no report
        ids = target.ids
        called = pictures.images.ids([place])[0] if ids is None else str(ids[row])
        found.append(
            Example(
                row,
                shown(called),
                _name(int(raw.predicted[row]), names),
                _label(target.labels, row, names),
                float(raw.confidence[row]),
                float(made.confidence[row]),
                picture(batch.images[0]),
            )
        )
    return tuple(found)


def changed_most(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows by how much their confidence changed, the most first; not those that did not."""
    change = np.abs(after - before)
    order = np.argsort(-change, kind="stable")[:MOST_EXAMPLES]
    return order[change[order] > 0]


def picture(image: Images) -> str:
    """An image as a data URI: small ones to the pixel, large ones reduced and compressed."""
    pillow = require("PIL.Image", extra="images", needed_by="pictures on a report")
    made: Any = pillow.fromarray(np.ascontiguousarray(image))
    if max(made.size) <= _SMALL:
        return _uri(made, "png", optimize=True)
    made.thumbnail((_SIDE, _SIDE), pillow.Resampling.LANCZOS)
    for quality in (85, 60, 30):
        uri = _uri(made, "jpeg", quality=quality)
        if len(uri) <= _MOST_BYTES:
            break
    return uri


def _uri(picture: Any, kind: str, **options: Any) -> str:
    content = io.BytesIO()
    picture.save(content, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"


def _name(index: int, names: Sequence[str] | None) -> str:
    return shown(str(index) if names is None else names[index])


def _label(labels: Labels | None, row: int, names: Sequence[str] | None) -> str | None:
    return None if labels is None else _name(int(labels[row]), names)

"""Images that were already brought to the size a network takes, when they were written."""

from __future__ import annotations

import json
from pathlib import Path

# What ``shiftcal corrupt`` writes beside its images.
_NAME = "corrupted.json"


def side_of_corrupted(folder: Path, *, above: int = 0, published: int | None = None) -> int | None:
    """The side that the images of a folder were cut to; ``None`` if they were not.

    Args:
        folder: The folder that ``shiftcal corrupt`` wrote, or one in it.
        above: How many folders above may be the one it wrote.
        published: The side if ``shiftcal corrupt`` did not write it.
    """
    places = (folder, *folder.absolute().parents[:above])
    told = next((place / _NAME for place in places if (place / _NAME).is_file()), None)
    if told is None:
        return published
    try:
        crop = json.loads(told.read_text("utf-8")).get("crop")
    except (OSError, ValueError, RecursionError, AttributeError):
        return None
    return crop if type(crop) is int and crop > 0 else None

"""How merged scores were made, from what their parts say of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.scores.npz import read_member
from shiftcal.scoring.merging.parts import PartFile


class _Told(NamedTuple):
    """What a part says of itself."""

    origin: dict[str, Any]
    around: str | None
    keys: list[str]
    images: list[str]


def merged_origin(parts: Sequence[PartFile], n: int, k: int) -> NDArray[np.str_] | None:
    """What the file of the whole says of how it was made; ``None`` if a part says nothing.

    What the parts have in common is kept. The key, by which a run over all images knows the file
    as its own, is there if they were all made alike.

    Args:
        parts: All parts, in the order of the images.
        n: Rows of all.
        k: Number of classes.
    """
    told = [_told(file.path) for file in parts]
    known = [one for one in told if one is not None]
    if len(known) < len(told):
        return None
    origins = [one.origin for one in known]
    whole: dict[str, Any] = _common(origins)
    for of_one_part in ("key", "around", "digest"):
        whole.pop(of_one_part, None)
    whole |= {"n": n, "k": k, "left_out": [bad for one in origins for bad in one["left_out"]]}
    whole["images"] = {**whole.get("images", {}), "digest": _joined(one.images for one in known)}
    arounds = {one.around for one in known if one.origin["k"]}
    if all(one["model"] == origins[0]["model"] for one in origins) and len(arounds) == 1:
        whole |= {"key": _joined(one.keys for one in known), "around": arounds.pop()}
    return np.array(json.dumps(whole, sort_keys=True), np.str_)


def _told(path: Path) -> _Told | None:
    members = {
        name: read_member(path, name) for name in ("origin", "part", "shard_keys", "shard_images")
    }
    try:
        origin = json.loads(str(members["origin"]))
        around = json.loads(str(members["part"])).get("around")
        keys, images = (_texts(members[name]) for name in ("shard_keys", "shard_images"))
        complete = (
            isinstance(origin["model"], dict)
            and type(origin["k"]) is int
            and isinstance(origin["left_out"], list)
            and len(keys) == len(images)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return _Told(origin, around, keys, images) if complete else None


def _texts(array: NDArray[Any] | None) -> list[str]:
    if array is None or array.ndim != 1 or array.dtype.kind != "S":
        raise TypeError("one text for every shard was expected")
    return [text.decode("ascii") for text in array.tolist()]


def _joined(digests: Iterable[Sequence[str]]) -> str:
    """As :class:`shiftcal.scoring.job.Job` makes one digest of those of its shards."""
    whole = hashlib.blake2b(digest_size=16)
    for some in digests:
        for one in some:
            whole.update(one.encode())
    return whole.hexdigest()


def _common(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What all documents say alike."""
    first, *others = documents
    common = {}
    for name, value in first.items():
        if isinstance(value, dict) and all(isinstance(one.get(name), dict) for one in others):
            common[name] = _common([one[name] for one in documents])
        elif all(name in one and one[name] == value for one in others):
            common[name] = value
    return common

"""Which part of a job a file holds, as the file itself says."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from shiftcal.errors import FileError

# Longer than any note is; nothing larger is parsed.
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Part:
    """One of the parts that a job was cut into.

    Attributes:
        shard: Its number, from 1.
        of: Number of parts.
        first: Index of its first image.
        stop: Index after its last.
        n_images: Images of the whole job.
        key: A digest of what the whole job is, the same in all parts.
    """

    shard: int
    of: int
    first: int
    stop: int
    n_images: int
    key: str

    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it."""
        return asdict(self)

    @classmethod
    def from_text(cls, path: Path, text: str) -> Self:
        """The part that a JSON text describes; keys it does not know are passed over.

        Raises:
            FileError: If it does not describe one, naming the file.
        """
        try:
            given = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError):
            given = None
        return cls.from_node(path, given)

    @classmethod
    def from_node(cls, path: Path, node: object) -> Self:
        """The part that a JSON object describes.

        Raises:
            FileError: If it does not describe one, naming the file.
        """
        given = node if isinstance(node, dict) else {}
        values = {field.name: given.get(field.name) for field in fields(cls)}
        numbers = [value for name, value in values.items() if name != "key"]
        if any(type(n) is not int or n < 0 for n in numbers) or type(values["key"]) is not str:
            raise FileError(_damaged(path, "it must say shard, of, first, stop, n_images and key"))
        part = cls(**values)  # type: ignore[arg-type]
        if not (1 <= part.shard <= part.of and part.first <= part.stop <= part.n_images):
            raise FileError(
                _damaged(
                    path,
                    f"part {part.shard} of {part.of} cannot be rows {part.first} to {part.stop} "
                    f"of {part.n_images}",
                )
            )
        return part


def _damaged(path: Path, why: str) -> str:
    return f"{path} is damaged in what it says of its part: {why}. Score that part again."

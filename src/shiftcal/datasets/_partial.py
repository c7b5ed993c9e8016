"""The beginning of a file that is being fetched, and whether an answer is the rest of it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.datasets.about import Download

_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


@dataclass(frozen=True)
class Known:
    """What is known of the remote file that a partial one is the beginning of."""

    url: str = ""
    etag: str = ""
    modified: str = ""
    total: int | None = None


class Partial:
    """The beginning of a file, and what is known of the whole."""

    def __init__(self, path: Path, facts: Path) -> None:
        self.path = path
        self.facts = facts

    def size(self) -> int:
        """Bytes that are there."""
        return self.path.stat().st_size if self.path.exists() else 0

    def known(self) -> Known:
        """What is known of the whole; nothing if that cannot be read."""
        try:
            return Known(**json.loads(self.facts.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return Known()

    def begin(self, known: Known) -> None:
        """Start anew with the first byte."""
        # Emptied first: killed between the two lines, nothing is taken for the wrong file's part.
        self.path.write_bytes(b"")
        with atomic_write(self.facts) as temporary:
            temporary.write_text(json.dumps(asdict(known)), "utf-8")

    def discard(self) -> None:
        """Leave nothing of it."""
        self.path.unlink(missing_ok=True)
        self.facts.unlink(missing_ok=True)


def resuming(source: Download, known: Known, have: int) -> dict[str, str]:
    """The headers that ask for the rest, if what is there can be the beginning of it."""
    if not have or known.url != source.url:
        return {}
    # A weak mark (W/) does not promise the same bytes. Without any, a checksum must find it out.
    mark = known.modified if known.etag.startswith("W/") else known.etag or known.modified
    if not mark and not source.digest:
        return {}
    return {"Range": f"bytes={have}-", **({"If-Range": mark} if mark else {})}


def facts_of(url: str, answer: Any, total: int | None) -> Known:
    """What an answer tells of the file it is about."""
    etag, modified = (answer.headers.get(key) or "" for key in ("ETag", "Last-Modified"))
    return Known(url, etag, modified, total)


def whole_size(answer: Any) -> int | None:
    """Bytes of the whole file, as the server tells it."""
    if answer.status == 200:
        return int(answer.length) if answer.length is not None else None
    found = _CONTENT_RANGE.fullmatch((answer.headers.get("Content-Range") or "").strip())
    return int(found[2]) if found and found[2] != "*" else None


def continues(answer: Any, known: Known, have: int) -> bool:
    """Whether what comes is the rest of the very file that is there in part."""
    found = _CONTENT_RANGE.fullmatch((answer.headers.get("Content-Range") or "").strip())
    now = facts_of(known.url, answer, whole_size(answer))
    same = all(
        before is None or after is None or before == after
        for before, after in (
            (known.etag or None, now.etag or None),
            (known.modified or None, now.modified or None),
            (known.total, now.total),
        )
    )
    return same and found is not None and found[1] == str(have)

"""Seeds of a method's own draws."""

from __future__ import annotations

import hashlib
import json

from shiftcal.studies.variant import Target, Variant


def seed_of(variant: Variant, draw: int, split: int, target: Target) -> int | None:
    """The seed of one of several draws; ``None`` where there is one, whose settings say it.

    The first four bytes, the lowest first, of the BLAKE2b digest of ``[draw, split, "target"]`` as
    JSON: every draw, split and target has rows of its own, so that what one draw of rows happens to
    do does not come again in all of them. Variants have their seeds in common.
    """
    if variant.draws == 1:
        return None
    told = json.dumps([draw, split, target.name]).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=4).digest(), "little")

"""A job: a model, images, what is done to them; cut into shards that are known by content."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from shiftcal.corruptions._engine import GENERATOR
from shiftcal.corruptions._identity import identities, lasting_identity
from shiftcal.errors import InputWarning
from shiftcal.models import Model
from shiftcal.numerics._threads import thread_count
from shiftcal.scoring.kept_features import keeps_features, may_give_features
from shiftcal.scoring.shard import Condition, Shard
from shiftcal.scoring.work import Work

SHARD_SIZE = 1024


class Job:
    """All shards of some images under some conditions.

    The key of a shard is a digest of the model, its engine and preprocessing, the batch size, the
    content of the images, the condition, seed and table, the type of the result, whether features
    are kept where that is not as usual, the version of shiftcal, and that of Pillow where it
    decodes or resizes: of everything that could change a bit of the result, and of nothing else.

    Args:
        work: What is done with each.
        conditions: Conditions of the sets, the clean one first if it is among them.
        shard_size: Images in a shard.
        span: First index and index after the last of the images that are wanted; all by default.
        lasting: Whether results may be used by a later run; a model or a corruption that cannot be
            known again is warned of then.
    """

    def __init__(
        self,
        work: Work,
        conditions: tuple[Condition, ...],
        *,
        shard_size: int = SHARD_SIZE,
        span: tuple[int, int] | None = None,
        lasting: bool = True,
    ) -> None:
        self.work = work
        self.conditions = conditions
        self.shard_size = shard_size
        self.span = span or (0, len(work.images))
        self.model_id = model_identity(work.model, lasting=lasting)
        self._known = identities((c.corruption for c in conditions), lasting=lasting)
        self._versions = _versions(work)
        self._may_give_features = may_give_features(work.model)
        self._digests: dict[int, str] = {}
        self._guard = threading.Lock()

    @property
    def n_images(self) -> int:
        """Images to be scored, over all conditions."""
        return (self.span[1] - self.span[0]) * len(self.conditions)

    def shards(self) -> Iterator[Shard]:
        """All shards; the same images under all conditions first, since they are read once then."""
        for start in self._starts():
            for condition in self.conditions:
                yield self._shard(condition, start)

    def shards_of(self, condition: Condition) -> Iterator[Shard]:
        """The shards of one set, in the order of the images."""
        for start in self._starts():
            yield self._shard(condition, start)

    def images_digest(self) -> str:
        """A digest of the content of all images that are wanted."""
        whole = hashlib.blake2b(digest_size=16)
        for start in self._starts():
            whole.update(self._digest(start).encode())
        return whole.hexdigest()

    def image_digests(self) -> list[str]:
        """Digests of the content of the images, shard by shard."""
        return [self._digest(start) for start in self._starts()]

    def origin(self) -> dict[str, Any]:
        """How the results were made, as JSON can hold it."""
        model = self.work.model
        return {
            "model": {
                "spec": model.spec,
                "adapter": type(model).__name__,
                **self.model_id,
                "batch_size": self.work.batch_size,
            },
            "images": {"name": self.work.images.name, "digest": self.images_digest()},
            "dtype": self.work.dtype,
            "shard_size": self.shard_size,
        }

    def set_key(self, condition: Condition, *, features: bool | None = None) -> str:
        """A digest of everything that decides the result of a set.

        Args:
            condition: Which set.
            features: Whether it keeps features; ``None`` is what the work says.
        """
        whole = hashlib.blake2b(digest_size=16)
        for start in self._starts():
            whole.update(self._key(condition, start, features=features).encode())
        return whole.hexdigest()

    def _starts(self) -> range:
        return range(*self.span, self.shard_size)

    def _shard(self, condition: Condition, start: int) -> Shard:
        stop = min(start + self.shard_size, self.span[1])
        return Shard(self._key(condition, start), condition, start, stop)

    def _key(self, condition: Condition, start: int, *, features: bool | None = None) -> str:
        work = self.work
        told: dict[str, Any] = {
            "versions": self._versions,
            "model": self.model_id,
            "batch_size": work.batch_size,
            "dtype": work.dtype,
            "images": self._digest(start),
            "first": start,
        }
        corruption = condition.corruption
        if corruption is not None:
            told |= {
                "corruption": self._known.get(corruption) or lasting_identity(corruption),
                "severity": condition.severity,
                "table": work.table,
                "generator": GENERATOR,
            }
            if corruption.random:
                told["seed"] = work.seed
        kept = keeps_features(work.features, condition) if features is None else features
        if self._may_give_features and kept != (corruption is None):
            told["features"] = kept
        text = json.dumps(told, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()

    def _digest(self, start: int) -> str:
        with self._guard:
            found = self._digests.get(start)
            if found is None:
                stop = min(start + self.shard_size, self.span[1])
                found = self.work.images.digest(np.arange(start, stop), threads=thread_count())
                self._digests[start] = found
            return found


def _versions(work: Work) -> dict[str, str]:
    """Versions of what makes the pixels that the model sees; the model names its own engine."""
    found = {"shiftcal": version("shiftcal")}
    stored_as_pixels = work.images._images(np.zeros(1, np.intp)) is not None
    if not stored_as_pixels or work.model.preprocessing.resize is not None:
        with suppress(PackageNotFoundError):  # decoded by something else then
            found["pillow"] = version("pillow")
    return found


def model_identity(model: Model, *, lasting: bool = True) -> dict[str, Any]:
    """What decides the outputs of a model, as JSON can hold it.

    A model without a fingerprint gets a random one, so that nothing of it is ever used again.
    """
    fingerprint = model.fingerprint
    if fingerprint is None:
        if lasting:
            warnings.warn(
                "it cannot be told whether this model is the same as in an earlier run, so that "
                "nothing of this run can be used by a later one. Give the model a name that "
                "changes with it: as_model(..., key='my-model-v1').",
                InputWarning,
                stacklevel=3,
            )
        fingerprint = f"unknown {secrets.token_hex(16)}"
    return {
        "fingerprint": fingerprint,
        "engine": model.engine,
        "output": model.output,
        "preprocessing": model.preprocessing.to_dict(),
    }

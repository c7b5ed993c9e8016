"""What models around another model have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from shiftcal.models.base import Model


class WrappedModel(Model):
    """A model that runs another and makes something else of what it gives.

    Preprocessing, batch size, memory and threads are those of the other.

    Args:
        model: The other.
        classes: Names of the classes, if they are known.
    """

    def __init__(self, model: Model, *, classes: Sequence[str] | None = None) -> None:
        super().__init__(
            preprocessing=model.preprocessing,
            classes=classes,
            batch_size=model.batch_size,
            memory_budget=model.memory_budget,
        )
        self.model = model

    @property
    def measured_memory(self) -> str | None:
        """That of the model."""
        return self.model.measured_memory

    def rehearse(self, batch: NDArray[Any]) -> None:
        """As the model does."""
        self.model.rehearse(batch)

    @property
    def engine(self) -> str:
        """That of the model."""
        return self.model.engine

    def use_threads(self, threads: int) -> None:
        """As the model does."""
        self.model.use_threads(threads)

    @contextmanager
    def sharing(self, processors: int) -> Iterator[None]:
        """As the model does."""
        with self.model.sharing(processors):
            yield

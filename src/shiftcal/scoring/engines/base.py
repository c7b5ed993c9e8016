"""What an engine is: it has shards worked on, somewhere, and gives back what came of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.work import Work


class Engine(ABC):
    """Where the work is done. A new engine is one file in this package."""

    @abstractmethod
    def map_shards(self, work: Work, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results of all shards, in any order, each as soon as it is there.

        A result depends on ``work`` and the shard alone, to the bit, wherever it is computed, but
        for a model whose own arithmetic goes by the number of threads or the kind of processor.
        ``shards`` is consumed no further than there are workers, and one more: whoever iterates
        over it claims what it takes. A worker that dies costs the shard it was at, which
        is given to another; a model that raises ends the iteration with that error.

        Args:
            work: What is done with a shard; sent to every worker once, without its ``tell``.
            shards: What is to be done.
        """

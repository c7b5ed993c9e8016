"""A Ray cluster, or a Ray of our own on this machine."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

from shiftcal._checks import check_count, check_not_negative
from shiftcal._optional import require
from shiftcal.errors import InputError
from shiftcal.scoring.engines.base import Engine
from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.work import Work


class RayEngine(Engine):
    """Workers that are actors of Ray, each of which holds the model.

    If this process has called ``ray.init`` already, that Ray is used, and left as it is. Results
    come back to this process: the workers need no disk in common with it, but what the model and
    the images are loaded from, if that is a file, must be found by them too.

    Args:
        address: Of a running cluster, such as ``"10.0.0.1:6379"`` or ``"auto"``; it is left
            running. ``None`` starts a Ray on this machine and ends it afterwards.
        workers: How many; by default as many as the cluster has room for.
        cpus_per_worker: Processors a worker is given.
        gpus_per_worker: Graphics processors a worker is given; 0.5 lets two share one.
    """

    def __init__(
        self,
        *,
        address: str | None = None,
        workers: int | None = None,
        cpus_per_worker: float = 1,
        gpus_per_worker: float = 0,
    ) -> None:
        require("ray", extra="ray", needed_by="the Ray engine")
        self.address = address
        self.workers = None if workers is None else check_count(workers, name="workers")
        self.cpus = _share(cpus_per_worker, name="cpus_per_worker")
        self.gpus = _share(gpus_per_worker, name="gpus_per_worker")
        if self.cpus == 0 and workers is None and self.gpus == 0:
            raise InputError(
                "cpus_per_worker must be more than 0 if workers is not given; got 0. Say workers."
            )

    def map_shards(self, work: Work, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come, stored nowhere but where they are received."""
        from shiftcal.scoring.engines._actors import Actors
        from shiftcal.scoring.engines._crew import results_of

        ray = require("ray", extra="ray", needed_by="the Ray engine")
        ours = False

        def crew() -> Actors:
            nonlocal ours
            ours = self._connect(ray)
            size = self._size(ray.cluster_resources())
            return Actors(work, size=size, cpus=self.cpus, gpus=self.gpus)

        try:
            yield from results_of(crew, shards)
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> bool:
        """Be connected; whether the connection is ours to end."""
        if ray.is_initialized():
            self._check_same(ray.get_runtime_context().gcs_address)
            return False
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        namespace = f"shiftcal-{secrets.token_hex(8)}"
        if self.address is None:
            _see_to_token()
            cpus = None if self.workers is None else max(1, ceil(self.workers * self.cpus))
            ray.init("local", num_cpus=cpus, include_dashboard=False, namespace=namespace, **quiet)
            return True
        try:
            _knock(self.address)
            ray.init(self.address, namespace=namespace, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            first = str(error).strip().partition("\n")[0]
            raise InputError(
                f"address must be that of a running Ray cluster; got {self.address!r}, and "
                f"{type(error).__name__}: {first}"
            ) from error
        return True

    def _check_same(self, current: str) -> None:
        if self.address not in (None, "auto", current):
            raise InputError(
                f"address must be that of the Ray this process is connected to, {current}, or be "
                f"left out; got {self.address!r}. To go elsewhere, call ray.shutdown() first."
            )

    def _size(self, resources: dict[str, float]) -> int:
        """How many workers, as asked for or as many as fit."""
        fit = [
            resources.get(name, 0) / each
            for name, each in (("CPU", self.cpus), ("GPU", self.gpus))
            if each
        ]
        most = int(min(fit)) if fit else 0
        if self.workers is not None and (self.address is not None or self.workers <= most):
            return self.workers
        if self.workers is None and most:
            return most
        raise InputError(
            f"workers with {self.cpus:g} CPUs and {self.gpus:g} GPUs must fit into the cluster, "
            f"which has {resources.get('CPU', 0):g} and {resources.get('GPU', 0):g}; "
            f"{most} would. Ask for less in cpus_per_worker, gpus_per_worker or workers."
        )


def _knock(address: str) -> None:
    """Find out soon whether anybody is there; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _share(value: object, *, name: str) -> float:
    share = check_not_negative(value, name=name)
    if share > 1 and share % 1:
        raise InputError(
            f"{name} must be a whole number or a part of one, as Ray has it; got {share:g}."
        )
    return share


def _see_to_token() -> None:
    """Have a password for a Ray of our own where Ray itself cannot keep one.

    Ray writes one to ``~/.ray``, and does not start where that cannot be written. It reads the
    variable once in the life of a process, so that it must stay as it is.
    """
    if os.environ.keys() & {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}:
        return
    with suppress(OSError, RuntimeError):  # no home, or one that cannot be written
        folder = Path.home() / ".ray"
        if (folder / "auth_token").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)

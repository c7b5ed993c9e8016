"""Rows over HTTP for ``shiftcal monitor --listen``.

Requests are checked as they arrive and wait in a bounded queue. One thread takes all that wait,
calibrates them, and writes the state once; only then are they answered. While a write is under way
the next requests gather, so the number of writes does not grow with that of requests.
"""

from __future__ import annotations

import asyncio
import gc
import hmac
import io
import ipaddress
import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from shiftcal.cli.output import complain
from shiftcal.cli.stream import BadBatch, RowBatch, arrow_batches, json_batch
from shiftcal.errors import InputError, MissingExtra, require

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from shiftcal.cli.monitor import MonitorRun

TOKEN = "SHIFTCAL_TOKEN"
_JSON, _ARROW = "application/json", "application/vnd.apache.arrow.stream"
MOST_BYTES = 8 << 20  # of a body
MOST_ROWS, MOST_REQUESTS = 100_000, 1000  # that wait
_MOST_CONNECTIONS = 2000
_MOST_HEAD = 1 << 16  # bytes of a request line and headers
_REQUEST_SECONDS = 10  # for the head of a request, and again for its body
_STUCK_SECONDS = 10  # a commit that takes longer is stuck
_TICK_SECONDS = 0.2  # how often labels are looked for
_GATHER_SECONDS = 0.003  # requests that come within this are one commit
_PARSED_AT_ONCE = 1 << 15  # larger bodies are parsed outside the event loop


class Waiting(NamedTuple):
    """A request that waits for its commit."""

    batch: RowBatch
    answer: asyncio.Future[bytes]


class Service:
    """Takes rows over HTTP until it is stopped, or a commit fails.

    Args:
        address: ``HOST:PORT``; port 0 is any free one.

    Raises:
        InputError: If the address cannot be used, or needs a token.
    """

    def __init__(self, address: str) -> None:
        for name in ("uvicorn", "httptools", "starlette.applications", "prometheus_client"):
            require(name, extra="serve", needed_by="--listen")
        host, _, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise InputError(
                f"--listen must be HOST:PORT, such as 127.0.0.1:8000; got {address!r}."
            )
        token = os.environ.get(TOKEN, "")
        if not token.isascii():
            raise InputError(f"${TOKEN} must be of ASCII characters, as it is sent in a header.")
        self._token = token.encode()
        if not self._token and not _is_loopback(host):
            raise InputError(
                f"--listen {address} is open to others, and needs a token. Set ${TOKEN}, which "
                "requests send as `Authorization: Bearer ...`, or listen on 127.0.0.1."
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, int(port)), family=family, backlog=1024)
        except OSError as error:
            raise InputError(
                f"--listen {address}: {error.strerror or error}. Choose another port (0 for any "
                "free one) or address."
            ) from error
        self._url = f"http://{address.rpartition(':')[0]}:{self._socket.getsockname()[1]}"
        self._queue: list[Waiting] = []
        self._rows = 0  # in the queue
        self._wake = asyncio.Event()
        self._began = 0.0  # when the commit that runs began
        self._stopping = False
        self._error: BaseException | None = None
        self._requests: Counter[int] = Counter()
        self._thread = ThreadPoolExecutor(1, "commit")

    def serve(self, run: MonitorRun) -> None:
        """Answer requests until a signal; raises what a commit raised."""
        import prometheus_client
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route

        self._run = run
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(run)
        self._registry.register(self)
        routes = [
            Route("/rows", self._counted(self._take_rows), methods=["POST"]),
            Route("/metrics", self._counted(self._metrics)),
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
        ]
        self._server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=routes, lifespan=self._lifespan),
                http=_protocol(),
                ws="none",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_keep_alive=60,
                timeout_graceful_shutdown=_REQUEST_SECONDS,
            )
        )
        gc.collect()
        gc.freeze()  # or a collection passes over all that is imported, for 50 ms and more
        sys.setswitchinterval(0.001)  # a commit keeps requests waiting for no longer than that
        complain("note", f"rows are taken at {self._url}/rows")
        with self._socket, self._thread:
            self._server.run(sockets=[self._socket])
        if self._error is not None:
            raise self._error

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        """Commit in the background; what waits at the end is still committed."""
        worker = asyncio.create_task(self._work())
        yield
        self._stopping = True
        self._wake.set()
        await worker

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._queue and not self._stopping:
                try:
                    async with asyncio.timeout(_TICK_SECONDS):
                        await self._wake.wait()
                except TimeoutError:
                    pass  # there may be labels
            if self._queue and not self._stopping:
                await asyncio.sleep(_GATHER_SECONDS)
            self._wake.clear()
            taken, self._queue, self._rows = self._queue, [], 0
            if not taken and self._stopping:
                return
            self._began = time.monotonic()
            try:
                answers = await loop.run_in_executor(self._thread, self._commit, taken)
            except BaseException as error:
                self._error = error
            finally:
                self._began = 0.0
            if self._error is None:
                for one, answer in zip(taken, answers, strict=True):
                    one.answer.set_result(answer)
                taken = []
            if self._error is not None or self._run.failed:
                self._stopping = self._server.should_exit = True
                for one in taken + self._queue:  # the state does not have them, or may not
                    reason = "the rows could not be stored. Send them again later."
                    one.answer.set_exception(_Refused(503, reason, {"Retry-After": "5"}))
                return

    def _commit(self, taken: list[Waiting]) -> list[bytes]:
        """Calibrate what waits, durably; the answers. Requests in a row are one batch."""
        import numpy as np

        batches: list[RowBatch] = []
        members: list[list[RowBatch]] = []
        for batch, _ in taken:
            if members and _go_together(members[-1][0], batch):
                members[-1].append(batch)
            else:
                members.append([batch])
        for parts in members:
            first = parts[0]
            ids = None if first.ids is None else [name for p in parts for name in p.ids or ()]
            values = np.concatenate([p.values for p in parts]) if parts[1:] else first.values
            batches.append(RowBatch(values, first.where, None, first.at, ids, checked=True))
        found = self._run.commit(batches) or ()
        state = json.dumps(self._run.monitor.state)
        answers = []
        for parts, (row, confidence, predicted) in zip(members, found, strict=True):
            start, confidences, labels = 0, confidence.tolist(), predicted.tolist()
            for part in parts:
                stop = start + len(part.values)
                answers.append(
                    f'{{"row": {row + start}, "confidence": {confidences[start:stop]}, '
                    f'"predicted": {labels[start:stop]}, "state": {state}}}'.encode()
                )
                start = stop
        return answers

    async def _take_rows(self, request: Request) -> Response:
        """``POST /rows``: answered when the rows are committed."""
        body, kind = await self._body(request)
        try:
            if len(body) > _PARSED_AT_ONCE:
                batch = await asyncio.to_thread(self._parsed, body, kind)
            else:
                batch = self._parsed(body, kind)
        except BadBatch as bad:
            self._run.malformed += 1
            raise _Refused(400, str(bad)) from bad
        except MissingExtra as error:
            raise _Refused(415, str(error)) from error
        n = len(batch.values)
        if n > MOST_ROWS:
            raise _Refused(413, f"a request must have {MOST_ROWS:,} rows at most; got {n:,}.")
        if self._is_full(n):
            raise _Refused(503, "too many rows wait. Try again later.", {"Retry-After": "1"})
        waiting = Waiting(batch, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._rows += n
        self._wake.set()
        # The client may go; what waits is committed all the same.
        return _response(200, await asyncio.shield(waiting.answer))

    def _is_full(self, n: int) -> bool:
        return self._stopping or len(self._queue) >= MOST_REQUESTS or self._rows + n > MOST_ROWS

    async def _body(self, request: Request) -> tuple[bytes, str]:
        """The body of a request, and its type."""
        from starlette.requests import ClientDisconnect

        self._authorize(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (_JSON, _ARROW):
            raise _Refused(415, f"Content-Type must be {_JSON} or {_ARROW}; got {kind!r:.60}.")
        length = request.headers.get("content-length", "0")
        content = bytearray()
        too_large = _Refused(413, f"a body must have {MOST_BYTES:,} bytes at most.")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            raise too_large
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                async for piece in request.stream():
                    content += piece
                    if len(content) > MOST_BYTES:
                        raise too_large
        except TimeoutError:
            reason = f"a body must arrive within {_REQUEST_SECONDS} seconds."
            raise _Refused(408, reason, {"Connection": "close"}) from None
        except ClientDisconnect:  # nobody reads the answer
            raise _Refused(408, "a body must be complete.") from None
        return bytes(content), kind

    def _parsed(self, body: bytes, kind: str) -> RowBatch:
        """The batch of a body, checked.

        Raises:
            BadBatch: If it cannot be used.
        """
        import numpy as np

        where = "the body"
        if kind == _ARROW:
            found = list(arrow_batches(io.BufferedReader(io.BytesIO(body))))
            if not found:
                raise BadBatch(where, "it must have a record batch; got none.")
            if bad := [item for item in found if isinstance(item, BadBatch)]:
                raise bad[0]
            batches = [item for item in found if isinstance(item, RowBatch)]
            ids = [item.ids for item in batches]
            names = [name for part in ids for name in part or ()] if all(ids) else None
            z = np.concatenate([self._run.check(item) for item in batches])
            return RowBatch(z, where, ids=names, checked=True)
        try:
            batch = json_batch(json.loads(body), where)
        except (ValueError, OverflowError, RecursionError) as error:
            raise BadBatch(where, f"{str(error).rstrip('.')}.") from error
        z = self._run.check(batch)
        return RowBatch(z, where, None, batch.at, batch.ids, checked=True)

    def _authorize(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode()
        if self._token and not hmac.compare_digest(given, b"Bearer " + self._token):
            reason = "a token is needed: Authorization: Bearer ..."
            raise _Refused(401, reason, {"WWW-Authenticate": "Bearer"})

    def _counted(self, handler: Any) -> Any:
        """The handler, whose refusals become answers, counted by status."""

        async def answer(request: Request) -> Response:
            try:
                response: Response = await handler(request)
            except _Refused as refused:
                text = json.dumps({"error": refused.reason}).encode()
                response = _response(refused.status, text, refused.headers)
            self._requests[response.status_code] += 1
            return response

        return answer

    async def _metrics(self, request: Request) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
        from starlette.responses import Response

        self._authorize(request)
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)

    def collect(self) -> Any:
        """The series of this service, when Prometheus asks."""
        from prometheus_client import core

        family = core.CounterMetricFamily(
            "shiftcal_requests", "Answers to /rows and /metrics.", labels=["status"]
        )
        for status, count in sorted(self._requests.items()):
            family.add_metric([str(status)], count)
        yield family
        queue = core.GaugeMetricFamily("shiftcal_queued_rows", "Rows that wait for a commit.")
        queue.add_metric([], self._rows)
        yield queue

    async def _healthz(self, request: Request) -> Response:
        """200 while commits are made; otherwise a restart may help."""
        stuck = self._began and time.monotonic() - self._began > _STUCK_SECONDS
        fine = not stuck and self._error is None
        return _response(200 if fine else 503, json.dumps({"ok": fine}).encode())

    async def _readyz(self, request: Request) -> Response:
        """200 while rows are taken."""
        full = self._is_full(1)
        state = {
            "ready": not full,
            "state": self._run.monitor.state,
            "rows": self._run.monitor.rows,
        }
        return _response(503 if full else 200, json.dumps(state).encode())


class _Refused(Exception):
    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


def _response(status: int, content: bytes, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(content, status, headers, _JSON)


def _go_together(one: RowBatch, other: RowBatch) -> bool:
    """Whether two batches can be fed as one, to the same results."""
    same_type = one.values.dtype == other.values.dtype
    return one.at == other.at and (one.ids is None) == (other.ids is None) and same_type


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _protocol() -> Any:
    """uvicorn's, with a limit for the time and the size of the head of a request."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Protocol(HttpToolsProtocol):
        head = 0
        timer: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            # Or head and body of an answer, written one after the other, are 40 ms apart.
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._limit()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.head += len(data)
            self._limit()

        def connection_lost(self, exc: Exception | None) -> None:
            if self.timer is not None:
                self.timer.cancel()
            super().connection_lost(exc)

        def _limit(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self.head = 0
                if self.timer is not None:
                    self.timer = self.timer.cancel()
            elif self.head > _MOST_HEAD and not (self.cycle and self.cycle.more_body):
                self.transport.abort()  # a body that was refused early may end, to be answered
            elif self.timer is None:
                self.timer = self.loop.call_later(_REQUEST_SECONDS, self.transport.abort)

    return Protocol

"""Metrics for Prometheus, served while the monitor runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from shiftcal._optional import require
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.cli._monitor_lines import Line

_NEEDED_BY = "--metrics-port"


class Metrics:
    """Counters and gauges in a registry of their own, over HTTP.

    Args:
        port: Port; 0 for any that is free.
        host: Address to listen at.

    Raises:
        MissingExtra: If prometheus-client is not installed.
        InputError: If nothing can listen there.

    Attributes:
        address: Where they are served.
    """

    def __init__(self, *, port: int, host: str) -> None:
        from shiftcal.monitoring import STATES

        client = require("prometheus_client", extra="monitor", needed_by=_NEEDED_BY)
        registry = client.CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Any:
            return client.Counter(f"shiftcal_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Any:
            made = client.Gauge(f"shiftcal_{name}", text, labels, registry=registry)
            if not labels:
                made.set(math.nan)  # not known yet, which 0 would not say
            return made

        self._rows = counter("rows", "Rows calibrated by this process.")
        self._batches = counter("batches", "Batches or files read by this process.")
        self._malformed = counter("malformed_batches", "Batches or files that cannot be used.")
        self._events = counter("events", "Changes of state, by kind.", "kind")
        self._state = client.Enum(
            "shiftcal_state", "Where the stream stands.", registry=registry, states=list(STATES)
        )
        self._temperature = gauge("temperature", "Temperature of the next row.")
        self._confidence = gauge(
            "mean_confidence",
            "Mean confidence: raw of the window, calibrated of the rows since the line before.",
            "kind",
        )
        self._accuracy = gauge(
            "estimated_accuracy", "Estimated accuracy on the window, and its interval.", "bound"
        )
        self._declare()
        self._serve(client, registry, port, host)

    def _declare(self) -> None:
        """Have every series from the beginning on: a rate is known from the first event then."""
        from shiftcal.monitoring import KINDS

        for kind in KINDS:
            self._events.labels(kind)
        for which in ("raw", "calibrated"):
            self._confidence.labels(which).set(math.nan)
        for bound in ("value", "low", "high"):
            self._accuracy.labels(bound).set(math.nan)

    def _serve(self, client: Any, registry: Any, port: int, host: str) -> None:
        try:
            self._server, self._thread = client.start_http_server(port, host, registry)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"metrics cannot be served at {host}, port {port}: {reason}. Name another port "
                "with --metrics-port (0 takes any that is free) or address with --metrics-host."
            ) from error
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._server.server_port}/metrics"

    def fed(self, rows: int, state: str, temperature: float | None) -> None:
        """So many rows have been calibrated."""
        self._rows.inc(rows)
        self._state.state(state)
        self._temperature.set(math.nan if temperature is None else temperature)

    def done(self, *, malformed: bool) -> None:
        """A batch or file is done."""
        (self._malformed if malformed else self._batches).inc()

    def told(self, line: Line) -> None:
        """A line is about to be printed."""
        if line["type"] == "event":
            self._events.labels(line["kind"]).inc()
        if line["type"] == "window":
            raw = line["raw_mean_confidence"]
            self._confidence.labels("raw").set(math.nan if raw is None else raw)
            self._confidence.labels("calibrated").set(line["mean_confidence"])
            for bound in ("value", "low", "high") if line["accuracy"] else ():
                self._accuracy.labels(bound).set(line["accuracy"][bound])

    def close(self) -> None:
        """Let go of the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

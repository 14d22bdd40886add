"""Traces: spans of what a driver does, sent to an OpenTelemetry collector; off by default.

A span has names, numbers and counts, never a value of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from lakesplice.telemetry.logs import log_context

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

_SEND_SECONDS = 5
Fact = str | int | float | bool


class Span(Protocol):
    """A piece of work that is under way."""

    def note(self, **facts: Fact) -> None:
        """Add an attribute that became known during the work."""
        ...


class Tracing:
    """Makes spans; safe from several threads. A span begun inside another one of the same context
    (`contextvars.copy_context` hands it to a thread) is a part of it.
    """

    def __init__(
        self, tracer: Tracer | None = None, close: Callable[[], None] = lambda: None
    ) -> None:
        self._tracer = tracer
        self.close = close

    @contextmanager
    def span(self, name: str, **facts: Fact) -> Iterator[Span]:
        """Trace the block; an exception that leaves it marks the span as failed.

        Log lines of the block have the trace's number as `trace`.
        """
        if self._tracer is None:
            yield _NO_SPAN
            return
        with (
            self._tracer.start_as_current_span(f"lakesplice.{name}", attributes=facts) as span,
            log_context(trace=f"{span.get_span_context().trace_id:032x}"),
        ):
            yield _Recording(span.set_attributes)


def open_tracing(
    endpoint: str | None, headers: Mapping[str, str], share: float, facts: Mapping[str, Fact]
) -> Tracing:
    """Return a `Tracing` that sends to a collector by OTLP over HTTP; without an address it does
    nothing.

    `share` (0 to 1) of all traces is sent; `facts` are attributes of each span's resource. A thread
    of its own sends the spans and drops them if the collector doesn't accept them: no work waits
    for a collector. `close` sends the remaining spans, for a few seconds at most.
    """
    if endpoint is None:
        return Tracing()
    # The import takes 0.2 s, and few users need it.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    exporter = OTLPSpanExporter(endpoint, headers=dict(headers), timeout=_SEND_SECONDS)
    return tracing_to(exporter, share, facts)


def tracing_to(exporter: SpanExporter, share: float, facts: Mapping[str, Fact]) -> Tracing:
    """Return a `Tracing` that sends to an exporter of OpenTelemetry; otherwise like
    `open_tracing`.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    resource = Resource.create({"service.name": "lakesplice", **facts})
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(share)),
        resource=resource,
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider.get_tracer("lakesplice"), provider.shutdown)


class _Recording:
    def __init__(self, set_attributes: Callable[[Mapping[str, Fact]], None]) -> None:
        self._set = set_attributes

    def note(self, **facts: Fact) -> None:
        self._set(facts)


class _NoSpan:
    def note(self, **facts: Fact) -> None:
        """Do nothing."""


_NO_SPAN = _NoSpan()

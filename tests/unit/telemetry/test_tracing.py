"""Traces as an OpenTelemetry collector gets them over HTTP, and none if tracing is off."""

from __future__ import annotations

import gzip
import io
import json
import threading
from collections.abc import Iterator
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from lakesplice.telemetry.logs import configure_logs
from lakesplice.telemetry.tracing import open_tracing


class Collector:
    """An HTTP server that takes traces as a collector does."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], ExportTraceServiceRequest]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name that the library calls
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                request = ExportTraceServiceRequest.FromString(body)
                outer.requests.append((dict(self.headers), request))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def spans(self) -> dict[str, Span]:
        """The spans by their names; each name once."""
        found = [
            span
            for _, request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        assert len({span.name for span in found}) == len(found)
        return {span.name: span for span in found}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def facts(span: Span) -> dict[str, object]:
    kinds = ((one.key, one.value) for one in span.attributes)
    return {key: getattr(value, str(value.WhichOneof("value"))) for key, value in kinds}


def test_a_span_in_another_thread_is_a_part_of_the_one_it_was_begun_in(
    collector: Collector,
) -> None:
    tracing = open_tracing(collector.address, {"authorization": "Bearer x"}, 1.0, {"where": 7})

    def commit() -> None:
        with tracing.span("commit", table="shop.orders") as span:
            span.note(version=3)

    with tracing.span("batch", lane="main", batch=0):
        thread = threading.Thread(target=copy_context().run, args=(commit,))
        thread.start()
        thread.join()
    with pytest.raises(ZeroDivisionError), tracing.span("compaction"):
        raise ZeroDivisionError
    tracing.close()
    spans = collector.spans()
    batch, inner = spans["lakesplice.batch"], spans["lakesplice.commit"]
    assert (inner.trace_id, inner.parent_span_id) == (batch.trace_id, batch.span_id)
    assert facts(batch) == {"lane": "main", "batch": 0}
    assert facts(inner) == {"table": "shop.orders", "version": 3}
    assert spans["lakesplice.compaction"].status.code == Status.STATUS_CODE_ERROR
    assert spans["lakesplice.compaction"].trace_id != batch.trace_id
    (headers, request) = collector.requests[0]
    assert headers["authorization"] == "Bearer x"
    resource = {one.key: one.value for one in request.resource_spans[0].resource.attributes}
    assert resource["service.name"].string_value == "lakesplice"
    assert resource["where"].int_value == 7


def test_log_lines_of_a_span_name_its_trace(collector: Collector) -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    tracing = open_tracing(collector.address, {}, 1.0, {})
    with tracing.span("batch"):
        structlog.get_logger("lakesplice").info("within")
    structlog.get_logger("lakesplice").info("without")
    tracing.close()
    within, without = (json.loads(line) for line in stream.getvalue().splitlines())
    assert within["trace"] == collector.spans()["lakesplice.batch"].trace_id.hex()
    assert "trace" not in without


def test_no_work_waits_for_a_collector_that_is_gone(collector: Collector) -> None:
    collector.close()
    tracing = open_tracing(collector.address, {}, 1.0, {})
    with tracing.span("batch") as span:
        span.note(result="ok")
    assert not collector.requests


def test_without_an_address_nothing_is_traced() -> None:
    tracing = open_tracing(None, {}, 1.0, {})
    with tracing.span("batch", lane="main") as span:
        span.note(result="ok")
    tracing.close()
    assert structlog.contextvars.get_contextvars() == {}

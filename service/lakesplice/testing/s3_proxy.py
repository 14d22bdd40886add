"""A proxy before an S3 server, or another one of HTTP: it counts requests and makes some fail in
chosen ways.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length"))
_THROTTLED = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate."
    b"</Message></Error>"
)


class Fault(Enum):
    """How a request fails."""

    LOST = auto()  # the server never sees it
    ANSWER_LOST = auto()  # the server acts on it
    THROTTLED = auto()
    LATE = auto()  # the server acts on it, but the answer comes after the client's time-out


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A request that passed, with the bytes of both bodies."""

    method: str
    path: str
    query: dict[str, list[str]]
    copied: bool
    conditional: bool
    sent: int = 0
    received: int = 0
    status: int = 0

    @property
    def is_list(self) -> bool:
        """Whether it lists objects."""
        return self.method == "GET" and ("list-type" in self.query or "prefix" in self.query)


class S3Proxy:
    """The proxy, as a context manager; `fault` is called for each request before it is
    forwarded.
    """

    def __init__(self, server_port: int, late_seconds: float = 3.0) -> None:
        self.requests: list[ProxiedRequest] = []
        self.fault: Callable[[ProxiedRequest], Fault | None] = lambda _: None
        self._late = late_seconds
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                proxy._pass(self, server_port)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        """The proxy's address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reset(self) -> None:
        """Forget the recorded requests."""
        with self._lock:
            self.requests = []

    def fail(self, *faults: Fault, when: Callable[[ProxiedRequest], bool] = lambda _: True) -> None:
        """Let the next requests for which `when` is true fail, one fault each."""
        left = list(faults)

        def next_fault(request: ProxiedRequest) -> Fault | None:
            with self._lock:
                return left.pop(0) if left and when(request) else None

        self.fault = next_fault

    def fail_at(self, number: int, fault: Fault) -> None:
        """Let the request with this number fail, counted from 0 from now on."""
        left = [number]

        def next_fault(_: ProxiedRequest) -> Fault | None:
            with self._lock:
                left[0] -= 1
                return fault if left[0] == -1 else None

        self.fault = next_fault

    def seen(
        self, when: Callable[[ProxiedRequest], bool] = lambda _: True
    ) -> Sequence[ProxiedRequest]:
        """The requests so far."""
        with self._lock:
            return [request for request in self.requests if when(request)]

    def _pass(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        parts = urlsplit(handler.path)
        request = ProxiedRequest(
            handler.command,
            unquote(parts.path),
            parse_qs(parts.query, keep_blank_values=True),
            "x-amz-copy-source" in handler.headers,
            "If-None-Match" in handler.headers,
            sent=length,
        )
        fault = self.fault(request)
        if fault is Fault.LOST:
            self._hang_up(handler)
            return
        if fault is Fault.THROTTLED:
            self._answer(handler, 503, [("Content-Type", "application/xml")], _THROTTLED)
            return
        status, headers, data = _forwarded(handler, port, body)
        with self._lock:
            self.requests.append(replace(request, received=len(data), status=status))
        if fault is Fault.ANSWER_LOST:
            self._hang_up(handler)
            return
        if fault is Fault.LATE:
            time.sleep(self._late)
        self._answer(handler, status, headers, data)

    def _answer(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        headers: Sequence[tuple[str, str]],
        data: bytes,
    ) -> None:
        try:
            handler.send_response_only(status)
            for name, value in headers:
                handler.send_header(name, value)
            if handler.command != "HEAD":
                handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:  # the client gave up
            handler.close_connection = True

    def _hang_up(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.connection.close()


def _forwarded(
    handler: BaseHTTPRequestHandler, port: int, body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        # Unchanged, since signatures cover some of the headers, the host among them.
        connection.putrequest(
            handler.command, handler.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in handler.headers.items():
            if name.lower() != "connection":
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        data = answer.read()
        kept = [
            (name, value)
            for name, value in answer.getheaders()
            if name.lower() not in _HOP_BY_HOP
            or (handler.command == "HEAD" and name.lower() == "content-length")
        ]
        return answer.status, kept, data
    finally:
        connection.close()

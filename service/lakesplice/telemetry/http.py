"""The page: /metrics for Prometheus, /healthz and /readyz for who runs the service.

A slow client costs one of a few threads until it times out; while none is free, connections wait in
the listener's queue and are refused there. Of a request only its first line and headers are read.
"""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any, Self

from lakesplice.errors import ConfigurationError
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import CONTENT_TYPE, Metrics

_THREADS = 4
_REQUEST_SECONDS_MAX = 5.0
_JSON = "application/json"


class MetricsServer:
    """Serves the page from `start` to `close`, or as a context manager; port 0 is any free one."""

    def __init__(self, metrics: Metrics, health: Health, host: str, port: int) -> None:
        self._metrics = metrics
        self._health = health
        self._host = host
        self._wanted_port = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port it listens on; 0 before `start`."""
        return int(self._server.server_address[1]) if self._server else 0

    @property
    def url(self) -> str:
        """Where the page is."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen; `ConfigurationError` if the address can't be had. Does nothing if it runs."""
        if self._server:
            return
        try:
            self._server = _Server((self._host, self._wanted_port), self._metrics, self._health)
        except OSError as error:
            raise ConfigurationError(
                "the metrics page cannot listen; choose another metrics.port or metrics.host",
                host=self._host,
                port=self._wanted_port,
                reason=str(error),
            ) from None
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.1,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and end all threads, within a few seconds; may be called again."""
        if self._server and self._thread:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Server(HTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], metrics: Metrics, health: Health) -> None:
        self.metrics = metrics
        self.health = health
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="metrics")
        # The loop that accepts waits here, so that no more is accepted than is being served.
        self._free = threading.BoundedSemaphore(_THREADS)
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        try:
            super().__init__(address, _Handler)
        except OSError:
            self._pool.shutdown()
            raise

    def server_bind(self) -> None:
        """Bind without asking a name server for the host's name, as the parent does."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "lakesplice", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        with self._open_lock:
            self._open.add(request)
        self._pool.submit(self._serve, request, client_address)

    def server_close(self) -> None:
        super().server_close()
        with self._open_lock:
            for request in self._open:
                # Wakes its thread, which may be waiting for a client that says nothing.
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the client went away or was too slow
        finally:
            with self._open_lock:
                self._open.discard(request)
            self.shutdown_request(request)
            self._free.release()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "lakesplice"
    sys_version = ""
    timeout = _REQUEST_SECONDS_MAX

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE, self.server.metrics.page())
            case "/healthz":
                self._judge("alive", self.server.health.why_dead())
            case "/readyz":
                health = self.server.health
                self._judge("ready", health.why_unready(), topics=health.troubles())
            case _:
                pages = {"pages": ["/metrics", "/healthz", "/readyz"]}
                self._answer(HTTPStatus.NOT_FOUND, _JSON, json.dumps(pages).encode())

    do_HEAD = do_GET  # noqa: N815  the parent's name

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the parent's name
        """Log nothing: a scrape every few seconds isn't worth a line."""

    def _judge(self, question: str, reasons: dict[str, str], **told: dict[str, str]) -> None:
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        body = {question: not reasons, "reasons": reasons, **told}
        self._answer(status, _JSON, json.dumps(body).encode() + b"\n")

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

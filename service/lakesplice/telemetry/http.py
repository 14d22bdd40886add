"""The web server: an ASGI application at an address, in a thread of its own.

uvicorn waits forever for a client that sends nothing, so connections have deadlines here. Each
serves one request: there are too few to keep connections open.
"""

from __future__ import annotations

import logging
import socket
import threading
from asyncio import Transport
from collections.abc import Callable
from typing import Self, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from lakesplice.errors import ConfigurationError

_QUEUE = 16
_CONNECTIONS_MAX = 256
_REQUEST_SECONDS_MAX = 5.0
_CONNECTION_SECONDS_MAX = 60.0
_CLOSE_SECONDS_MAX = 2
_RESTART_SECONDS = 1.0
_HEADERS = [("Server", "lakesplice"), ("Connection", "close")]

Unexpected = Callable[[BaseException], None]
"""Reports an error that nobody expected."""


def log_error(error: BaseException) -> None:
    """Report an error in the log."""
    logging.getLogger(__name__).error("the web server failed", exc_info=error)


class WebServer:
    """Serves `app` from `start` to `close`, or as a context manager; port 0 chooses a free port.

    It may be started again after `close`. An error in `app` is answered with 500 and logged. If the
    server itself ends by an error, that is passed to `unexpected`, and it starts again at the same
    port.
    """

    def __init__(
        self, app: ASGIApp, host: str, port: int, unexpected: Unexpected = log_error
    ) -> None:
        self._app = app
        self._unexpected = unexpected
        self._closing = threading.Event()
        self._host = host
        self._wanted_port = port
        self._port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that it listens on; 0 before `start`."""
        return self._port

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen; `ConfigurationError` if the address can't be used. Does nothing if it already
        runs.
        """
        if self._server:
            return
        try:
            listener = _listen(self._host, self._wanted_port)
        except OSError as error:
            raise ConfigurationError(
                "the service's page cannot listen; choose another metrics.port or metrics.host",
                host=self._host,
                port=self._wanted_port,
                reason=str(error),
            ) from None
        self._port = int(listener.getsockname()[1])
        self._closing.clear()
        self._server = _server(self._app)
        self._thread = threading.Thread(
            target=self._serve, args=(listener, self._server), name="web", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening and end all threads, within a few seconds; may be called again.

        A request that blocks on a store is waited for.
        """
        if self._server and self._thread:
            self._closing.set()
            # Read after that: the thread looks whether to close after it has made a new one.
            self._server.should_exit = True
            self._thread.join()
        self._server = self._thread = None
        self._port = 0

    def _serve(self, listener: socket.socket, server: uvicorn.Server) -> None:
        while not self._closing.is_set():
            try:
                with listener if listener.fileno() >= 0 else _listen(self._host, self._port) as at:
                    server.run([at])
                if self._closing.is_set():
                    return
                raise RuntimeError("the web server ended by itself")
            except BaseException as error:  # noqa: BLE001  # uvicorn calls sys.exit, too
                self._unexpected(error)
            self._closing.wait(_RESTART_SECONDS)
            server = self._server = _server(self._app)
        listener.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _ImpatientProtocol(H11Protocol):
    """Closes a connection if its request doesn't arrive in time, or its client doesn't read the
    answer.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as parent
        super().connection_made(transport)
        self.loop.call_later(_REQUEST_SECONDS_MAX, self._require_request)
        self.loop.call_later(_CONNECTION_SECONDS_MAX, transport.abort)

    def _require_request(self) -> None:
        if cast("object | None", self.cycle) is None:
            self.transport.abort()


def _server(app: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_ImpatientProtocol,
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            headers=_HEADERS,
            limit_concurrency=_CONNECTIONS_MAX,
            timeout_graceful_shutdown=_CLOSE_SECONDS_MAX,
        )
    )


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that clients can connect to already; they wait until it is served."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_QUEUE)
    except OSError:
        listener.close()
        raise
    return listener

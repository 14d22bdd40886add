"""A schema registry on this machine, which answers as Confluent's and Apicurio's do, or fails."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = tuple[int, bytes]


def lacking() -> Answer:
    return 404, json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()


@dataclass
class ScriptedRegistry:
    """Answers by path. `first` are statuses that come before, `asked` the paths and authorisations
    of all requests.
    """

    answers: Mapping[str, Any]
    first: list[int] = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def answer(self, path: str, authorisation: str | None) -> Answer:
        self.asked.append((path, authorisation))
        if self.first:
            return self.first.pop(0), b"{}"
        found = self.answers.get(path)
        if found is None:
            return lacking()
        if isinstance(found, tuple):
            return found
        return 200, found if isinstance(found, bytes) else json.dumps(found).encode()


@contextmanager
def serving(
    answers: Mapping[str, Any],
    *,
    first: Sequence[int] = (),
    certificate: tuple[Path, Path] | None = None,
    clients: Path | None = None,
) -> Iterator[ScriptedRegistry]:
    """Serve; with `certificate` (certificate, key) by TLS, with `clients` to those it signed."""
    registry = ScriptedRegistry(answers, list(first))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https" if certificate else "http"
    registry.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    # It looks so often whether it should end; twice a second, unless told otherwise.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

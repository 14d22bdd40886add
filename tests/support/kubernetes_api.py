"""The part of Kubernetes' API that Spark's driver uses: it stores pods, and passes each to the
function that starts it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

NAMESPACE, DRIVER = "cdc", "lake-driver"
Pod = dict[str, Any]


class KubernetesApi:
    """Serves one namespace on this machine. `start` is called with each pod that is created;
    `asked` has the verb and resource of every request.
    """

    def __init__(self, start: Callable[[Pod], None]) -> None:
        self.pods: dict[str, Pod] = {DRIVER: _pod({"metadata": {"name": DRIVER}})}
        self.asked: set[tuple[str, str]] = set()
        self._start = start
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, path: str, body: Pod | None) -> tuple[int, Any]:
        """What a request is answered with."""
        parts = urlsplit(path)
        _, _, resource = parts.path.partition(f"/namespaces/{NAMESPACE}/")
        kind, _, name = resource.partition("/")
        watch = "watch" in parse_qs(parts.query)
        verb = {"GET": "get" if name else "list", "POST": "create", "DELETE": "delete"}
        self.asked.add(("watch" if watch else verb.get(method, method.lower()), kind))
        if watch:
            return 200, None
        if method == "POST" and body is not None:
            if kind == "pods":
                made = self.pods[body["metadata"]["name"]] = _pod(body)
                self._start(made)
                return 201, made
            return 201, body
        if name:
            found = self.pods.get(name)
            return (200, found) if found else (404, {"kind": "Status", "code": 404})
        items = list(self.pods.values()) if kind == "pods" else []
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}

    def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:  # noqa: N805  # nested
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                text = self.rfile.read(length)
                try:
                    body = json.loads(text) if text else None
                except ValueError:
                    body = None
                status, answer = api.answer(self.command, self.path, body)
                sent = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  # its names

        return Handler


def _pod(body: Pod) -> Pod:
    name = body["metadata"]["name"]
    made = {"uid": f"uid-of-{name}", "namespace": NAMESPACE, "resourceVersion": "1"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        **body,
        "metadata": {**body["metadata"], **made},
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }

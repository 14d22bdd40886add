"""The pages for programs: /metrics for Prometheus, /healthz and /readyz for the supervisor; and the
web application that serves them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ExceptionHandler

from lakesplice.telemetry.access import UNTRUSTED, TokenGuard
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import CONTENT_TYPE, Metrics

# These threads do all that blocks. They are few, so that pages can't slow down ingest.
_THREADS = 4
PROBES = ("/healthz", "/readyz")
"""The paths that an orchestrator requests; it has no token."""
_FRESH = {"Cache-Control": "no-store"}


def endpoints(metrics: Metrics, health: Health) -> list[Route]:
    """Return the routes /metrics, /healthz and /readyz; the latter two never wait for a thread."""

    def page(_request: Request) -> Response:
        return Response(metrics.page(), headers=_FRESH, media_type=CONTENT_TYPE)

    async def healthz(request: Request) -> Response:
        return _health_answer(request, "alive", health.why_dead())

    async def readyz(request: Request) -> Response:
        return _health_answer(request, "ready", health.why_unready(), topics=health.troubles())

    return [
        Route("/metrics", page),
        Route(PROBES[0], healthz),
        Route(PROBES[1], readyz),
    ]


def application(
    routes: Sequence[BaseRoute],
    handlers: Mapping[type[Exception], ExceptionHandler] | None = None,
    token: str | None = None,
) -> Starlette:
    """Return the application with these routes; `handlers` answer the errors that they raise. With
    a `token` only the probes are served without it.
    """

    async def explained(_request: Request, error: Exception) -> Response:
        return _error_answer(error, routes)

    guards = [] if token is None else [Middleware(TokenGuard, token=token, probes=PROBES)]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: explained, **(handlers or {})},
        middleware=guards,
        lifespan=_few_threads,
    )
    app.router.redirect_slashes = False
    return app


def _error_answer(error: Exception, routes: Sequence[BaseRoute]) -> Response:
    """Answer a missing path, or a wrong method, in JSON."""
    assert isinstance(error, HTTPException)
    answer: dict[str, object] = {"error": error.detail}
    if error.status_code == HTTPStatus.NOT_FOUND:
        answer["pages"] = [route.path for route in routes if isinstance(route, Route)]
    return JSONResponse(answer, error.status_code, {**_FRESH, **(error.headers or {})})


@asynccontextmanager
async def _few_threads(_app: Starlette) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = _THREADS
    yield


def _health_answer(
    request: Request, question: str, reasons: dict[str, str], **more: dict[str, str]
) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    # Ends with a newline, for people who use curl.
    why = {} if request.scope.get(UNTRUSTED) else {"reasons": reasons, **more}
    body = json.dumps({question: not reasons, **why}) + "\n"
    return Response(body, status, _FRESH, "application/json")

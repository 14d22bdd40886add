"""Everything that the page serves, and how errors are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ExceptionHandler

from lakesplice.apps.service.page.api import API, FRESH, api_routes
from lakesplice.apps.service.page.html import Pages
from lakesplice.apps.service.page.service_answers import ServiceAnswers
from lakesplice.errors import LakespliceError, TableNotFoundError, UsageError
from lakesplice.secrets import masked_text


@dataclass(frozen=True)
class PageRoutes:
    """The routes of the page and of its JSON, and the handlers of a lake's errors, by error
    class.
    """

    routes: list[Route]
    errors: Mapping[type[Exception], ExceptionHandler]


def site(answers: ServiceAnswers) -> PageRoutes:
    """Return everything that is served about a running service."""
    pages = Pages(answers)

    def failed(request: Request, error: Exception) -> Response:
        message, status = masked_text(str(error)), _status(error)
        if request.url.path.startswith(API):
            return JSONResponse({"error": message}, status, FRESH)
        return pages.error(request, message, status)

    return PageRoutes([*pages.routes(), *api_routes(answers)], {LakespliceError: failed})


def _status(error: Exception) -> HTTPStatus:
    match error:
        case UsageError():
            return HTTPStatus.BAD_REQUEST
        case TableNotFoundError():
            return HTTPStatus.NOT_FOUND
    return HTTPStatus.SERVICE_UNAVAILABLE

"""The pages for people: all tables, one table, and errors."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from lakesplice.apps.service.page.answers import HistoryAnswer, LakeAnswer
from lakesplice.apps.service.page.api import number, path_of
from lakesplice.apps.service.page.chart import chart
from lakesplice.apps.service.page.formatting import FILTERS
from lakesplice.apps.service.page.selection import ASCENDING, ATTENTION, Selection
from lakesplice.apps.service.page.service_answers import ServiceAnswers
from lakesplice.apps.service.page.tables import history_of, table_detail
from lakesplice.errors import LakespliceError
from lakesplice.model.driver_status import WORST_FIRST
from lakesplice.secrets import masked_text

_REFRESH_SECONDS = 5
_VERSIONS_SHOWN = 25
_SORTS = {
    ATTENTION: "what needs attention",
    "table": "table",
    "state": "state",
    "real_time": "real-time view",
    "read_optimised": "read-optimised view",
    "lateness": "age against its goal",
    "lag": "records behind",
    "changes": "changes a second",
    "waiting": "waiting changes",
    "dead_letters": "dead letters",
    "rows": "rows",
}
_TEXTS = ("table", "state")
_NO_COLUMN = (ATTENTION, "lateness")


@dataclass(frozen=True)
class Heading:
    """The heading of a column, which is a link that sorts by it."""

    sort: str
    text: str
    query: str
    sorted: str
    kind: str


class Pages:
    """The pages about a running service."""

    def __init__(self, answers: ServiceAnswers) -> None:
        self._answers = answers
        self._templates = Environment(
            loader=PackageLoader("lakesplice.apps.service.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        style, script = _template_text("style.css"), _template_text("live.js")
        # Only this style and this script may run, so the name of a table can't become a script.
        self._policy = (
            "default-src 'none'; connect-src 'self'; img-src data:; form-action 'self';"
            f" base-uri 'none'; frame-ancestors 'none'; style-src '{_hash(style)}';"
            f" script-src '{_hash(script)}'"
        )
        self._everywhere = {
            "style": Markup(style),  # noqa: S704  our own files
            "script": Markup(script),  # noqa: S704
            "refresh_seconds": _REFRESH_SECONDS,
            "states": [state.value for state in WORST_FIRST],
        }

    def routes(self) -> list[Route]:
        """Return the pages' routes. Pages with many tables are sent compressed."""
        compressed = [Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=3)]
        return [
            Route("/", self.overview, middleware=compressed),
            Route("/tables/{database}/{table}", self.table, middleware=compressed),
        ]

    def overview(self, request: Request) -> Response:
        """Show every table that the query selects."""
        overview, selection = self._answers.overview(), Selection.from_query(request.query_params)
        return self._page(
            request,
            "overview.html",
            overview.lake,
            chart=chart(overview.lake.batches),
            selection=selection,
            sorts=_SORTS,
            columns=[_heading(selection, sort) for sort in _SORTS if sort not in _NO_COLUMN],
            rows=selection.of(overview.tables),
            all=len(overview.tables),
        )

    def table(self, request: Request) -> Response:
        """Show one table; blocks on its history."""
        path, before = path_of(request), number(request.query_params, "before")
        detail, problem = table_detail(self._answers, path), ""
        try:
            history = history_of(self._answers, path, _VERSIONS_SHOWN, before)
        except LakespliceError as error:
            # What is in memory can still be shown.
            problem, history = masked_text(str(error)), HistoryAnswer(versions=[], before=None)
        return self._page(
            request,
            "table.html",
            self._answers.overview().lake,
            row=detail.table,
            topics=detail.topics,
            columns=detail.columns,
            schema_version=detail.schema_version,
            history=history,
            problem=problem,
        )

    def error(self, request: Request, error: str, status: HTTPStatus) -> Response:
        """Show why a request failed."""
        lake = self._answers.overview().lake
        return self._page(request, "error.html", lake, status, heading=status.phrase, error=error)

    def _page(
        self,
        request: Request,
        template: str,
        lake: LakeAnswer,
        status: HTTPStatus = HTTPStatus.OK,
        **values: Any,
    ) -> Response:
        live = status is HTTPStatus.OK and request.query_params.get("live") != "off"
        shown = {**self._everywhere, "lake": lake, "live": live, **values}
        headers = {
            "Cache-Control": "no-store",
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        return HTMLResponse(self._templates.get_template(template).render(shown), status, headers)


def _heading(selection: Selection, sort: str) -> Heading:
    order = "ascending" if selection.order == ASCENDING else "descending"
    is_sorted = order if selection.sort == sort else ""
    text = _SORTS[sort][:1].upper() + _SORTS[sort][1:]
    kind = "t" if sort in _TEXTS else "n"
    return Heading(sort, text, selection.sorted_by(sort).query, is_sorted, kind)


def _template_text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

"""The JSON under /api/v1, and the OpenAPI document, which is made from the same list."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakesplice.apps.service.page.answers import (
    Answer,
    HistoryAnswer,
    LakeAnswer,
    TableDetailAnswer,
    TablesAnswer,
)
from lakesplice.apps.service.page.history import VERSIONS_MAX
from lakesplice.apps.service.page.openapi import Operation, Query, document
from lakesplice.apps.service.page.selection import ASCENDING, DESCENDING, SORTS, Selection
from lakesplice.apps.service.page.service_answers import ServiceAnswers
from lakesplice.apps.service.page.tables import history_of, table_detail
from lakesplice.errors import UsageError
from lakesplice.model.driver_status import TopicState

API = "/api/v1"
OPENAPI = f"{API}/openapi.json"
VERSIONS = 50
FRESH = {"Cache-Control": "no-store"}


def _lake(answers: ServiceAnswers, _query: Query, _table: str) -> Answer:
    return answers.overview().lake


def _tables(answers: ServiceAnswers, query: Query, _table: str) -> Answer:
    rows = answers.overview().tables
    return TablesAnswer(tables=Selection.from_query(query).of(rows), all=len(rows))


def _table(answers: ServiceAnswers, _query: Query, table: str) -> Answer:
    return table_detail(answers, table)


def _history(answers: ServiceAnswers, query: Query, table: str) -> Answer:
    limit = number(query, "limit")
    return history_of(answers, table, VERSIONS if limit is None else limit, number(query, "before"))


def number(query: Query, name: str) -> int | None:
    """Return a parameter, None if it isn't given; `UsageError` if it isn't a whole number."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS_MAX):
        raise UsageError(f"{name} must be a whole number", given=text)
    return int(text)


# No version of a log has more digits.
_DIGITS_MAX = 19
_SEARCH = {
    "type": "string",
    "description": "A text that the name, the topic or the reason contains.",
}
_STATE = {"type": "string", "enum": [state.value for state in TopicState]}
_SORT = {"type": "string", "enum": [*SORTS], "default": SORTS[0]}
_ORDER = {"type": "string", "enum": [ASCENDING, DESCENDING]}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": VERSIONS_MAX, "default": VERSIONS}
_BEFORE = {"type": "integer", "minimum": 0, "description": "Only versions before this one."}
_OF_TABLE = f"{API}/tables/{{database}}/{{table}}"

OPERATIONS = (
    Operation(f"{API}/lake", "The state of the service and its lake", LakeAnswer, _lake),
    Operation(
        f"{API}/tables",
        "Every table, and every topic without a table",
        TablesAnswer,
        _tables,
        {"search": _SEARCH, "state": _STATE, "sort": _SORT, "order": _ORDER},
        (HTTPStatus.BAD_REQUEST,),
    ),
    Operation(
        _OF_TABLE,
        "A table with its topics and its schema",
        TableDetailAnswer,
        _table,
        errors=(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
    ),
    Operation(
        f"{_OF_TABLE}/history",
        "The history of a table",
        HistoryAnswer,
        _history,
        {"limit": _LIMIT, "before": _BEFORE},
        (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
    ),
)


def api_routes(answers: ServiceAnswers) -> list[Route]:
    """Return the routes of the JSON; calls that block on the lake run in a small pool of
    threads.
    """
    described = document(OPERATIONS)

    async def openapi(_request: Request) -> Response:
        return JSONResponse(described)

    routes = [Route(one.path, _endpoint(answers, one)) for one in OPERATIONS]
    return [*routes, Route(OPENAPI, openapi)]


def path_of(request: Request) -> str:
    """Return the folder of the table in a request."""
    return f"{request.path_params['database']}/{request.path_params['table']}"


def _endpoint(answers: ServiceAnswers, operation: Operation) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        path = path_of(request) if "table" in request.path_params else ""
        answer = operation.give(answers, request.query_params, path)
        return Response(answer.model_dump_json(), headers=FRESH, media_type="application/json")

    return endpoint

"""The OpenAPI document of operations, from the types of their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic.json_schema import models_json_schema

from lakesplice import __version__
from lakesplice.apps.service.page.answers import Answer, ErrorAnswer
from lakesplice.apps.service.page.service_answers import ServiceAnswers

Query = Mapping[str, str]

_ABOUT = (
    "The state of a running Lakesplice service and its tables; no request changes anything. If "
    "`metrics.token` is set, send it as a bearer token, or as the password of any user."
)


@dataclass(frozen=True)
class Operation:
    """An operation of the API. `give` computes the answer from the query, and from the table's
    folder if the path has one. `parameters` are those of the query, each with its schema.
    """

    path: str
    summary: str
    answer: type[Answer]
    give: Callable[[ServiceAnswers, Query, str], Answer]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    errors: tuple[HTTPStatus, ...] = ()


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document of these operations."""
    listed = list(operations)
    models: list[type[Answer]] = [*(one.answer for one in listed), ErrorAnswer]
    places, schemas = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template="#/components/schemas/{model}",
    )
    shown = {model: place for (model, _), place in places.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lakesplice", "version": __version__, "description": _ABOUT},
        "paths": {one.path: {"get": _operation(one, shown)} for one in listed},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"bearer": []}, {"basic": []}],
    }


def _operation(operation: Operation, shown: dict[type[Any], Any]) -> dict[str, Any]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    in_query = [
        {"name": name, "in": "query", "schema": dict(schema)}
        for name, schema in operation.parameters.items()
    ]
    errors = {
        str(status.value): _answered(status.phrase, shown[ErrorAnswer])
        for status in operation.errors
    }
    return {
        "summary": operation.summary,
        "parameters": [*in_path, *in_query],
        "responses": {"200": _answered(HTTPStatus.OK.phrase, shown[operation.answer]), **errors},
    }


def _answered(phrase: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": phrase, "content": {"application/json": {"schema": schema}}}

"""Asks Kafka Connect about its connectors, by its REST interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import urllib3

from lakesplice.errors import SourceUnavailable

_BYTES_MAX = 64 << 20
_OK = 200
_RETRIES = 1


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector: its class, its state, the states of its tasks, and those of its settings that
    were requested.
    """

    name: str
    kind: str
    state: str
    tasks: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


def connectors(
    url: str, user_info: str | None, wanted: Callable[[str], bool], timeout_seconds: float
) -> list[Connector]:
    """Return the connectors of the worker at an address, in order of name, each with the wanted
    settings: all others, passwords among them, are dropped at once. Blocks.

    `user_info` is `user:password`, if the worker requires them. `SourceUnavailable` if nothing
    answers there, or something other than Connect.
    """
    answer = _connectors_answer(url, user_info, timeout_seconds)
    try:
        return [_connector(name, answer[name], wanted) for name in sorted(answer)]
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceUnavailable(
            "the server that answers isn't Kafka Connect 2.3 or later; correct the address"
        ) from error


def _connector(name: str, fields: Mapping[str, Any], wanted: Callable[[str], bool]) -> Connector:
    config, status = fields["info"]["config"], fields["status"]
    return Connector(
        name,
        str(config.get("connector.class", "")),
        str(status["connector"]["state"]),
        tuple(str(task["state"]) for task in status["tasks"]),
        {key: str(value) for key, value in config.items() if wanted(key)},
    )


def _connectors_answer(
    url: str, user_info: str | None, timeout_seconds: float
) -> Mapping[str, Any]:
    headers = {"Accept": "application/json"}
    if user_info:
        headers |= urllib3.make_headers(basic_auth=user_info)
    address = f"{url.rstrip('/')}/connectors?expand=info&expand=status"
    pool = urllib3.PoolManager(timeout=timeout_seconds, retries=_RETRIES)
    try:
        answer = pool.request("GET", address, headers=headers, preload_content=False)
        body = answer.read(_BYTES_MAX)
        answer.release_conn()
    except urllib3.exceptions.HTTPError as error:
        cause = getattr(error, "reason", None) or error
        raise SourceUnavailable(
            "Kafka Connect doesn't answer; check the address, and that a worker runs there",
            url=url,
            cause=_short(cause),
        ) from error
    if answer.status != _OK:
        raise SourceUnavailable(
            "Kafka Connect refuses; check the address, and its user and password",
            url=url,
            status=answer.status,
        )
    try:
        connectors = json.loads(body)
    except ValueError:
        connectors = None
    if not isinstance(connectors, dict):
        raise SourceUnavailable(
            "the server that answers isn't Kafka Connect 2.3 or later; correct the address", url=url
        )
    return connectors


def _short(cause: object) -> str:
    """What went wrong, without the object that raised it."""
    return str(cause).rpartition(": ")[2][:200]

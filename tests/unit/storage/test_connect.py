"""Requests to Kafka Connect, and which of its answers are accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lakesplice.errors import SourceUnavailable
from lakesplice.storage.connect import Connector, connectors
from tests.support.registry import serving

PATH = "/connectors?expand=info&expand=status"
CLASS = "io.debezium.connector.mysql.MySqlConnector"
CONFIG = {"connector.class": CLASS, "topic.prefix": "shop", "database.password": "hunter2"}
TOLD = {
    "shop-source": {
        "info": {"name": "shop-source", "config": CONFIG},
        "status": {
            "connector": {"state": "RUNNING"},
            "tasks": [{"id": 0, "state": "FAILED", "trace": "Duplicate entry 'a@b.c'"}],
        },
    }
}


def asked(url: str, user_info: str | None = None) -> Sequence[Connector]:
    return connectors(url, user_info, {"topic.prefix"}.__contains__, 5.0)


def test_only_settings_that_are_wanted_are_kept() -> None:
    with serving({PATH: TOLD}) as connect:
        (found,) = asked(f"{connect.url}/", "me:secret")
    assert found == Connector(
        "shop-source", CLASS, "RUNNING", ("FAILED",), {"topic.prefix": "shop"}
    )
    assert "hunter2" not in repr(found)
    assert connect.asked == [(PATH, "Basic bWU6c2VjcmV0")]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, b"{}"), "refuses"),
        ((200, b"<html>"), "isn't Kafka Connect"),
        ([], "isn't Kafka Connect"),
        ({"shop": {}}, "isn't Kafka Connect"),
        ({"shop": "info"}, "isn't Kafka Connect"),
    ],
)
def test_an_answer_that_is_not_from_kafka_connect_is_reported(answer: Any, said: str) -> None:
    with serving({PATH: answer}) as connect, pytest.raises(SourceUnavailable, match=said):
        asked(connect.url)


def test_a_worker_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceUnavailable, match="doesn't answer") as failed:
        asked("http://127.0.0.1:9")
    assert "refused" in str(failed.value.facts["cause"])

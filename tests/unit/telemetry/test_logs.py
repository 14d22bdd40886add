"""Logs: readable by machines, and without secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from lakesplice.errors import StorageError
from lakesplice.telemetry.logs import configure_logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def logged(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_is_one_object_a_line_with_its_facts() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    structlog.get_logger("a").info("batch ended", table="shop.orders", rows=5)
    (event,) = logged(stream)
    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "event": "batch ended",
        "table": "shop.orders",
        "rows": 5,
        "level": "info",
        "logger": "a",
    }


def test_libraries_write_the_same_way_and_talkative_ones_less() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    logging.getLogger("deltalake").warning("odd %s", "thing")
    logging.getLogger("kafka.conn").info("connecting")
    logging.getLogger("py4j").info("command")
    assert [event["event"] for event in logged(stream)] == ["odd thing"]


def test_messages_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    configure_logs("warning", "json", stream)
    structlog.get_logger().info("unimportant")
    structlog.get_logger().warning("important")
    assert [event["event"] for event in logged(stream)] == ["important"]


def test_an_error_of_ours_is_reported_with_its_facts() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    structlog.get_logger().error("commit failed", error=StorageError("disk full", path="a/b"))
    (event,) = logged(stream)
    assert (event["error"], event["error_type"], event["path"]) == (
        "disk full",
        "StorageError",
        "a/b",
    )


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_are_never_logged(form: str) -> None:
    stream = io.StringIO()
    configure_logs("info", form, stream)
    log = structlog.get_logger()
    log.info("options", options={"sasl.password": "hunter2", "deep": [{"token": "hunter2"}]})
    log.info("connecting to http://user:hunter2@host/")
    log.info("jaas", config='Login required username="a" password="hunter2";')
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        log.exception("failed")
    logging.getLogger("library").warning("http://user:hunter2@host")
    assert "hunter2" not in stream.getvalue()
    assert "failed" in stream.getvalue()


def test_configuring_again_replaces_the_stream() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logs("info", "json", first)
    configure_logs("info", "console", second)
    structlog.get_logger().info("here")
    assert not first.getvalue()
    assert second.getvalue().count("here") == 1

"""The endpoints for programs: what they serve, to whom, and how they stop."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from lakesplice.errors import ConfigurationError
from lakesplice.telemetry import http as web
from lakesplice.telemetry.catalogue import TABLE_VERSION
from lakesplice.telemetry.endpoints import application, endpoints
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.http import WebServer
from lakesplice.telemetry.registry import Metrics


class Time:
    """A clock that the test moves."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def health(time: Time) -> Health:
    return Health(10, time, awaited={"tables": "not loaded yet", "query": "not started"})


@pytest.fixture
def server(health: Health) -> Iterator[WebServer]:
    with served(health) as running:
        yield running


def served(health: Health, metrics: Metrics | None = None, port: int = 0) -> WebServer:
    return WebServer(application(endpoints(metrics or Metrics(), health)), "127.0.0.1", port)


def get(server: WebServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_metrics_are_served(health: Health) -> None:
    metrics = Metrics()
    metrics.set(TABLE_VERSION, 7, table="shop.orders")
    with served(health, metrics) as server:
        status, page = get(server, "/metrics?x=1")
    assert status == 200
    assert b'lakesplice_table_version{table="shop.orders"} 7.0' in page


def test_alive_while_the_main_loop_ticks(server: WebServer, health: Health, time: Time) -> None:
    assert get(server, "/healthz")[0] == 200
    time.seconds = 11
    status, body = get(server, "/healthz")
    assert status == 503
    assert json.loads(body)["reasons"] == {"main-loop": "silent for 11.0 s; its deadline is 10 s"}
    health.tick()
    assert get(server, "/healthz")[0] == 200


def test_a_long_step_may_ask_for_a_longer_deadline(health: Health, time: Time) -> None:
    health.tick(100)
    time.seconds = 99
    assert not health.why_dead()
    time.seconds = 101
    assert health.why_dead()


def test_ready_when_nothing_is_awaited(server: WebServer, health: Health, time: Time) -> None:
    status, body = get(server, "/readyz")
    assert status == 503
    assert json.loads(body) == {
        "ready": False,
        "reasons": {"tables": "not loaded yet", "query": "not started"},
        "topics": {},
    }
    health.reached("tables")
    health.reached("query")
    assert get(server, "/readyz") == (200, b'{"ready": true, "reasons": {}, "topics": {}}\n')
    # What one topic meets doesn't make the service unready for the others.
    health.note_troubles({"a.shop.goods": "resting: the disk is full"})
    status, body = get(server, "/readyz")
    assert (status, json.loads(body)["topics"]) == (
        200,
        {"a.shop.goods": "resting: the disk is full"},
    )
    health.expect("query", "restarting")
    assert get(server, "/readyz")[0] == 503
    health.reached("query")
    time.seconds = 11
    assert get(server, "/readyz")[0] == 503


def test_an_unknown_path_is_answered_with_not_found(server: WebServer) -> None:
    assert get(server, "/")[0] == 404
    assert get(server, "/metrics/../etc/passwd")[0] == 404
    assert get(server, "/metrics", "POST")[0] == 405
    assert get(server, "/metrics", "HEAD") == (200, b"")


def test_invalid_records_affect_no_other(server: WebServer) -> None:
    for garbage in (b"\0\xff\n\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9\r\n\r\n", b"A" * 70_000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(garbage)
    assert get(server, "/healthz")[0] == 200


def test_silent_clients_neither_hold_up_others_nor_the_close(health: Health) -> None:
    before = threading.active_count()
    server = served(health)
    server.start()
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(3)]
    assert get(server, "/healthz")[0] == 200
    closing = threading.Thread(target=server.close)
    closing.start()
    closing.join(4)
    assert not closing.is_alive()
    assert threading.active_count() == before
    for client in silent:
        client.close()


def test_a_client_that_sends_no_request_is_disconnected(
    health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "_REQUEST_SECONDS_MAX", 0.05)
    with (
        served(health) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as client,
    ):
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""


@pytest.mark.slow
def test_probes_are_answered_while_every_scrape_is_held_up(health: Health) -> None:
    metrics, may_end = Metrics(), threading.Event()
    metrics.before_page(lambda: assert_set(may_end))
    with served(health, metrics) as server, ThreadPoolExecutor(9) as pool:
        scrapes = [pool.submit(get, server, "/metrics") for _ in range(9)]
        assert get(server, "/healthz")[0] == 200
        may_end.set()
        assert {scrape.result()[0] for scrape in scrapes} == {200}


def assert_set(event: threading.Event) -> None:
    assert event.wait(60)


def test_an_error_is_answered_and_logged_and_affects_no_other(
    health: Health, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()

    def fail() -> None:
        raise ValueError("no such measure")

    metrics.before_page(fail)
    with served(health, metrics) as server:
        assert get(server, "/metrics")[0] == 500
        assert get(server, "/healthz")[0] == 200
    assert "no such measure" in caplog.text


def test_a_closed_server_stops_listening_and_can_be_started_again(health: Health) -> None:
    server = served(health)
    server.start()
    server.start()
    port = server.port
    server.close()
    server.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    server.start()
    assert get(server, "/healthz")[0] == 200
    server.close()


def test_a_port_that_is_taken_is_reported_with_the_setting_to_change(
    server: WebServer, health: Health
) -> None:
    with pytest.raises(ConfigurationError, match=r"metrics\.port"):
        served(health, port=server.port).start()

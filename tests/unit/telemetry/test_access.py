"""The token: without it a client learns only whether the service is alive and ready."""

from __future__ import annotations

from base64 import b64encode

import pytest
from starlette.testclient import TestClient

from lakesplice.telemetry.endpoints import application, endpoints
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import Metrics

TOKEN = "correct horse batterý"


@pytest.fixture
def health() -> Health:
    health = Health(10, awaited={"lake": "another driver has it"})
    health.note_troubles({"a.shop.goods": "parked: it has no key"})
    return health


@pytest.fixture
def client(health: Health) -> TestClient:
    return TestClient(application(endpoints(Metrics(), health), token=TOKEN))


def bearer(token: str) -> dict[bytes, bytes]:
    return {b"Authorization": b"Bearer " + token.encode()}


def basic(token: str, user: str = "anybody") -> dict[bytes, bytes]:
    return {b"Authorization": b"Basic " + b64encode(f"{user}:{token}".encode())}


@pytest.mark.parametrize("headers", [bearer(TOKEN), basic(TOKEN), basic(TOKEN, "")])
def test_a_request_with_the_token_is_served(
    client: TestClient, headers: dict[bytes, bytes]
) -> None:
    assert client.get("/metrics", headers=headers).status_code == 200
    assert client.get("/readyz", headers=headers).json()["topics"] == {
        "a.shop.goods": "parked: it has no key"
    }


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer(TOKEN[:-1]),
        bearer(TOKEN.upper()),
        basic(""),
        basic("", TOKEN),
        {b"Authorization": b"Basic not*base64"},
        {b"Authorization": b"Basic"},
        {b"Authorization": b"Digest " + TOKEN.encode()},
        {b"Authorization": TOKEN.encode()},
    ],
)
def test_a_request_without_the_token_is_asked_for_it(
    client: TestClient, headers: dict[bytes, bytes]
) -> None:
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")
    assert "lakesplice_" not in answer.text
    assert client.get("/nowhere", headers=headers).status_code == 401


def test_a_token_in_the_address_is_ignored(client: TestClient) -> None:
    assert client.get(f"/metrics?token={TOKEN}&access_token={TOKEN}").status_code == 401


def test_a_probe_needs_no_token_and_gives_no_reason_without(
    client: TestClient, health: Health
) -> None:
    assert client.get("/healthz").json() == {"alive": True}
    unready = client.get("/readyz")
    assert (unready.status_code, unready.json()) == (503, {"ready": False})
    health.reached("lake")
    assert client.get("/readyz").status_code == 200

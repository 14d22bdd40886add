"""The page of a real service that waits for its lake, before it starts any engine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakesplice.apps.service import Service
from lakesplice.config import Settings
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.layout import generation_path
from tests.support.waiting import until

TOKEN = "a token of the test"


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[Service]:
    LocalStore(tmp_path).put_new(generation_path(1), b"")  # of a driver that may be alive
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": ".*"},
            "lake": {"root": str(tmp_path)},
            "lease": 60,
            "metrics": {"port": 0, "token": TOKEN},
        }
    )
    service = Service(settings)
    service.begin()
    yield service
    service.stop()


def address(service: Service) -> str:
    until(lambda: bool(service.page_url), "the page's address", poll_seconds=0.01)
    return service.page_url


def get(url: str, token: str | None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=30
        ) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_standbys_page_is_served_only_with_the_token(standby: Service) -> None:
    url = address(standby)
    for path in ("", "metrics", "api/v1/lake", "api/v1/openapi.json", "tables/shop/orders"):
        assert get(f"{url}{path}", None)[0] == 401
    assert get(f"{url}healthz", None)[0] == 200
    status, page = get(url, TOKEN)
    assert status == 200
    assert "another driver has the lake" in page
    assert not json.loads(get(f"{url}api/v1/lake", TOKEN)[1])["drives"]

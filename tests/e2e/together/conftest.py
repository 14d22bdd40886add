"""One service, in a few lives, for all the stories of this folder."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.support.running import Lake
from tests.support.stories import Stage, Told, stories_of
from tests.support.topics import Sender


@pytest.fixture(scope="session")
def told(
    kafka_broker: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Told:
    """All stories of this run, told to their ends."""
    prefix = f"told-{secrets.token_hex(4)}"
    lake = Lake(
        tmp_path_factory.mktemp("together"),
        kafka_broker,
        rf"{prefix}-.*\..*",
        # What others read, base files alone, is whole soon.
        compaction={"deltas_max": 2, "age_max": 1, "poll_seconds": 0.1},
    )
    given = request.config.getoption("--seed")
    seed = secrets.randbelow(2**31) if given is None else int(given)
    stage = Stage(lake, kafka_broker, prefix, Sender(kafka_broker), seed, request.getfixturevalue)
    ours = [item for item in request.session.items if item.path.parent == Path(__file__).parent]
    return Told(stage, stories_of(ours))

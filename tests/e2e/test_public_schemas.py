"""Databases that other projects publish, through the real connector, end in tables that equal them.

All of them: the first test of test_real_chain.py has a small part, for the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.apicurio import Apicurio
from tests.support.public_schemas import PublicSchemas
from tests.support.real_chain import Chain
from tests.support.running import take_in
from tests.support.sources import SourceServer

# Tables that differ from their database by what the connector makes of a value, and why.
_ALWAYS = {"zero_date_fallback_converter.dt_full": "a zero date is sent as its column's DEFAULT"}
_STREAMED = {
    "real_test.REAL_TEST": "a REAL, which is a DOUBLE, is sent as a FLOAT",
    "unsigned_integer_test.dbz_integer_unsigned": "INTEGER UNSIGNED is taken for a signed type",
}

pytestmark = pytest.mark.nightly


@pytest.fixture
def server(mariadb: SourceServer) -> SourceServer:
    """The run's MariaDB."""
    return mariadb


@pytest.mark.parametrize("streamed", [True, False])
def test_public_schemas_arrive_whole(
    server: SourceServer,
    kafka_broker: str,
    schema_registry: Apicurio,
    tmp_path: Path,
    seed: int,
    shared: Callable[..., Path],
    streamed: bool,
) -> None:
    """As changes that are written while the connector reads, or by its snapshot."""
    published = shared("corpora", "databases")
    public = PublicSchemas(server)

    def load() -> None:
        public.run("sakila", published / "sakila-schema.sql", published / "sakila-data.sql")
        for file in sorted((published / "debezium-ddl").iterdir()):
            public.run(file.stem.replace("-", "_").replace(".", "_"), file)

    if not streamed:
        load()
    chain = Chain(server, kafka_broker, schema_registry, tmp_path, seed, only=(), public=public)
    with chain.connect, chain.lake.running() as service:
        if streamed:
            load()
        # The first mark may be a row of the snapshot; what is written after that comes behind it.
        chain.all_sent()
        take_in(service, chain.lake, chain.all_sent())
        service.until(chain.all_spliced, "every change is in its base file")
        service.terminate()
        service.ends_well(120)
    found = chain.public_differences()
    known = _ALWAYS.keys() | (_STREAMED.keys() if streamed else ())
    assert found.keys() == known, "\n".join(map(str, found.items()))

"""`lakesplice declare` against a real MariaDB with a column of every type."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
import yaml

from lakesplice.model.names import TableName
from tests.support.column_types import Typed, every_type
from tests.support.command_line import CommandLine, Ended
from tests.support.service_settings import settings_of
from tests.support.sources import SourceServer
from tests.support.statements import Statements

Declare = Callable[..., Ended]


@pytest.fixture
def server(mariadb: SourceServer) -> SourceServer:
    return mariadb


def exactly(column: Typed) -> pa.DataType:
    """The column's type where nobody tells of a wider one, as schemas do of TINYINT."""
    narrow = column.ddl in ("tinyint", "tinyint(1)")
    return pa.int8() if narrow else column.stored


@pytest.fixture
def declared(lakesplice: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Return a call that says what the command comes to for a database of a server."""

    def declared(
        server: SourceServer, database: str, *options: str, password: str | None = None
    ) -> Ended:
        address = f"mysql://{server.user}@{server.host}:{server.port}/{database}"
        monkeypatch.setenv("MYSQL_PWD", server.password if password is None else password)
        modes = ("--bigint-unsigned-handling-mode", "precise")
        return lakesplice("declare", address, *modes, *options)

    return declared


def test_declare_writes_a_configuration_with_every_type_as_the_connector_sends_it(
    server: SourceServer, declared: Declare
) -> None:
    source = Statements("declared", random.Random(1), server.connect())
    source.create()
    done = declared(server, "declared")
    assert done.code == 0, done.err
    written = yaml.safe_load(done.out)
    settings = settings_of("lake", **written)
    for table in source.tables:
        found = settings.declared(TableName("declared", table.name))
        assert found is not None
        assert {name: type_.type.arrow for name, type_ in found.items()} == {
            column.name: exactly(column) for column in table.columns
        }
    assert len(every_type()) < len(written["tables"][0]["columns"])


def test_tables_are_chosen_by_globs_and_what_has_no_exact_type_is_named(
    server: SourceServer, declared: Declare
) -> None:
    with server.connect().cursor() as cursor:
        cursor.execute("create database odd")
        cursor.execute(
            "create table odd.`a[1]`(id int primary key, place point, wide decimal(65,30))"
        )
        cursor.execute("create table odd.b(id bigint unsigned primary key)")
    done = declared(server, "odd", "--table", "a*")
    assert yaml.safe_load(done.out) == {
        "tables": [{"match": "odd.a[[]1]", "columns": {"id": "int", "place": "geometry"}}]
    }
    assert "a[1].wide: decimal(65,30)" in done.err
    done = declared(server, "odd", "--table", "b", "--bigint-unsigned-handling-mode", "long")
    assert yaml.safe_load(done.out)["tables"][0]["columns"] == {"id": "unsigned_long"}


@pytest.mark.parametrize(
    ("database", "options", "password", "says"),
    [
        ("none", (), None, "or the user lacks SELECT on it"),
        ("mysql", ("--table", "nothing"), None, "or the user lacks SELECT on it"),
        ("mysql", (), "wrong", "doesn't accept the user"),
        ("a/b", (), None, "write the address as mysql://"),
    ],
)
def test_a_failed_query_is_reported_without_the_password(
    server: SourceServer,
    declared: Declare,
    database: str,
    options: tuple[str, ...],
    password: str | None,
    says: str,
) -> None:
    done = declared(server, database, *options, password=password)
    assert done.code != 0
    assert says in done.err
    assert (password or server.password) not in done.err.replace(server.user, "")


def test_a_server_that_is_not_there_is_named(declared: Declare) -> None:
    nobody = SourceServer("127.0.0.1", 1, "somebody", "secret-4711")
    done = declared(nobody, "shop")
    assert done.code == 1
    assert "127.0.0.1" in done.err
    assert "secret-4711" not in done.err

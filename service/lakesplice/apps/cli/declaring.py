"""The command that writes declarations of a source's columns."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from lakesplice.apps.cli.options import PASSWORD, CertificatesOption
from lakesplice.apps.cli.output import json_line
from lakesplice.errors import UsageError

TablesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        help="A table's name, or a glob. May be given several times. Without it all tables.",
    ),
]
DecimalsOption = Annotated[
    Literal["precise", "string", "double"],
    typer.Option("--decimal-handling-mode", help="As at the connector."),
]
UnsignedOption = Annotated[
    Literal["long", "precise"],
    typer.Option("--bigint-unsigned-handling-mode", help="As at the connector."),
]
TimesOption = Annotated[
    Literal[
        "adaptive_time_microseconds",
        "adaptive",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
    ],
    typer.Option("--time-precision-mode", help="As at the connector."),
]
DecimalFormatOption = Annotated[
    Literal["base64", "numeric"],
    typer.Option("--decimal-format", help="As at the connector's JSON converter."),
]


def declare(
    database: Annotated[
        str, typer.Argument(help="mysql://user@host:port/database", show_default=False)
    ],
    tables: TablesOption = None,
    decimals: DecimalsOption = "precise",
    unsigned: UnsignedOption = "long",
    times: TimesOption = "adaptive_time_microseconds",
    decimal_format: DecimalFormatOption = "base64",
    certificates: CertificatesOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON instead of YAML; the service reads either.")
    ] = False,
) -> None:
    """Write declarations for events without schemas, from the database's information_schema.

    The password is taken from MYSQL_PWD. The types are the present ones: they are right only if no
    records from before an ALTER will be read.
    """
    import yaml

    from lakesplice.apps.declarations import declarations
    from lakesplice.formats.events.debezium.ddl_types import ConverterSettings
    from lakesplice.storage.source.database import DatabaseAddress, source_columns

    address = DatabaseAddress.parse(database, os.environ.get(PASSWORD, ""))
    handling = ConverterSettings(decimals, unsigned, times, decimal_format)
    columns = source_columns(address, certificates)
    found = declarations(address.database, columns, tables or (), handling)
    if not found.entries:
        raise UsageError(
            "the database has no such table, or the user lacks SELECT on it",
            database=address.database,
        )
    declared = {"tables": found.entries}
    if as_json:
        typer.echo(json_line(declared))
    else:
        yaml.safe_dump(declared, sys.stdout, sort_keys=False, allow_unicode=True)
    for column in found.untyped:
        typer.echo(f"no exact type; leave it out: {column}", err=True)

"""`lakesplice views`: SQL that shows tables in other engines without deleted rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption, lake_options
from lakesplice.apps.cli.output import JsonOption, json_line
from lakesplice.planning.engine_views.engines import DIALECTS, Engine

if TYPE_CHECKING:
    from lakesplice.planning.engine_views.view_sql import EngineView


def views(
    address: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|LAKE",
            help="A table, or a lake for all its tables: a path or an address.",
            show_default=False,
        ),
    ],
    engine: Annotated[
        Engine, typer.Option("--for", help="The engine that runs the SQL.", show_default=False)
    ],
    location: Annotated[
        str | None,
        typer.Option(
            "--location",
            help="The lake's address as the engine knows it, such as s3://bucket/lake, if it isn't"
            " the one given here.",
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Print SQL with a view for each table, without deleted rows and system columns.

    The SQL also registers the table in the engine, as <table>__base. Nothing is run. A view shows
    the columns that the table has now; run the SQL again after a change of its schema.
    """
    from lakesplice.apps.table_commands.engine_views import engine_views
    from lakesplice.planning.engine_views.view_sql import script

    found = engine_views(address, engine, location, lake_options(config))
    if not as_json:
        typer.echo(script(engine, found), nl=False)
        return
    for view in found:
        typer.echo(json_line(_row(engine, view)))


def _row(engine: Engine, view: EngineView) -> dict[str, object]:
    """A row with the table's statements, preceded by those of the engine in the first row."""
    first = DIALECTS[engine].setup if view.statements else ()
    return {"engine": engine.value} | asdict(view) | {"statements": (*first, *view.statements)}

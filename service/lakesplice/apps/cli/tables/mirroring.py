"""`lakesplice mirror`: lets the Iceberg mirror of a table that is fed by hand follow its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption, TableArgument, lake_options
from lakesplice.apps.cli.output import ResultOption, show_result

if TYPE_CHECKING:
    from lakesplice.apps.library.iceberg_mirror import Mirrored

EXIT_BEHIND = 1


CatalogOption = Annotated[
    list[str],
    typer.Option(
        "--catalog",
        metavar="NAME=VALUE",
        help="A property of the catalog as pyiceberg calls it, such as type=rest. Repeat it for"
        " several. Without any: `iceberg.catalog` of the configuration.",
        show_default=False,
    ),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        help="The Iceberg table's namespace; without it `iceberg.namespace` of the configuration,"
        " or the name of the database's folder.",
        show_default=False,
    ),
]


def mirror(
    table: TableArgument,
    catalog: CatalogOption = [],  # noqa: B006  # typer copies it
    namespace: NamespaceOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Change nothing, and say how far the mirror is behind; the exit code is 1 if it"
            " is.",
        ),
    ] = False,
    end: Annotated[
        bool, typer.Option("--end", help="End the mirror: drop it in the catalog.")
    ] = False,
    as_json: ResultOption = False,
    config: ConfigOption = None,
) -> None:
    """Let an Iceberg table show the base files of a table that is fed by hand.

    The first call creates the Iceberg table, each further one brings it up to the newest version.
    The service does the same for tables of topics (`also: [iceberg]`).
    """
    from lakesplice import Table
    from lakesplice.apps.table_commands.command_table import CommandResult

    properties, space = _catalog_of(catalog, namespace, config)
    opened = Table.open(table, options=lake_options(config))
    if end:
        opened.end_iceberg_mirror(properties, namespace=space)
        show_result(CommandResult("the mirror has ended"), as_json=as_json)
        return
    done = opened.mirror_iceberg(properties, namespace=space, dry_run=check)
    show_result(CommandResult(_text(done, check=check), asdict(done)), as_json=as_json)
    if check and not done.is_current:
        raise typer.Exit(EXIT_BEHIND)


def _catalog_of(
    given: list[str], namespace: str | None, config: Path | None
) -> tuple[Mapping[str, str], str]:
    properties = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise typer.BadParameter("give NAME=VALUE, such as type=rest", param_hint="--catalog")
        properties[name] = value
    if properties or config is None:
        return properties, namespace or ""
    from lakesplice.config import load

    iceberg = load(config).iceberg
    return iceberg.catalog, iceberg.namespace if namespace is None else namespace


def _text(done: Mirrored, *, check: bool) -> str:
    files = f"{done.added} files added, {done.removed} removed"
    if not check:
        begun = f"; it began again, since {done.begun}" if done.begun else ""
        return f"the mirror shows version {done.version}: {files}{begun}"
    if done.begun:
        return f"the mirror must begin, since {done.begun}: {files}"
    if done.is_current:
        return f"the mirror shows version {done.version}"
    lacks = files if done.added or done.removed else "it has other columns"
    return f"the mirror shows version {done.before}, the newest is {done.version}: {lacks}"

"""`lakesplice verify`: whether tables have the rows that their database has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import PASSWORD, CertificatesOption, ConfigOption
from lakesplice.apps.cli.output import JsonOption, json_line, print_table, visible
from lakesplice.apps.cli.progress import progress_bar
from lakesplice.errors import RetryableError, UsageError

if TYPE_CHECKING:
    from lakesplice.apps.verifying.report import Difference, TableReport
    from lakesplice.storage.stores import AnyStore

_COLUMNS = ("table", "outcome", "at_source", "in_lake", "different", "unsettled", "seconds")
_SHOWN_MAX = 20
_NOTE_SECONDS = 120.0
_PER_CENT = 100


def share(text: str | float) -> float:
    """Parse a share of all rows, such as `10%`, as a number up to 1."""
    if not isinstance(text, str):
        return text
    try:
        found = float(text.removesuffix("%")) / (_PER_CENT if text.endswith("%") else 1)
    except ValueError:
        found = 0.0
    if not 0 < found <= 1:
        raise typer.BadParameter(f"{text!r} is no part such as 10%")
    return found


TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables by `database.table`, as globs (*, ?, […]). Without any all of the lake.",
        show_default=False,
    ),
]
QuickOption = Annotated[
    bool,
    typer.Option(
        "--quick", help="Compare CRC32 instead of MD5: about two thirds of the load there."
    ),
]
SampleOption = Annotated[
    float,
    typer.Option(
        "--sample",
        parser=share,
        help="Compare only a part of the rows, such as 10%: another one each day, until all had"
        " their day.",
    ),
]
ValuesOption = Annotated[
    bool, typer.Option("--show-values", help="Show the values that differ, of both sides.")
]
RowsOption = Annotated[
    int,
    typer.Option("--rows", min=1, help="How many differing rows are looked at singly, per table."),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        help="Keep there what is done of one table, instead of in the lake: the command goes on"
        " behind it if it was broken off.",
    ),
]


def verify(
    tables: TablesArgument = None,
    quick: QuickOption = False,
    sample: SampleOption = 1.0,
    values: ValuesOption = False,
    rows: RowsOption = 1_000,
    state: StateOption = None,
    as_json: JsonOption = False,
    certificates: CertificatesOption = None,
    config: ConfigOption = None,
) -> None:
    """Compare tables with their source's database, and say which rows and columns differ.

    Reads the database in small consistent snapshots, without locks and within the bounds of
    `verify` in the configuration, and the lake's real-time view. Changes no row; a running service
    notes the result in the table's history. The password is taken from MYSQL_PWD. The exit code is
    0 if all is equal, 1 if a row is proven to differ, 3 if only unsettled rows differ or a table
    couldn't be compared.
    """
    from lakesplice.apps.cli.options import settings_of
    from lakesplice.apps.verifying.lake_verification import Sources, verify_lake
    from lakesplice.apps.verifying.report import exit_code
    from lakesplice.apps.verifying.verification import Wish
    from lakesplice.storage.stores import open_store

    settings = settings_of(config)
    if settings is None:
        raise UsageError("give the service's --config: it says where lake and database are")
    lake = open_store(settings.lake.address, settings.lake.options)
    sources = Sources(settings, os.environ.get(PASSWORD, ""), certificates)
    wish = Wish(quick=quick, share=sample, rows_max=rows, values=values)
    reports = []
    for report in verify_lake(lake, sources, tables or (), wish, progress_bar, state):
        reports.append(report)
        _note(lake, report)
        if as_json:
            print(json_line(_facts(report)))
    if not as_json:
        print_table([_row(report) for report in reports], _COLUMNS, sys.stdout)
        for report in reports:
            _tell(report)
    raise typer.Exit(exit_code(reports))


def _note(lake: AnyStore, report: TableReport) -> None:
    """Let the running service note in the table's history what was found, if one runs."""
    from lakesplice.apps.table_commands.dispatch import RequestWait, tell_driver
    from lakesplice.apps.table_commands.work import VERIFIED
    from lakesplice.apps.verifying.report import Outcome
    from lakesplice.model.names import TableName

    if report.outcome is Outcome.NOT_COMPARED:
        return
    arguments = report.as_arguments
    name = TableName.from_path(report.folder)
    try:
        tell_driver(lake, name, VERIFIED, arguments, RequestWait(_NOTE_SECONDS))
    except (RetryableError, UsageError) as error:
        typer.echo(f"{report.table}: the history doesn't have this: {error}", err=True)


def _row(report: TableReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "outcome": report.outcome.value,
        "at_source": f"{report.rows_at_source:,}",
        "in_lake": f"{report.rows_in_lake:,}",
        "different": len(report.differences) or None,
        "unsettled": report.unsettled or None,
        "seconds": report.seconds,
    }


def _tell(report: TableReport) -> None:
    """Print what doesn't fit into the table."""
    if report.reason:
        typer.echo(f"{report.table}: {visible(report.reason)}")
    for one in report.differences[:_SHOWN_MAX]:
        typer.echo(f"{report.table}: {_difference(one)}")
    more = len(report.differences) - _SHOWN_MAX
    if more > 0:
        typer.echo(f"{report.table}: {more} more rows differ; --json shows them")
    if report.unexamined:
        typer.echo(f"{report.table}: {report.unexamined} more keys differ (--rows)")
    for name, reason in report.not_compared.items():
        typer.echo(f"{report.table}: column {visible(name)} is not compared: {visible(reason)}")


def _difference(one: Difference) -> str:
    key = ", ".join(f"{visible(name)}={visible(value)}" for name, value in one.key.items())
    words = {
        "missing": "the lake lacks the row",
        "surplus": "the database lacks the row",
        "changed": f"differs in {visible(', '.join(one.columns))}",
    }
    shown = _values(one.columns)
    note = f" ({one.note})" if one.note else ""
    return f"{key}: {words[one.kind.value]}{shown}{note}"


def _values(columns: Mapping[str, tuple[Any, Any]]) -> str:
    shown: Sequence[str] = [
        f"{visible(name)}: database {visible(repr(source))}, lake {visible(repr(lake))}"
        for name, (source, lake) in columns.items()
        if (source, lake) != (None, None)
    ]
    return f"; {'; '.join(shown)}" if shown else ""


def _facts(report: TableReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "source": report.source,
        "outcome": report.outcome.value,
        "reason": report.reason,
        "rows_at_source": report.rows_at_source,
        "rows_in_lake": report.rows_in_lake,
        "differences": [_difference_facts(one) for one in report.differences],
        "unsettled": report.unsettled,
        "unexamined": report.unexamined,
        "not_compared": dict(report.not_compared),
        "binlog": report.place,
        "version": report.version,
        "method": report.method,
        "share": report.share,
        "seconds": report.seconds,
    }


def _difference_facts(one: Difference) -> dict[str, Any]:
    values = {n: {"database": s, "lake": m} for n, (s, m) in one.columns.items() if (s, m) != _NONE}
    return {
        "key": dict(one.key),
        "kind": one.kind.value,
        "columns": list(one.columns),
        "values": values or None,
        "note": one.note,
    }


_NONE = (None, None)

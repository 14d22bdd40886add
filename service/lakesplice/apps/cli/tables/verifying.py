"""`lakesplice verify`: compares tables with the rows in their database."""

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
    from lakesplice.config import Settings
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
        raise typer.BadParameter(f"{text!r} isn't a percentage such as 10%")
    return found


TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables by `database.table`, or patterns (*, ?, […]). By default all tables of the "
        "lake.",
        show_default=False,
    ),
]
QuickOption = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Compare CRC32 instead of SHA-1: about two thirds of the load on the database.",
    ),
]
SampleOption = Annotated[
    float,
    typer.Option(
        "--sample",
        parser=share,
        help="Compare only a part of the rows, such as 10%: each day the next part, until all "
        "were compared.",
    ),
]
ValuesOption = Annotated[
    bool, typer.Option("--show-values", help="Show the differing values of both sides.")
]
RowsOption = Annotated[
    int,
    typer.Option("--rows", min=1, help="How many differing rows to examine one by one, per table."),
]
RepairOption = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Read rows that are proven to differ again, and write them over the table's.",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        help="The file that stores the progress, instead of the lake; for one table only. If the "
        "command was interrupted, it continues from there.",
    ),
]


def verify(
    tables: TablesArgument = None,
    quick: QuickOption = False,
    sample: SampleOption = 1.0,
    values: ValuesOption = False,
    rows: RowsOption = 1_000,
    repair: RepairOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
    certificates: CertificatesOption = None,
    config: ConfigOption = None,
) -> None:
    """Compare tables with their source's database, and show which rows and columns differ.

    Reads the database in small consistent snapshots, without locks and within the bounds of
    `verify` in the configuration, and the lake's real-time view. Changes no row unless --repair is
    given; a running service records the result in the table's history. The password is taken from
    MYSQL_PWD. The exit code is 0 if all rows are equal or repaired, 1 if a row is proven to differ,
    3 if rows are undecided or a table couldn't be compared.
    """
    from lakesplice.apps.cli.options import settings_of
    from lakesplice.apps.verifying.lake_verification import SourceAccess, verify_lake
    from lakesplice.apps.verifying.report import exit_code
    from lakesplice.apps.verifying.verification import VerificationRequest
    from lakesplice.storage.stores import open_store

    settings = settings_of(config)
    if settings is None:
        raise UsageError("give the service's --config: it says where lake and database are")
    lake = open_store(settings.lake.address, settings.lake.options)
    sources = SourceAccess(settings, os.environ.get(PASSWORD, ""), certificates)
    request = VerificationRequest(
        quick=quick, share=sample, rows_max=rows, values=values, repair=repair
    )
    reports = []
    for report in verify_lake(lake, sources, tables or (), request, progress_bar, state):
        _note(lake, report)
        if report.repair is not None:
            report = _repaired(lake, report, settings)
        reports.append(report)
        if as_json:
            print(json_line(_report_fields(report)))
    if not as_json:
        print_table([_row(report) for report in reports], _COLUMNS, sys.stdout)
        for report in reports:
            _print_details(report)
    raise typer.Exit(exit_code(reports))


def _note(lake: AnyStore, report: TableReport) -> None:
    """Let the service, if one is running, record the result in the table's history."""
    from lakesplice.apps.table_commands.dispatch import RequestWait, ask_driver
    from lakesplice.apps.table_commands.work import VERIFIED
    from lakesplice.apps.verifying.report import ComparisonOutcome
    from lakesplice.model.names import TableName

    if report.outcome is ComparisonOutcome.NOT_COMPARED:
        return
    arguments = report.as_arguments
    name = TableName.from_path(report.folder)
    try:
        ask_driver(lake, name, VERIFIED, arguments, RequestWait(_NOTE_SECONDS))
    except (RetryableError, UsageError) as error:
        typer.echo(
            f"{report.table}: the result couldn't be recorded in the history: {error}", err=True
        )


def _repaired(lake: AnyStore, report: TableReport, settings: Settings) -> TableReport:
    """Write the rows that were read again over the table's, by the service if one runs."""
    from dataclasses import replace

    from lakesplice.apps.table_commands.dispatch import RequestWait, results_of_each
    from lakesplice.apps.table_commands.repairing import repair_as_arguments
    from lakesplice.apps.table_commands.work import REPAIR
    from lakesplice.errors import LakespliceError
    from lakesplice.model.names import TableName
    from lakesplice.storage.system import SystemClock
    from lakesplice.table.driver.last_results import keep_result

    rows, name = report.repair, TableName.from_path(report.folder)
    if rows is None or not rows.count:
        return replace(report, not_repaired="no change of a row would mend these")
    arguments, patience = repair_as_arguments(rows), RequestWait()
    done = results_of_each(lake, [name], REPAIR, arguments, patience, settings)[name]
    if isinstance(done, LakespliceError):
        return replace(report, not_repaired=str(done))
    report = replace(report, repaired=rows.count)
    keep_result(lake, report.result(rows.topic, SystemClock().now_ms()))
    return report


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


def _print_details(report: TableReport) -> None:
    """Print the details that don't fit into the printed table."""
    if report.reason:
        typer.echo(f"{report.table}: {visible(report.reason)}")
    if report.repaired:
        typer.echo(f"{report.table}: {report.repaired} rows were repaired")
    if report.not_repaired:
        typer.echo(f"{report.table}: not repaired: {visible(report.not_repaired)}")
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


def _report_fields(report: TableReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "source": report.source,
        "outcome": report.outcome.value,
        "reason": report.reason,
        "rows_at_source": report.rows_at_source,
        "rows_in_lake": report.rows_in_lake,
        "differences": [_difference_facts(one) for one in report.differences],
        "repaired": report.repaired,
        "not_repaired": report.not_repaired,
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

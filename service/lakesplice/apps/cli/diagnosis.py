"""`lakesplice doctor`: what is right, what is wrong and what to change, as a table or as JSON."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.options import PASSWORD, CertificatesOption, ConfigOption, duration
from lakesplice.apps.cli.output import JsonOption, json_line, visible

if TYPE_CHECKING:
    from lakesplice.planning.diagnosis.finding import Finding

EXIT_PROBLEM = 1
_CHECK_CHARS_MAX = 20
_STYLES = {"ok": "green", "unknown": "cyan", "warning": "yellow", "problem": "bold red"}
# The connector's own settings have these names, whatever the configuration says.
_CONNECT, _DATABASE = "LAKESPLICE_DOCTOR__CONNECT_URL", "LAKESPLICE_DOCTOR__DATABASE"

ConnectOption = Annotated[
    str | None,
    typer.Option(
        "--connect", help="Kafka Connect's address, http://host:8083; as doctor.connect_url."
    ),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="The source's server, mysql://user@host:3306, best with the connector's user; as"
        f" doctor.database. The password is taken from {PASSWORD}.",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        parser=duration(5, 3_600),
        help="How long all checks together may take, such as 90s or 5m.",
    ),
]
OnlyWrongOption = Annotated[
    bool,
    typer.Option("--only-wrong", help="Show only problems, warnings and what couldn't be checked."),
]


def doctor(
    config: ConfigOption = None,
    connect: ConnectOption = None,
    database: DatabaseOption = None,
    certificates: CertificatesOption = None,
    timeout: TimeoutOption = 60.0,
    only_wrong: OnlyWrongOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check a set-up: machine, lake, Kafka, topics, records, and the source if its addresses are
    given. Shows what is right, what is wrong and what to change.

    Changes nothing: a probe writes some files into the lake and deletes them. The exit code is 1 if
    there is a problem, 0 if there are only warnings.
    """
    from lakesplice.config import load

    given = {_CONNECT: connect, _DATABASE: database}
    options = {name: value for name, value in given.items() if value is not None}
    settings = load(config, {**os.environ, **options})
    from lakesplice.apps.doctor import Access, examine

    access = Access(os.environ.get(PASSWORD, ""), certificates, timeout)
    if not as_json and sys.stderr.isatty():
        typer.echo("checking machine, lake, Kafka and whatever else is configured …", err=True)
    found = examine(settings, access)
    shown = [one for one in found if one.verdict != "ok" or not only_wrong]
    if as_json:
        for one in shown:
            print(json_line(_row(one)))
    else:
        _print(shown)
        typer.echo(_summary(found), err=True)
        for hint in _not_asked(settings.doctor.connect_url, settings.doctor.database):
            typer.echo(hint, err=True)
    raise typer.Exit(EXIT_PROBLEM if any(one.verdict == "problem" for one in found) else 0)


def _row(one: Finding) -> dict[str, str]:
    return {
        "area": one.area,
        "check": one.check,
        "verdict": one.verdict.value,
        "seen": one.seen,
        "remedy": one.remedy,
    }


def _print(found: Sequence[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=_CHECK_CHARS_MAX)
    table.add_column(overflow="fold")
    area = ""
    for one in found:
        if one.area != area:
            if area:
                table.add_row("", "", "")
            area = one.area
            table.add_row("", Text(area, style="bold underline"), "")
        seen = Text(visible(one.seen))
        if one.remedy:
            seen.append(f"\n→ {visible(one.remedy)}", style="bold")
        verdict = one.verdict.value
        table.add_row(Text(verdict, style=_STYLES[verdict]), Text(visible(one.check)), seen)
    width = shutil.get_terminal_size().columns
    Console(width=width, highlight=False).print(table)


def _summary(found: Sequence[Finding]) -> str:
    counts = Counter(one.verdict.value for one in found)
    return (
        f"{counts['problem']} wrong, {counts['warning']} doubtful, {counts['unknown']} not checked,"
        f" {counts['ok']} right"
    )


def _not_asked(connect: str | None, database: str | None) -> list[str]:
    hints = []
    if connect is None:
        hints.append("not asked: Kafka Connect (--connect http://host:8083)")
    if database is None:
        hints.append("not asked: the source database (--database mysql://user@host:3306)")
    return hints

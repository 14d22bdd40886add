"""The commands by name. Each imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from typing import Annotated, Any

import typer

from lakesplice import __version__
from lakesplice.apps.cli import declaring, diagnosis, inspection, service, splicing
from lakesplice.apps.cli.output import JsonOption, json_line, with_json
from lakesplice.apps.cli.tables import (
    adopting,
    bootstrapping,
    dead_letters,
    editing,
    erasing,
    indexes,
    mirroring,
    optimizing,
    parking,
    pinning,
    resetting,
    upkeep,
    verifying,
)
from lakesplice.apps.cli.tables.showing import explaining, listing, reading, status, views
from lakesplice.errors import ConfigurationError, LakespliceError, UsageError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNSETTLED = 3
EXIT_CODES = {
    0: "done",
    EXIT_FAILED: "failed: no such lake or table, a failing store, a faulty index, a problem that"
    " `doctor` found, a row that `verify` found to differ, a value that `erase` still found, or a"
    " topic whose records `run --once` couldn't write to a table; the message says what to do",
    EXIT_USAGE: "not started, because the command, an argument or the configuration is wrong",
    EXIT_UNSETTLED: "`verify` has no result: rows are undecided, or a table couldn't be compared",
}
# They read whole tables, often beside a service, which should have the processor first.
_YIELDING, _NICENESS = ("bootstrap", "rebuild", "verify"), 10

app = typer.Typer(
    name="lakesplice",
    help="Keeps analytical copies of MySQL tables fresh: change events from Kafka become tables"
    " that any Delta reader opens.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Exit codes: " + "; ".join(f"{code} {what}" for code, what in EXIT_CODES.items()) + ".",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(service.run)
app.command("config")(service.config)
app.command("rules")(service.rules)
app.command("doctor")(diagnosis.doctor)
app.command("demo")(service.demo)
app.command("read")(with_json(reading.read))
app.command("splice")(with_json(splicing.splice))
app.command("adopt")(with_json(adopting.adopt))
app.command("bootstrap")(bootstrapping.bootstrap)
app.command("declare")(declaring.declare)
app.command("explain-key")(explaining.explain_key)
app.command("history")(with_json(listing.history))
app.command("tables")(with_json(listing.tables))
app.command("complete")(listing.complete)
app.command("sql")(editing.sql)
app.command("status")(status.status)
app.command("park")(parking.park)
app.command("unpark")(parking.unpark)
app.command("compact")(upkeep.compact)
app.command("merge")(upkeep.merge)
app.command("optimize")(optimizing.optimize)
app.command("erase")(erasing.erase)
app.command("pin")(pinning.pin)
app.command("pins")(with_json(pinning.pins))
app.command("mirror")(mirroring.mirror)
app.command("unpin")(pinning.unpin)
app.command("purge")(upkeep.purge)
app.command("rebuild")(bootstrapping.rebuild)
app.command("reset")(resetting.reset)
app.command("restore")(upkeep.restore)
app.command("vacuum")(with_json(upkeep.vacuum))
app.command("verify")(verifying.verify)
app.command("views")(views.views)
app.add_typer(indexes.app, name="index")
app.add_typer(inspection.app, name="inspect")
app.add_typer(dead_letters.app, name="dlq")


def _version_option(wanted: bool) -> None:
    if wanted:
        show_version()
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version_option, is_eager=True, help="Show the version, and exit."
        ),
    ] = False,
) -> None:
    """Options of every command; `main` itself looks for `--debug`."""


@app.command("version")
def show_version(as_json: JsonOption = False) -> None:
    """Show the version of Lakesplice."""
    typer.echo(json_line({"version": __version__}) if as_json else f"lakesplice {__version__}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; always ends by `SystemExit` with one of the exit codes above. Without
    `arguments` they are the process's, whose priority a command may lower.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if (
        arguments is None
        and next((one for one in given if not one.startswith("-")), "") in _YIELDING
    ):
        os.nice(_NICENESS)
    try:
        command_line(given[0] if given else "")(given, prog_name="lakesplice")
    except LakespliceError as error:
        usage = isinstance(error, ConfigurationError | UsageError)
        _fail(str(error), EXIT_USAGE if usage else EXIT_FAILED, given)
    except Exception as error:  # the outermost edge: a defect is reported, not dumped
        message = f"this is a bug in Lakesplice: {type(error).__name__}: {error}"
        _fail(f"{message}; --debug shows the traceback", EXIT_FAILED, given)


@cache
def command_line(first: str) -> Callable[..., Any]:
    """Return the command line for arguments that begin with `first`; call it with all of them.

    If that is the name of a command, no other command is built: building each one's options takes
    longer than most commands last.
    """
    chosen = copy(app)
    chosen.registered_commands = [one for one in app.registered_commands if one.name == first]
    chosen.registered_groups = [one for one in app.registered_groups if one.name == first]
    named = chosen.registered_commands or chosen.registered_groups
    return typer.main.get_command(chosen if named else app)


def _fail(message: str, code: int, arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--debug"]:
        traceback.print_exc(file=sys.stderr)
    print(f"lakesplice: {message}", file=sys.stderr)
    sys.exit(code)

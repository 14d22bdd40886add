"""Arguments and options that several commands share, and how their texts are parsed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from lakesplice.errors import UsageError
from lakesplice.model.offsets import Offset, PartitionOffset

if TYPE_CHECKING:
    from lakesplice.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="LAKESPLICE_CONFIG",
        help="The YAML file with the service's settings, which LAKESPLICE_… variables override."
        " Its `lake.options` say how to reach a lake in a bucket.",
        show_default=False,
    ),
]


def with_options_of(options: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of its parameter `options`, an option for each field of the
    dataclass.
    """
    types = get_type_hints(options, include_extras=True)
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=types[one.name],
        )
        for one in fields(options)
    ]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        described = inspect.signature(command, eval_str=True)
        own = [one for name, one in described.parameters.items() if name != "options"]

        @wraps(command)
        def with_options(**given: Any) -> None:
            found = {one.name: given.pop(one.name) for one in parameters}
            command(**given, options=options(**found))

        with_options.__signature__ = described.replace(  # type: ignore[attr-defined]  # of functions
            parameters=[*own, *parameters]
        )
        return with_options

    return decorated


def settings_of(config: Path | None) -> Settings | None:
    """Return the settings of the given file; None if none was given."""
    from lakesplice.config import load

    return None if config is None else load(config)


def lake_options(config: Path | None) -> Mapping[str, str]:
    """Return how the lake's store is reached: `lake.options` of the file and the environment."""
    from lakesplice.config import lake_options as of_settings

    return of_settings(config)


def duration(least: float, most: float, unit: float = 1.0) -> Callable[[str | float], float]:
    """Return a parser of durations such as `90s`, `1h30m`, or a bare number of `unit` seconds each;
    the result is in seconds.

    It raises `typer.BadParameter` for any other text, and for a value that isn't between `least`
    and `most`. An option's default, a number, is returned unchanged.
    """

    def read(given: str | float) -> float:
        if not isinstance(given, str):
            return given
        # The settings take a while to import, and help needs none.
        from lakesplice.config.quantities import duration_text

        seconds = _seconds(given, unit)
        if not (math.isfinite(seconds) and least <= seconds <= most):
            bounds = f"{duration_text(least)} to {duration_text(most)}"
            raise typer.BadParameter(f"{given!r} is out of range; allowed: {bounds}")
        return seconds

    read.__name__ = "duration"  # what help shows in the value's place
    return read


def parse_offset(text: str) -> PartitionOffset:
    """Parse `partition:offset`; `UsageError` for any other text."""
    partition, _, offset = text.partition(":")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise UsageError("write offsets as partition:offset, such as 0:1234", given=text)
    return PartitionOffset(int(partition), Offset(int(offset)))


def _seconds(text: str, unit: float) -> float:
    from lakesplice.config.quantities import DURATION_HINT, seconds_of

    try:
        return float(text) * unit
    except ValueError:
        pass
    try:
        return seconds_of(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} isn't a duration; write {DURATION_HINT}") from None


TableArgument = Annotated[
    str,
    typer.Argument(
        help="The table: <lake>/<database>/<table>, a path or an address.", show_default=False
    ),
]
LakeArgument = Annotated[
    str, typer.Argument(help="The lake's folder, a path or an address.", show_default=False)
]
OnlyTablesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tables",
        help="Only tables whose `database.table` matches this pattern (*, ?, […]). May be given"
        " several times.",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="The version that was the newest at a moment, such as 2026-11-22T08:00:00Z.",
    ),
]
PinOption = Annotated[
    str | None, typer.Option("--pin", help="The version that is pinned under this name.")
]
AtOffsetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at-offset",
        help="The version with exactly the records before these offsets, as partition:offset; give"
        " it for each partition.",
    ),
]

WAIT_SECONDS = 600.0
LONGEST_SECONDS = 36_500 * 86_400.0
WaitOption = Annotated[
    float,
    typer.Option(
        "--wait",
        parser=duration(1, 3_600),
        help="How long to wait for a driver's answer, such as 90s or 10m.",
    ),
]

PASSWORD = "MYSQL_PWD"  # noqa: S105  # the name of a variable, as MySQL's own clients have it
CertificatesOption = Annotated[
    str | None,
    typer.Option(
        "--ssl-ca",
        help="File of trusted certificates, by which the server must identify itself.",
    ),
]

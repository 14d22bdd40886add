"""Commands around the service: run it, show its configuration, see it work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption


def run(
    config: ConfigOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take everything that is there now, then exit.")
    ] = False,
) -> None:
    """Run the service: read changes from Kafka into the tables of the lake."""
    from lakesplice.config import load

    settings = load(config)
    from lakesplice.apps.service import run as run_service

    raise typer.Exit(run_service(settings, once=once))


def config(
    config: ConfigOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Show the JSON schema of the file instead.")
    ] = False,
) -> None:
    """Show the settings in effect, each with what it is for; secrets are masked."""
    import json

    from lakesplice.config import load
    from lakesplice.config.printing import as_yaml, json_schema

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
    else:
        typer.echo(as_yaml(load(config)), nl=False)


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the demo keeps its lake and its broker.")
    ] = Path("lakesplice-demo"),
    seconds: Annotated[
        int, typer.Option("--seconds", min=5, max=86_400, help="How long changes are made.")
    ] = 60,
    rate: Annotated[
        int, typer.Option("--rate", min=1, max=100_000, help="Changes made per second.")
    ] = 300,
) -> None:
    """Watch a small shop's changes become tables: a real Kafka, the service, both views."""
    from lakesplice.apps.demo import run as run_demo

    raise typer.Exit(run_demo(folder, seconds, rate))

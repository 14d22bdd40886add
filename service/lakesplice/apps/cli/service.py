"""Commands about the service: run it, show its configuration, try it."""

from __future__ import annotations

import gc
import signal
from pathlib import Path
from typing import Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption, settings_of


def run(
    config: ConfigOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read all records that exist now, then exit.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write log lines as JSON, whatever `logging.format` is.")
    ] = False,
) -> None:
    """Run the service: read changes from Kafka into the tables of the lake."""
    from lakesplice.config import load

    settings = load(config)
    if as_json:
        settings = settings.model_copy(
            update={"logging": settings.logging.model_copy(update={"format": "json"})}
        )
    from lakesplice.apps.service_session import begin_jvm

    # Until the service handles it: nothing of Java's start may stay behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    jvm = begin_jvm(settings)
    # Java and these imports take seconds each. What they make stays, so no collection visits it.
    gc.disable()
    from lakesplice.apps.service import run as run_service

    gc.freeze()
    gc.enable()
    raise typer.Exit(run_service(settings, once=once, jvm=jvm))


def config(
    config: ConfigOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Show the JSON schema of the file instead.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the settings as one JSON object.")
    ] = False,
) -> None:
    """Show the settings in effect, each with its purpose. Secrets are masked."""
    import json

    from lakesplice.config import load
    from lakesplice.config.printing import as_values, as_yaml, json_schema

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
    elif as_json:
        typer.echo(json.dumps(as_values(load(config))))
    else:
        typer.echo(as_yaml(load(config)), nl=False)


def rules(
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON instead of YAML; Prometheus reads either.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Write alert rules for Prometheus, whose thresholds follow the settings of a file.

    Without `--config` they follow the default settings.
    """
    from lakesplice.apps.alert_rules import alert_rules

    written = alert_rules(settings_of(config))
    typer.echo(_as_json(written) if as_json else written, nl=as_json)


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", help="The folder for the demo's lake and broker.")
    ] = Path("lakesplice-demo"),
    seconds: Annotated[
        int,
        typer.Option(
            "--seconds", min=5, max=86_400, help="How many seconds the demo makes changes."
        ),
    ] = 60,
    rate: Annotated[
        int, typer.Option("--rate", min=1, max=100_000, help="How many changes per second.")
    ] = 300,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Start a MariaDB, a Kafka and a Debezium connector to write into, and keep them"
            " and the service running until Ctrl-C. --seconds and --rate have no effect.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Write the comparison as JSON, or with --serve all addresses; all words go to"
            " stderr.",
        ),
    ] = False,
) -> None:
    """Show a small shop's changes becoming tables, with a real Kafka, the service and both
    views.
    """
    from lakesplice.apps.demo import run as run_demo
    from lakesplice.apps.demo import serve as serve_demo

    if serve:
        raise typer.Exit(serve_demo(folder, as_json=as_json))
    raise typer.Exit(run_demo(folder, seconds, rate, as_json=as_json))


def _as_json(written: str) -> str:
    import json

    import yaml

    return json.dumps(yaml.safe_load(written))

"""`--config`: how a command reaches a lake, as the service does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lakesplice.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="LAKESPLICE_CONFIG",
        help="The YAML file with the service's settings; LAKESPLICE_… variables come on top. A"
        " command reaches a lake by its `lake.options`.",
        show_default=False,
    ),
]


def settings_of(config: Path | None) -> Settings | None:
    """Return the settings of the file that was named; None if none was."""
    from lakesplice.config import load

    return None if config is None else load(config)


def lake_options(config: Path | None) -> Mapping[str, str]:
    """Return how the store of a lake is reached: `lake.options` of the file and the environment."""
    from lakesplice.config import lake_options as of_settings

    return of_settings(config)

"""Settings of what the service reports: metrics, alerts and log messages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakesplice.config.options import Options
from lakesplice.config.sections.section import SECRET_CHARS_MIN, Secret, Section


class MetricsSettings(Section):
    """The page with its JSON, /metrics, /healthz and /readyz."""

    enabled: bool = Field(default=True, description="Whether to serve the page.")
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        max_length=255,
        description="Address to listen on; 0.0.0.0 lets other machines read the page.",
    )
    port: int = Field(
        default=9_464, ge=0, le=65_535, description="Port to listen on; 0 takes a free one."
    )
    token: Secret = Field(
        default=None,
        min_length=SECRET_CHARS_MIN,
        max_length=1_000,
        repr=False,
        description="The token that a client must send for every address except /healthz and"
        " /readyz: as a bearer token, or as the password of any user. At least"
        f" {SECRET_CHARS_MIN} characters, drawn at random. Best set by the environment variable."
        " Without it everybody who can connect may read everything.",
    )


class AlertSettings(Section):
    """What `lakesplice rules` writes beside the thresholds that follow from other settings."""

    objective: float = Field(
        default=0.99,
        ge=0.95,
        le=0.9999,
        description="The share of 30 days in which each view of a table is to keep its freshness"
        " goal. The rest is the error budget; alerts are raised if it is used up too fast.",
    )
    runbooks: str = Field(
        default="docs/operations.md",
        min_length=1,
        max_length=2_000,
        description="Where the operations page can be read, such as an address of the built"
        " documentation. The `runbook_url` of each alert is this and the anchor of a section.",
    )


class LoggingSettings(Section):
    """What the service writes to its standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest level of messages that are written."
    )
    format: Literal["console", "json"] = Field(
        default="console",
        description="`console` for people, `json` for programs: one object per line.",
    )


class TracingSettings(Section):
    """Traces of batches, commits and compactions, for a collector of OpenTelemetry."""

    endpoint: str | None = Field(
        default=None,
        min_length=1,
        max_length=2_000,
        pattern=r"^https?://",
        description="Where traces are sent by OTLP over HTTP, such as"
        " http://collector:4318/v1/traces. Without it nothing is traced.",
    )
    headers: Options = Field(
        default=Options(),
        description="Headers of each request to the collector, such as `authorization`.",
    )
    share: float = Field(
        default=1.0, ge=0.0, le=1.0, description="The share of batches and compactions to trace."
    )

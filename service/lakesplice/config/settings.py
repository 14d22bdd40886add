"""The settings: every one with its type, its bounds, its default and what it is for."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator

from lakesplice.config.options import Options
from lakesplice.config.quantities import Bytes, Seconds
from lakesplice.config.section import DAY, Section
from lakesplice.config.upkeep import LogSettings, MergeSettings, VacuumSettings
from lakesplice.errors import ConfigurationError
from lakesplice.model.formats import FormatName
from lakesplice.model.names import TableName
from lakesplice.planning.retention import RETENTION_SECONDS_MIN

if TYPE_CHECKING:
    from lakesplice.formats.events.declared import DeclaredType

_SERVER = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_MEMORY = re.compile(r"[1-9]\d{0,6}[mg]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_OBJECT_STORES = frozenset(("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"))

# Lakesplice decides these itself; another value would break what it promises.
_OWN_KAFKA_OPTIONS = {
    "bootstrap.servers": "set kafka.bootstrap_servers",
    "group.id": "offsets are kept in the tables, no group is used",
    "enable.auto.commit": "offsets are kept in the tables",
    "auto.offset.reset": "a table starts at its topic's beginning and then at its own offsets",
    "isolation.level": "always read_committed",
    "key.deserializer": "records are read as bytes",
    "value.deserializer": "records are read as bytes",
}
_OWN_SPARK_OPTIONS = {
    "spark.master": "set spark.master as a setting of its own: `spark: {master: ...}`",
    "spark.driver.memory": "set spark.driver_memory",
}


def _pattern(value: object) -> object:
    if value == "":
        raise ValueError("an empty pattern matches nothing")
    try:
        return re.compile(value) if isinstance(value, str) else value
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None


Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]


class KafkaSettings(Section):
    """Where changes come from."""

    bootstrap_servers: str = Field(
        description="Brokers to start from: `host:port`, several separated by commas.",
        max_length=10_000,
    )
    topic_pattern: Pattern = Field(
        description="Regular expression that the whole name of a topic must match to be read;"
        " the name's last two parts, separated by dots, are the table's database and name.",
    )
    starting: Literal["earliest"] = Field(
        default="earliest",
        description="Where a new table starts in its topic; a whole copy needs the beginning.",
    )
    offsets_per_batch_max: int = Field(
        default=200_000,
        ge=1,
        le=100_000_000,
        description="Most records a batch takes from all topics together, in records.",
    )
    topic_poll_seconds: Seconds = Field(
        default=30.0,
        ge=0.1,
        le=3_600.0,
        description="How often to look for new topics that match.",
    )
    request_timeout_seconds: Seconds = Field(
        default=30.0,
        ge=1.0,
        le=600.0,
        description="How long to wait for an answer of Kafka before the request counts as failed.",
    )
    options: Options = Field(
        default=Options(),
        description="Client options of Kafka by their own names, such as `security.protocol` or"
        " `sasl.jaas.config`; secrets among them are masked wherever settings are printed.",
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _servers(cls, value: str) -> str:
        for server in value.split(","):
            match = _SERVER.fullmatch(server.strip())
            if not match or not 1 <= int(match[2]) <= 65_535:
                raise ValueError("must be host:port, or several separated by commas")
        return ",".join(server.strip() for server in value.split(","))

    @field_validator("options")
    @classmethod
    def _not_ours(cls, value: Options) -> Options:
        for name in value:
            if name.startswith("kafka."):
                raise ValueError(
                    f"write {name} without its first part: {name.removeprefix('kafka.')}"
                )
            if name in _OWN_KAFKA_OPTIONS:
                raise ValueError(f"{name} cannot be set here: {_OWN_KAFKA_OPTIONS[name]}")
        return value


class LakeSettings(Section):
    """Where tables go."""

    root: str = Field(
        min_length=1,
        max_length=4_096,
        description="Where the lake is: a folder, or an address in an object store such as"
        " `s3://bucket/lake`; a table appears at `<root>/<database>/<table>`."
        " A relative path starts at the folder the command is run in.",
    )
    options: Options = Field(
        default=Options(),
        description="How to reach the object store, under the names Delta Lake's writers use, such"
        " as `aws_region` or `aws_endpoint`. What isn't given, credentials above all, comes from"
        " the environment or the machine's role.",
    )

    @field_validator("root")
    @classmethod
    def _reachable(cls, value: str) -> str:
        path = value.removeprefix("file://")
        if "\0" in path or not path:
            raise ValueError("must be a folder or an address")
        scheme = _SCHEME.match(path)
        if scheme and scheme[0].removesuffix("://") not in _OBJECT_STORES:
            known = ", ".join(sorted(_OBJECT_STORES))
            raise ValueError(f"no such storage; a folder, or an address of {known}")
        return path

    @property
    def address(self) -> str:
        """The lake's address, a folder's being absolute."""
        if _SCHEME.match(self.root):
            return self.root
        return str(Path(self.root).expanduser().absolute())


class CompactionSettings(Section):
    """When deltas are spliced into their base files; a table is due past any threshold."""

    threads: int = Field(
        default=2, ge=1, le=64, description="Tables compacted at the same time, in threads."
    )
    tasks_max: int = Field(
        default=4,
        ge=1,
        le=1_024,
        description="Most rewrites running at once over all tables, in tasks.",
    )
    deltas_max: int = Field(
        default=20, ge=1, le=10_000, description="Deltas that may wait in a table, in files."
    )
    bytes_max: Bytes = Field(
        default=128 * 2**20, ge=1, le=2**40, description="Bytes of deltas that may wait in a table."
    )
    age_max: Seconds = Field(
        default=1_800.0,
        ge=0.1,
        le=30 * DAY,
        description="How long a change may wait before the read-optimised view must show it.",
    )
    ratio_max: float = Field(
        default=0.1,
        gt=0,
        le=100,
        description="Waiting changes that a table may have per row of its base files, as a ratio.",
    )
    changes_per_page_min: float = Field(
        default=200.0,
        gt=0,
        le=1_000_000,
        description="Waiting changes per touched page (of 4096 rows) that make a rewrite worth it.",
    )
    back_pressure_deltas: int = Field(
        default=200,
        ge=2,
        le=100_000,
        description="Waiting deltas at which a table's ingest pauses until they are fewer.",
    )
    poll_seconds: Seconds = Field(
        default=5.0, ge=0.05, le=3_600.0, description="How often to look for tables that are due."
    )


class IndexSettings(Section):
    """The row index."""

    runs_max: int = Field(
        default=8, ge=1, le=64, description="Runs a table's index may have before they are merged."
    )


class MetricsSettings(Section):
    """The page with /metrics, /healthz and /readyz."""

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


class SparkSettings(Section):
    """The Spark session of the driver."""

    master: str = Field(
        default="local[*]", min_length=1, max_length=1_000, description="Spark master URL."
    )
    driver_memory: str = Field(
        default="2g",
        description="Heap of the driver's JVM, such as 512m or 4g.",
    )
    options: Options = Field(
        default=Options(),
        description="Spark properties by their own names, such as `spark.ui.port`.",
    )
    jars_dir: str | None = Field(
        default=None,
        max_length=4_096,
        description="Folder of the fetched jars; without it the user's cache folder.",
    )

    @field_validator("driver_memory")
    @classmethod
    def _memory(cls, value: str) -> str:
        if not _MEMORY.fullmatch(value):
            raise ValueError("must be a whole number and its unit, such as 512m or 4g")
        return value

    @field_validator("options")
    @classmethod
    def _not_ours(cls, value: Options) -> Options:
        for name in value:
            if not name.startswith("spark."):
                raise ValueError(f"{name} is no Spark property; they start with spark.")
            if name in _OWN_SPARK_OPTIONS:
                raise ValueError(f"{name} cannot be set here: {_OWN_SPARK_OPTIONS[name]}")
        return value


class LoggingSettings(Section):
    """What the service writes to its standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least important messages that are written."
    )
    format: Literal["console", "json"] = Field(
        default="console",
        description="`console` for people, `json` for machines: one object a line.",
    )


def _declared(columns: Options) -> dict[str, DeclaredType]:
    # The decoder takes a while to import and most configurations declare nothing.
    from lakesplice.formats.events.declared import declare

    try:
        return declare(columns)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def _is_regex(match: str) -> bool:
    return len(match) > 1 and match.startswith("/") and match.endswith("/")


class TableSettings(Section):
    """What the events of some tables don't say themselves, and what is to be otherwise for them."""

    match: str = Field(
        min_length=1,
        max_length=10_000,
        description="Tables meant, by `database.table`: a glob such as `shop.order_*`, or a regular"
        " expression between slashes such as `/shop\\.(orders|items)/`. The first entry that"
        " matches counts.",
    )
    format: FormatName | None = Field(
        default=None,
        description="Format of the change events; without it, it is told from the records.",
    )
    columns: Options = Field(
        default=Options(),
        description="Types of the columns where events don't say them, such as `id: bigint`.",
    )
    retention: Seconds | None = Field(
        default=None,
        ge=RETENTION_SECONDS_MIN,
        le=3_650 * DAY,
        description="How long old versions of these tables stay readable; `log.retention` without"
        " it.",
    )

    @field_validator("match")
    @classmethod
    def _compiles(cls, value: str) -> str:
        if _is_regex(value):
            _pattern(value[1:-1])
        return value

    @field_validator("columns")
    @classmethod
    def _declares(cls, value: Options) -> Options:
        if value:
            _declared(value)
        return value

    def matches(self, table: TableName) -> bool:
        """Whether the entry is about `table`."""
        if _is_regex(self.match):
            return re.fullmatch(self.match[1:-1], str(table)) is not None
        return fnmatch.fnmatchcase(str(table), self.match)


class Settings(Section):
    """The whole configuration of the service."""

    kafka: KafkaSettings
    lake: LakeSettings
    trigger: Seconds = Field(
        default=300.0,
        ge=0.05,
        le=DAY,
        description="Time from the start of one batch to the start of the next.",
    )
    stop_timeout: Seconds = Field(
        default=60.0,
        ge=0,
        le=3_600.0,
        description="How long a running batch may go on after SIGTERM before it is dropped whole.",
    )
    compaction: CompactionSettings = CompactionSettings()
    log: LogSettings = LogSettings()
    merge: MergeSettings = MergeSettings()
    vacuum: VacuumSettings = VacuumSettings()
    index: IndexSettings = IndexSettings()
    metrics: MetricsSettings = MetricsSettings()
    spark: SparkSettings = SparkSettings()
    logging: LoggingSettings = LoggingSettings()
    tables: tuple[TableSettings, ...] = Field(
        default=(),
        max_length=10_000,
        description="What the events of some tables don't say: `match` names the tables, `format`"
        " is what the events are written in, `columns` the columns' types (docs/formats.md).",
    )

    def table(self, name: TableName) -> TableSettings | None:
        """Return the first entry of `tables` that matches, or None."""
        return next((entry for entry in self.tables if entry.matches(name)), None)

    def retention(self, name: TableName) -> float:
        """Return how long old versions of a table stay readable, in seconds."""
        entry = self.table(name)
        given = None if entry is None else entry.retention
        return self.log.retention if given is None else given

    def declared(self, name: TableName) -> dict[str, DeclaredType] | None:
        """Return the column types declared for a table, or None where none are."""
        entry = self.table(name)
        return _declared(entry.columns) if entry and entry.columns else None

    def format(self, name: TableName) -> FormatName | None:
        """Return the format stated for a table's events, or None where it is told from them."""
        entry = self.table(name)
        return entry.format if entry else None

    def with_lake(self, root: Path | str) -> Self:
        """Return the same settings for another lake."""
        return self.model_copy(update={"lake": LakeSettings(root=str(root))})

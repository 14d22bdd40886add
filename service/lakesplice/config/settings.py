"""All settings, each with its type, bounds, default and purpose."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, field_validator, model_validator

from lakesplice.config.options import Options
from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.dead_letters import DeadLetterSettings
from lakesplice.config.sections.doctor import DoctorSettings
from lakesplice.config.sections.freshness import FreshnessSettings
from lakesplice.config.sections.iceberg import IcebergSettings
from lakesplice.config.sections.kafka import KafkaSettings
from lakesplice.config.sections.schema_changes import SchemaChangeSettings, policy_of
from lakesplice.config.sections.schema_registry import SchemaRegistrySettings
from lakesplice.config.sections.schema_topics import SchemaChangeTopicSettings
from lakesplice.config.sections.section import DAY, Section
from lakesplice.config.sections.shaping import (
    MaskingSettings,
    MetadataSettings,
    ShapeSettings,
    check_own_names,
    shape_of,
)
from lakesplice.config.sections.tables import TableSettings, declared_types
from lakesplice.config.sections.upkeep import (
    ClusterSettings,
    CompactionSettings,
    IndexSettings,
    LogSettings,
    MergeSettings,
    PurgeSettings,
    VacuumSettings,
)
from lakesplice.config.sections.verifying import VerifySettings
from lakesplice.config.sections.watching import (
    AlertSettings,
    LoggingSettings,
    MetricsSettings,
    TracingSettings,
)
from lakesplice.model.choices import FormatName, MissingOffsets, NotInserts
from lakesplice.model.driver_status import LEASE_SECONDS, LEASE_SECONDS_MAX, FreshnessGoal
from lakesplice.model.names import TableName
from lakesplice.planning.schema.policy import PartialImages, SchemaPolicy

if TYPE_CHECKING:
    from lakesplice.formats.events.values.declared_types import DeclaredType
    from lakesplice.planning.shape.shaping import Shape

_MEMORY = re.compile(r"[1-9]\d{0,6}[mg]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_OBJECT_STORES = frozenset(("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"))

# Lakesplice decides these itself.
_OWN_SPARK_OPTIONS = {
    "spark.master": "set spark.master as a setting of its own: `spark: {master: ...}`",
    "spark.driver.memory": "set spark.driver_memory",
}


class LakeSettings(Section):
    """Where tables are stored."""

    root: str = Field(
        min_length=1,
        max_length=4_096,
        description="Where the lake is: a folder, or an address in an object store such as"
        " `s3://bucket/lake`. Tables are at `<root>/<database>/<table>`. A relative"
        " path starts at the folder in which the command is run.",
    )
    options: Options = Field(
        default=Options(),
        description="How to reach the object store, under the names that delta-rs uses, such as"
        " `aws_region` or `aws_endpoint`. What isn't set here, such as credentials,"
        " comes from the environment or the machine's role.",
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
            raise ValueError(f"unknown storage; give a folder, or an address of {known}")
        return path

    @property
    def address(self) -> str:
        """The lake's address, a folder's being absolute."""
        return str(Path(self.root).expanduser().absolute()) if self.is_folder else self.root

    @property
    def is_folder(self) -> bool:
        """Whether the lake is in a folder, and not in an object store."""
        return _SCHEME.match(self.root) is None


class SparkSettings(Section):
    """The Spark session of the driver."""

    master: str = Field(
        default="local[*]", min_length=1, max_length=1_000, description="Spark master URL."
    )
    driver_memory: str = Field(
        default="2g",
        description="Heap size of the driver's JVM, such as 512m or 4g.",
    )
    options: Options = Field(
        default=Options(),
        description="Spark properties under their own names, such as `spark.ui.port`.",
    )
    jars_dir: str | None = Field(
        default=None,
        max_length=4_096,
        description="Folder of the fetched jars; without it a folder in the user's cache.",
    )

    @property
    def jars_folder(self) -> Path | None:
        """The folder of the fetched jars; None for the one in the user's cache."""
        return Path(self.jars_dir) if self.jars_dir else None

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
                raise ValueError(f"{name} isn't a Spark property; these start with spark.")
            if name in _OWN_SPARK_OPTIONS:
                raise ValueError(f"{name} cannot be set here: {_OWN_SPARK_OPTIONS[name]}")
        return value


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
        description="How long a running batch may continue after SIGTERM before it is abandoned.",
    )
    lease: Seconds = Field(
        default=LEASE_SECONDS,
        ge=1.0,
        le=LEASE_SECONDS_MAX,
        description="How long the heartbeat of this driver must be missing before another"
        " driver takes the lake. A driver sends four heartbeats in this time.",
    )
    compaction: CompactionSettings = CompactionSettings()
    log: LogSettings = LogSettings()
    merge: MergeSettings = MergeSettings()
    cluster: ClusterSettings = ClusterSettings()
    vacuum: VacuumSettings = VacuumSettings()
    purge: PurgeSettings = PurgeSettings()
    index: IndexSettings = IndexSettings()
    iceberg: IcebergSettings = IcebergSettings()
    metrics: MetricsSettings = MetricsSettings()
    alerts: AlertSettings = AlertSettings()
    spark: SparkSettings = SparkSettings()
    logging: LoggingSettings = LoggingSettings()
    tracing: TracingSettings = TracingSettings()
    schema_registry: SchemaRegistrySettings = SchemaRegistrySettings()
    schema_change_topics: SchemaChangeTopicSettings = SchemaChangeTopicSettings()
    schema_changes: SchemaChangeSettings = SchemaChangeSettings()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    partial_images: PartialImages = Field(
        default=PartialImages.PARK,
        description="What happens with a row image that lacks columns, as with a"
        " `binlog_row_image` other than FULL. `park`: the table is parked. `apply`:"
        " the columns in the image are set, and the others keep their values. With"
        " events of Maxwell or Canal this needs declarations of all columns"
        " (docs/formats.md).",
    )
    missing_offsets: MissingOffsets = Field(
        default=MissingOffsets.PARK,
        description="What happens if the broker no longer has records that a table hasn't read,"
        " because retention deleted them or the topic was created again. `park`: the table is"
        " parked. `stop`: the service stops. `continue`: the table continues with the first record"
        " that exists, and the gap is shown until it is closed (docs/operations.md). It is parked"
        " all the same if its changes can't be compared with those before.",
    )
    doctor: DoctorSettings = DoctorSettings()
    verify: VerifySettings = VerifySettings()
    masking: MaskingSettings = MaskingSettings()
    metadata: MetadataSettings = MetadataSettings()
    tables: tuple[TableSettings, ...] = Field(
        default=(),
        max_length=10_000,
        description="Settings for some tables, and what their events don't say. An entry names"
        " its tables by `match`. Only the first entry that matches a table applies"
        " to it, with all of its settings.",
    )

    def table(self, name: TableName) -> TableSettings | None:
        """Return the first entry of `tables` that matches, or None."""
        return next((entry for entry in self.tables if entry.matches(name)), None)

    def retention(self, name: TableName) -> float:
        """Return for how many seconds old versions of a table can be read."""
        entry = self.table(name)
        given = None if entry is None else entry.retention
        return self.log.retention if given is None else given

    def on_missing_offsets(self, name: TableName) -> MissingOffsets:
        """Return what happens to a table if the broker lost records that it hasn't read."""
        entry = self.table(name)
        return (entry and entry.missing_offsets) or self.missing_offsets

    def priority(self, name: TableName) -> int:
        """Return the rank of a table where not everything can be read at once; the highest is read
        first.
        """
        entry = self.table(name)
        return entry.priority if entry else 0

    def freshness_goal(self, name: TableName) -> FreshnessGoal:
        """Return how old the views of a table may become."""
        entry = self.table(name)
        given = None if entry is None else entry.freshness
        return (given or FreshnessSettings()).goal(self.trigger, self.compaction.age_max)

    def reads(self, name: TableName) -> bool:
        """Whether the topic of a table of the source is read."""
        entry = self.table(name)
        return entry is None or entry.read

    def target(self, name: TableName) -> TableName:
        """Return the lake's table for a table of the source."""
        entry = self.table(name)
        return name if entry is None else entry.target(name)

    def policy(self, name: TableName) -> SchemaPolicy:
        """Return what a table does about its source's schema changes and partial images."""
        entry = self.table(name)
        shape = (entry and entry.shape) or ShapeSettings()
        return replace(
            policy_of(self.schema_changes, entry.schema_changes if entry else None),
            partial_images=(entry and entry.partial_images) or self.partial_images,
            partition_by=shape.partition_by,
            stats_columns=shape.stats_columns,
            bloom_filters=shape.bloom_filters,
        )

    def shape(self, name: TableName) -> Shape | None:
        """Return what a table stores of its source's rows; None for all of them as they are."""
        entry = self.table(name)
        return shape_of(entry.shape if entry else None, self.metadata, self.masking.secret)

    @model_validator(mode="after")
    def _salted(self) -> Self:
        hashing = any(entry.shape is not None and entry.shape.hashes for entry in self.tables)
        if hashing and not self.masking.secret:
            raise ValueError("the mask `hash` needs a secret; set masking.secret")
        return self

    @model_validator(mode="after")
    def _mirrors_have_a_catalog(self) -> Self:
        if not self.iceberg.catalog and any("iceberg" in entry.also for entry in self.tables):
            raise ValueError("also: [iceberg] needs a catalog; set iceberg.catalog")
        return self

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        for at, entry in enumerate(self.tables):
            check_own_names(entry.shape, self.metadata, f"tables[{at}].shape")
        return self

    @model_validator(mode="after")
    def _moves_whole_rows(self) -> Self:
        for at, entry in enumerate(self.tables):
            applied = (entry.partial_images or self.partial_images) is PartialImages.APPLY
            if applied and entry.shape is not None and entry.shape.partition_by:
                raise ValueError(
                    f"tables[{at}].shape.partition_by needs whole row images, and partial_images is"
                    " apply"
                )
            if applied and (entry.keeps_versions or entry.has_history_beside):
                raise ValueError(
                    f"tables[{at}]: a history needs whole row images, and partial_images is apply"
                )
        return self

    def declared(self, name: TableName) -> dict[str, DeclaredType] | None:
        """Return the column types declared for a table, or None if there are none."""
        entry = self.table(name)
        return declared_types(entry.columns) if entry and entry.columns else None

    def not_inserts(self, name: TableName) -> NotInserts | None:
        """Return what happens to updates and deletes of an insert-only table; None for other
        tables.
        """
        entry = self.table(name)
        return entry.policy if entry else None

    def keeps_versions(self, name: TableName) -> bool:
        """Whether a table is a history table."""
        entry = self.table(name)
        return entry is not None and entry.keeps_versions

    def insert_only(self, name: TableName) -> bool:
        """Whether a table's stored rows never change."""
        return self.not_inserts(name) is not None or self.keeps_versions(name)

    def key(self, name: TableName) -> tuple[str, ...]:
        """Return the columns that identify a table's rows; empty if the source's key does."""
        entry = self.table(name)
        return entry.row_key if entry else ()

    def format(self, name: TableName) -> FormatName | None:
        """Return the configured format of a table's events, or None if it is recognised from
        them.
        """
        entry = self.table(name)
        return entry.format if entry else None

    def with_lake(self, root: Path | str) -> Self:
        """Return the same settings for another lake."""
        return self.model_copy(update={"lake": LakeSettings(root=str(root))})

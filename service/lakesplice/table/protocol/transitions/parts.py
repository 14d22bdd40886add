"""Parts that the modules of transitions share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakesplice.errors import UsageError
from lakesplice.formats.log.actions import CHECK_PROPERTY, Action, Add, Remove, TableMetadata
from lakesplice.formats.log.schema_json import encode_schema
from lakesplice.formats.parquet import stats_columns
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import DeltaRef, Manifest, RunRef, UpsertState
from lakesplice.model.moments import EpochMs
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.new_files import NewFile, adds_of, removes_of

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
COMMIT_TIMES = "delta.enableInCommitTimestamps"


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """The version and the time of a commit, and before it the table's metadata and files in the
    log.
    """

    version: int
    timestamp_ms: EpochMs
    metadata: TableMetadata
    adds: Mapping[str, Add] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transition:
    """The next manifest, the log actions besides commit info and pointer, and the commit's metrics
    and parameters.
    """

    manifest: Manifest
    operation: str
    actions: tuple[Action, ...] = ()
    counts: Mapping[str, int] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


def table_properties(log_retention_hours: int) -> dict[str, str]:
    """Return the properties of a table of ours in the log."""
    retention = f"interval {log_retention_hours} hours"
    return {
        COMMIT_TIMES: "true",
        "delta.logRetentionDuration": retention,
        # Delta's own Spark connector opens no version older than this.
        "delta.deletedFileRetentionDuration": retention,
    }


def with_schema(
    metadata: TableMetadata, schema: TableSchema, upserts: UpsertState | None = None
) -> TableMetadata:
    """Return the metadata of a table that has another schema, or the constraints of `upserts`, from
    now on.
    """
    properties = {
        name: value
        for name, value in metadata.properties.items()
        if not name.startswith(CHECK_PROPERTY) and name != STATS_COLUMNS
    }
    checks, required = (upserts.checks, upserts.required) if upserts is not None else ({}, ())
    properties |= {f"{CHECK_PROPERTY}{name}": condition for name, condition in checks.items()}
    if columns := stats_columns(schema):
        # deltalake can't read a list with a name that begins with a digit, and then takes the
        # bounds of all columns for known.
        properties[STATS_COLUMNS] = ",".join(f"`{c}`" if c[0].isdigit() else c for c in columns)
    return replace(
        metadata,
        schema_json=encode_schema(schema, required),
        properties=properties,
        partition_columns=schema.partitioned_by,
    )


def stamped_runs(runs: tuple[RunRef, ...], version: int) -> tuple[RunRef, ...]:
    """Return new runs of the index, marked with the version of the table that adds their keys."""
    return tuple(replace(run, keys_version=version) for run in runs)


def with_replaced(
    before: Manifest, replaced: Mapping[str, NewFile], moment: CommitPoint
) -> tuple[dict[str, BaseFile], tuple[Remove, ...], tuple[Add, ...]]:
    """Return the base files after some got their next versions, and the actions that say so.

    Several files may have the same next version, which has their segments one after the other. It
    is in their cube, since few of its values differ. `UsageError` if it has other segments than its
    sources.
    """
    files, written = dict(before.files), {new.base.path: new for new in replaced.values()}
    sources: dict[str, list[BaseFile]] = {path: [] for path in written}
    for path, new in replaced.items():
        sources[new.base.path].append(files.pop(path))
    for path, new in written.items():
        old, base = sources[path], new.base
        segments = tuple(segment for file in old for segment in file.segments)
        if segments != base.segments or {file.partition for file in old} != {base.partition}:
            raise UsageError("a splice changed the files' segments", path=old[0].path, new=path)
        cubes = {file.cube for file in old}
        files[path] = replace(base, cube=cubes.pop() if len(cubes) == 1 else None)
    removes = removes_of(before, replaced, moment.timestamp_ms)
    adds = adds_of(before.schema, written.values(), moment.timestamp_ms)
    return files, removes, adds


def without_consumed(delta: DeltaRef, consumed: Mapping[str, frozenset[int]]) -> DeltaRef:
    """Return a delta in which the consumed file groups no longer wait."""
    done = consumed.get(delta.file.path, frozenset())
    if not done:
        return delta
    return replace(delta, waiting={g: n for g, n in delta.waiting.items() if g not in done})

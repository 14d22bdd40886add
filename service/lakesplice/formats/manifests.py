"""Manifests: JSON, so that a table's state can be read with any tool.

File groups are written as 16 hexadecimal digits, since JSON numbers lose precision in other
readers; positions as the pair of their integers. Unknown fields are passed over; a `format` above
ours is refused. A table fed by hand has format 2, since who does not know `upserts` would lay its
partial changes over rows as whole ones. Source: docs/format.md, "Manifest".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.model.address import BaseFile, Segment, group_name
from lakesplice.model.formats import FormatName
from lakesplice.model.manifest import (
    DeadLetterRef,
    DeltaRef,
    FileRef,
    Manifest,
    ParkCode,
    ParkReason,
    PartitionState,
    Retention,
    RunRef,
    SourceState,
    UpsertState,
)
from lakesplice.model.position import Ordering, Position
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType

FORMAT = 1
FORMAT_BY_HAND = 2
# What indexing into JSON of another shape raises; a type beyond ours or a value out of its range
# come as errors of our own, which are named already.
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as one line of JSON."""
    value = {
        "format": FORMAT if manifest.upserts is None else FORMAT_BY_HAND,
        "generation": manifest.generation,
        "schema": _schema_out(manifest.schema),
        "source": None if manifest.source is None else _source_out(manifest.source),
        "files": [_base_out(file) for file in manifest.files.values()],
        "deltas": [_delta_out(delta) for delta in manifest.deltas],
        "runs": [
            {**_file_out(run.file), "entries": run.entries, "keys_version": run.keys_version}
            for run in manifest.runs
        ],
        "dead_letters": [
            {**_file_out(ref.file), "rows": ref.rows, "committed_ms": ref.committed_ms}
            for ref in manifest.dead_letters
        ],
        "parked": None if manifest.parked is None else _parked_out(manifest.parked),
    }
    if manifest.upserts is not None:
        value["upserts"] = _upserts_out(manifest.upserts)
    if manifest.retention != Retention():
        value["retention"] = _retention_out(manifest.retention)
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Read back `encode_manifest`; `path` is for messages.

    `CorruptFileError` if it is not a manifest, `UnsupportedError` if a newer version wrote it.
    """
    try:
        value = json.loads(data)
        _require_known_format(value, path)
        return _manifest_in(value)
    except _MALFORMED as error:
        raise CorruptFileError(
            "a manifest cannot be read; restore the file", path=path, reason=repr(error)[:200]
        ) from error


def _require_known_format(value: Any, path: str) -> None:
    written_by = int(value["format"])
    if written_by > FORMAT_BY_HAND:
        raise UnsupportedError(
            "a newer Lakesplice wrote the table's state; upgrade this one",
            path=path,
            format=written_by,
        )


def _manifest_in(value: Any) -> Manifest:
    files = [_base_in(file) for file in value["files"]]
    return Manifest(
        generation=int(value["generation"]),
        schema=_schema_in(value["schema"]),
        source=None if value["source"] is None else _source_in(value["source"]),
        files={file.path: file for file in files},
        deltas=tuple(_delta_in(delta) for delta in value["deltas"]),
        runs=tuple(
            RunRef(_file_in(run), int(run["entries"]), int(run["keys_version"]))
            for run in value["runs"]
        ),
        dead_letters=tuple(
            DeadLetterRef(_file_in(ref), int(ref["rows"]), int(ref["committed_ms"]))
            for ref in value["dead_letters"]
        ),
        parked=None if value["parked"] is None else _parked_in(value["parked"]),
        upserts=None if value.get("upserts") is None else _upserts_in(value["upserts"]),
        retention=_retention_in(value["retention"]) if "retention" in value else Retention(),
    )


def _schema_out(schema: TableSchema) -> dict[str, Any]:
    return {
        "columns": [
            {
                "id": column.id,
                "name": column.name,
                "source_name": column.source_name,
                "type": column.type.name,
                "source_type": column.source_type,
            }
            for column in schema.columns
        ],
        "key": list(schema.key),
        "versions": list(schema.versions),
        "since": [[position.file, position.offset] for position in schema.since],
    }


def _schema_in(value: Any) -> TableSchema:
    columns = tuple(
        Column(
            int(column["id"]),
            str(column["name"]),
            str(column["source_name"]),
            ColumnType.parse(column["type"]),
            str(column["source_type"]),
        )
        for column in value["columns"]
    )
    versions = tuple(int(count) for count in value["versions"])
    since = tuple(_position_in(position) for position in value["since"])
    return TableSchema(columns, tuple(str(name) for name in value["key"]), versions, since)


def _source_out(source: SourceState) -> dict[str, Any]:
    return {
        "topic": source.topic,
        "topic_id": source.topic_id,
        "partitions": {
            str(partition): {
                "next_offset": state.next_offset,
                "position": [state.position.file, state.position.offset],
                "gtids": dict(state.gtids),
            }
            for partition, state in source.partitions.items()
        },
        "format": source.format,
        "ordering": source.ordering,
    }


def _source_in(value: Any) -> SourceState:
    return SourceState(
        topic=str(value["topic"]),
        topic_id=str(value["topic_id"]),
        partitions={
            int(number): _partition_in(state) for number, state in value["partitions"].items()
        },
        format=None if value.get("format") is None else FormatName(value["format"]),
        ordering=None if value.get("ordering") is None else Ordering(value["ordering"]),
    )


def _partition_in(value: Any) -> PartitionState:
    return PartitionState(
        next_offset=int(value["next_offset"]),
        position=_position_in(value["position"]),
        gtids={str(domain): int(number) for domain, number in value["gtids"].items()},
    )


def _position_in(value: Any) -> Position:
    file, offset = value
    return Position(int(file), int(offset))


def _base_out(file: BaseFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "bytes": file.bytes,
        "segments": [[group_name(segment.group), segment.rows] for segment in file.segments],
        "splices": file.splices,
        "tail": [file.tail_bytes, file.tail_checksum],
    }


def _base_in(value: Any) -> BaseFile:
    segments = tuple(Segment(int(group, 16), int(rows)) for group, rows in value["segments"])
    size, tail = value["tail"]
    return BaseFile(
        str(value["path"]),
        int(value["bytes"]),
        segments,
        int(value["splices"]),
        int(size),
        str(tail),
    )


def _delta_out(delta: DeltaRef) -> dict[str, Any]:
    return {
        **_file_out(delta.file),
        "rows": delta.rows,
        "schema_version": delta.schema_version,
        "waiting": {group_name(group): changes for group, changes in delta.waiting.items()},
        "committed_ms": delta.committed_ms,
        "floor": _integers_out(delta.floor),
    }


def _delta_in(value: Any) -> DeltaRef:
    return DeltaRef(
        file=_file_in(value),
        rows=int(value["rows"]),
        schema_version=int(value["schema_version"]),
        waiting={int(group, 16): int(changes) for group, changes in value["waiting"].items()},
        committed_ms=int(value["committed_ms"]),
        floor={int(partition): int(offset) for partition, offset in value["floor"].items()},
    )


def _integers_out(values: Mapping[int, int]) -> dict[str, int]:
    return {str(name): value for name, value in values.items()}


def _file_out(file: FileRef) -> dict[str, Any]:
    return {"path": file.path, "bytes": file.bytes, "checksum": file.checksum}


def _file_in(value: Any) -> FileRef:
    return FileRef(str(value["path"]), int(value["bytes"]), str(value["checksum"]))


def _upserts_out(upserts: UpsertState) -> dict[str, Any]:
    return {
        "position": upserts.position,
        "has_deleted": upserts.has_deleted,
        "transactions": dict(upserts.transactions),
    }


def _upserts_in(value: Any) -> UpsertState:
    return UpsertState(
        position=int(value["position"]),
        has_deleted=bool(value["has_deleted"]),
        transactions={str(name): int(number) for name, number in value["transactions"].items()},
    )


def _retention_out(retention: Retention) -> dict[str, Any]:
    return {
        "retained_from": retention.retained_from,
        "vacuumed": retention.vacuumed,
        "restores": list(retention.restores),
        "writers_from": retention.writers_from,
        "swept": retention.swept,
        "swept_ms": retention.swept_ms,
    }


def _retention_in(value: Any) -> Retention:
    return Retention(
        retained_from=int(value["retained_from"]),
        vacuumed=int(value["vacuumed"]),
        restores=tuple(int(version) for version in value["restores"]),
        writers_from=int(value["writers_from"]),
        swept=int(value["swept"]),
        swept_ms=int(value["swept_ms"]),
    )


def _parked_out(parked: ParkReason) -> dict[str, Any]:
    return {
        "code": parked.code.value,
        "detail": parked.detail,
        "topic": parked.topic,
        "partition": parked.partition,
        "offset": parked.offset,
    }


def _parked_in(value: Any) -> ParkReason:
    return ParkReason(
        ParkCode(value["code"]),
        str(value["detail"]),
        str(value["topic"]),
        int(value["partition"]),
        int(value["offset"]),
    )


@dataclass(frozen=True, slots=True)
class Pointer:
    """What the log's domain `lakesplice` says: which manifest belongs to which version.

    The version is repeated so that a commit by another writer, which would carry the pointer along
    unread, is noticed; the commit's time so that it survives a checkpoint, which holds no commit
    info.
    """

    version: int
    timestamp_ms: int
    manifest: FileRef


def encode_pointer(pointer: Pointer) -> str:
    """Return the domain's configuration as JSON text."""
    value = {
        "format": FORMAT,
        "version": pointer.version,
        "timestamp_ms": pointer.timestamp_ms,
        "manifest": _file_out(pointer.manifest),
    }
    return json.dumps(value, separators=(",", ":"))


def decode_pointer(text: str, path: str) -> Pointer:
    """Read back `encode_pointer`; `CorruptFileError` and `UnsupportedError` as for a manifest."""
    try:
        value = json.loads(text)
        _require_known_format(value, path)
        return Pointer(
            int(value["version"]), int(value["timestamp_ms"]), _file_in(value["manifest"])
        )
    except _MALFORMED as error:
        raise CorruptFileError(
            "the log's pointer to the manifest cannot be read; restore the file",
            path=path,
            pointer=text,
        ) from error

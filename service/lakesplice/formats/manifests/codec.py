"""Manifests: JSON, so that a table's state can be read with any tool.

File groups are written as 16 hexadecimal digits, since JSON numbers lose precision in other
readers; positions as the pair of their integers. Unknown fields are skipped; a `format` above
ours is refused. A table fed by hand has format 2, since who does not know `upserts` would lay its
partial changes over rows as whole ones. One with an adopted schema, or without updates, or that was
purged, or whose source began another epoch or has a fence, or whose columns changed, have fills or
aren't all of the source's, has format 3, since who does not know of these would take others' files
for damaged ones, change what must not change, bring deleted rows back, put changes in the wrong
order, or read older deltas as if they held the present columns. One that takes partial images has
format 4, since who does not know column positions would lay them over rows as whole ones. One with
partition columns has format 5, since who does not know them would put rows into any file. One of
several topics has format 6, since who does not know `sources` would take it for one without any.
One in which a stored name went from one column to another has format 7, since who knows older
deltas and files by names would read the one's values as the other's; so has one with columns that
are copies of others, since who doesn't know these would let them fall behind. One with pins has
format 8, since who doesn't know them would delete the files that they keep. A shadow has format 9,
since who doesn't know shadows would take a part of a table for all of it. One with a change feed
has format 10, since who doesn't know it would change base files without images for it. One with
erased keys has format 13, since who doesn't know them would bring erased rows back. One with
constraints has format 14, since who doesn't know them would write rows that break them.
Source: docs/format.md, "Manifest".
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.formats.manifests.erased_keys import erased_in, erased_out
from lakesplice.formats.manifests.files import base_in, base_out, file_in, file_out
from lakesplice.formats.manifests.partition import integers_out, position_in
from lakesplice.formats.manifests.retention import retention_in, retention_out
from lakesplice.formats.manifests.schema import schema_in, schema_out
from lakesplice.formats.manifests.source import parked_in, parked_out, source_in, source_out
from lakesplice.model.address import group_name
from lakesplice.model.manifest import (
    ChangeFeed,
    DeadLetterRef,
    DeltaRef,
    Manifest,
    Retention,
    RunRef,
    UpsertState,
)
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema

FORMAT = 1
FORMAT_BY_HAND = 2
FORMAT_GUARDED = 3
FORMAT_PARTIAL = 4
FORMAT_PARTITIONED = 5
FORMAT_MERGED = 6
FORMAT_NAMES = 7
FORMAT_PINS = 8
FORMAT_SHADOW = 9
FORMAT_FEED = 10
FORMAT_BOUNDS = 11
FORMAT_COLUMNS = 12
FORMAT_ERASED = 13
FORMAT_CONSTRAINTS = 14
# What indexing into JSON of another shape raises; a type beyond ours or a value out of its range
# come as errors of our own, which are named already.
MALFORMED = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as one line of JSON."""
    value = {
        "format": _format_of(manifest),
        "generation": manifest.generation,
        "schema": schema_out(manifest.schema),
        **_sources_out(manifest),
        "files": [base_out(file) for file in manifest.files.values()],
        "deltas": [_delta_out(delta) for delta in manifest.deltas],
        "runs": [
            {**file_out(run.file), "entries": run.entries, "keys_version": run.keys_version}
            for run in manifest.runs
        ],
        "dead_letters": [_dead_letters_out(ref) for ref in manifest.dead_letters],
        "parked": None if manifest.parked is None else parked_out(manifest.parked),
    }
    if manifest.upserts is not None:
        value["upserts"] = _upserts_out(manifest.upserts)
    if manifest.retention != Retention():
        value["retention"] = retention_out(manifest.retention)
    if manifest.backfill is not None:
        value["backfill"] = _backfill_out(manifest.backfill)
    if manifest.feed is not None:
        value["feed"] = _feed_out(manifest.feed)
    if manifest.erased is not None:
        value["erased"] = erased_out(manifest.erased)
    # NaN and infinities are no JSON: what has one fails here, before anything is written.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _sources_out(manifest: Manifest) -> dict[str, Any]:
    """A table of one topic has its purge floor where it had it before there could be several."""
    if manifest.is_merged:
        return {"source": None, "sources": [source_out(one) for one in manifest.sources.values()]}
    source = manifest.source
    if source is None:
        return {"source": None}
    value: dict[str, Any] = {
        "source": source_out(replace(source, purge_floor=BEFORE_ALL, keys_version=0))
    }
    if source.purge_floor != BEFORE_ALL:
        value["purge_floor"] = _position_out(source.purge_floor)
    return value


def _sources_in(value: Any) -> dict[str, SourceState]:
    if value["source"] is None:
        sources = [source_in(one) for one in value.get("sources", ())]
    else:
        floor = position_in(value.get("purge_floor", (-1, -1)))
        sources = [replace(source_in(value["source"]), purge_floor=floor)]
    return {source.topic: source for source in sources}


def _format_of(manifest: Manifest) -> int:
    upserts = manifest.upserts
    if upserts is not None and (upserts.checks or upserts.required):
        return FORMAT_CONSTRAINTS
    return _format_without_constraints(manifest)


def _format_without_constraints(manifest: Manifest) -> int:
    if manifest.erased is not None:
        return FORMAT_ERASED
    if any(delta.in_columns for delta in manifest.deltas):
        return FORMAT_COLUMNS
    if manifest.schema.bounded:
        return FORMAT_BOUNDS
    if manifest.feed is not None:
        return FORMAT_FEED
    if manifest.backfill is not None:
        return FORMAT_SHADOW
    if manifest.retention.pins:
        return FORMAT_PINS
    if manifest.schema.has_handed_on or manifest.schema.copies:
        return FORMAT_NAMES
    if manifest.is_merged:
        return FORMAT_MERGED
    source, by_hand = manifest.source, manifest.upserts
    if manifest.schema.partitioned_by:
        return FORMAT_PARTITIONED
    if manifest.schema.positions is not None:
        return FORMAT_PARTIAL
    guarded = (
        manifest.purge_floor != BEFORE_ALL
        or _is_reshaped(manifest.schema)
        or (by_hand is not None and by_hand.insert_only)
        or (source is not None and (source.epochs or source.fence != BEFORE_ALL))
    )
    if guarded:
        return FORMAT_GUARDED
    return FORMAT if by_hand is None else FORMAT_BY_HAND


def _is_reshaped(schema: TableSchema) -> bool:
    """Whether files or deltas are not read by the columns' names and types alone."""
    filled = any(column.fill is not None for column in schema.columns)
    return bool(schema.adopted or schema.former or schema.left_out or filled)


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Read back `encode_manifest`; `path` is for messages.

    `CorruptFileError` if it is not a manifest, `UnsupportedError` if a newer version wrote it.
    """
    try:
        value = json.loads(data)
        require_known_format(value, path)
        return _manifest_in(value)
    except MALFORMED as error:
        raise CorruptFileError(
            "a manifest cannot be read; restore the file", path=path, reason=repr(error)[:200]
        ) from error


def require_known_format(value: Any, path: str) -> None:
    """Return if a manifest, or the pointer to one, is of a format that is known here."""
    written_by = int(value["format"])
    if written_by > FORMAT_CONSTRAINTS:
        raise UnsupportedError(
            "a newer Lakesplice wrote the table's state; upgrade this one",
            path=path,
            format=written_by,
        )


def _manifest_in(value: Any) -> Manifest:
    files = [base_in(file) for file in value["files"]]
    return Manifest(
        generation=int(value["generation"]),
        schema=schema_in(value["schema"]),
        sources=_sources_in(value),
        files={file.path: file for file in files},
        deltas=tuple(_delta_in(delta) for delta in value["deltas"]),
        runs=tuple(
            RunRef(file_in(run), int(run["entries"]), int(run["keys_version"]))
            for run in value["runs"]
        ),
        dead_letters=tuple(_dead_letters_in(ref) for ref in value["dead_letters"]),
        parked=None if value["parked"] is None else parked_in(value["parked"]),
        upserts=None if value.get("upserts") is None else _upserts_in(value["upserts"]),
        retention=retention_in(value["retention"]) if "retention" in value else Retention(),
        backfill=_backfill_in(value["backfill"]) if "backfill" in value else None,
        feed=_feed_in(value["feed"]) if "feed" in value else None,
        erased=erased_in(value["erased"]) if "erased" in value else None,
    )


def _feed_out(feed: ChangeFeed) -> dict[str, Any]:
    return {"since": feed.since, "files": [file_out(file) for file in feed.files]}


def _feed_in(value: Any) -> ChangeFeed:
    return ChangeFeed(int(value["since"]), tuple(file_in(file) for file in value["files"]))


def _position_out(position: Position) -> list[int]:
    return [position.file, position.offset]


def _backfill_out(backfill: BackfillState) -> dict[str, Any]:
    return {
        "chunks": backfill.chunks,
        "done": [list(numbers) for numbers in backfill.done],
        "highest": _position_out(backfill.highest),
        "rows": backfill.rows,
    }


def _backfill_in(value: Any) -> BackfillState:
    return BackfillState(
        int(value["chunks"]),
        tuple((int(start), int(end)) for start, end in value["done"]),
        position_in(value["highest"]),
        int(value["rows"]),
    )


def _dead_letters_out(letters: DeadLetterRef) -> dict[str, Any]:
    return {
        **file_out(letters.file),
        "rows": letters.rows,
        "committed_ms": letters.committed_ms,
        "position": _position_out(letters.position),
        **({"topic": letters.topic} if letters.topic else {}),
        **({"behind": _behind_out(letters)} if letters.behind else {}),
    }


def _behind_out(letters: DeadLetterRef) -> dict[str, Any]:
    return {
        str(partition): None if position is None else _position_out(position)
        for partition, position in sorted(letters.behind.items())
    }


def _dead_letters_in(value: Any) -> DeadLetterRef:
    return DeadLetterRef(
        file_in(value),
        int(value["rows"]),
        EpochMs(int(value["committed_ms"])),
        position_in(value.get("position", (-1, -1))),
        str(value.get("topic", "")),
        {
            int(partition): None if position is None else position_in(position)
            for partition, position in value.get("behind", {}).items()
        },
    )


def _delta_out(delta: DeltaRef) -> dict[str, Any]:
    return {
        **file_out(delta.file),
        "rows": delta.rows,
        "schema_version": delta.schema_version,
        "waiting": {group_name(group): changes for group, changes in delta.waiting.items()},
        "committed_ms": delta.committed_ms,
        "floor": integers_out(delta.floor),
        **({"topic": delta.topic} if delta.topic else {}),
    }


def _delta_in(value: Any) -> DeltaRef:
    return DeltaRef(
        file=file_in(value),
        rows=int(value["rows"]),
        schema_version=int(value["schema_version"]),
        waiting={int(group, 16): int(changes) for group, changes in value["waiting"].items()},
        committed_ms=EpochMs(int(value["committed_ms"])),
        floor={int(partition): Offset(int(offset)) for partition, offset in value["floor"].items()},
        topic=str(value.get("topic", "")),
    )


def _upserts_out(upserts: UpsertState) -> dict[str, Any]:
    return {
        "position": upserts.position,
        "has_deleted": upserts.has_deleted,
        "transactions": dict(upserts.transactions),
        **({"insert_only": True} if upserts.insert_only else {}),
        **({"checks": dict(upserts.checks)} if upserts.checks else {}),
        **({"required": list(upserts.required)} if upserts.required else {}),
        **({"cluster_by": list(upserts.cluster_by)} if upserts.cluster_by else {}),
    }


def _upserts_in(value: Any) -> UpsertState:
    return UpsertState(
        position=int(value["position"]),
        has_deleted=bool(value["has_deleted"]),
        transactions={str(name): int(number) for name, number in value["transactions"].items()},
        insert_only=bool(value.get("insert_only", False)),
        checks={str(name): str(text) for name, text in value.get("checks", {}).items()},
        required=tuple(map(str, value.get("required", ()))),
        cluster_by=tuple(map(str, value.get("cluster_by", ()))),
    )

"""Checkpoints of the log: the state at a version as Parquet, in one file or in several parts.

Source: the Delta transaction log protocol, "Checkpoints". Those named by a UUID (version 2) are a
table feature that ours do not have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakesplice.errors import CorruptFileError
from lakesplice.formats.log.actions import Action
from lakesplice.formats.log.decoding import decode_action

_NAME = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_WANTED = ("protocol", "metaData", "domainMetadata", "add")
_FIELDS_UNUSED = ("stats_parsed", "partitionValues_parsed", "deletionVector", "tags")


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A complete checkpoint: its version and the names of its parts, in order."""

    version: int
    names: tuple[str, ...]


def complete_checkpoints(names: Iterable[str]) -> tuple[Checkpoint, ...]:
    """Return the checkpoints all of whose parts are among the files `names`, oldest first."""
    parts: dict[tuple[int, int], list[str]] = {}
    for name in sorted(names):
        match = _NAME.fullmatch(name)
        if match:
            parts.setdefault((int(match[1]), int(match[3] or 1)), []).append(name)
    found = (
        Checkpoint(version, tuple(of)) for (version, count), of in parts.items() if len(of) == count
    )
    return tuple(sorted(found))


def checkpoint_version(name: str) -> int | None:
    """Return the version of a checkpoint's part, complete or not; None for another file."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def single_checkpoint(version: int) -> Checkpoint:
    """Return the checkpoint of one part as it is named."""
    return Checkpoint(version, (f"{version:020d}.checkpoint.parquet",))


def decode_hint(data: bytes) -> Checkpoint | None:
    """Read `_last_checkpoint`; None if it is damaged, which only costs a listing."""
    try:
        value = json.loads(data)
        version, parts = int(value["version"]), int(value.get("parts") or 1)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if "v2Checkpoint" in value:
        return None
    if parts == 1:
        return single_checkpoint(version)
    names = (
        f"{version:020d}.checkpoint.{n:010d}.{parts:010d}.parquet" for n in range(1, parts + 1)
    )
    return Checkpoint(version, tuple(names))


def read_checkpoint(file: pa.NativeFile, path: str) -> Iterator[Action]:
    """Yield the actions of one part, a row group in memory at a time; tombstones are left out.

    `CorruptFileError` if it is not a checkpoint's Parquet file.
    """
    try:
        parquet = pq.ParquetFile(file)
        columns = [name for name in _WANTED if name in parquet.schema_arrow.names]
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=columns)
            for name in columns:
                yield from _actions(table.column(name), name, path)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(
            "a checkpoint of the log cannot be read; restore or delete it",
            path=path,
            reason=str(error),
        ) from error


def _actions(column: pa.ChunkedArray, name: str, path: str) -> Iterator[Action]:
    present = column.filter(pc.is_valid(column)).combine_chunks()
    kept = [field.name for field in present.type if field.name not in _FIELDS_UNUSED]
    rows = pa.Table.from_arrays([pc.struct_field(present, field) for field in kept], names=kept)
    for values in rows.to_pylist():
        action = decode_action(name, values, path)
        if action is not None:
            yield action

"""Rows of a table are repaired: a command has read them from the source, a driver commits them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.model.moments import EpochMs
from lakesplice.model.position import Position
from lakesplice.table.ingest.read_rows_commit import RepairedRows, RowRepair


def repair(table: CommandTable, rows: RepairedRows) -> CommandResult:
    """Lay rows over those of a table; it may be executed twice. `UsageError` without settings: they
    say how a table's rows are shaped.
    """
    reading = table.reading(rows.topic)
    work = RowRepair(
        store=table.store,
        snapshot=table.snapshot,
        commit=table.commit,
        generation=table.generation,
        clock=table.clock,
        entropy=table.entropy,
    )
    counts = work.commit_rows(rows, reading)
    version = table.snapshot.version
    text = f"{rows.count} rows repaired in version {version}"
    return CommandResult(text, {"version": version, "repaired": rows.count, **counts})


def repair_as_arguments(rows: RepairedRows) -> dict[str, Any]:
    """Return rows as a request's arguments."""
    return {
        "topic": rows.topic,
        "position": [rows.position.file, rows.position.offset],
        "read_ms": rows.read_ms,
        "present": _encoded(rows.present),
        "gone": _encoded(rows.gone),
    }


def repair_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read `repair_as_arguments` back; `KeyError`, `TypeError` or `ValueError` if it isn't that."""
    file, offset = arguments["position"]
    return {
        "rows": RepairedRows(
            topic=str(arguments["topic"]),
            position=Position(int(file), int(offset)),
            read_ms=EpochMs(int(arguments["read_ms"])),
            present=_decoded(arguments["present"]),
            gone=_decoded(arguments["gone"]),
        )
    }


def _encoded(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _decoded(text: str) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_all()

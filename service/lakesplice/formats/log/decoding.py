"""Named values to actions: what commit files (JSON) and checkpoints (Parquet) have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from lakesplice.formats.log.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Remove,
    TableMetadata,
    TableProtocol,
    escaped,
)
from lakesplice.formats.log.fields import Fields
from lakesplice.model.moments import EpochMs


def decode_action(name: str, values: object, path: str) -> Action | None:
    """Return the action, or None for one that we need not know; `path` is for messages.

    `CorruptFileError` if a field that we need is missing or of a wrong type.
    """
    decode = _DECODERS.get(name)
    return decode(Fields(values, name, path)) if decode else None


def _protocol(fields: Fields) -> TableProtocol:
    return TableProtocol(
        fields.integer("minReaderVersion"),
        fields.integer("minWriterVersion"),
        fields.texts("readerFeatures"),
        fields.texts("writerFeatures"),
    )


def _metadata(fields: Fields) -> TableMetadata:
    return TableMetadata(
        id=fields.text("id"),
        schema_json=fields.text("schemaString"),
        properties=_texts(fields.mapping("configuration")),
        partition_columns=fields.texts("partitionColumns"),
        created_ms=fields.optional_moment("createdTime"),
    )


def _add(fields: Fields) -> Add:
    path, log_spelling = _path(fields)
    return Add(
        path=path,
        bytes=fields.integer("size"),
        modified_ms=EpochMs(fields.integer("modificationTime", 0)),
        data_change=fields.flag("dataChange", default=True),
        stats=fields.optional_text("stats"),
        partition_values=dict(fields.mapping("partitionValues")),
        log_spelling=log_spelling,
    )


def _remove(fields: Fields) -> Remove:
    path, log_spelling = _path(fields)
    return Remove(
        path=path,
        bytes=fields.optional_integer("size"),
        deleted_ms=fields.optional_moment("deletionTimestamp"),
        data_change=fields.flag("dataChange", default=True),
        partition_values=dict(fields.mapping("partitionValues")),
        log_spelling=log_spelling,
    )


def _path(fields: Fields) -> tuple[str, str]:
    """Return a path, and its spelling in the log if we would escape it in another way."""
    log_spelling = fields.text("path")
    path = unquote(log_spelling)
    return path, "" if escaped(path) == log_spelling else log_spelling


def _domain(fields: Fields) -> DomainMetadata:
    return DomainMetadata(
        fields.text("domain"), fields.text("configuration"), fields.flag("removed", default=False)
    )


def _commit_info(fields: Fields) -> CommitInfo:
    timestamp_ms = fields.optional_moment("inCommitTimestamp")
    return CommitInfo(
        timestamp_ms=fields.optional_moment("timestamp") if timestamp_ms is None else timestamp_ms,
        operation=fields.text("operation", ""),
        id=fields.text("txnId", ""),
        engine=fields.text("engineInfo", ""),
        parameters=_texts(fields.mapping("operationParameters")),
        metrics=_integers(fields.mapping("operationMetrics")),
    )


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }


def _integers(values: Mapping[str, Any]) -> dict[str, int]:
    # Metrics are texts by convention, and other writers put anything there: a text that isn't a
    # number is of no use to us.
    return {name: int(value) for name, value in values.items() if str(value).isdecimal()}


_DECODERS: dict[str, Callable[[Fields], Action]] = {
    "commitInfo": _commit_info,
    "protocol": _protocol,
    "metaData": _metadata,
    "domainMetadata": _domain,
    "remove": _remove,
    "add": _add,
}

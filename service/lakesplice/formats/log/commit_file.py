"""Commit files of the log: one JSON object a line, one action an object.

Source: the Delta transaction log protocol, "Delta Log Entries".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakesplice.errors import CorruptFileError
from lakesplice.formats.log.actions import (
    Action,
    Add,
    ApplicationTransaction,
    ChangeData,
    CommitInfo,
    DomainMetadata,
    Remove,
    TableMetadata,
    TableProtocol,
    escaped,
)
from lakesplice.formats.log.decoding import decode_action


def encode_commit(actions: Sequence[Action]) -> bytes:
    """Return the file's bytes; the actions keep their order, `CommitInfo` has to come first."""
    lines = (
        json.dumps(_encode(action), separators=(",", ":"), allow_nan=False) for action in actions
    )
    return "".join(f"{line}\n" for line in lines).encode()


def decode_commit(data: bytes, path: str) -> tuple[Action, ...]:
    """Return the actions that we know, in order; `CorruptFileError` if a line is not an action.

    An empty one is corrupt as well.
    """
    if not data.strip():
        raise CorruptFileError("a commit file is empty; restore it", path=path)
    actions = (
        decode_action(name, values, path)
        for line in data.splitlines()
        if line.strip()
        for name, values in _parse(line, path).items()
    )
    return tuple(action for action in actions if action is not None)


def _parse(line: bytes, path: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(
            "a commit file has a line that is not JSON; restore it", path=path, line=line[:100]
        ) from error
    if not isinstance(value, dict):
        raise CorruptFileError(
            "a commit file has a line that isn't an action; restore it", path=path, line=line[:100]
        )
    return value


def _encode(action: Action) -> dict[str, Any]:
    match action:
        case CommitInfo():
            return {"commitInfo": _commit_info(action)}
        case TableProtocol():
            return {"protocol": _protocol(action)}
        case TableMetadata():
            return {"metaData": _metadata(action)}
        case DomainMetadata():
            return {
                "domainMetadata": {
                    "domain": action.domain,
                    "configuration": action.configuration,
                    "removed": action.removed,
                }
            }
        case ApplicationTransaction():
            return {
                "txn": {
                    "appId": action.application,
                    "version": action.number,
                    "lastUpdated": action.updated_ms,
                }
            }
        case Remove():
            return {"remove": _remove(action)}
        case Add():
            return {"add": _add(action)}
        case ChangeData():
            return {"cdc": _change_data(action)}


def _commit_info(info: CommitInfo) -> dict[str, Any]:
    return {
        "inCommitTimestamp": info.timestamp_ms,
        "timestamp": info.timestamp_ms,
        "operation": info.operation,
        "operationParameters": dict(info.parameters),
        "operationMetrics": {name: str(value) for name, value in info.metrics.items()},
        "engineInfo": info.engine,
        "txnId": info.id,
    }


def _protocol(protocol: TableProtocol) -> dict[str, Any]:
    values: dict[str, Any] = {
        "minReaderVersion": protocol.reader_version,
        "minWriterVersion": protocol.writer_version,
    }
    if protocol.reader_features:
        values["readerFeatures"] = list(protocol.reader_features)
    if protocol.writer_features:
        values["writerFeatures"] = list(protocol.writer_features)
    return values


def _metadata(metadata: TableMetadata) -> dict[str, Any]:
    return {
        "id": metadata.id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": metadata.schema_json,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.properties),
        "createdTime": metadata.created_ms,
    }


def _add(add: Add) -> dict[str, Any]:
    return {
        "path": add.log_spelling or escaped(add.path),
        "partitionValues": dict(add.partition_values),
        "size": add.bytes,
        "modificationTime": add.modified_ms,
        "dataChange": add.data_change,
        "stats": add.stats,
    }


def _remove(remove: Remove) -> dict[str, Any]:
    return {
        "path": remove.log_spelling or escaped(remove.path),
        "deletionTimestamp": remove.deleted_ms,
        "dataChange": remove.data_change,
        "extendedFileMetadata": True,
        "partitionValues": dict(remove.partition_values),
        "size": remove.bytes,
    }


def _change_data(change_data: ChangeData) -> dict[str, Any]:
    return {
        "path": escaped(change_data.path),
        "partitionValues": dict(change_data.partition_values),
        "size": change_data.bytes,
        "dataChange": False,
    }

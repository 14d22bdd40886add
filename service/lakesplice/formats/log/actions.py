"""The actions of the Delta protocol that a Lakesplice table is made of.

Only what we write or must read is kept; actions and fields beyond it are skipped when read.
Paths are kept decoded, as the store names them.
Source: the Delta transaction log protocol, "Actions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from lakesplice.model.moments import EpochMs

FEATURE = "lakesplice"
DOMAIN = "lakesplice"
FEED_FEATURE = "changeDataFeed"
FEED_PROPERTY = "delta.enableChangeDataFeed"


@dataclass(frozen=True, slots=True)
class TableProtocol:
    """What a reader and a writer must understand before they touch the table."""

    reader_version: int
    writer_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


# Version 1 lets every reader in. Our own writer feature keeps every writer but us out: they refuse
# what they do not know, and a write of theirs would leave the manifest behind the log. Delta's own
# Spark connector does not even read a table with a required column unless `invariants` is listed.
OUR_PROTOCOL = TableProtocol(
    1, 7, (), ("domainMetadata", "inCommitTimestamp", "invariants", FEATURE)
)

# Spark doesn't open a table that has the property without the feature.
FEED_PROTOCOL = TableProtocol(1, 7, (), (*OUR_PROTOCOL.writer_features, FEED_FEATURE))


# Spark doesn't open a table either that has such a property without this feature.
CHECK_FEATURE = "checkConstraints"
CHECK_PROPERTY = "delta.constraints."
KNOWN_FEATURES = frozenset((*FEED_PROTOCOL.writer_features, CHECK_FEATURE))


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The table's identity (a UUID), schema (JSON) and properties; `created_ms` since the epoch."""

    id: str
    schema_json: str
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    created_ms: EpochMs | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """A data file becomes part of the table. `stats` is Delta statistics as JSON text.

    `log_spelling` is the path as the log has it, if we would escape it in another way: not all
    readers know that two spellings can be one file.
    """

    path: str
    bytes: int
    modified_ms: EpochMs
    data_change: bool
    stats: str | None = None
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    log_spelling: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """A data file leaves the table; earlier versions still name it. `log_spelling` as in `Add`."""

    path: str
    bytes: int | None
    deleted_ms: EpochMs | None
    data_change: bool
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    log_spelling: str = ""


@dataclass(frozen=True, slots=True)
class ChangeData:
    """A file of row images with the commit's changes. If a commit has one, readers of the change
    feed ignore its other actions.

    It is never read back: for our tables the manifest has it.
    """

    path: str
    bytes: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A named configuration (JSON text) that Delta tools carry along unread."""

    domain: str
    configuration: str
    removed: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationTransaction:
    """An application's transaction `number` is in the table, for other tools to see.

    Never read back: the manifest says it of our tables.
    """

    application: str
    number: int
    updated_ms: EpochMs


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a commit says of itself; a foreign one may say nothing.

    `id` is random per commit and recognises our own after an answer was lost. `timestamp_ms` rises
    from version to version, whatever the clock does.
    """

    timestamp_ms: EpochMs | None
    operation: str
    id: str = ""
    engine: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)


Action = (
    CommitInfo
    | TableProtocol
    | TableMetadata
    | DomainMetadata
    | ApplicationTransaction
    | Remove
    | Add
    | ChangeData
)


def escaped(path: str) -> str:
    """Return a path as the log has it; as other writers do, `country=de` stays readable."""
    return quote(path, safe="/=")

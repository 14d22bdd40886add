"""Replay: the state of a table after a version of its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.formats.log.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Remove,
    TableMetadata,
    TableProtocol,
)

READER_VERSION_MAX = 1


@dataclass(frozen=True, slots=True)
class LogState:
    """What the log says at `version`: its data files by path, and the domains not removed.

    A commit's time is not part of it, since a checkpoint does not keep it.
    """

    version: int
    protocol: TableProtocol
    metadata: TableMetadata
    adds: Mapping[str, Add] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)


@dataclass(slots=True)
class _Draft:
    protocol: TableProtocol | None = None
    metadata: TableMetadata | None = None
    adds: dict[str, Add] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply(self, action: Action) -> None:
        match action:
            case Add():
                self.adds[action.path] = action
            case Remove():
                self.adds.pop(action.path, None)
            case DomainMetadata(removed=True):
                self.domains.pop(action.domain, None)
            case DomainMetadata():
                self.domains[action.domain] = action
            case CommitInfo():
                pass
            case TableProtocol():
                _require_readable(action)
                self.protocol = action
            case TableMetadata():
                self.metadata = action


def replay(
    base: LogState | None, commits: Iterable[tuple[int, Sequence[Action]]]
) -> LogState | None:
    """Return the state after `commits`, which follow `base` in order without a gap; None if none.

    A checkpoint counts as a commit of its version without a base. `CorruptFileError` if a version
    is missing or the first lacks protocol or metadata; `UnsupportedError` for a table that needs a
    newer reader.
    """
    draft = _Draft()
    version = None
    if base is not None:
        version = base.version
        draft = _Draft(base.protocol, base.metadata, dict(base.adds), dict(base.domains))
    for number, actions in commits:
        if version is not None and number != version + 1:
            raise CorruptFileError("the log has a gap", version=number, previous=version)
        for action in actions:
            draft.apply(action)
        version = number
    return None if version is None else _finish(draft, version)


def _finish(draft: _Draft, version: int) -> LogState:
    if draft.protocol is None or draft.metadata is None:
        raise CorruptFileError(
            "the log starts without a protocol or without metadata; restore its first file",
            version=version,
        )
    return LogState(version, draft.protocol, draft.metadata, draft.adds, draft.domains)


def _require_readable(protocol: TableProtocol) -> None:
    if protocol.reader_version > READER_VERSION_MAX:
        raise UnsupportedError(
            "the table needs a newer Delta reader than ours; open it with another engine",
            reader_version=protocol.reader_version,
            reader_features=protocol.reader_features,
        )

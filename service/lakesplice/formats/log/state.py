"""Replay: the state of a table after a version of its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.errors import CorruptFileError, UnsupportedError
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
            case CommitInfo() | ApplicationTransaction() | ChangeData():
                pass
            case TableProtocol():
                _require_readable(action)
                self.protocol = action
            case TableMetadata():
                self.metadata = action


def start(version: int, actions: Iterable[Action]) -> LogState:
    """Return the state that a checkpoint, or the commit of version 0, holds by itself.

    `CorruptFileError` if it lacks protocol or metadata; `UnsupportedError` for a table that needs a
    newer reader.
    """
    return _finish(_Draft(), version, actions)


def replay(base: LogState, commits: Iterable[tuple[int, Sequence[Action]]]) -> LogState:
    """Return the state after `commits`, which follow `base` in order; without any, `base` itself.

    `CorruptFileError` if a version is missing; `UnsupportedError` as `start`.
    """
    state = base
    draft = None
    for version, actions in commits:
        if version != state.version + 1:
            raise CorruptFileError(
                "the log has a gap; restore the missing version",
                missing=state.version + 1,
                next=version,
            )
        draft = draft or _Draft(base.protocol, base.metadata, dict(base.adds), dict(base.domains))
        state = _finish(draft, version, actions)
    return state


def _finish(draft: _Draft, version: int, actions: Iterable[Action]) -> LogState:
    for action in actions:
        draft.apply(action)
    if draft.protocol is None or draft.metadata is None:
        raise CorruptFileError(
            "the log starts without a protocol or without metadata; restore its first file",
            version=version,
        )
    return LogState(version, draft.protocol, draft.metadata, draft.adds, draft.domains)


def _require_readable(protocol: TableProtocol) -> None:
    if protocol.reader_version > READER_VERSION_MAX:
        raise UnsupportedError(
            "the table needs a Delta reader version that Lakesplice doesn't have; open it with"
            " another engine",
            reader_version=protocol.reader_version,
            reader_features=protocol.reader_features,
        )

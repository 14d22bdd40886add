"""The history of a table: what each retained version did, and which version was current when."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from lakesplice.errors import CorruptFileError, MissingFileError, VersionNotFoundError
from lakesplice.formats.log.actions import DOMAIN, CommitInfo, DomainMetadata
from lakesplice.formats.log.commit_file import decode_commit
from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges, Offsets
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import listed_versions


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """What one retained version did.

    `source` has, for each Kafka partition that the version read, the first and the next offset;
    None if the version before it can't be read. For a table of several topics it is empty, and
    `sources` has the same for each topic. `gaps` lists the gaps after the version, as text, if the
    version changed them: an empty text if none is left, None if it changed none.
    """

    version: int
    info: CommitInfo
    source: OffsetRanges | None = None
    sources: Mapping[str, OffsetRanges] = field(default_factory=dict)
    gaps: str | None = None


def history(store: Store, before: int | None = None) -> Iterator[HistoryEntry]:
    """Yield the retained versions, newest first; only those before version `before` if it is given.
    Each costs one read.
    """
    newer: tuple[int, CommitInfo] | None = None
    for version in reversed(listed_versions(store)):
        if before is not None and version >= before:
            continue
        path = commit_path(version)
        infos = (a for a in decode_commit(store.read(path), path) if isinstance(a, CommitInfo))
        info = next(infos, CommitInfo(None, ""))
        if newer is not None:
            old, new = stated_offsets(info), stated_offsets(newer[1])
            moved = _moved(old.get("", {}), new.get("", {}))
            before_it, gaps = (one.parameters.get("gaps", "") for one in (info, newer[1]))
            changed = None if gaps == before_it else gaps
            yield HistoryEntry(*newer, moved, _moved_by_topic(old, new), changed)
        newer = version, info
    if newer is not None:
        yield HistoryEntry(*newer, {} if newer[0] == 0 else None)


def stated_offsets(info: CommitInfo) -> Mapping[str, Offsets]:
    """The offsets in a commit of ours, by topic; a table's only topic has an empty name. A commit
    of another writer has none.
    """
    try:
        stated = json.loads(info.parameters.get("offsets", "{}"))
        by_topic = all(isinstance(one, dict) for one in stated.values())
        return {
            str(topic): {int(number): Offset(int(offset)) for number, offset in offsets.items()}
            for topic, offsets in (stated if by_topic else {"": stated}).items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def _moved_by_topic(
    before: Mapping[str, Offsets], after: Mapping[str, Offsets]
) -> dict[str, OffsetRanges]:
    """Topics are in the order in which they joined the table, so content without a topic's name
    belongs to the first one.
    """
    topics = [topic for topic in after if topic]
    known = {**dict(zip(topics[:1], [before.get("", {})], strict=False)), **before}
    moves = {topic: _moved(known.get(topic, {}), after[topic]) for topic in topics}
    return {topic: moved for topic, moved in moves.items() if moved}


def _moved(before: Offsets, after: Offsets) -> OffsetRanges:
    return {
        number: OffsetRange(before.get(number, Offset(0)), after[number])
        for number in sorted(after)
        if before.get(number, 0) != after[number]
    }


def version_at(store: Store, timestamp_ms: EpochMs) -> int:
    """Return the newest retained version that was committed at or before a moment.

    Blocks: reads some commits. `VersionNotFoundError` if all were committed later.
    """
    versions = listed_versions(store)

    before = bisect_right(versions, timestamp_ms, key=partial(committed_ms, store))
    if not before:
        raise VersionNotFoundError(
            "no retained version is that old; ask for a later time",
            timestamp_ms=timestamp_ms,
            oldest=versions[:1],
        )
    return versions[before - 1]


def committed_ms(store: Store, version: int) -> EpochMs:
    """Return when a version was committed; if another program committed it and doesn't say when,
    the time of the version before it. `NO_MOMENT` if no older one says it, either. Blocks.

    `CorruptFileError` for a version of ours that doesn't say it.
    """
    while version >= 0:
        path = commit_path(version)
        try:
            actions = decode_commit(store.read(path), path)
        except MissingFileError:
            break
        for action in actions:
            if isinstance(action, CommitInfo) and action.timestamp_ms is not None:
                return action.timestamp_ms
        if any(isinstance(one, DomainMetadata) and one.domain == DOMAIN for one in actions):
            raise CorruptFileError(
                "a version of Lakesplice in the log has no time; restore its file", path=path
            )
        version -= 1
    return NO_MOMENT

"""The story of a key: its address in the index, its row, and every change and record of it."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.manifest import Manifest
from lakesplice.model.parking import ParkReason
from lakesplice.planning.keys.requested_key import KeyValues, RequestedKey
from lakesplice.table.explaining.record_fates import RecordFates
from lakesplice.table.explaining.record_values import RecordAccess, RecordFate
from lakesplice.table.explaining.row_states import RowState
from lakesplice.table.explaining.version_walk import IndexEntry, KeyChange, VersionWalk
from lakesplice.table.files.dead_letters import DeadLetter, dead_letters_of
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot

RECORDS_MAX = 100_000


@dataclass(frozen=True)
class KeyStory:
    """Everything that a table and its topics show of a key, as of `version`.

    `first` is the oldest version that can be read; with `vacuumed`, older ones existed and were
    vacuumed. `entries` are the key's index entries, those of the newest run first. `dead_letters`
    are those of the key; `unclear_dead_letters` counts those whose key can't be compared with it.
    `records` are the records of the key that were read again from the topics, in the order in which
    the table read them; `left_out` says in words which records were not read again.
    """

    key: RequestedKey
    version: int
    first: int
    vacuumed: bool
    entries: tuple[IndexEntry, ...]
    row: RowState | None
    changes: tuple[KeyChange, ...]
    dead_letters: tuple[DeadLetter, ...]
    unclear_dead_letters: int
    parked: tuple[ParkReason, ...]
    records: tuple[RecordFate, ...] = ()
    left_out: tuple[str, ...] = ()


def explain_key(
    store: Store,
    snapshot: Snapshot,
    key_values: KeyValues,
    *,
    values: bool = False,
    access: RecordAccess | None = None,
    records_max: int = RECORDS_MAX,
) -> KeyStory:
    """Return the story of a key, with the row's values only if `values` is set.

    `key_values` is the key's value; for several key columns a sequence in key order, or a mapping.
    With `access`, at most `records_max` records of each of the table's topics are read again.
    Blocks: reads the manifest of each retained version, and what these have of the key.
    `UsageError` if the values are no key of the table, `CorruptFileError` for a damaged file,
    `SourceUnavailable`.
    """
    manifest = snapshot.manifest
    key = RequestedKey.of(manifest.schema, key_values)
    walk = VersionWalk(store, key, values=values)
    versions = walk.versions(snapshot)
    dead_letters, undecided = _dead_letters(store, manifest, key)
    records, left_out = list[RecordFate](), list[str]()
    for topic in manifest.sources if access is not None else ():
        assert access is not None
        fates, skipped = RecordFates(store, walk, versions, access).of_topic(topic, records_max)
        records += fates
        left_out += [f"{topic}: {what}" for what in skipped]
    return KeyStory(
        key=key,
        version=snapshot.version,
        first=versions[0].number,
        vacuumed=versions[0].number > 0,
        entries=tuple(walk.entries(manifest)),
        row=walk.state(versions[-1]),
        changes=tuple(walk.changes(versions)),
        dead_letters=dead_letters,
        unclear_dead_letters=undecided,
        parked=manifest.parkings,
        records=tuple(records),
        left_out=tuple(left_out),
    )


def _dead_letters(
    store: Store, manifest: Manifest, key: RequestedKey
) -> tuple[tuple[DeadLetter, ...], int]:
    def is_of(letter: DeadLetter) -> bool | None:
        source = manifest.sources.get(letter.topic)
        return key.is_of(letter.key, manifest.schema, dict(source.shard) if source else {})

    answers = [(one, is_of(one)) for one in dead_letters_of(store, manifest.dead_letters)]
    undecided = sum(1 for _, is_of_key in answers if is_of_key is None)
    return tuple(one for one, is_of_key in answers if is_of_key), undecided

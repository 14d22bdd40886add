"""The story of a key: where the index has it, its row, and what became of all that changed it."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.manifest import Manifest, ParkReason
from lakesplice.table.explaining.asked_key import AskedKey, KeyValues
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
    """All that a table says of a key, at `version`.

    Of versions below `first` nothing is known any more: `vacuumed` says whether such are gone.
    `entries` come with the newest run first. `letters` are dead letters of the key;
    `unclear_letters` counts those of which nobody can tell. `records` are those of its topics that
    were read again, in the order in which they were taken; `left_out` says which weren't.
    """

    key: AskedKey
    version: int
    first: int
    vacuumed: bool
    entries: tuple[IndexEntry, ...]
    row: RowState | None
    changes: tuple[KeyChange, ...]
    letters: tuple[DeadLetter, ...]
    unclear_letters: int
    parked: tuple[ParkReason, ...]
    records: tuple[RecordFate, ...] = ()
    left_out: tuple[str, ...] = ()


def explain_key(
    store: Store,
    snapshot: Snapshot,
    given: KeyValues,
    *,
    values: bool = False,
    access: RecordAccess | None = None,
    records_max: int = RECORDS_MAX,
) -> KeyStory:
    """Return the story of a key, with the row's values only if asked for.

    `given` is the key's value; of several columns a sequence in key order, or a mapping. With
    `access` at most `records_max` records of each of the table's topics are read again. Blocks:
    reads each retained version's manifest, and what it has of the key. `UsageError` for what is no
    key of the table, `CorruptFileError` for a damaged file, `SourceUnavailable`.
    """
    manifest = snapshot.manifest
    key = AskedKey.of(manifest.schema, given)
    walk = VersionWalk(store, key, values=values)
    versions = walk.versions(snapshot)
    letters, unclear = _letters(store, manifest, key)
    records, left_out = list[RecordFate](), list[str]()
    for topic in manifest.sources if access is not None else ():
        assert access is not None
        told, missing = RecordFates(store, walk, versions, access).of_topic(topic, records_max)
        records += told
        left_out += [f"{topic}: {what}" for what in missing]
    return KeyStory(
        key=key,
        version=snapshot.version,
        first=versions[0].number,
        vacuumed=versions[0].number > 0,
        entries=tuple(walk.entries(manifest)),
        row=walk.state(versions[-1]),
        changes=tuple(walk.changes(versions)),
        letters=letters,
        unclear_letters=unclear,
        parked=manifest.parkings,
        records=tuple(records),
        left_out=tuple(left_out),
    )


def _letters(store: Store, manifest: Manifest, key: AskedKey) -> tuple[tuple[DeadLetter, ...], int]:
    def is_of(letter: DeadLetter) -> bool | None:
        source = manifest.sources.get(letter.topic)
        return key.is_of(letter.key, manifest.schema, dict(source.shard) if source else {})

    judged = [(one, is_of(one)) for one in dead_letters_of(store, manifest.dead_letters)]
    unclear = sum(1 for _, told in judged if told is None)
    return tuple(one for one, told in judged if told), unclear

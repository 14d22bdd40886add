"""Finds a version by a pin's name, or by the offsets that the table had reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakesplice.errors import UsageError, VersionNotFoundError
from lakesplice.formats.log.actions import DOMAIN, Add, DomainMetadata
from lakesplice.formats.manifests import Pointer, encode_pointer
from lakesplice.model.manifest import Pin
from lakesplice.table.protocol.history import history, stated_offsets
from lakesplice.table.protocol.new_files import partition_values
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot, read_manifest, read_pointer

GivenOffsets = Mapping[int, int]


def open_pinned(store: Store, name: str) -> tuple[Pin, Snapshot]:
    """Return a table's pin, and the pinned version, read from the copy of its manifest.

    Blocks. `UsageError` if the newest version has no such pin; otherwise as `open_snapshot`.
    """
    newest = open_snapshot(store)
    pin = newest.manifest.retention.pin(name)
    if pin is None:
        known = [one.name for one in newest.manifest.retention.pins]
        raise UsageError(
            "the table has no such pin; give one of the known ones", pin=name, known=known
        )
    manifest = read_manifest(store, pin.copy)
    # The log may no longer have the version. It would name the same files.
    adds = {
        path: Add(
            path,
            file.bytes,
            pin.timestamp_ms,
            True,
            None,
            partition_values(manifest.schema, file),
        )
        for path, file in manifest.files.items()
    }
    pointer = encode_pointer(Pointer(pin.version, pin.timestamp_ms, pin.copy))
    domains = {**newest.log.domains, DOMAIN: DomainMetadata(DOMAIN, pointer)}
    log = replace(newest.log, version=pin.version, adds=adds, domains=domains)
    return pin, Snapshot(pin.version, pin.timestamp_ms, log, manifest)


def version_at_offsets(store: Store, offsets: GivenOffsets | Mapping[str, GivenOffsets]) -> int:
    """Return the newest retained version that has exactly the records before these offsets.

    `offsets` has the next offset of each partition of the table's topic; for several topics, by
    their names. Blocks: reads commits, the newest first. `UsageError` for a partition that is
    missing or unknown. `VersionNotFoundError`, which names the newest version that has no later
    record, if no retained version is at these offsets.
    """
    wanted = _by_topic(store, offsets)
    below: int | None = None
    for entry in history(store):
        stands = stated_offsets(entry.info)
        stood = {topic: stands.get(topic, stands.get("", {})) for topic in wanted}
        stands_there = all(_equal(stood[topic], wanted[topic]) for topic in wanted)
        if stands_there and _holds_no_more(store, entry.version):
            return entry.version
        if below is None and all(_below(stood[topic], wanted[topic]) for topic in wanted):
            below = entry.version
    raise VersionNotFoundError(
        "no retained version ends at these offsets; give the offsets at which a version ends",
        offsets=dict(offsets),
        newest_before=below,
    )


def _by_topic(
    store: Store, offsets: GivenOffsets | Mapping[str, GivenOffsets]
) -> dict[str, dict[int, int]]:
    sources = open_snapshot(store).manifest.sources
    wanted: dict[str, dict[int, int]] = {}
    for at, found in offsets.items():
        if isinstance(found, Mapping):
            wanted[str(at)] = {int(number): int(offset) for number, offset in found.items()}
        elif len(sources) == 1:
            wanted.setdefault(next(iter(sources)), {})[int(at)] = int(found)
    expected = {topic: set(source.partitions) for topic, source in sources.items()}
    if not sources or {topic: set(found) for topic, found in wanted.items()} != expected:
        raise UsageError(
            "give the next offset of each partition of the table's topic; for several topics, by"
            " their names",
            partitions={topic: sorted(numbers) for topic, numbers in expected.items()},
        )
    return wanted


def _holds_no_more(store: Store, version: int) -> bool:
    """Whether a version has no records after its offsets, as it can have once offsets were set
    back.
    """
    manifest = read_manifest(store, read_pointer(store, version).manifest)
    states = (state for one in manifest.sources.values() for state in one.partitions.values())
    return all(state.met_until <= state.next_offset for state in states)


def _equal(stood: GivenOffsets, wanted: GivenOffsets) -> bool:
    return all(stood.get(at, 0) == offset for at, offset in wanted.items())


def _below(stood: GivenOffsets, wanted: GivenOffsets) -> bool:
    return all(stood.get(at, 0) <= offset for at, offset in wanted.items())

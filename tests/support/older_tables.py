"""Turns a table into one that an earlier version wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from lakesplice.formats.checksum import checksum
from lakesplice.formats.deltas import decode_delta
from lakesplice.formats.log.actions import DomainMetadata
from lakesplice.formats.log.commit_file import decode_commit, encode_commit
from lakesplice.formats.manifests.codec import encode_manifest
from lakesplice.formats.manifests.pointer import encode_pointer
from lakesplice.model.manifest import DeltaRef, FileRef, Manifest
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.snapshot import (
    listed_versions,
    open_snapshot,
    read_manifest,
    read_pointer,
)
from lakesplice.testing.older_deltas import encode_avro_delta


def give_deltas_in_avro(root: Path) -> int:
    """Write every delta of every version as versions before format number 12 did, and the manifests
    that name them; return how many deltas there were.

    The table in `root` has no checkpoint. Who has it open has to open it again.
    """
    store = LocalStore(root)
    made: dict[str, FileRef] = {}
    for version in listed_versions(store):
        pointer = read_pointer(store, version)
        manifest = read_manifest(store, pointer.manifest)
        deltas = tuple(_in_avro(store, manifest, delta, made) for delta in manifest.deltas)
        data = encode_manifest(replace(manifest, deltas=deltas))
        (root / pointer.manifest.path).write_bytes(data)
        ref = replace(pointer.manifest, bytes=len(data), checksum=checksum(data))
        path = commit_path(version)
        actions = [
            replace(action, configuration=encode_pointer(replace(pointer, manifest=ref)))
            if isinstance(action, DomainMetadata)
            else action
            for action in decode_commit(store.read(path), path)
        ]
        (root / path).write_bytes(encode_commit(actions))
    for name in made:
        (root / name).unlink()
    return len(made)


def format_number(root: Path) -> int:
    """The format number of a table's newest manifest."""
    store = LocalStore(root)
    pointer = read_pointer(store, open_snapshot(store).version)
    number: int = json.loads(store.read(pointer.manifest.path))["format"]
    return number


def _in_avro(
    store: LocalStore, manifest: Manifest, delta: DeltaRef, made: dict[str, FileRef]
) -> DeltaRef:
    path, version = delta.file.path, delta.schema_version
    if path not in made:
        then = manifest.schema.at(version)
        changes = decode_delta(store.read(path), then, version, path=path)
        absent = [
            name
            for name in then.names
            if name not in then.key and changes[name].null_count == len(changes)
        ]
        data = encode_avro_delta(changes.drop_columns(absent), then)
        older = path.replace(".parquet", ".avro")
        assert store.put_new(older, data)
        made[path] = FileRef(older, len(data), checksum(data))
    return replace(delta, file=made[path])

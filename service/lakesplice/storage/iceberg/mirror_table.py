"""The mirror of one table in an Iceberg catalog; see `MirrorCatalog`.

The Iceberg table's location is our table's folder. So the credentials that a catalog gives for the
Iceberg table open the base files, too. Its metadata is in a folder of its own there
(`write.metadata.path`). `gc.enabled` is false: then engines delete none of our files, neither with
snapshots nor as orphans nor with the table. pyiceberg doesn't retry commits
(`commit.retry.num-retries`), since a retry would be on a snapshot that nobody compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    ServerError,
    TableAlreadyExistsError,
)
from pyiceberg.io import load_file_io
from pyiceberg.manifest import DataFile, ManifestContent
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update.snapshot import UpdateSnapshot

from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.planning.mirroring.columns import MirrorSchema, SchemaChange
from lakesplice.storage.iceberg.catalog_errors import explained
from lakesplice.storage.iceberg.entries import data_file
from lakesplice.storage.iceberg.schemas import (
    columns_of,
    first_schema,
    mapping_of,
    mapping_text,
    name_mapping,
    partition_spec,
    steps,
)
from lakesplice.table.protocol.layout import MIRRORS
from lakesplice.table.upkeep.mirroring.mirror_catalog import (
    MirrorCommit,
    MirrorSnapshot,
    MirrorState,
)
from lakesplice.table.upkeep.mirroring.mirror_floor import incarnation_folder

_TABLE, _INCARNATION = "lakesplice.table", "lakesplice.incarnation"
_VERSION, _COMMITTED_MS = "lakesplice.version", "lakesplice.committed-ms"
_METADATA_PATH, _GC = "write.metadata.path", "gc.enabled"
_PREVIOUS_METADATA = "20"
# The name of Iceberg's error for a file that a server doesn't find.
_GONE_AT_SERVER = "NotFoundException"

Method = TypeVar("Method", bound=Callable[..., Any])


def _explaining(method: Method) -> Method:
    @wraps(method)
    def explaining(self: IcebergMirror, *arguments: Any) -> Any:
        with explained(self.catalog.properties):
            return method(self, *arguments)

    return cast(Method, explaining)


class IcebergMirror:
    """See `MirrorCatalog`. Errors as `catalog_errors.explained` has them."""

    def __init__(self, catalog: Catalog, identifier: tuple[str, str], location: str) -> None:
        self.catalog = catalog
        self._identifier = identifier
        self._location = location

    @_explaining
    def load(self) -> MirrorState | None:
        """See `MirrorCatalog.load`."""
        try:
            table = self.catalog.load_table(self._identifier)
        except NoSuchTableError:
            return None
        except (FileNotFoundError, ServerError) as error:
            cause = str(error)
            if isinstance(error, ServerError) and _GONE_AT_SERVER not in cause:
                raise
            if self._was_mirror(cause):
                return None
            raise UsageError(
                "the catalog's entry of this name points to metadata that can't be found, and isn't"
                " known to be an earlier mirror's; drop the entry in the catalog, or set"
                " iceberg.namespace",
                table=".".join(self._identifier),
                reason=cause,
            ) from error
        properties = table.properties
        if properties.get(_TABLE) != self._location:
            raise UsageError(
                "the catalog has another table of this name; rename or drop it there, or set"
                " iceberg.namespace",
                table=".".join(self._identifier),
                location=table.location(),
            )
        ours = [_mirror_snapshot(one) for one in table.metadata.snapshots]
        files, defect = _files(table, self._location)
        if ours and ours[-1] is None:
            defect = "another writer changed it"
        return MirrorState(
            incarnation=properties.get(_INCARNATION, ""),
            columns=columns_of(table.schema()),
            mapped=frozenset(mapping_of(properties[TableProperties.DEFAULT_NAME_MAPPING])),
            partitioned_by=tuple(field.name for field in table.spec().fields),
            snapshots=tuple(one for one in ours if one is not None),
            files=files,
            defect=defect,
            handle=table,
        )

    def _was_mirror(self, cause: str) -> bool:
        """Whether an error names a file of an earlier mirror of this table, and the file is gone.

        That is so if its path is in the table's folder of mirrors. It happens if `iceberg.catalog`
        is set to another catalog and back.
        """
        folder = re.escape(f"{self._location.removeprefix('file://')}/{MIRRORS}/")
        # To its end: what follows it in the error, such as a full stop, isn't part of the name.
        ended = r"[\w./-]+\.metadata\.json(?![\w-])"
        named = re.search(rf"(?<![\w/.~-])(?:file:(?://)?)?({folder}{ended})", cause)
        if named is None:
            return False
        # A server that lacks a right, or a mounted folder, doesn't find a file that is there.
        io = load_file_io(dict(self.catalog.properties), self._location)
        return not io.new_input(named[1]).exists()

    @_explaining
    def create(self, incarnation: str, schema: MirrorSchema, commit: MirrorCommit) -> bool:
        """See `MirrorCatalog.create`."""
        fields = first_schema(schema)
        mapping = name_mapping(fields, {}, schema.unshown)
        folder = f"{self._location}/{incarnation_folder(incarnation)}"
        self.catalog.create_namespace_if_not_exists(self._identifier[:-1])
        try:
            transaction = self.catalog.create_table_transaction(
                self._identifier,
                fields,
                location=self._location,
                partition_spec=partition_spec(schema, fields),
                properties={
                    _TABLE: self._location,
                    _INCARNATION: incarnation,
                    _METADATA_PATH: folder,
                    _GC: "false",
                    TableProperties.DEFAULT_NAME_MAPPING: mapping_text(mapping),
                    TableProperties.COMMIT_NUM_RETRIES: "0",
                    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: _PREVIOUS_METADATA,
                },
            )
            self._add_snapshot(transaction, commit, {})
            transaction.commit_transaction()
        except (CommitFailedException, TableAlreadyExistsError):
            return False
        return True

    @_explaining
    def commit(
        self, state: MirrorState, schema: MirrorSchema, change: SchemaChange, commit: MirrorCommit
    ) -> bool:
        """See `MirrorCatalog.commit`."""
        table: Table = state.handle
        before = mapping_of(table.properties[TableProperties.DEFAULT_NAME_MAPPING])
        transaction = table.transaction()
        try:
            if change:
                _change_schema(transaction, change)
            fields = transaction.table_metadata.schema()
            mapping = name_mapping(fields, before, schema.unshown)
            if mapping != before:
                transaction.set_properties(
                    {TableProperties.DEFAULT_NAME_MAPPING: mapping_text(mapping)}
                )
            self._add_snapshot(transaction, commit, state.files)
            transaction.commit_transaction()
        except CommitFailedException:
            return False
        return True

    @_explaining
    def expire(self, state: MirrorState, snapshots: Collection[int]) -> bool:
        """See `MirrorCatalog.expire`."""
        table: Table = state.handle
        try:
            table.maintenance.expire_snapshots().by_ids(sorted(snapshots)).commit()
        except CommitFailedException:
            return False
        return True

    @_explaining
    def needed(self, state: MirrorState) -> frozenset[str]:
        """See `MirrorCatalog.needed`."""
        table: Table = state.handle
        paths = [table.metadata_location]
        paths += [entry.metadata_file for entry in table.metadata.metadata_log]
        for snapshot in table.metadata.snapshots:
            paths.append(snapshot.manifest_list)
            paths += [manifest.manifest_path for manifest in snapshot.manifests(table.io)]
        return frozenset(path.rpartition("/")[2] for path in paths)

    @_explaining
    def drop(self) -> None:
        """See `MirrorCatalog.drop`."""
        try:
            self.catalog.drop_table(self._identifier)
        except NoSuchTableError:
            return

    def _add_snapshot(
        self, transaction: Transaction, commit: MirrorCommit, present: Mapping[str, Any]
    ) -> None:
        metadata = transaction.table_metadata
        fields, spec_id = metadata.schema(), metadata.default_spec_id
        said = {_VERSION: str(commit.version), _COMMITTED_MS: str(commit.committed_ms)}
        with _update(transaction, said).overwrite() as snapshot:
            for path in commit.removed:
                snapshot.delete_data_file(present[path])
            for file in commit.added:
                snapshot.append_data_file(data_file(file, self._location, fields, spec_id))


def _update(transaction: Transaction, said: dict[str, str]) -> UpdateSnapshot:
    return transaction.update_snapshot(snapshot_properties=said)


def _change_schema(transaction: Transaction, change: SchemaChange) -> None:
    with transaction.update_schema() as update:
        for step, name, kind in steps(change):
            if step == "remove":
                update.delete_column((name,))
            elif step == "add":
                assert kind is not None
                update.add_column((name,), kind)
            else:
                update.update_column((name,), field_type=kind)


def _mirror_snapshot(snapshot: Snapshot) -> MirrorSnapshot | None:
    said = snapshot.summary.additional_properties if snapshot.summary is not None else {}
    version, committed_ms = said.get(_VERSION), said.get(_COMMITTED_MS)
    if version is None or committed_ms is None:
        return None
    return MirrorSnapshot(snapshot.snapshot_id, int(version), EpochMs(int(committed_ms)))


def _files(table: Table, location: str) -> tuple[dict[str, DataFile], str]:
    """Return the present snapshot's files by their paths in our table, and why the mirror can't be
    continued: empty if it can.
    """
    snapshot = table.current_snapshot()
    if snapshot is None:
        return {}, ""
    found = {}
    try:
        for manifest in snapshot.manifests(table.io):
            if manifest.content is not ManifestContent.DATA:
                return {}, "another writer deleted rows in it"
            for entry in manifest.fetch_manifest_entry(table.io):
                found[entry.data_file.file_path.removeprefix(f"{location}/")] = entry.data_file
    except FileNotFoundError:
        return {}, "its metadata files are gone"
    return found, ""

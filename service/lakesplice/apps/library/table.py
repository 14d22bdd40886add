"""What Python programs import: `lakesplice.Table`, wired to the storage that its address names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import pyarrow as pa

from lakesplice.apps.requested_versions import AtOffsets, requested_snapshot
from lakesplice.model.names import names_list
from lakesplice.planning.keys.requested_key import KeyValues
from lakesplice.planning.upkeep.retention import RETENTION_SECONDS
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.stores import (
    AnyStore,
    log_keeper,
    open_sink,
    open_store,
    require_usable_address,
)
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.by_hand.adoption.adopt import Adoption, adopt_table, plan_adoption
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.input_rows import Rows
from lakesplice.table.by_hand.new_table import Tools, create_table
from lakesplice.table.by_hand.upserts.upsert_request import require_fed_by_hand
from lakesplice.table.by_hand.writer import THREADS
from lakesplice.table.explaining.key_story import KeyStory, explain_key
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.ports import UNWATCHED, Progress
from lakesplice.table.reading.table import Moment
from lakesplice.table.upkeep.erasing.erasure import Erased, ErasureTools, erase, plan_erasure
from lakesplice.table.upkeep.erasing.found_parts import WantedKeys
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.vacuum import require_hours

if TYPE_CHECKING:
    from lakesplice.apps.library.iceberg_mirror import Mirrored


class Table(HandFedTable):
    """A table of a lake; open it by its folder, or make one that is fed by hand."""

    @classmethod
    def open(
        cls,
        uri: str | Path,
        *,
        version: int | None = None,
        as_of: Moment | None = None,
        pin: str | None = None,
        at_offsets: AtOffsets | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a table by its folder, `<lake>/<database>/<table>`: a path, or an address that
        starts with `file:`, `s3:`, `gs:` or `az:`.

        By default the newest version is opened. Otherwise it is the one with this number, the one
        that was the newest at a moment (see `Table.scan`), that of a pin (`lakesplice pin`), or the
        one that has exactly the records before some offsets: for each partition of its topic the
        next offset, or for several topics a mapping of their names to these. `options` say how to
        reach an object store, such as `aws_endpoint`; other settings come from the environment.
        Blocks: reads the log and the manifest. Raises `TableNotFoundError`, `VersionNotFoundError`,
        `StorageError`, and `UsageError` for an invalid address and for a pin that doesn't exist or
        isn't complete.
        """
        store = open_store(uri, options)
        snapshot = requested_snapshot(
            store, version=version, as_of=as_of, pin=pin, at_offsets=at_offsets
        )
        return cls(store, _tools(store), snapshot=snapshot)

    @classmethod
    def create(
        cls,
        uri: str | Path,
        data: pa.Schema | Rows,
        *,
        key: str | Sequence[str],
        insert_only: bool = False,
        change_feed: bool = False,
        stats_columns: str | Sequence[str] = (),
        cluster_by: str | Sequence[str] = (),
        bloom_filters: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a table that is fed by hand, with the rows of `data` or, if it is a schema, without
        rows.

        `uri` and `options` are as in `open`; `key` names its key columns, or its only one. Blocks;
        a stream is written as it comes. With `insert_only` its rows never change; a row with a
        known key is skipped. With `change_feed` Delta readers have a change feed of it (see
        `set_change_feed`). `stats_columns` are texts and moments by whose bounds Delta readers skip
        files (in addition to whole numbers, decimals and dates). `cluster_by` are the columns by
        which `optimize` lays files out, by their stored names. With `bloom_filters` base files have
        bloom filters of the key columns. Either all rows are visible or none. `UsageError` if the
        folder has a table, for a column type without an exact counterpart, and if a key is null or
        occurs twice.
        """
        store = open_store(uri, options)
        require_usable_address(store)
        tools = _tools(store)
        create_table(
            store,
            data,
            names_list(key),
            tools,
            insert_only=insert_only,
            change_feed=change_feed,
            stats_columns=names_list(stats_columns),
            cluster_by=names_list(cluster_by),
            bloom_filters=bloom_filters,
        )
        return cls(store, tools)

    @classmethod
    def adopt(
        cls,
        uri: str | Path,
        *,
        key: str | Sequence[str],
        insert_only: bool = False,
        options: Mapping[str, str] | None = None,
        progress: Progress = UNWATCHED,
    ) -> Self:
        """Make a Delta table, or a folder of Parquet files, a table that is fed by hand, where it
        stands; its files are unchanged until rows of them change.

        `uri` and `options` are as for `open`, `key` and `insert_only` as for `create`. Nobody else
        may write it meanwhile, nor afterwards. `progress` counts rows. Blocks; reads every key. One
        commit makes it ours, or nothing has changed: `UsageError` for a key that is null or
        repeated, and for a table that is ours already; `UnsupportedError` that names all obstacles
        and what to do; `RetryableError` if another process wrote meanwhile; `TableNotFoundError`,
        `CorruptFileError`, `StorageError`. `Table.adoption` says beforehand what it would do.
        """
        store = open_store(uri, options)
        require_usable_address(store)
        tools = _tools(store)
        adopt_table(
            store,
            names_list(key),
            tools.clock,
            tools.entropy,
            insert_only=insert_only,
            progress=progress,
        )
        return cls(store, tools)

    @staticmethod
    def adoption(
        uri: str | Path,
        *,
        key: str | Sequence[str],
        options: Mapping[str, str] | None = None,
        progress: Progress = UNWATCHED,
    ) -> Adoption:
        """Return what `adopt` would do; changes nothing. Errors as `adopt`."""
        store = open_store(uri, options)
        require_usable_address(store)
        return plan_adoption(store, names_list(key), progress=progress)

    def erase(
        self,
        keys: Sequence[KeyValues],
        *,
        also_live: bool = False,
        dry_run: bool = False,
        progress: Progress = UNWATCHED,
    ) -> Erased:
        """Erase the rows of some keys: their values leave every file of the table, and all older
        versions end. The new version is then open.

        Each key is as in `explain`; a key that no row has counts as erased. Rows that aren't
        deleted are erased only with `also_live`. With `dry_run` nothing changes, and a source may
        feed the table; the result says what there is. Blocks; rewrites each base file that has one
        of the rows, which `progress` follows by the files' bytes. May be called again after any
        error. `UsageError` if a row isn't deleted, if a version is pinned, while the table is being
        filled again, and for a table that a source feeds: `lakesplice erase` erases there.
        `RetryableError` if other writers always committed first; `CorruptFileError`,
        `StorageError`.
        """
        manifest = self.refresh().snapshot.manifest
        wanted = WantedKeys.requested(manifest.schema, keys)
        if dry_run:
            return plan_erasure(self._store, self.snapshot, wanted)
        require_fed_by_hand(manifest)
        writer = self._writer
        made = writer.tools
        tools = ErasureTools(
            store=self._store,
            commit=writer.commit,
            generation=manifest.generation,
            clock=made.clock,
            entropy=made.entropy,
            rewriter=made.rewriter,
            keeper=made.keeper,
            retries=writer.retries,
            progress=progress,
        )
        done = erase(tools, self.snapshot, wanted, also_live=also_live)
        self.refresh()
        return done

    def mirror_iceberg(
        self,
        catalog: Mapping[str, str],
        *,
        namespace: str = "",
        retention_hours: float = RETENTION_SECONDS / 3600,
        dry_run: bool = False,
    ) -> Mirrored:
        """Let an Iceberg table show the newest version's base files; return what was done.

        `catalog` has pyiceberg's properties of the catalog, such as `type` and `uri`. The Iceberg
        table is called as the table's folder, in `namespace` or in one called as its database's
        folder (docs/iceberg.md). Each call makes at most one snapshot, with all that came since the
        last one; snapshots that were replaced more than `retention_hours` ago are forgotten, and
        `vacuum` keeps files until then. With `dry_run` nothing changes, and the result says what
        the mirror lacks. Blocks; may be called again after any error. `UsageError` if the catalog
        has another table of that name, and for a table that a source feeds: its setting `also` does
        it. `ConfigurationError`, `StorageError` as the catalog refuses or doesn't answer,
        `RetryableError` if another process always changed the mirror first.
        """
        from lakesplice.apps.library.iceberg_mirror import mirror_table, open_catalog, plan_mirror

        require_hours(retention_hours)
        snapshot, tools = self.refresh().snapshot, self._writer.tools
        store = cast(AnyStore, self._store)
        opened = open_catalog(store, catalog, namespace)
        if dry_run:
            return plan_mirror(store, snapshot, opened, tools)
        return mirror_table(store, snapshot, opened, tools, retention_hours * 3600)

    def end_iceberg_mirror(self, catalog: Mapping[str, str], *, namespace: str = "") -> None:
        """Drop the mirror in its catalog and delete its metadata; does nothing if there is none.

        Arguments and errors as in `mirror_iceberg`.
        """
        from lakesplice.apps.library.iceberg_mirror import open_catalog, require_no_source

        require_no_source(self.refresh().snapshot.manifest)
        opened = open_catalog(cast(AnyStore, self._store), catalog, namespace)
        Mirror(self._store, opened, self._writer.tools.entropy).end()

    def explain(self, key: KeyValues, *, values: bool = False) -> KeyStory:
        """Return why the row of a key is as it is in the open version: its address in the index,
        the base file and the waiting changes, and which retained version changed it, and how.

        `key` is the key's value; for several columns a sequence in key order, or a mapping. The
        row's values are included only with `values`. Blocks: reads the manifest of each retained
        version, and what it has of the key. `UsageError` if the value is no key of the table. What
        became of each record of the topic is shown only by the command `lakesplice explain-key`.
        """
        return explain_key(self._store, self.snapshot, key, values=values)


def _tools(store: AnyStore) -> Tools:
    return Tools(
        SystemClock(),
        SystemEntropy(),
        best_rewriter(open_sink, THREADS, ScratchFile),
        log_keeper(store),
        open_sink,
        ScratchFile,
    )

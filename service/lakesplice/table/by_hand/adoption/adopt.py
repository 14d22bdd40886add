"""Adoption: a Delta table, or a folder of Parquet files, becomes a table of Lakesplice in its
place.

    survey     read the log or list the folder, and read every file's footer: columns, rows, what
               must be rewritten
    index      read the keys of all files, one range of hashes at a time; refuse null and repeated
               keys
    rewrite    only files with columns that Delta readers wouldn't recognise as the table's, and
               files of partitions: their pages are copied, and the partition's values added as
               columns
    commit     one version that names the files; for a folder it is version 0

A crash before the commit leaves files that no version names. No other process may write meanwhile:
if one writes to the Delta table, the commit is refused; a folder is listed again before the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakesplice.errors import RetryableError, TableNotFoundError, UnsupportedError
from lakesplice.formats.log.actions import CommitInfo
from lakesplice.formats.log.commit_file import decode_commit
from lakesplice.formats.log.state import LogState
from lakesplice.formats.parquet.adopted import in_layout
from lakesplice.model.address import GROUP_BITS, BaseFile, Segment
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import NO_MOMENT
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.adopted_partitions import Constants, of_folders, of_log
from lakesplice.planning.by_hand.adoption import (
    common_columns,
    delta_columns,
    kept_properties,
    refuse,
)
from lakesplice.planning.by_hand.hand_fed_schema import adopted_schema
from lakesplice.planning.upkeep.retention import LOG_RETENTION_HOURS
from lakesplice.table.by_hand.adoption.adopted_files import (
    ForeignFile,
    FoundFile,
    data_files,
    look_into,
    with_constants,
)
from lakesplice.table.by_hand.adoption.adopted_keys import indexed
from lakesplice.table.files.base_files import create_base, create_base_of
from lakesplice.table.files.index_runs import write_run
from lakesplice.table.files.inner_tables import require_no_inner_tables
from lakesplice.table.protocol.commit import Committed, take_over
from lakesplice.table.protocol.intents import Adopt
from lakesplice.table.protocol.layout import base_path, commit_path, run_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import UNWATCHED, Clock, Entropy, Progress, Store
from lakesplice.table.protocol.snapshot import Snapshot, read_log


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption does, or would do.

    `version` is the first version of ours. `rewritten` maps the files that can't stay as they are
    to the reason. `columns` maps names to types.
    """

    version: int
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    files: int
    rows: int
    bytes: int
    rewritten: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AdoptionSurvey:
    """What was found: the log's state (None for a folder), the columns, the files."""

    log: LogState | None
    schema: TableSchema
    files: tuple[FoundFile, ...]

    @property
    def adoption(self) -> Adoption:
        """What the adoption would do."""
        return Adoption(
            version=0 if self.log is None else self.log.version + 1,
            key=self.schema.key,
            columns=tuple((column.name, column.type.name) for column in self.schema.columns),
            files=len(self.files),
            rows=sum(file.rows for file in self.files),
            bytes=sum(file.bytes for file in self.files),
            rewritten={file.path: "; ".join(file.unfit) for file in self.files if file.unfit},
        )


def plan_adoption(store: Store, key: Sequence[str], *, progress: Progress = UNWATCHED) -> Adoption:
    """Return what the adoption of `store`'s root would do; writes nothing, reads every key.

    Raises the errors of `adopt_table` as far as they can be known before.
    """
    survey = _survey(store, key)
    numbered = dict(enumerate(survey.files))
    for _ in indexed(store, survey.schema, numbered, progress=progress):
        pass
    return survey.adoption


def adopt_table(
    store: Store,
    key: Sequence[str],
    clock: Clock,
    entropy: Entropy,
    *,
    insert_only: bool = False,
    progress: Progress = UNWATCHED,
) -> Adoption:
    """Turn the Delta table or the Parquet files in `store`'s root into a table fed by hand.

    `key` names its key columns in key order; with `insert_only` its rows never change. Blocks:
    reads every footer and every key. Memory holds some million keys at a time, and a row group.
    After an error nothing has changed: `UsageError` for a key that is null or repeated, or that
    files lack, and for a table that is ours already; `UnsupportedError` that names all obstacles;
    `RetryableError` if somebody wrote meanwhile; `TableNotFoundError` if there is nothing;
    `CorruptFileError`, `StorageError`.
    """
    survey = _survey(store, key)
    log, schema = survey.log, survey.schema
    groups = {entropy.bits(GROUP_BITS): file for file in survey.files}
    rows = survey.adoption.rows
    entries = indexed(store, schema, groups, progress=progress)
    run = write_run(store, run_path(entropy), entries, rows)
    intent = Adopt(
        0,
        schema,
        files=tuple(
            _as_base_file(store, file, group, schema, entropy) for group, file in groups.items()
        ),
        runs=(run,) if run.entries else (),
        gone=() if log is None else tuple(log.adds[f.path] for f in survey.files if f.unfit),
        properties={} if log is None else kept_properties(log.metadata),
        log_retention_hours=LOG_RETENTION_HOURS,
        insert_only=insert_only,
        counts={"files": len(survey.files), "rewritten": len(survey.adoption.rewritten)},
    )
    if log is None and tuple(data_files(store)) != tuple(file.path for file in survey.files):
        raise RetryableError(
            "files were added or removed meanwhile; stop all writers and adopt again"
        )
    before = None if log is None else _before(store, log)
    outcome = take_over(store, before, intent, clock=clock, entropy=entropy)
    if not isinstance(outcome, Committed):
        raise RetryableError(f"{outcome.detail}; stop its writers and adopt again")
    return survey.adoption


def _survey(store: Store, key: Sequence[str]) -> AdoptionSurvey:
    require_no_inner_tables(store)
    log = _log(store)
    if log is not None:
        columns = delta_columns(log)
        constants, obstacles = of_log(log, columns)
        sizes: dict[str, int | None] = {path: add.bytes for path, add in sorted(log.adds.items())}
        refuse(obstacles)
    else:
        sizes = dict.fromkeys(data_files(store))
        _require_parquet_alone(store)
        if not sizes:
            raise TableNotFoundError(
                "there is nothing to adopt, neither a Delta table nor *.parquet", path=str(store)
            )
        columns, constants = _columns_of(store, list(sizes))
    schema = adopted_schema(columns, key)
    files = tuple(
        look_into(store, path, schema, size, constants.get(path)) for path, size in sizes.items()
    )
    return AdoptionSurvey(log, schema, files)


def _columns_of(store: Store, paths: Sequence[str]) -> tuple[pa.Schema, Constants]:
    """The columns of a folder's files, with those that the names of its folders have."""
    constants, named, obstacles = of_folders(paths)
    met = [(path, _columns(store, path)) for path in paths]
    obstacles += [
        f"{path} has a column {name!r}, and its folder's name has it too: rewrite the file"
        for path, columns in met
        for name in named.names
        if name in columns.names
    ][:1]
    refuse(obstacles)
    columns = common_columns([*met, *([("the folders' names", named)] if named.names else [])])
    return columns, constants


def _log(store: Store) -> LogState | None:
    try:
        return read_log(store)
    except TableNotFoundError:
        return None
    except UnsupportedError as error:
        features = error.facts.get("reader_features") or "column mapping"
        refuse(
            [
                f"readers must know {features}: apply it (REORG TABLE … APPLY (PURGE) for deletion"
                " vectors) and drop the feature until minReaderVersion is 1, or copy the rows into"
                " a new table"
            ]
        )
        raise


def _columns(store: Store, path: str) -> pa.Schema:
    with ForeignFile(store, path) as file:
        return file.columns()


# Only the metadata of these formats can tell which files still belong to the table.
_OTHERS = {".hoodie": "a Hudi table", "metadata": "an Iceberg table", "_spark_metadata": "a stream"}


def _require_parquet_alone(store: Store) -> None:
    folders = set(store.folders())
    refuse(
        [
            f"the folder {name} shows that this is {what}, whose rows aren't simply those of its"
            " files: rewrite it as Delta or plain Parquet"
            for name, what in _OTHERS.items()
            if name in folders
        ]
    )


def _before(store: Store, log: LogState) -> Snapshot:
    times = [add.modified_ms for add in log.adds.values()]
    path = commit_path(log.version)
    if store.size(path) is not None:
        infos = (a for a in decode_commit(store.read(path), path) if isinstance(a, CommitInfo))
        times += [info.timestamp_ms for info in infos if info.timestamp_ms is not None]
    return Snapshot(log.version, max(times, default=NO_MOMENT), log, Manifest(0))


def _as_base_file(
    store: Store, file: FoundFile, group: int, schema: TableSchema, entropy: Entropy
) -> NewFile:
    segment = Segment(group, file.rows)
    if not file.unfit:
        tail = file.tail_bytes, file.tail_checksum
        return NewFile(BaseFile(file.path, file.bytes, (segment,), 0, *tail), file.stats)
    path = base_path(group, 0, entropy)
    if file.fits_with_them:
        try:
            return create_base(
                store, path, (segment,), partial(with_constants, store, file, schema)
            )
        except UnsupportedError:
            pass  # pages that can't be copied; nothing was written
    return create_base_of(store, path, segment, _rows(store, file, schema), schema)


def _rows(store: Store, file: FoundFile, schema: TableSchema) -> Iterator[pa.Table]:
    with ForeignFile(store, file.path, file.constants) as source:
        for row_group in range(source.row_groups):
            yield in_layout(source.read(row_group, schema.columns), list(schema.arrow), {})

"""Merges: rows of a source decide which rows of a table are inserted, updated and deleted.

    source keys -> which rows of the table they match -> rows of each clause -> one upsert

If no clause reads the table, the row index shows what matches. Otherwise the key and the columns
that clauses read are scanned; a source whose keys lie close together needs few row groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, KeyHashes, Mask
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import near_keys, repeated_key, same_keys
from lakesplice.planning.by_hand.merge_clauses import (
    SOURCE,
    TARGET,
    Action,
    BoundClause,
    Clause,
    Rows,
    bound,
    by_clause,
    merge_columns,
)
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.by_hand.edits.condition_edits import named_columns
from lakesplice.table.by_hand.edits.merge_builder import MergeBuilder
from lakesplice.table.by_hand.input_rows import Rows as GivenRows
from lakesplice.table.by_hand.input_rows import all_rows, table_of
from lakesplice.table.by_hand.upserts.upsert_request import (
    Operation,
    Upserted,
    UpsertRequest,
    require_changeable,
)
from lakesplice.table.by_hand.writer import Writer
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Table

Read = Callable[[Sequence[str], pc.Expression | None], pa.Table]
Live = Callable[[KeyHashes], Mask]


@dataclass(frozen=True)
class Merge:
    """The clauses of a merge with the rows of its source, by their own names."""

    clauses: tuple[Clause, ...]
    source: pa.Table

    def request(
        self, schema: TableSchema, target: pa.Schema, read: Read, live: Live
    ) -> UpsertRequest:
        """Return what the merge changes in one version of a table.

        `target` has the table's columns by all their names, `read` reads some of its rows, `live`
        returns which keys it has. Blocks; raises the errors of `MergeBuilder.execute`.
        """
        keys = all_rows(self.source, schema, schema.key)
        source = _KeyedSource(keys, key_hash(keys, schema), self.source)
        given = self.source.schema
        columns = {rows: merge_columns(rows, target, given) for rows in Rows}
        clauses: dict[Rows, list[BoundClause]] = {rows: [] for rows in Rows}
        for clause in self.clauses:
            clauses[clause.rows].append(bound(clause, columns[clause.rows], given, schema))
        changes = _Changes(schema)
        for rows, sides in _matched(schema, clauses, source, read, live).items():
            changes.add(clauses[rows], sides, columns[rows])
        changes.require_single_rows()
        deleted = changes.deleted or [keys.slice(0, 0)]
        return UpsertRequest(
            tuple(changes.written),
            pa.concat_tables(deleted),
            fills=True,
            operation=Operation.MERGE,
            parameters={"clauses": "; ".join(map(str, self.clauses))},
        )


@dataclass(frozen=True)
class _KeyedSource:
    """Rows with their keys, by stored names and types, and the keys' hashes."""

    keys: pa.Table
    hashes: KeyHashes
    rows: pa.Table


@dataclass(frozen=True)
class _Sides:
    """The rows to which clauses of one kind apply: indexes in the table's rows that were read, and
    in the source's rows; None if the kind has no such side.
    """

    keys: pa.Table
    hashes: KeyHashes
    target: pa.Table | None = None
    source: pa.Table | None = None

    def frame(self, columns: pa.Schema, needed: frozenset[str]) -> pa.Table:
        """Return the needed columns by the names that clauses use."""
        found = {}
        for name in columns.names:
            if name not in needed:
                continue
            side, plain = self.source, name.removeprefix(SOURCE)
            if name.startswith(TARGET) or (side is None or plain not in side.column_names):
                side, plain = self.target, name.removeprefix(TARGET)
            assert side is not None
            found[name] = side.column(plain)
        if not found:  # only the number of rows counts
            return self.keys
        return pa.table(found)


def _matched(
    schema: TableSchema,
    clauses: dict[Rows, list[BoundClause]],
    source: _KeyedSource,
    read: Read,
    live: Live,
) -> dict[Rows, _Sides]:
    by_source = clauses[Rows.NOT_MATCHED_BY_SOURCE]
    names = _target_columns([*clauses[Rows.MATCHED], *by_source], source.rows.schema)
    if not names and not by_source:
        there = np.flatnonzero(live(source.hashes))
        return {
            Rows.MATCHED: _of_source(source, there),
            Rows.NOT_MATCHED: _of_source(source, _others(there, source.keys.num_rows)),
        }
    near = None if by_source else near_keys(source.keys, schema)
    rows = read([*dict.fromkeys([*schema.key, *names])], near)
    target = _KeyedSource(rows.select(list(schema.key)), key_hash(rows, schema), rows)
    of_target, of_source = same_keys(target.hashes, source.hashes)
    matched = replace(_of_source(source, of_source), target=rows.take(pa.array(of_target)))
    alone = _others(of_target, rows.num_rows)
    return {
        Rows.MATCHED: matched,
        Rows.NOT_MATCHED: _of_source(source, _others(of_source, source.keys.num_rows)),
        Rows.NOT_MATCHED_BY_SOURCE: _Sides(
            target.keys.take(pa.array(alone)),
            target.hashes.only(alone),
            rows.take(pa.array(alone)) if by_source else None,
        ),
    }


def _target_columns(clauses: Sequence[BoundClause], source: pa.Schema) -> list[str]:
    """The table's columns that clauses read, by the names that they use."""
    names: dict[str, None] = {}
    for clause in clauses:
        matched = clause.clause.rows is Rows.MATCHED
        for name in sorted(clause.needed):
            if name.startswith(TARGET):
                names[name.removeprefix(TARGET)] = None
            elif not name.startswith(SOURCE) and not (matched and name in source.names):
                names[name] = None
    return list(names)


def _others(places: Integers, count: int) -> Integers:
    left = np.ones(count, np.bool_)
    left[places] = False
    return np.flatnonzero(left)


def _of_source(source: _KeyedSource, places: Integers) -> _Sides:
    at = pa.array(places)
    return _Sides(source.keys.take(at), source.hashes.only(places), source=source.rows.take(at))


class _Changes:
    """Rows to write and keys to delete, as clauses add them."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._hashes: list[KeyHashes] = []
        self.written: list[pa.Table] = []
        self.deleted: list[pa.Table] = []

    def add(self, clauses: Sequence[BoundClause], sides: _Sides, columns: pa.Schema) -> None:
        needed = frozenset().union(*(clause.needed for clause in clauses))
        frame = sides.frame(columns, needed)
        for clause, places in by_clause(clauses, frame):
            if clause.clause.action is Action.REFUSE:
                raise UsageError(
                    "rows with these keys are there already; use upsert or merge to change them",
                    rows=len(places),
                    key=sides.keys.slice(places[0], 1).to_pylist(),
                )
            keys = sides.keys.take(pa.array(places))
            self._hashes.append(sides.hashes.only(places))
            if clause.values is None:
                self.deleted.append(keys)
            else:
                values = clause.values.of(frame.take(pa.array(places)))
                self.written.append(self._rows(keys, values))

    def _rows(self, keys: pa.Table, values: dict[str, pa.ChunkedArray]) -> pa.Table:
        for name in self._schema.key:
            if name in values and not values[name].equals(keys.column(name)):
                raise UsageError("a merge inserts rows with the keys of its source", column=name)
        found = {**{name: keys.column(name) for name in self._schema.key}, **values}
        return pa.table({name: found[name] for name in self._schema.names if name in found})

    def require_single_rows(self) -> None:
        """Raise `UsageError` if two rows have the same key."""
        none = np.empty(0, np.uint64)
        high = np.concatenate([none, *(one.high for one in self._hashes)])
        low = np.concatenate([none, *(one.low for one in self._hashes)])
        if repeated_key(KeyHashes(high, low)) is not None:
            raise UsageError(
                "several rows of the source have the key of one row; give only one of them, or"
                " conditions that leave one"
            )


def merge_into(writer: Writer, source: GivenRows) -> MergeBuilder:
    """Begin a merge of a source's rows into a table; see `HandFedTable.merge`."""
    rows = source_rows(source)

    def execute(
        clauses: tuple[Clause, ...],
        *,
        transaction: tuple[str, int] | None,
        merge: bool | None,
        merge_schema: bool,
    ) -> Upserted:
        if not clauses:
            raise UsageError("a merge needs a clause, such as when_matched_update()")
        require_changeable(writer.snapshot.manifest)
        if merge_schema:
            writer.extend_schema(rows.schema, transaction)

        def requested(snapshot: Snapshot) -> UpsertRequest:
            schema, table = snapshot.manifest.schema, Table(writer.store, snapshot=snapshot)
            request = Merge(clauses, rows).request(
                schema,
                named_columns(schema),
                lambda names, near: table.read(columns=names, filter=near),
                lambda keys: writer.live(snapshot, keys),
            )
            return replace(request, merge=merge)

        return writer.change_rows(requested, transaction)

    return MergeBuilder(execute)


def source_rows(given: GivenRows) -> pa.Table:
    """Return a merge's source in one table, with texts and bytes as Arrow's functions expect them;
    `UsageError` if two columns have the same name.
    """
    rows = table_of(given)
    if len(set(rows.column_names)) < rows.num_columns:
        raise UsageError("a source has two columns of one name", columns=rows.column_names)
    return pa.table(
        {
            name: values.cast(_plain(values.type))
            for name, values in zip(rows.column_names, rows.columns, strict=True)
        }
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    is_bytes = pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return pa.binary() if is_bytes else kind

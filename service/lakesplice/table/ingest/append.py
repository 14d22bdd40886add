"""Append: the changes of one key range of a table become a delta, a base file and an index run.

It runs in a task. Nothing that it writes is visible before the driver commits it, so a task that is
retried or abandoned leaves only files that no version names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.deltas import encode_delta
from lakesplice.formats.rowindex import Entries
from lakesplice.model.address import GROUP_BITS, BaseFile, Partition, Segment
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.manifest import DeltaRef, ErasedRef, Manifest, RunRef
from lakesplice.model.names import (
    GROUP,
    IS_DELETED,
    KEY_HIGH,
    KEY_LOW,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.decision import Decision, DecisionRules, decide
from lakesplice.planning.rows.partial_fold import hidden_rows, partial_rows, without_values_below
from lakesplice.planning.shape.partition_columns import partitions_of
from lakesplice.table.files.base_files import create_base_of
from lakesplice.table.files.erased_keys import erased_for
from lakesplice.table.files.index_runs import RunCache, write_entries
from lakesplice.table.files.whole_files import put_file
from lakesplice.table.ingest.moved_rows import split_moves
from lakesplice.table.protocol import layout
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store


@dataclass(frozen=True)
class AppendPlan:
    """What a task must know of a table to append to it.

    schema          the table's
    runs            the runs of its row index, oldest first
    groups          its live file groups, ascending
    insert_only     whether its rows never change
    floor, fence    the purge floor and the fence of the topic that the changes come from
    files, deltas   its base files and deltas, from which rows that move are read; empty in a table
                    without partition columns
    erased          the file of erased keys; None if no row was erased
    """

    schema: TableSchema
    runs: tuple[RunRef, ...]
    groups: Integers
    insert_only: bool = False
    floor: Position = BEFORE_ALL
    fence: Position = BEFORE_ALL
    files: tuple[BaseFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    erased: ErasedRef | None = None

    @classmethod
    def of(
        cls, manifest: Manifest, topic: str | None = None, *, insert_only: bool = False
    ) -> AppendPlan:
        """Return the plan for the changes of a topic, by default of the table's only topic."""
        groups = np.array(sorted(manifest.groups), np.int64)
        source = manifest.source if topic is None else manifest.sources.get(topic)
        fence, floor = (
            (BEFORE_ALL, BEFORE_ALL) if source is None else (source.fence, source.purge_floor)
        )
        if manifest.schema.keeps_versions:
            fence = BEFORE_ALL  # a late change is a version that ended there
        plan = cls(
            schema=manifest.schema,
            runs=manifest.runs,
            groups=groups,
            insert_only=insert_only,
            floor=floor,
            fence=fence,
            erased=manifest.erased,
        )
        if not manifest.schema.partitioned_by:
            return plan
        return replace(plan, files=tuple(manifest.files.values()), deltas=manifest.deltas)

    def rules(self, store: Store, changes: pa.Table) -> DecisionRules:
        """Return the rules by which changes are decided. Blocks if one may be of an erased row;
        then also `CorruptFileError`, `StorageError`.
        """
        return DecisionRules(
            self.schema,
            self.groups,
            self.insert_only,
            self.floor,
            self.fence,
            erased_for(store, self.erased, changes),
        )


@dataclass(frozen=True)
class Appended:
    """What was written for one range of keys. `delta` and `run` are None if none was needed.

    `files` are the new base files, one per partition that got rows. If rows moved, `read` are the
    paths of the deltas that were read for it, else None: the commit is refused if others wait by
    then. `left` are the file groups that rows moved from.

    `counts` has

        folded        the changes after the fold
        updated       those of known keys
        moved         those of `updated` whose rows moved to another partition
        inserted      those that became rows
        incomplete    those of `inserted` that are hidden until all their columns are known
        duplicates    in an insert-only table instead of `updated`: changes of known keys, and all
                      but the first of a new key
        below_floor   changes of unknown keys that a purge may have removed
        late          changes at or below the fence
        erased        changes of erased rows
    """

    files: tuple[NewFile, ...]
    delta: DeltaRef | None
    run: RunRef | None
    counts: Mapping[str, int]
    read: frozenset[str] | None = None
    left: frozenset[int] = frozenset()

    @property
    def deltas(self) -> tuple[DeltaRef, ...]:
        """The delta, if there is one."""
        return () if self.delta is None else (self.delta,)

    @property
    def runs(self) -> tuple[RunRef, ...]:
        """The run, if there is one."""
        return () if self.run is None else (self.run,)


def append(
    store: Store,
    plan: AppendPlan,
    changes: Sequence[pa.Table],
    runs: RunCache,
    entropy: Entropy,
) -> Appended:
    """Fold, locate and write the changes of one key range: those of known keys to a delta, those of
    new keys to a base file.

    `changes` are in `changes_schema(plan.schema)`.

    Blocks. Raises `StorageError`, and `CorruptFileError` for a damaged run; if rows may move, also
    for a damaged base file or delta.
    """
    given = pa.concat_tables(changes)
    rules = plan.rules(store, given)
    decided = decide(given, rules, lambda: runs.open_runs(store, plan.runs))
    folded, known, new = decided.folded, decided.known, decided.new
    late = _without_effect(decided)
    if late and not decided.above_fence:
        return Appended((), None, None, late)
    delta, moved, left = None, None, frozenset[int]()
    if known.any() and not plan.insert_only:
        places = decided.group[known], decided.row[known]
        located = _located(folded.filter(pa.array(known)), *places)
        if plan.schema.partitioned_by:
            split = split_moves(store, plan.schema, plan.files, plan.deltas, located)
            located, moved, left = split.staying, split.moved, split.left
        if located.num_rows:
            delta = write_delta(store, located, plan.schema, entropy)
    inserts = without_values_below(folded.filter(pa.array(new)), plan.schema, plan.floor)
    files, run = _write_rows(store, _as_rows(inserts, plan.schema, moved), plan.schema, entropy)
    updated, inserted = int(known.sum()), int(new.sum())
    counts = {"folded": folded.num_rows, "updated": updated, "inserted": inserted}
    counts["below_floor"] = folded.num_rows - updated - inserted
    counts |= late
    counts |= _incomplete(folded, new, plan.schema)
    if plan.insert_only:
        counts |= {"updated": 0, "duplicates": decided.above_fence - counts["inserted"]}
    if moved is None:
        return Appended(files, delta, run, counts)
    counts |= {"moved": moved.num_rows}
    read = frozenset(ref.file.path for ref in plan.deltas)
    return Appended(files, delta, run, counts, read, left)


def _without_effect(decided: Decision) -> dict[str, int]:
    counts = {"late": decided.below_fence, "erased": decided.erased}
    return {name: count for name, count in counts.items() if count}


def _incomplete(changes: pa.Table, new: Mask, schema: TableSchema) -> dict[str, int]:
    """Count new rows that are hidden since a column is unknown, without those that were deleted."""
    rows = changes.filter(pa.array(new & partial_rows(changes, schema)))
    count = int(np.count_nonzero(hidden_rows(rows, schema))) if rows.num_rows else 0
    return {"incomplete": count} if count else {}


def _located(changes: pa.Table, group: Integers, row: Integers) -> pa.Table:
    return changes.append_column(GROUP, pa.array(group)).append_column(ROW, pa.array(row))


def write_delta(store: Store, located: pa.Table, schema: TableSchema, entropy: Entropy) -> DeltaRef:
    """Write a delta of located changes, with those user columns that `located` has."""
    data = encode_delta(located, schema)
    ref = put_file(store, layout.delta_path(entropy), data)
    groups, counts = np.unique(located[GROUP].to_numpy(), return_counts=True)
    waiting = {int(group): int(count) for group, count in zip(groups, counts, strict=True)}
    return DeltaRef(ref, located.num_rows, schema.version, waiting)


def _as_rows(inserts: pa.Table, schema: TableSchema, moved: pa.Table | None) -> pa.Table:
    """Return the rows to write to base files, followed by the hashes of their keys."""
    # A deleted row's last version is a row like the others: it ends the interval before it.
    gone = (
        np.zeros(len(inserts), np.bool_) if schema.keeps_versions else hidden_rows(inserts, schema)
    )
    deleted = pa.array(gone)
    names = [*schema.arrow.names, KEY_HIGH, KEY_LOW]
    rows = inserts.append_column(IS_DELETED, deleted).select(names)
    if moved is None:
        return rows
    return pa.concat_tables([rows.cast(moved.schema), moved])


def _write_rows(
    store: Store, rows: pa.Table, schema: TableSchema, entropy: Entropy
) -> tuple[tuple[NewFile, ...], RunRef | None]:
    """Write rows to new file groups, one per partition, and an index run of them."""
    if not rows.num_rows:
        return (), None
    # In the source's order, rows that are later changed together are next to each other.
    rows = rows.sort_by([(POSITION_FILE, "ascending"), (POSITION_OFFSET, "ascending")])
    files, pieces = [], []
    for partition, part in _by_partition(rows, schema):
        group = entropy.bits(GROUP_BITS)
        folder = layout.partition_folder(schema.partitioned_by, partition)
        path = layout.base_path(group, 0, entropy, folder)
        base, segment = part.select(schema.arrow.names), Segment(group, part.num_rows)
        files.append(create_base_of(store, path, segment, [base], schema, partition))
        high, low = part[KEY_HIGH].to_numpy(), part[KEY_LOW].to_numpy()
        count = len(high)
        pieces.append(Entries(high, low, np.full(count, group, np.int64), np.arange(count)))
    return tuple(files), write_entries(store, pieces, entropy)


def _by_partition(rows: pa.Table, schema: TableSchema) -> Iterator[tuple[Partition, pa.Table]]:
    if not schema.partitioned_by:
        yield (), rows
        return
    found = partitions_of(rows, schema)
    for code, partition in enumerate(found.values):
        yield partition, rows.take(pa.array(np.flatnonzero(found.codes == code)))

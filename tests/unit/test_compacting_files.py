"""Compaction of files: which results it refuses to commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError, MissingFileError, UnsupportedError
from lakesplice.formats.parquet import BaseReader, WrittenBase, write_base
from lakesplice.model.address import BaseFile
from lakesplice.model.change import Op
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ColumnEdit, ComparedEdits, Edits, apply_edits
from lakesplice.planning.upkeep import gathering
from lakesplice.splicing.shared_pages import shared_pages
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.compact import compact_files
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeTable:
    monkeypatch.setattr(gathering, "FILE_BYTES_MAX", 0)  # each file is spliced
    made = MadeTable(tmp_path, EVERY_TYPE)
    made.insert([row(at, LOW) for at in range(6)], [row(at, LOW) for at in range(6, 9)])
    made.change([(Op.UPDATE, row(2, HIGH)), (Op.UPDATE, row(7, HIGH))], [(Op.DELETE, row(3, LOW))])
    return made


class Careless:
    """A rewriter that does something to the edits or the rows before it writes them."""

    def __init__(
        self,
        edit: Callable[[Edits], Edits] = lambda edits: edits,
        keep: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> None:
        self._edit, self._keep = edit, keep

    def compared(self, source: pa.NativeFile, file: BaseFile, edits: Edits) -> ComparedEdits:
        return best_rewriter().compared(source, file, edits)

    def rewrite(
        self,
        source: pa.NativeFile,
        file: BaseFile,
        edits: Edits,
        schema: TableSchema,
        sink: pa.NativeFile,
    ) -> WrittenBase:
        rows = BaseReader(source, file, schema).read(0)
        return write_base([self._keep(apply_edits(rows, self._edit(edits)))], schema, sink)


def off_by_one(edits: Edits) -> Edits:
    columns = {n: ColumnEdit(e.rows - 1, e.values) for n, e in edits.columns.items()}
    return Edits(edits.rows - 1, columns, edits.applied, edits.stale)


@pytest.mark.parametrize(
    "rewriter",
    [
        Careless(edit=lambda _: Edits()),
        Careless(edit=off_by_one),
        Careless(keep=lambda rows: rows.slice(1)),
        Careless(keep=lambda rows: rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))),
    ],
    ids=["no edits", "the row before", "a row less", "another order"],
)
def test_a_file_that_does_not_hold_what_was_meant_is_not_handed_over(
    table: MadeTable, rewriter: Careless
) -> None:
    paths = list(table.manifest.files)
    with pytest.raises(CorruptFileError):
        compact_files(table.store, table.manifest, paths, rewriter, table.entropy)


@pytest.mark.slow
def test_only_the_files_asked_for_are_rewritten_and_consumed(table: MadeTable) -> None:
    first, second = table.manifest.files.values()
    done = table.compact([second.path])
    assert set(done.replaced) == {second.path}
    (new,) = done.replaced.values()
    assert new.base.segments == second.segments
    assert new.base.splices == 1
    assert [set(delta.waiting) for delta in table.manifest.deltas] == [
        {first.segments[0].group},
        {first.segments[0].group},
    ]
    assert Table(table.store).read().sort_by("c_long_0").to_pylist() == table.live()


@pytest.mark.slow
def test_each_delta_is_read_once_for_all_files(
    table: MadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = type(table.store).read

    def counted(store: LocalStore, path: str) -> bytes:
        read.append(path)
        return whole(store, path)

    monkeypatch.setattr(type(table.store), "read", counted)
    paths = list(table.manifest.files)
    compact_files(table.store, table.manifest, paths, best_rewriter(), table.entropy)
    assert sorted(read) == sorted(delta.file.path for delta in table.manifest.deltas)


@pytest.mark.slow
def test_a_damaged_or_missing_file_yields_no_new_file(table: MadeTable, tmp_path: Path) -> None:
    paths = list(table.manifest.files)
    for kind, damage in (("_lakesplice/deltas", 40), ("base", 40)):
        path = next(iter(table.store.list(kind)))
        data = (tmp_path / path).read_bytes()
        (tmp_path / path).write_bytes(data[:damage] + b"!" + data[damage + 1 :])
        with pytest.raises(CorruptFileError, match=path):
            compact_files(table.store, table.manifest, paths, best_rewriter(), table.entropy)
        (tmp_path / path).unlink()
        with pytest.raises(MissingFileError, match=path):
            compact_files(table.store, table.manifest, paths, best_rewriter(), table.entropy)
        (tmp_path / path).write_bytes(data)
    assert table.compact().counts["rows"] == 3


class WithoutBeforeImages(MadeTable):
    """Its changes are whole rows, and nothing says what of them is new."""

    def _facts(self, op: Op, before: Any, after: Any) -> dict[str, Any]:
        return {**super()._facts(op, before, after), "_changed": None, "_before_digest": None}


@pytest.mark.slow
def test_a_change_that_brings_nothing_new_moves_its_row_all_the_same(tmp_path: Path) -> None:
    made = WithoutBeforeImages(tmp_path, EVERY_TYPE)
    made.insert([row(at, LOW) for at in range(6)])
    (before,) = made.manifest.files
    inserted = made._next
    made._next += 10
    made.change([(Op.UPDATE, row(2, LOW))])
    done = made.compact()
    (after,) = made.manifest.files
    with made.store.open(before) as old, made.store.open(after) as new:
        shared = shared_pages(SourceFile(old, before), SourceFile(new, after))
    encoded = {name for name, found in shared.items() if found.pages_shared < found.pages}
    assert encoded == {"_position_offset", "_source_ts"}
    # Those two and the digest aren't compared, and the key isn't edited.
    assert done.counts["pages_equal"] == len(shared) - 3 - len(made.schema.key)
    # A change from in between comes late.
    made._next = inserted
    made.change([(Op.UPDATE, row(2, HIGH))])
    made.rows[2] = row(2, LOW)
    assert Table(made.store).read().sort_by("c_long_0").to_pylist() == made.live()
    assert made.compact().counts["stale"] == 1
    assert Table(made.store).read().sort_by("c_long_0").to_pylist() == made.live()


class Late:
    """Finds only when it has written something that it can't go on."""

    def compared(self, source: Any, file: Any, edits: Any) -> ComparedEdits:
        return best_rewriter().compared(source, file, edits)

    def rewrite(self, source: Any, file: Any, edits: Any, schema: Any, sink: Any) -> WrittenBase:
        sink.write(b"PAR1")
        raise UnsupportedError("a page can't be decoded", path=file.path)


@pytest.mark.slow
def test_a_file_that_turns_out_not_to_be_spliceable_is_rewritten_under_another_name(
    table: MadeTable,
) -> None:
    paths = list(table.manifest.files)
    before = set(table.store.list("base"))
    done = compact_files(table.store, table.manifest, paths, Late(), table.entropy)
    assert done.counts["fallback_late"] == len(done.replaced)
    new = {file.base.path for file in done.replaced.values()}
    assert set(table.store.list("base")) == before | new

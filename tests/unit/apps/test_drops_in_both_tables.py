"""A source's table is dropped and created again, and feeds two tables: the one of current rows
deletes the rows, and the history table ends their versions.
"""

from __future__ import annotations

from pathlib import Path

from lakesplice.table.reading.table import Table
from tests.support.dropping_service import DroppingService
from tests.support.versions import intervals

BOTH = [{"match": "two.*", "also": ["history"]}]


def nothing() -> None:
    """A moment in which nothing happens."""


def test_a_drop_empties_the_table_of_current_rows_and_ends_the_versions_beside_it(
    tmp_path: Path,
) -> None:
    service = DroppingService(tmp_path, tables=BOTH)
    service.put(1, 1, 2, 3)
    service.run([nothing, nothing, lambda: service.drop(1), nothing, lambda: service.put(1, 3, 4)])
    service.require_rows(1, 3, 4)
    history = service.history_of(1)
    assert history is not None
    shown = intervals(Table(history.store).read_history())
    ends = {row[0]: row[4] for row in shown if not row[5]}
    assert ends.keys() == {1, 2, 3}
    assert len(set(ends.values())) == 1, "the moment of the DROP"
    assert not history.manifest.deltas
    service.put(1, 2)
    service.start_anew()
    service.run()
    service.require_rows(1, 2, 3, 4)
    assert Table(history.store).read()["_history_op"].to_pylist().count("t") == 1
